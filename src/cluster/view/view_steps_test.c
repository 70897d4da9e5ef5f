/* A view with a disk that fails at each step, and with power cuts: of its creation, of writes to
 * its source, of its own commits, which are not synced, of its deletion.
 *
 * A story is told again and again, with the faults and ends of steps_testing.h. The view keeps a
 * copy of each source row, and how far it has come. What the next start must find:
 *  - rows and records of the view of one and the same commit: the number of changes that it has
 *    met is in both;
 *  - no row that its source does not have, nor a newer one: what is lost of the source is lost of
 *    the view;
 *  - in the feed, from there on, what makes the view the source again. */
#include "cluster/testing/steps_testing.h"
#include "cluster/testing/view_testing.h"

static const char all_rows[] = "abc";

static unsigned views_behind; /* of all stories: power cuts that took a commit of the view */

/* --- the view --- */

struct progress {
    uint64_t changes; /* that were met */
    struct stream_position position;
};

static struct progress read_progress(struct table *view)
{
    struct progress progress = {0};
    struct buffer value = {0};
    bool is_there;
    assert_ok(view_records_get(view, bytes_of("P"), &value, &is_there));
    if (is_there) {
        assert_int_equal(value.size, sizeof progress);
        memcpy(&progress, value.data, sizeof progress);
    }
    buffer_free(&value);
    return progress;
}

/* "a=1 b=2" of a table, in the arena. */
static char *rows_of(struct cluster_fixture *f, struct table *table)
{
    const struct key_range all = {.is_point = false};
    struct table *source = f->table;
    struct buffer text = {0};
    f->table = table;
    assert_ok(scan_text(f, &all, 1, false, 0, &text));
    f->table = source;
    char *copy = arena_string(f->arena, bytes_of((const char *)text.data));
    buffer_free(&text);
    return copy;
}

/* The value of the row, a digit; 0: there is none. */
static char value_in(const char *rows, char row)
{
    for (const char *at = rows; *at != 0; at++)
        if (at[0] == row && at[1] == '=')
            return at[2];
    return 0;
}

struct round {
    struct cluster_fixture *f;
    struct view_commit *commit;
    struct progress progress;
    char *source;
};

static status copy_row(void *context, const struct view_change *change, bool *enough)
{
    struct round *round = context;
    char key[] = {(char)change->from.data[0], 0};
    char value[] = {value_in(round->source, key[0]), 0};
    change_view_row(round->f, round->commit, key, value[0] == 0 ? NULL : value);
    round->progress.changes++;
    *enough = true; /* each row once in a commit */
    return status_ok();
}

/* A change a commit. */
static status upkeep_once(struct cluster_fixture *f, struct table *view, bool *is_end)
{
    struct round round = {.f = f, .progress = read_progress(view), .source = rows_of(f, f->table)};
    char count[24];
    TRY(view_commit_begin(view, NULL, &round.commit));
    status s = view_feed_read(f->table, round.progress.position, SIZE_MAX, copy_row, &round,
                              &round.progress.position, is_end);
    if (!status_is_ok(s)) {
        view_commit_cancel(round.commit);
        return s;
    }
    snprintf(count, sizeof count, "%llu", (unsigned long long)round.progress.changes);
    change_view_row(f, round.commit, "-", count);
    view_commit_put(round.commit, bytes_of("P"),
                    bytes_make(&round.progress, sizeof round.progress));
    return view_commit_write(round.commit, NULL);
}

/* --- the story --- */

static status create(struct cluster_fixture *f, const char *unused)
{
    const struct view_spec spec = view_spec_of(f, TEST_VIEW);
    struct progress progress = {0};
    struct view_commit *commit;
    struct table *view;
    bool is_new;
    (void)unused;
    TRY(cluster_ensure_view(f->cluster, &spec, &view, &is_new));
    status s = view_feed_end(f->table, &progress.position);
    if (status_is_ok(s))
        s = view_commit_begin(view, NULL, &commit);
    if (status_is_ok(s)) {
        change_view_row(f, commit, "-", "0");
        view_commit_put(commit, bytes_of("P"), bytes_make(&progress, sizeof progress));
        s = view_commit_write(commit, NULL);
    }
    table_release(view);
    return s;
}

/* "a1": the row a gets the value 1. */
static status write_row(struct cluster_fixture *f, const char *what)
{
    char key[] = {what[0], 0};
    return try_write(f, key, setting(f, FAMILY_F, "q", 1, what + 1));
}

static status delete_row(struct cluster_fixture *f, const char *key)
{
    struct row_change *change = row_change_create(f->arena);
    row_change_delete_row(change);
    return try_write(f, key, change);
}

static status upkeep(struct cluster_fixture *f, const char *unused)
{
    struct table *view = find_view(f, TEST_VIEW);
    bool is_end = false;
    status s = status_ok();
    (void)unused;
    while (status_is_ok(s) && !is_end)
        s = upkeep_once(f, view, &is_end);
    table_release(view);
    return s;
}

static status flush(struct cluster_fixture *f, const char *unused)
{
    struct table *view = find_view(f, TEST_VIEW);
    (void)unused;
    status s = keyspace_flush(view->view.records);
    if (status_is_ok(s))
        s = keyspace_flush(view->spaces[0].keyspace);
    table_release(view);
    return s;
}

static status delete_view(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return cluster_delete_view(f->cluster, bytes_of(TEST_VIEW), NULL);
}

static const struct step {
    status (*run)(struct cluster_fixture *f, const char *argument);
    const char *argument;
} steps[] = {
    {write_row, "a1"}, {create, NULL},    {write_row, "b1"}, {upkeep, NULL},    {write_row, "a2"},
    {write_row, "c1"}, {upkeep, NULL},    {flush, NULL},     {delete_row, "c"}, {write_row, "b2"},
    {upkeep, NULL},    {write_row, "a3"}, {upkeep, NULL},
};

enum { STEPS = sizeof steps / sizeof *steps, CREATED = 2 };

/* --- what there is --- */

static bool is_there(struct cluster_fixture *f)
{
    struct table *view;
    status s = cluster_table(f->cluster, bytes_of(TEST_VIEW), &view);
    bool is = status_is_ok(s);
    status_free(s);
    if (is)
        table_release(view);
    return is;
}

/* A row that is in the view and not in the source was deleted later. */
static void assert_not_ahead(const char *copied, const char *source)
{
    for (const char *row = all_rows; *row != 0; row++)
        if (value_in(source, *row) != 0)
            assert_true(value_in(copied, *row) <= value_in(source, *row));
}

static void assert_of_one_commit(const char *copied, const struct progress *progress)
{
    char count[32];
    snprintf(count, sizeof count, "-=%llu", (unsigned long long)progress->changes);
    assert_true(strncmp(copied, count, strlen(count)) == 0);
}

/* A view that had not got its first commit is begun anew, as by who upkeeps it. */
static void look(struct cluster_fixture *f, uint64_t before)
{
    struct table *view = find_view(f, TEST_VIEW);
    struct progress progress = read_progress(view);
    char *copied = rows_of(f, view);
    if (progress.position.sequence == 0) {
        assert_string_equal(copied, "");
        assert_ok(create(f, NULL));
    } else {
        assert_of_one_commit(copied, &progress);
        assert_not_ahead(copied, rows_of(f, f->table));
    }
    views_behind += progress.changes < before;
    table_release(view);
}

/* In the view are the rows that were changed since it was made: `b` and, but for the last story, a.
 */
static void assert_is_source(struct cluster_fixture *f)
{
    struct table *view = find_view(f, TEST_VIEW);
    char *copied = rows_of(f, view), *source = rows_of(f, f->table);
    for (const char *row = all_rows; *row != 0; row++)
        if (value_in(copied, *row) != 0)
            assert_int_equal(value_in(copied, *row), value_in(source, *row));
    assert_int_equal(value_in(copied, 'a'), '3');
    assert_int_equal(value_in(copied, 'c'), 0);
    table_release(view);
}

/* --- lives of the process --- */

static size_t tell(struct cluster_fixture *f, size_t done)
{
    for (; done < STEPS; done++) {
        status s = steps[done].run(f, steps[done].argument);
        bool failed = !status_is_ok(s);
        status_free(s);
        if (failed)
            break;
    }
    return done;
}

/* Writes that were done may be done again: they say the same. */
static void recover(struct cluster_fixture *f, size_t done, uint64_t changes)
{
    begin_steps_life(f);
    assert_int_equal(table_is_viewed(f->table), is_there(f));
    if (done >= CREATED)
        assert_true(is_there(f));
    if (is_there(f))
        look(f, changes);
    assert_int_equal(tell(f, done), STEPS);
    assert_is_source(f);
    end_steps_life(f);
    begin_steps_life(f);
    assert_is_source(f);
    assert_ok(delete_view(f, NULL));
    end_steps_life(f);
    begin_steps_life(f);
    assert_false(is_there(f) || table_is_viewed(f->table));
    end_steps_life(f);
}

static uint64_t changes_met(struct cluster_fixture *f)
{
    if (!is_there(f))
        return 0;
    struct table *view = find_view(f, TEST_VIEW);
    uint64_t changes = read_progress(view).changes;
    table_release(view);
    return changes;
}

/* The story with a fault after `pass` operations that work; false if it did not come to that. */
static bool tell_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct cluster_fixture f;
    char copy[64];
    make_steps_fixture(&f);
    f.options.maintenance_by_hand = true;
    begin_faulty_life(&f, copy, sizeof copy);
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    size_t done = tell(&f, 0);
    uint64_t changes = changes_met(&f);
    bool came = fault_fs_failures(faults) > 0;
    meet_ending(&f, copy, ending, done == STEPS);
    end_steps_life(&f);
    end_faults();
    recover(&f, done, changes);
    remove_test_directory(copy);
    free_steps_fixture(&f);
    return came || done < STEPS;
}

static void each_write_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_APPEND, tell_with_fault);
}

static void each_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC, tell_with_fault);
    assert_true(views_behind > 0); /* commits of views are not synced */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_write_fails),
        cmocka_unit_test(each_sync_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
