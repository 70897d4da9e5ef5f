/* Changes of structure in the commit queue (commit.h, 9): they end their batch, what follows from
 * them is there before anything behind them is looked at, and changes of rows are in the tablet
 * that has their row at their place. */
#include "tablet/commit_observer.h"
#include "tablet/tablet.h"
#include "tablet/testing/testing.h"

/* A table of two tablets at most, which the tests' commits are told is theirs. */
struct table {
    struct tablet_fixture *f;
    struct tablet *whole;
    struct tablet *halves[2];
    bool is_split;
    bool is_gone;
    unsigned routed;
    /* What an observer was told, and the table: "r1" a change of rows in the tablet with that id,
     * "S" a split, "A" that it is applied, "|" the end of a batch. */
    char told[128];
    size_t told_size;
};

static void tell(struct table *table, const char *what)
{
    size_t size = strlen(what);
    assert_true(table->told_size + size < sizeof table->told);
    memcpy(table->told + table->told_size, what, size + 1);
    table->told_size += size;
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct table *table = context;
    char what[8] = "?";
    (void)batch;
    assert_true((records == NULL) == commit_changes_rows(commit->kind));
    if (commit_is_structural(commit->kind))
        assert_ptr_equal(commit->table, table);
    if (commit->kind == COMMIT_SPLIT)
        tell(table, "S");
    else if (commit->kind == COMMIT_END_TABLES)
        tell(table, "E");
    else if (commit->tablet != NULL)
        snprintf(what, sizeof what, "r%u", (unsigned)commit->tablet->id);
    if (commit->kind == COMMIT_ROWS)
        tell(table, what);
    for (size_t i = 0; i < commit->other_count; i++) {
        snprintf(what, sizeof what, "+%u", (unsigned)commit->others[i].tablet->id);
        tell(table, what);
    }
}

static void written(void *context, bool is_written)
{
    tell(context, is_written ? "|" : "!");
}

static status route(struct table *table, bytes row_key, struct tablet **out)
{
    table->routed++;
    if (table->is_gone)
        return status_make(STATUS_NOT_FOUND, "Not found: t");
    *out = !table->is_split                             ? table->whole
           : tablet_contains(table->halves[0], row_key) ? table->halves[0]
                                                        : table->halves[1];
    tablet_retain(*out);
    return status_ok();
}

static void apply_split(const struct catalog_change *change)
{
    struct table *table = change->tables[0];
    table->is_split = true;
    table->whole->is_former = true;
    tell(table, "A");
}

static void apply_end(const struct catalog_change *change)
{
    struct table *table = change->tables[0];
    table->is_gone = true;
    table->whole->is_former = table->halves[0]->is_former = table->halves[1]->is_former = true;
    tell(table, "A");
}

static int setup(void **state)
{
    static struct commit_observer observer;
    struct table *table = calloc(1, sizeof *table);
    assert_non_null(table);
    table->f = tablet_fixture_create();
    close_queue(table->f);
    observer = (struct commit_observer){.context = table, .see = see, .written = written};
    table->f->options.observers = &observer;
    table->f->options.observer_count = 1;
    table->f->options.route = route;
    open_queue(table->f);
    const bytes none = bytes_of("");
    assert_ok(tablet_create(1, NULL, table->f->rows, none, none, &table->whole));
    assert_ok(tablet_create(2, NULL, table->f->rows, none, bytes_of("m"), &table->halves[0]));
    assert_ok(tablet_create(3, NULL, table->f->rows, bytes_of("m"), none, &table->halves[1]));
    *state = table;
    return 0;
}

static int teardown(void **state)
{
    struct table *table = *state;
    tablet_release(table->whole);
    tablet_release(table->halves[0]);
    tablet_release(table->halves[1]);
    tablet_fixture_destroy(table->f);
    free(table);
    return 0;
}

/* --- commits on their way --- */

struct write {
    struct packed_change change;
    struct commit commit;
};

static void ignore(struct task *task)
{
    (void)task;
}

/* A change that was routed before the split, as commits that are made by now all are. */
static void make_write(struct table *table, struct write *write, const char *row)
{
    write->change = add_to_cell(table->f, "q", 1);
    write->commit = commit_of(table->f, row, &write->change);
    write->commit.table = table;
    write->commit.tablet = table->whole;
    write->commit.done.run = ignore;
    tablet_retain(table->whole);
}

static void submit(struct table *table, struct write *write, const char *row)
{
    make_write(table, write, row);
    assert_ok(commit_submit(table->f->queue, &write->commit));
}

static status end(struct write *write)
{
    tablet_release(write->commit.tablet);
    buffer_free(&write->change.fragment);
    return write->commit.result;
}

static void put_record(struct commit *commit, struct store_batch *batch)
{
    store_batch_put(batch, commit->keyspace, bytes_of("Tx"), bytes_of("record"));
}

static struct commit structural(struct table *table, enum commit_kind kind,
                                const struct catalog_change *change)
{
    return (struct commit){.kind = kind,
                           .table = table,
                           .keyspace = table->f->options.catalog,
                           .extend = put_record,
                           .catalog = change,
                           .done = {.run = ignore}};
}

#define SPLIT_OF(table)                                                                            \
    (struct catalog_change)                                                                        \
    {                                                                                              \
        .apply = apply_split, .tables = &(table), .table_count = 1, .former = &(table)->whole,     \
        .former_count = 1, .fresh = (table)->halves, .fresh_count = 2                              \
    }

/* Until all that was submitted has been acknowledged. */
static void wait_for_all(struct table *table)
{
    struct commit barrier = {.kind = COMMIT_BARRIER};
    assert_ok(commit_and_wait(table->f->queue, &barrier));
}

/* --- the tests --- */

static void a_write_is_before_or_after_a_split_by_its_place(void **state)
{
    struct table *table = *state;
    const struct catalog_change change = SPLIT_OF(table);
    struct commit split = structural(table, COMMIT_SPLIT, &change);
    struct write before, left, right;
    uint64_t applied;
    commit_hold(table->f->queue, &applied);
    submit(table, &before, "z");
    assert_ok(commit_submit(table->f->queue, &split));
    submit(table, &left, "a");
    submit(table, &right, "z");
    commit_release(table->f->queue);
    wait_for_all(table);
    assert_true(strncmp(table->told, "r1S|Ar2r3|", 10) == 0);
    assert_int_equal(table->routed, 2);
    assert_ptr_equal(before.commit.tablet, table->whole);
    assert_ptr_equal(right.commit.tablet, table->halves[1]);
    assert_ok(end(&before));
    assert_ok(end(&left));
    assert_ok(end(&right));
    assert_row(table->f, "a", "sum:q@0=1");
    assert_row(table->f, "z", "sum:q@0=2");
    assert_int_equal(atomic_load(&table->whole->references), 1);
    assert_int_equal(atomic_load(&table->halves[0]->references), 1);
    assert_int_equal(atomic_load(&table->halves[1]->references), 1);
}

static void rows_of_a_group_are_routed_each_by_itself(void **state)
{
    struct table *table = *state;
    const struct catalog_change change = SPLIT_OF(table);
    struct commit split = structural(table, COMMIT_SPLIT, &change);
    struct write first, second;
    assert_ok(commit_and_wait(table->f->queue, &split));
    make_write(table, &first, "z");
    make_write(table, &second, "a");
    first.commit.others = &second.commit;
    first.commit.other_count = 1;
    assert_ok(commit_and_wait(table->f->queue, &first.commit));
    assert_string_equal(table->told, "S|Ar3+2|");
    assert_ptr_equal(second.commit.tablet, table->halves[0]);
    assert_ok(end(&second));
    assert_ok(end(&first));
}

static void what_rules_condemn_is_routed_as_writes_are(void **state)
{
    struct table *table = *state;
    const struct catalog_change change = SPLIT_OF(table);
    struct commit split = structural(table, COMMIT_SPLIT, &change);
    struct write write;
    assert_ok(commit_and_wait(table->f->queue, &split));
    make_write(table, &write, "z");
    write.commit.kind = COMMIT_COLLECT;
    assert_ok(commit_and_wait(table->f->queue, &write.commit));
    assert_ptr_equal(write.commit.tablet, table->halves[1]);
    assert_ok(end(&write));
}

static void writes_behind_the_end_of_their_table_are_refused(void **state)
{
    struct table *table = *state;
    const struct catalog_change change = {.apply = apply_end, .tables = &table, .table_count = 1};
    struct commit ending = structural(table, COMMIT_END_TABLES, &change);
    struct write before, single, first, second;
    uint64_t applied;
    commit_hold(table->f->queue, &applied);
    submit(table, &before, "a");
    assert_ok(commit_submit(table->f->queue, &ending));
    submit(table, &single, "b");
    make_write(table, &second, "d");
    make_write(table, &first, "c");
    first.commit.others = &second.commit;
    first.commit.other_count = 1;
    assert_ok(commit_submit(table->f->queue, &first.commit));
    commit_release(table->f->queue);
    wait_for_all(table);
    assert_true(strncmp(table->told, "r1E|A|", 6) == 0);
    assert_ok(end(&before));
    assert_status(end(&single), STATUS_NOT_FOUND);
    assert_ok(end(&second));
    assert_status(end(&first), STATUS_NOT_FOUND);
    assert_row(table->f, "a", "sum:q@0=1");
    assert_row(table->f, "b", "");
    assert_row(table->f, "c", "");
    assert_row(table->f, "d", "");
}

static status refuse(void *context)
{
    (void)context;
    return status_make(STATUS_RESOURCE_EXHAUSTED, "no space");
}

static void what_was_refused_is_not_applied(void **state)
{
    struct table *table = *state;
    const struct catalog_change change = SPLIT_OF(table);
    close_queue(table->f);
    table->f->options.admit = refuse;
    open_queue(table->f);
    struct commit split = structural(table, COMMIT_SPLIT, &change);
    assert_status(commit_and_wait(table->f->queue, &split), STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(table->told, "|");
}

static void what_was_not_written_is_not_applied(void **state)
{
    struct table *table = *state;
    const struct catalog_change change = SPLIT_OF(table);
    close_queue(table->f);
    table->f->faults = fault_fs_create();
    table->f->options.durability = STORE_SYNCED;
    open_queue(table->f);
    struct commit split = structural(table, COMMIT_SPLIT, &change);
    fault_fs_fail(table->f->faults, FAULT_SYNC, ".log", FAULT_IO, 0);
    assert_status(commit_and_wait(table->f->queue, &split), STATUS_UNAVAILABLE);
    fault_fs_heal(table->f->faults);
    assert_string_equal(table->told, "S!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_write_is_before_or_after_a_split_by_its_place, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(rows_of_a_group_are_routed_each_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(what_rules_condemn_is_routed_as_writes_are, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(writes_behind_the_end_of_their_table_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_was_refused_is_not_applied, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_not_written_is_not_applied, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
