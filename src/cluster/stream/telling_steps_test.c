/* A drop of rows that a change stream is told of, with a disk that fails at each step: of its
 * commit, of those that tell rows, of a write that overtakes them, of the last.
 *
 * A story is told again and again, with the faults and ends of steps_testing.h. The next start must
 * find the rows, and what the stream has, as before the step that failed or as after it, and can
 * tell the story to its end: no row is told twice, and none never. */
#include "cluster/stream/tell_dropped.h"
#include "cluster/testing/steps_testing.h"
#include "cluster/testing/stream_testing.h"

/* --- the story --- */

static status write_row(struct cluster_fixture *f, const char *row_key)
{
    return try_write(f, row_key, setting(f, FAMILY_F, "q", 1, "1"));
}

static status drop_rows(struct cluster_fixture *f, const char *prefix)
{
    return table_drop_rows(f->table, bytes_of(prefix));
}

static status tell_row(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return tell_dropped_piece(f->table, &f->table->spaces[0]);
}

static status compact(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return keyspace_compact(f->table->spaces[0].keyspace, bytes_of(""), bytes_of(""));
}

/* `after`: the rows, and what the stream has, once the step is done; and '!' as long as rows are to
 * be told. */
static const struct step {
    status (*run)(struct cluster_fixture *f, const char *argument);
    const char *argument;
    const char *rows;
    const char *stream;
} steps[] = {
    {write_row, "a", "a=1", "a:f.q=1"},
    {write_row, "b", "a=1 b=1", "a:f.q=1 b:f.q=1"},
    {write_row, "c", "a=1 b=1 c=1", "a:f.q=1 b:f.q=1 c:f.q=1"},
    {drop_rows, "", "", "a:f.q=1 b:f.q=1 c:f.q=1!"},
    {compact, NULL, "", "a:f.q=1 b:f.q=1 c:f.q=1!"},
    {tell_row, NULL, "", "a:f.q=1 b:f.q=1 c:f.q=1 a:-f!"},
    {write_row, "c", "c=1", "a:f.q=1 b:f.q=1 c:f.q=1 a:-f c:-f c:f.q=1!"},
    {write_row, "d", "c=1 d=1", "a:f.q=1 b:f.q=1 c:f.q=1 a:-f c:-f c:f.q=1 d:f.q=1!"},
    {tell_row, NULL, "c=1 d=1", "a:f.q=1 b:f.q=1 c:f.q=1 a:-f c:-f c:f.q=1 d:f.q=1 b:-f!"},
    {compact, NULL, "c=1 d=1", "a:f.q=1 b:f.q=1 c:f.q=1 a:-f c:-f c:f.q=1 d:f.q=1 b:-f!"},
    {tell_row, NULL, "c=1 d=1", "a:f.q=1 b:f.q=1 c:f.q=1 a:-f c:-f c:f.q=1 d:f.q=1 b:-f!"},
    {tell_row, NULL, "c=1 d=1", "a:f.q=1 b:f.q=1 c:f.q=1 a:-f c:-f c:f.q=1 d:f.q=1 b:-f"},
    {write_row, "b", "b=1 c=1 d=1",
     "a:f.q=1 b:f.q=1 c:f.q=1 a:-f c:-f c:f.q=1 d:f.q=1 b:-f b:f.q=1"},
};

enum { STEPS = sizeof steps / sizeof *steps };

/* --- what there is --- */

static bool is_state(struct cluster_fixture *f, const char *rows, const char *stream)
{
    struct key_range all = {.is_point = false};
    struct buffer text = {0};
    struct reader reader = reader_of(f, "", "");
    assert_ok(scan_text(f, &all, 1, false, 0, &text));
    read_on(&reader);
    if (telling_has_begun(f->table->spaces[0].telling))
        buffer_append_byte(&reader.text, '!');
    buffer_append_byte(&reader.text, 0);
    bool is_so = strcmp((const char *)text.data, rows) == 0 &&
                 strcmp((const char *)reader.text.data, stream) == 0;
    buffer_free(&text);
    end_reader(&reader);
    return is_so;
}

static bool is_behind(struct cluster_fixture *f, size_t done)
{
    return done == 0 ? is_state(f, "", "")
                     : is_state(f, steps[done - 1].rows, steps[done - 1].stream);
}

/* Where the story is to go on: behind `done` steps, or one more if that was done when it failed.
 * Steps that change nothing are done again. */
static size_t find_state(struct cluster_fixture *f, size_t done)
{
    if (is_behind(f, done))
        return done;
    assert_true(done < STEPS && is_behind(f, done + 1));
    return done + 1;
}

/* --- lives of the process --- */

/* Goes on until a step fails; returns how many are done. */
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

/* The next start, and the rest of the story. Of the two steps that tell the rows that were told
 * before, either may be done. */
static void recover(struct cluster_fixture *f, size_t done)
{
    begin_steps_life(f);
    assert_int_equal(tell(f, find_state(f, done)), STEPS);
    assert_true(is_behind(f, STEPS));
    end_steps_life(f);
    begin_steps_life(f);
    assert_true(is_behind(f, STEPS));
    end_steps_life(f);
}

/* The story with a fault after `pass` operations that work; false if it did not come to that. */
static bool tell_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct cluster_fixture f;
    char copy[64];
    make_steps_fixture(&f);
    f.options.maintenance_by_hand = true;
    f.options.piece_bytes = 1; /* a row a piece */
    begin_faulty_life(&f, copy, sizeof copy);
    switch_stream(&f, RETENTION_US);
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    size_t done = tell(&f, 0);
    bool came = fault_fs_failures(faults) > 0;
    meet_ending(&f, copy, ending, done == STEPS);
    end_steps_life(&f);
    end_faults();
    recover(&f, done);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_write_fails),
        cmocka_unit_test(each_sync_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
