/* The state of a view: its record, and its passes. */
#include "base/testing/testing.h"
#include "views/state.h"

static void add(struct view_progress_state *state, enum view_pass_kind kind, const char *from,
                const char *to, int64_t since_us)
{
    assert_ok(view_state_add_pass(state, kind, bytes_of(from), bytes_of(to), since_us));
}

static void assert_pass(const struct view_progress_state *state, size_t i, enum view_pass_kind kind,
                        const char *next, const char *to)
{
    assert_int_equal(state->passes[i].kind, kind);
    assert_true(bytes_equal(buffer_bytes(&state->passes[i].next), bytes_of(next)));
    assert_true(bytes_equal(buffer_bytes(&state->passes[i].to), bytes_of(to)));
}

static void a_state_is_read_as_it_was_written(void **unused)
{
    struct view_progress_state state = {.print = {{1, 2}},
                                        .position = {UINT64_MAX, 7},
                                        .was_ready = true,
                                        .user_errors = 3,
                                        .excluded_rows = 4,
                                        .excluded_groups = 5};
    struct view_progress_state read;
    struct buffer record = {0};
    (void)unused;
    add(&state, VIEW_PASS_DROPPED, "a", "b", 10);
    add(&state, VIEW_PASS_RANGE, "c", "", 20);
    state.passes[0].rows = 6;
    view_state_write(&state, &record);
    assert_ok(view_state_read(buffer_bytes(&record), &read));
    assert_true(fingerprint_equal(read.print, state.print));
    assert_int_equal(stream_position_compare(read.position, state.position), 0);
    assert_true(read.was_ready);
    assert_int_equal(read.user_errors, 3);
    assert_int_equal(read.excluded_rows, 4);
    assert_int_equal(read.excluded_groups, 5);
    assert_int_equal(read.pass_count, 2);
    assert_pass(&read, 0, VIEW_PASS_DROPPED, "a", "b");
    assert_pass(&read, 1, VIEW_PASS_RANGE, "c", "");
    assert_int_equal(read.passes[0].rows, 6);
    assert_int_equal(read.passes[1].since_us, 20);
    view_state_free(&read);
    for (size_t size = 0; size < record.size; size++)
        assert_status(view_state_read(bytes_make(record.data, size), &read), STATUS_DATA_LOSS);
    buffer_append_byte(&record, 0);
    assert_status(view_state_read(buffer_bytes(&record), &read), STATUS_DATA_LOSS);
    view_state_free(&state);
    buffer_free(&record);
}

static void a_pass_over_all_takes_the_place_of_others(void **unused)
{
    struct view_progress_state state = {0};
    bytes next;
    (void)unused;
    add(&state, VIEW_PASS_DROPPED, "a", "b", 10);
    assert_false(view_state_has_whole_pass(&state, &next));
    add(&state, VIEW_PASS_ALL, "", "", 20);
    assert_int_equal(state.pass_count, 1);
    assert_pass(&state, 0, VIEW_PASS_ALL, "", "");
    assert_int_equal(state.passes[0].since_us, 10); /* the oldest that it looks for */
    assert_true(view_state_has_whole_pass(&state, &next));
    view_state_free(&state);
}

static void too_many_passes_become_one_over_all(void **unused)
{
    struct view_progress_state state = {0};
    (void)unused;
    for (int i = 0; i < VIEW_MOST_PASSES; i++)
        add(&state, VIEW_PASS_DROPPED, "a", "b", 10 + i);
    assert_int_equal(state.pass_count, VIEW_MOST_PASSES);
    add(&state, VIEW_PASS_DROPPED, "c", "d", 5);
    assert_int_equal(state.pass_count, 1);
    assert_pass(&state, 0, VIEW_PASS_ALL, "", "");
    assert_int_equal(state.passes[0].since_us, 5);
    view_state_free(&state);
}

static void passes_are_made_one_after_the_other(void **unused)
{
    struct view_progress_state state = {0};
    (void)unused;
    add(&state, VIEW_PASS_RANGE, "a", "b", 10);
    add(&state, VIEW_PASS_DROPPED, "c", "d", 20);
    assert_ok(view_state_advance(&state, bytes_of("aa")));
    assert_pass(&state, 0, VIEW_PASS_RANGE, "aa", "b");
    view_state_end_pass(&state);
    assert_int_equal(state.pass_count, 1);
    assert_pass(&state, 0, VIEW_PASS_DROPPED, "c", "d");
    view_state_end_pass(&state);
    assert_int_equal(state.pass_count, 0);
    view_state_free(&state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_is_read_as_it_was_written),
        cmocka_unit_test(a_pass_over_all_takes_the_place_of_others),
        cmocka_unit_test(too_many_passes_become_one_over_all),
        cmocka_unit_test(passes_are_made_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
