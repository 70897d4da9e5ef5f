/* Each write is before or after each change of structure, by sequence: writes that were routed
 * before it and have their place after it. The commit thread is held meanwhile, so that all of them
 * are on their way at once. */
#include "cluster/row_group.h"
#include "cluster/testing/testing.h"
#include "tablet/commit_observer.h"

enum { DAY_SECONDS = 24 * 60 * 60 };

/* --- what an observer sees --- */

/* "a[,g)" a write of the row a in that tablet, or "a[,g)+b[,g)" of several at once; "split g",
 * "merge g", "schema 4" with so many families, "create 2" with so many tablets, "delete",
 * "undelete", "end 2" of so many tables. Behind each how many families the table has as the commit
 * thread sees it, if that is not 3. */
struct seen {
    _Atomic(struct table *) table; /* of a change of another nothing is told, unless it is new */
    struct buffer text;
    uint64_t last;
};

static void tell_row(struct buffer *out, const struct commit *commit)
{
    const struct tablet *tablet = commit->tablet;
    buffer_append_format(out, "%.*s[%.*s,%.*s)", (int)commit->row_key.size,
                         (const char *)commit->row_key.data, (int)tablet->start.size,
                         (const char *)tablet->start.data, (int)tablet->end.size,
                         (const char *)tablet->end.data);
    assert_true(tablet_contains(tablet, commit->row_key));
}

static void tell_border(struct buffer *out, const char *what, const struct tablet *right)
{
    buffer_append_format(out, "%s %.*s", what, (int)right->start.size,
                         (const char *)right->start.data);
}

static void tell_structure(struct buffer *out, const struct commit *commit)
{
    const struct catalog_change *change = commit->catalog;
    switch (commit->kind) {
    case COMMIT_SPLIT:
        tell_border(out, "split", change->fresh[1]);
        break;
    case COMMIT_MERGE:
        tell_border(out, "merge", change->former[1]);
        break;
    case COMMIT_CREATE_TABLE:
        buffer_append_format(out, "create %zu", change->fresh_count);
        break;
    case COMMIT_CHANGE_TABLE:
        buffer_append_format(out, "schema %zu", change->schema->family_count);
        break;
    case COMMIT_END_TABLES:
        buffer_append_format(out, "end %zu", change->table_count);
        break;
    default:
        buffer_append_format(out, commit->kind == COMMIT_DELETE_TABLE ? "delete" : "undelete");
    }
}

static bool is_told(struct seen *seen, const struct commit *commit)
{
    const struct table *table = atomic_load(&seen->table);
    if (table == NULL || commit->table == NULL)
        return false;
    return commit->table == table ||
           (commit->kind == COMMIT_CREATE_TABLE &&
            bytes_start_with(bytes_of(table_name(commit->table)), bytes_of("projects/")));
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct seen *seen = context;
    struct buffer *out = &seen->text;
    (void)records, (void)batch;
    assert_true(commit->sequence > seen->last);
    seen->last = commit->sequence;
    if (!is_told(seen, commit))
        return;
    if (out->size > 0)
        buffer_append_byte(out, ' ');
    if (commit_is_structural(commit->kind))
        tell_structure(out, commit);
    else
        tell_row(out, commit);
    for (size_t i = 0; i < commit->other_count; i++) {
        buffer_append_byte(out, '+');
        tell_row(out, &commit->others[i]);
    }
    size_t families = table_schema(commit->table)->family_count;
    if (families != 3)
        buffer_append_format(out, "/%zu", families);
}

/* Of what was acknowledged. */
static void assert_seen(struct seen *seen, const char *expected)
{
    buffer_append_byte(&seen->text, 0);
    assert_false(seen->text.failed);
    assert_string_equal((const char *)seen->text.data, expected);
    buffer_clear(&seen->text);
}

/* --- a cluster --- */

static struct seen seen;

static int setup(void **state)
{
    static const struct commit_observer observer = {.context = &seen, .see = see};
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    f->options.observers = &observer;
    f->options.observer_count = 1;
    f->options.undelete_window_us = INT64_C(1000000) * DAY_SECONDS;
    seen = (struct seen){.last = 0};
    reopen_test_cluster(f);
    seen.table = f->table;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    buffer_free(&seen.text);
    return 0;
}

/* --- a change of structure that waits in the queue --- */

struct reshaping {
    struct cluster_fixture *f;
    void (*make)(struct cluster_fixture *f);
    pthread_t thread;
};

static void *run_reshaping(void *argument)
{
    struct reshaping *reshaping = argument;
    reshaping->make(reshaping->f);
    return NULL;
}

/* Holds the queue, and lets the change enter it: what is written from now on comes behind it. */
static void begin(struct cluster_fixture *f, struct reshaping *reshaping,
                  void (*make)(struct cluster_fixture *f))
{
    uint64_t applied;
    *reshaping = (struct reshaping){.f = f, .make = make};
    commit_hold(f->cluster->home->commits, &applied);
    double load = commit_queue_load(f->cluster->home->commits);
    assert_ok(thread_start(&reshaping->thread, "reshape", run_reshaping, reshaping));
    while (commit_queue_load(f->cluster->home->commits) <= load)
        sched_yield();
}

static void finish(struct reshaping *reshaping)
{
    commit_release(reshaping->f->cluster->home->commits);
    assert_int_equal(pthread_join(reshaping->thread, NULL), 0);
}

/* --- writes of each kind: begun, and in the queue --- */

struct writes {
    struct event event;
    struct test_write blind;
    struct row_update update;
    struct row_group group;
    struct grouped_row rows[2];
    struct arena *arena;
    struct task task;
    struct event begun;
};

static status decide(struct row_update *update, const struct cell_list *cells,
                     struct packed_change *change, bool *writes)
{
    struct row_change *row_change = row_change_create(update->arena);
    (void)cells;
    assert_non_null(row_change);
    row_change_set(row_change, FAMILY_F, bytes_of("q"), 1, bytes_of("u"));
    *writes = true;
    return row_change_pack(row_change, SIZE_MAX, change);
}

static void update_done(struct row_update *update, status result)
{
    event_add(&((struct writes *)(void *)((char *)update - offsetof(struct writes, update)))->event,
              result);
}

static void group_done(struct row_group *group, status result)
{
    event_add(&((struct writes *)(void *)((char *)group - offsetof(struct writes, group)))->event,
              result);
}

/* On the loop, one after the other: a, then h, then b with i. */
static void start_writes(struct task *task)
{
    struct writes *writes = LIST_ENTRY(&task->link, struct writes, task.link);
    rows_write(&writes->blind.write);
    rows_update(&writes->update);
    assert_ok(row_group_submit(&writes->group));
    event_add(&writes->begun, status_ok());
}

static void begin_writes(struct cluster_fixture *f, struct writes *writes)
{
    static const char *const keys[] = {"b", "i"};
    event_init(&writes->event);
    event_init(&writes->begun);
    writes->arena = arena_create(1 << 20);
    assert_non_null(writes->arena);
    make_write(f, &writes->blind, bytes_of("a"), setting(f, FAMILY_F, "q", 1, "w"), &writes->event);
    writes->update = (struct row_update){.table = f->table,
                                         .row_key = bytes_of("h"),
                                         .schema = table_schema(f->table),
                                         .arena = writes->arena,
                                         .loop = f->loop,
                                         .decide = decide,
                                         .done = update_done};
    for (size_t i = 0; i < 2; i++) {
        writes->rows[i].row_key = bytes_of(keys[i]);
        assert_ok(
            row_change_pack(setting(f, FAMILY_F, "q", 1, "g"), SIZE_MAX, &writes->rows[i].change));
    }
    writes->group = (struct row_group){.table = f->table,
                                       .rows = writes->rows,
                                       .count = 2,
                                       .arena = writes->arena,
                                       .loop = f->loop,
                                       .done = group_done};
    writes->task.run = start_writes;
    loop_post(f->loop, &writes->task);
    assert_ok(event_wait(&writes->begun, 1));
}

/* The last result that was not OK. */
static status end_writes(struct writes *writes)
{
    status s = event_wait(&writes->event, 3);
    arena_destroy(writes->arena);
    return s;
}

static status write_behind(struct cluster_fixture *f, void (*make)(struct cluster_fixture *f))
{
    struct reshaping reshaping;
    struct writes writes;
    begin(f, &reshaping, make);
    begin_writes(f, &writes);
    finish(&reshaping);
    return end_writes(&writes);
}

/* --- the tests --- */

static void split_at_g(struct cluster_fixture *f)
{
    split_at(f, "g");
}

static void merge_at_g(struct cluster_fixture *f)
{
    merge_at(f, "g");
}

static void writes_behind_a_split_are_in_its_halves(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "h", "x"); /* the update finds it in memory */
    assert_seen(&seen, "h[,)");
    assert_ok(write_behind(f, split_at_g));
    assert_seen(&seen, "split g a[,g) h[g,) b[,g)+i[g,)");
    assert_scan(f, "", "", false, "a=w b=g h=u i=g");
    reopen_test_cluster(f);
    assert_int_equal(table_tablet_count(f->table), 2);
    assert_scan(f, "", "", false, "a=w b=g h=u i=g");
}

static void writes_behind_a_merge_are_in_the_whole(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "h", "x");
    split_at_g(f);
    assert_seen(&seen, "h[,) split g");
    assert_ok(write_behind(f, merge_at_g));
    assert_seen(&seen, "merge g a[,) h[,) b[,)+i[,)");
    assert_scan(f, "", "", false, "a=w b=g h=u i=g");
}

/* One that waits for its row's lock has its place when it has that. */
static void a_write_that_waits_for_its_row_is_behind_what_comes_meanwhile(void **state)
{
    struct cluster_fixture *f = *state;
    struct tablet *tablet = table_route(f->table, bytes_of("k"));
    uint64_t hash = row_lock_hash(keyspace_id(tablet->keyspace), bytes_of("k"));
    struct test_write waiting;
    struct event event;
    event_init(&event);
    tablet_release(tablet);
    row_lock_wait(f->cluster->home->locks, hash);
    post_write(f, &waiting, bytes_of("k"), setting(f, FAMILY_F, "q", 1, "x"), &event);
    set_cell(f, "a", "x"); /* behind it on the loop */
    split_at(f, "g");
    split_at(f, "p");
    merge_at(f, "g");
    row_lock_release(f->cluster->home->locks, hash);
    assert_ok(event_wait(&event, 1));
    assert_seen(&seen, "a[,) split g split p merge g k[,p)");
}

static void delete_t(struct cluster_fixture *f)
{
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
}

static void undelete_t(struct cluster_fixture *f)
{
    assert_ok(cluster_undelete_table(f->cluster, f->table, NULL));
}

static void end_t(struct cluster_fixture *f)
{
    assert_ok(cluster_delete_tables(f->cluster, bytes_of("projects/p/instances/i/"), NULL));
}

static void writes_behind_a_deletion_are_refused(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "h", "x");
    split_at_g(f);
    assert_status(write_behind(f, delete_t), STATUS_NOT_FOUND);
    assert_seen(&seen, "h[,) split g delete");
    assert_status(try_write(f, "c", setting(f, FAMILY_F, "q", 1, "x")), STATUS_NOT_FOUND);
    assert_ok(write_behind(f, undelete_t));
    assert_seen(&seen, "undelete a[,g) h[g,) b[,g)+i[g,)");
    assert_scan(f, "", "", false, "a=w b=g h=u i=g");
}

/* Also in the next start, which knows of the deletion by its record. */
static void a_deleted_table_takes_writes_when_it_is_back(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "h", "x");
    delete_t(f);
    table_release(f->table);
    close_test_cluster(f);
    seen.table = NULL;
    open_test_cluster(f);
    assert_ok(cluster_deleted_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    assert_status(try_write(f, "c", setting(f, FAMILY_F, "q", 1, "x")), STATUS_NOT_FOUND);
    undelete_t(f);
    set_cell(f, "c", "y");
    assert_scan(f, "", "", false, "c=y h=x");
}

static struct table *create_other(struct cluster_fixture *f)
{
    const struct family family = {.id = FAMILY_F, .name = bytes_of("f")};
    const bytes split_key = bytes_of("m");
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    const struct table_spec spec = {.name = "projects/p/instances/i/tables/other",
                                    .schema = schema,
                                    .split_keys = &split_key,
                                    .split_count = 1};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

static void tables_come_and_end_at_a_place(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *t = f->table;
    set_cell(f, "h", "x");
    struct table *other = create_other(f);
    assert_seen(&seen, "h[,) create 2/1");
    seen.table = other; /* its name is first */
    assert_status(write_behind(f, end_t), STATUS_NOT_FOUND);
    assert_seen(&seen, "end 2/1");
    f->table = other;
    assert_status(try_write(f, "a", setting(f, FAMILY_F, "q", 1, "x")), STATUS_NOT_FOUND);
    table_release(other);
    f->table = t;
}

static status add_h(void *context, const struct table_info *now, struct arena *arena,
                    struct table_change *next)
{
    const struct schema *schema = now->schema;
    struct family *families = arena_alloc(arena, (schema->family_count + 1) * sizeof *families);
    (void)context;
    assert_non_null(families);
    memcpy(families, schema->families, schema->family_count * sizeof *families);
    families[schema->family_count] = (struct family){.name = bytes_of("h")};
    *next = (struct table_change){.families = families, .family_count = schema->family_count + 1};
    return status_ok();
}

static void add_family(struct cluster_fixture *f)
{
    struct arena *arena = arena_create(1 << 20);
    assert_non_null(arena);
    assert_ok(table_change_schema(f->table, arena, add_h, NULL));
    arena_destroy(arena);
}

static void a_schema_is_published_at_its_place(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "h", "x");
    assert_ok(write_behind(f, add_family));
    assert_seen(&seen, "h[,) schema 4 a[,)/4 h[,)/4 b[,)+i[,)/4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_behind_a_split_are_in_its_halves, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_behind_a_merge_are_in_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_write_that_waits_for_its_row_is_behind_what_comes_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_behind_a_deletion_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_table_takes_writes_when_it_is_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(tables_come_and_end_at_a_place, setup, teardown),
        cmocka_unit_test_setup_teardown(a_schema_is_published_at_its_place, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
