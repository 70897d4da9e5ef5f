/* Tests of pending rows: which changes wait for which. */
#include "client/pending_rows.h"

#include "base/testing/testing.h"

static struct move_change change_of(const char *key, bool replaces)
{
    return (struct move_change){.row_key = bytes_of(key), .replaces = replaces};
}

static void ordered_changes_wait_and_are_waited_for(void **state)
{
    struct pending_rows rows = {0};
    struct pending_row first;
    const struct move_change ordered = {.row_key = bytes_of("a"), .in_order = true};
    const struct move_change plain = change_of("a", false), other = change_of("b", false);
    (void)state;
    pending_rows_add(&rows, &ordered, &first);
    assert_true(pending_rows_blocks(&rows, &ordered));
    assert_true(pending_rows_blocks(&rows, &plain));
    assert_false(pending_rows_blocks(&rows, &other));
    pending_rows_remove(&rows, &first);
    pending_rows_add(&rows, &plain, &first);
    assert_true(pending_rows_blocks(&rows, &ordered));
    pending_rows_remove(&rows, &first);
    assert_false(pending_rows_blocks(&rows, &ordered));
}

static void replacing_changes_wait_and_are_waited_for(void **state)
{
    struct pending_rows rows = {0};
    struct pending_row plain, replacing;
    const struct move_change a = change_of("a", false), b = change_of("b", true),
                             over_a = change_of("a", true), onto_b = change_of("b", false);
    (void)state;
    pending_rows_add(&rows, &a, &plain);
    assert_false(pending_rows_blocks(&rows, &a));
    assert_true(pending_rows_blocks(&rows, &over_a));
    assert_false(pending_rows_blocks(&rows, &b));
    pending_rows_add(&rows, &b, &replacing);
    assert_true(pending_rows_blocks(&rows, &b));
    assert_true(pending_rows_blocks(&rows, &onto_b));
    pending_rows_remove(&rows, &replacing);
    assert_false(pending_rows_blocks(&rows, &b));
    pending_rows_remove(&rows, &plain);
    assert_false(pending_rows_blocks(&rows, &over_a));
}

static void many_rows_share_buckets(void **state)
{
    enum { MANY = 2 * PENDING_BUCKETS };
    struct pending_rows rows = {0};
    struct pending_row *all = calloc(MANY, sizeof *all);
    (void)state;
    assert_non_null(all);
    for (int i = 0; i < MANY; i++) {
        const struct move_change change = {.row_key = bytes_make(&i, sizeof i), .replaces = true};
        assert_false(pending_rows_blocks(&rows, &change));
        pending_rows_add(&rows, &change, &all[i]);
    }
    for (int i = 0; i < MANY; i++) {
        const struct move_change change = {.row_key = bytes_make(&i, sizeof i)};
        assert_true(pending_rows_blocks(&rows, &change));
        pending_rows_remove(&rows, &all[i]);
        assert_false(pending_rows_blocks(&rows, &change));
    }
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordered_changes_wait_and_are_waited_for),
        cmocka_unit_test(replacing_changes_wait_and_are_waited_for),
        cmocka_unit_test(many_rows_share_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
