/* The change log: what is in it, when it is not, and that it ends where the data does. */
#include "tablet/change_log.h"

#include "tablet/commit_observer.h"
#include "tablet/event.h"
#include "tablet/testing/testing.h"

enum { LOG_KEYSPACE = 9, LIMIT = 1 << 20 };

struct fixture {
    struct tablet_fixture *f;
    struct change_log *log;
    struct commit_observer observer;
};

static struct change_log *open_log(struct tablet_fixture *f, uint64_t limit_bytes)
{
    const struct change_log_options options = {
        .store = f->store, .catalog = f->options.catalog, .limit_bytes = limit_bytes};
    struct change_log_state state;
    struct change_log *log;
    bool exists;
    assert_ok(change_log_read(f->options.catalog, &state, &exists));
    assert_true(exists);
    assert_ok(change_log_open(&options, &state, &log));
    return log;
}

static void begin_log(struct tablet_fixture *f)
{
    const struct change_log_state state = {
        .keyspace = LOG_KEYSPACE, .stream = 5, .began = 1, .taken = 1, .is_on = true};
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    make_keyspace(f->store, LOG_KEYSPACE);
    change_log_put(batch, f->options.catalog, &state);
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

/* Opens the queue again, with the log that the store has. */
static void open_with_log(struct fixture *t, uint64_t limit_bytes)
{
    t->log = open_log(t->f, limit_bytes);
    t->observer = change_log_observer(t->log);
    t->f->options.observers = &t->observer;
    t->f->options.observer_count = 1;
    t->f->options.has_change_log = true;
    assert_ok(commit_queue_create(&t->f->options, &t->f->queue));
}

static struct fixture *create(bool has_faults)
{
    struct fixture *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->f = tablet_fixture_create();
    if (has_faults) {
        close_queue(t->f);
        t->f->faults = fault_fs_create();
        open_queue(t->f);
    }
    commit_queue_destroy(t->f->queue);
    begin_log(t->f);
    open_with_log(t, LIMIT);
    return t;
}

static int set_up(void **state)
{
    *state = create(false);
    return 0;
}

static int set_up_faults(void **state)
{
    *state = create(true);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;
    tablet_fixture_destroy(t->f);
    change_log_close(t->log);
    free(t);
    return 0;
}

/* --- what is in it --- */

/* A letter for each event, then one for each change in it: "R(r) C(p)". */
struct telling {
    struct buffer text;
    uint64_t last;
    unsigned entries;
};

static void tell_event(struct telling *telling, struct event_reader *reader,
                       const struct log_event *event)
{
    static const char kinds[] = "?RUDC", changes[] = "?rpmdDKXF";
    struct event_change change;
    assert_true(event->sequence > telling->last);
    telling->last = event->sequence;
    buffer_append_format(&telling->text, "%s%c(", telling->text.size == 0 ? "" : " ",
                         kinds[event->kind]);
    while (event_next_change(reader, &change)) {
        buffer_append_byte(&telling->text, (uint8_t)changes[change.kind]);
        if (change.kind == CHANGE_ROW)
            assert_ok(fragment_check(change.value));
    }
    buffer_append_byte(&telling->text, ')');
}

static status tell_entry(void *context, bytes entry, bool *enough)
{
    struct telling *telling = context;
    struct event_reader reader;
    struct log_event event;
    (void)enough;
    telling->entries++;
    assert_true(event_reader_start(&reader, entry));
    while (event_next(&reader, &event))
        tell_event(telling, &reader, &event);
    assert_false(reader.is_bad);
    return status_ok();
}

static void assert_log(struct change_log *log, const char *expected)
{
    struct telling telling = {.last = 0};
    assert_ok(change_log_read_waiting(log, tell_entry, &telling));
    buffer_append_byte(&telling.text, 0);
    assert_string_equal((const char *)telling.text.data, expected);
    if (telling.entries > 0)
        assert_int_equal(change_log_newest(log), telling.last);
    buffer_free(&telling.text);
}

static void put_two(struct commit *commit, struct store_batch *batch)
{
    store_batch_put(batch, commit->keyspace, bytes_of("Sa"), bytes_of("x"));
    store_batch_delete(batch, commit->keyspace, bytes_of("Sb"));
}

static void describe_made(const struct catalog_change *change, struct event_writer *writer)
{
    (void)change;
    event_keyspaces_made(writer, KEYSPACE_ROWS, 20, 2);
}

static status write_catalog(struct fixture *t, const char *key)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_put(batch, t->f->options.catalog, bytes_of(key), bytes_of("record"));
    const struct catalog_change made = {.describe = describe_made};
    status s = commit_write(t->f->queue, COMMIT_CATALOG, batch, &made);
    store_batch_destroy(batch);
    return s;
}

static void each_commit_is_an_event(void **state)
{
    struct fixture *t = *state;
    struct tablet_fixture *f = t->f;
    assert_log(t->log, "");
    write_change(f, "a", set_cell(f, FAMILY_F, "q", 1, "v"));
    struct packed_change first = set_cell(f, FAMILY_F, "q", 1, "1"),
                         second = set_cell(f, FAMILY_F, "q", 1, "2");
    struct commit group = commit_of(f, "b", &first), other = commit_of(f, "c", &second);
    group.others = &other;
    group.other_count = 1;
    assert_ok(commit_and_wait(f->queue, &group));
    struct commit upkeep = {.kind = COMMIT_UPKEEP, .keyspace = f->rows, .extend = put_two};
    assert_ok(commit_and_wait(f->queue, &upkeep));
    struct commit drop = {.kind = COMMIT_DROP, .keyspace = f->rows, .extend = put_two};
    assert_ok(commit_and_wait(f->queue, &drop));
    assert_ok(write_catalog(t, "R"));
    assert_log(t->log, "R(r) R(rr) U(pd) D(pd) C(Kp)");
    assert_row(f, "c", "f:q@1=2");
    buffer_free(&first.fragment);
    buffer_free(&second.fragment);
}

/* A rewrite, a barrier, and what the queue keeps for itself change nothing that is seen. */
static void what_changes_nothing_is_no_event(void **state)
{
    struct fixture *t = *state;
    struct tablet_fixture *f = t->f;
    struct packed_change record = set_cell(f, FAMILY_F, "q", 1, "v");
    fragment_set_version(record.fragment.data, 5);
    struct commit rewrite = {.kind = COMMIT_REWRITE,
                             .keyspace = f->rows,
                             .row_key = bytes_of("a"),
                             .record = buffer_bytes(&record.fragment)};
    struct commit barrier = {.kind = COMMIT_BARRIER};
    assert_ok(commit_and_wait(f->queue, &rewrite));
    assert_ok(commit_and_wait(f->queue, &barrier));
    assert_ok(commit_raise_version(f->queue, 1));
    assert_log(t->log, "");
    buffer_free(&record.fragment);
}

static status count_entry(void *context, bytes entry, bool *enough)
{
    (void)enough;
    assert_true(entry.size < 600 << 10); /* they are cut after a quarter of a megabyte */
    return tell_entry(context, entry, enough);
}

static void forget(struct task *task)
{
    (void)task;
}

static void the_events_of_many_commits_are_in_order(void **state)
{
    enum { COMMITS = 60, VALUE = 16 << 10 }; /* below LIMIT together, however they are batched */
    struct fixture *t = *state;
    static struct packed_change changes[COMMITS];
    static struct commit commits[COMMITS];
    char *value = calloc(1, VALUE + 1);
    assert_non_null(value);
    memset(value, 'v', VALUE);
    for (unsigned i = 0; i < COMMITS; i++) {
        changes[i] = set_cell(t->f, FAMILY_F, "q", 1, value);
        commits[i] = commit_of(t->f, i % 2 == 0 ? "a" : "b", &changes[i]);
        if (i + 1 < COMMITS) { /* not waited for: several make a batch */
            commits[i].done.run = forget;
            assert_ok(commit_submit(t->f->queue, &commits[i]));
        }
    }
    assert_ok(commit_and_wait(t->f->queue, &commits[COMMITS - 1]));
    struct telling telling = {.last = 0};
    assert_ok(change_log_read_waiting(t->log, count_entry, &telling));
    assert_int_equal(telling.text.size, COMMITS * 5 - 1);
    assert_int_equal(telling.last, commits[COMMITS - 1].version);
    buffer_free(&telling.text);
    for (unsigned i = 0; i < COMMITS; i++)
        buffer_free(&changes[i].fragment);
    free(value);
}

/* --- taking it away --- */

static void take_all(void *context, struct change_log_state *state, uint64_t sequence)
{
    (void)sequence;
    state->taken = *(const uint64_t *)context;
    state->pieces++;
}

static void taken_entries_leave_the_log(void **state)
{
    struct fixture *t = *state;
    struct tablet_fixture *f = t->f;
    write_change(f, "a", set_cell(f, FAMILY_F, "q", 1, "v"));
    uint64_t taken = change_log_newest(t->log);
    assert_true(change_log_waiting_bytes(t->log) > 0);
    write_change(f, "a", set_cell(f, FAMILY_F, "q", 1, "w"));
    assert_log(t->log, "R(r) R(r)");
    assert_ok(change_log_edit(t->log, f->queue, take_all, &taken, 10));
    assert_log(t->log, "R(r)");
    commit_queue_destroy(f->queue);
    change_log_close(t->log);
    open_with_log(t, LIMIT);
    struct change_log_state now;
    change_log_look(t->log, &now);
    assert_int_equal(now.taken, taken);
    assert_int_equal(now.pieces, 1);
    assert_log(t->log, "R(r)");
}

/* --- too much --- */

static void turn_on(void *context, struct change_log_state *state, uint64_t sequence)
{
    *(uint64_t *)context = sequence;
    state->is_on = true;
    state->gap_to = sequence;
}

static void the_log_goes_off_before_it_is_too_large(void **state)
{
    struct fixture *t = *state;
    struct tablet_fixture *f = t->f;
    struct change_log_state now;
    uint64_t on_again;
    commit_queue_destroy(f->queue);
    change_log_close(t->log);
    open_with_log(t, 100);
    for (int i = 0; i < 5; i++)
        write_change(f, "a", set_cell(f, FAMILY_F, "q", 1, "0123456789012345678901234567890"));
    change_log_look(t->log, &now);
    assert_false(now.is_on);
    assert_int_equal(now.gap_from, 1);
    assert_int_equal(now.gap_to, 0);
    assert_log(t->log, "");
    assert_ok(change_log_edit(t->log, f->queue, turn_on, &on_again, 0));
    uint64_t version = write_change(f, "b", set_cell(f, FAMILY_F, "q", 1, "v"));
    assert_log(t->log, "R(r)");
    change_log_look(t->log, &now);
    assert_true(now.is_on && now.gap_to == on_again && version > on_again);
    assert_row(f, "a", "f:q@1=0123456789012345678901234567890");
}

static void a_queue_without_the_log_ends_it(void **state)
{
    struct fixture *t = *state;
    struct tablet_fixture *f = t->f;
    bool exists;
    commit_queue_destroy(f->queue);
    f->options.observer_count = 0;
    f->options.has_change_log = false;
    assert_ok(commit_queue_create(&f->options, &f->queue));
    assert_ok(change_log_exists(f->options.catalog, &exists));
    assert_true(exists);
    write_change(f, "a", set_cell(f, FAMILY_F, "q", 1, "v"));
    assert_ok(change_log_exists(f->options.catalog, &exists));
    assert_false(exists);
}

/* --- what the disk does --- */

static void a_write_that_fails_is_no_event(void **state)
{
    struct fixture *t = *state;
    struct tablet_fixture *f = t->f;
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "v");
    struct commit commit = commit_of(f, "a", &change);
    fault_fs_fail(f->faults, FAULT_ALLOCATE, ".log", FAULT_NO_SPACE, 0);
    fault_fs_fail(f->faults, FAULT_APPEND, ".log", FAULT_NO_SPACE, 0);
    status s = commit_and_wait(f->queue, &commit);
    bool was_refused = !status_is_ok(s);
    status_free(s);
    fault_fs_heal(f->faults);
    assert_log(t->log, was_refused ? "" : "R(r)");
    assert_row(f, "a", was_refused ? "" : "f:q@1=v");
    buffer_free(&change.fragment);
}

/* Of a machine that goes down the log and the data end with the same commit. */
static void a_power_cut_takes_both_or_neither(void **state)
{
    struct fixture *t = *state;
    struct tablet_fixture *f = t->f, after = *f;
    write_change(f, "a", set_cell(f, FAMILY_F, "q", 1, "v"));
    assert_ok(write_catalog(t, "R"));
    write_change(f, "b", set_cell(f, FAMILY_F, "q", 1, "w"));
    after.directory = make_directory();
    after.faults = NULL;
    after.options.observer_count = 0;
    after.options.has_change_log = false;
    fault_fs_cut_power(f->faults, f->directory, after.directory, 0);
    open_queue(&after);
    struct change_log *log = open_log(&after, LIMIT);
    struct telling telling = {.last = 0};
    assert_ok(change_log_read_waiting(log, tell_entry, &telling));
    buffer_append_byte(&telling.text, 0);
    bool has_b = strcmp((const char *)telling.text.data, "R(r) C(Kp) R(r)") == 0;
    if (!has_b) /* the last one is not synced */
        assert_string_equal((const char *)telling.text.data, "R(r) C(Kp)");
    assert_row(&after, "a", "f:q@1=v");
    assert_row(&after, "b", has_b ? "f:q@1=w" : "");
    buffer_free(&telling.text);
    change_log_close(log);
    close_queue(&after);
    remove_directory(after.directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_commit_is_an_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_changes_nothing_is_no_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_events_of_many_commits_are_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(taken_entries_leave_the_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_log_goes_off_before_it_is_too_large, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_queue_without_the_log_ends_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_write_that_fails_is_no_event, set_up_faults, tear_down),
        cmocka_unit_test_setup_teardown(a_power_cut_takes_both_or_neither, set_up_faults,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
