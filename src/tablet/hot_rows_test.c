#include "tablet/hot_rows.h"

#include "base/testing/testing.h"

enum { BYTE_LIMIT = 1000, SAME_SLOT = 4096 };

static int setup(void **state)
{
    struct hot_rows *hot;
    assert_ok(hot_rows_create(BYTE_LIMIT, &hot));
    *state = hot;
    return 0;
}

static int teardown(void **state)
{
    hot_rows_destroy(*state);
    return 0;
}

static void many_operands_make_a_row_hot(void **state)
{
    for (int round = 0; round < 2; round++) {
        for (int i = 1; i < HOT_ROW_OPERANDS; i++)
            assert_false(hot_rows_note(*state, 7, 1, true));
        assert_true(hot_rows_note(*state, 7, 1, true));
    }
}

static void folded_changes_are_no_operands(void **state)
{
    for (int i = 0; i < 3 * HOT_ROW_OPERANDS; i++)
        assert_false(hot_rows_note(*state, 7, 1, false));
}

static void many_bytes_make_a_row_hot(void **state)
{
    assert_false(hot_rows_note(*state, 7, BYTE_LIMIT - 1, true));
    assert_true(hot_rows_note(*state, 7, 1, false));
    assert_true(hot_rows_note(*state, 8, BYTE_LIMIT, true));
}

/* A row with more than half of its slot's changes is noticed whatever the others do. */
static void the_busiest_row_of_a_slot_is_noticed(void **state)
{
    bool noticed = false;
    for (uint64_t i = 0; i < 4 * HOT_ROW_OPERANDS && !noticed; i++) {
        for (int twice = 0; twice < 2 && !noticed; twice++)
            noticed = hot_rows_note(*state, 7, 1, true);
        assert_false(hot_rows_note(*state, 7 + SAME_SLOT * (i + 1), 1, true));
    }
    assert_true(noticed);
}

/* A big change is noticed even where another row has the slot. */
static void a_big_change_is_noticed_always(void **state)
{
    for (int i = 0; i < 10; i++)
        assert_false(hot_rows_note(*state, 7, 1, true));
    assert_true(hot_rows_note(*state, 7 + SAME_SLOT, BYTE_LIMIT, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_operands_make_a_row_hot, setup, teardown),
        cmocka_unit_test_setup_teardown(folded_changes_are_no_operands, setup, teardown),
        cmocka_unit_test_setup_teardown(many_bytes_make_a_row_hot, setup, teardown),
        cmocka_unit_test_setup_teardown(the_busiest_row_of_a_slot_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_big_change_is_noticed_always, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
