/* Changes of items as changes of rows. */
#include "formats/dynamo_change.h"

#include "formats/testing/testing.h"

static const struct item_layout layout = {
    .partition_key = "k", .delimiter = "#", .family = "f", .default_us = 1000};

static struct dynamo_record record_of(struct arena *arena, const char *item)
{
    struct dynamo_record record = {.is_incremental = true, .written_us = 7654321};
    assert_ok(item_read_json_map(bytes_of(item), arena, &record.item));
    return record;
}

static void an_item_as_it_is_only_adds(void **state)
{
    struct move_change change;
    struct dynamo_record record = record_of(*state, "{\"k\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}");
    record.is_incremental = false;
    assert_ok(dynamo_change_lay_out(&layout, DYNAMO_BY_TIME, &record, *state, &change));
    assert_false(change.replaces || change.yields);
    assert_int_equal(change.cells[0].timestamp_us, 1000);
}

static void a_new_image_replaces_what_is_older(void **state)
{
    struct move_change change;
    const struct dynamo_record record =
        record_of(*state, "{\"k\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}");
    assert_ok(dynamo_change_lay_out(&layout, DYNAMO_BY_TIME, &record, *state, &change));
    assert_true(change.replaces && change.yields);
    assert_int_equal(change.written_us, 7654000);
    assert_int_equal(change.count, 1);
    assert_int_equal(change.cells[0].timestamp_us, 7654000);
    assert_ok(dynamo_change_lay_out(&layout, DYNAMO_IN_ORDER, &record, *state, &change));
    assert_true(change.replaces && !change.yields);
}

static void an_item_gone_or_expired_has_no_cells(void **state)
{
    struct item_layout ending = layout;
    struct move_change change;
    struct dynamo_record record = record_of(*state, "{\"k\":{\"S\":\"a\"}}");
    record.is_gone = true;
    assert_ok(dynamo_change_lay_out(&layout, DYNAMO_BY_TIME, &record, *state, &change));
    assert_true(change.replaces && change.count == 0);
    assert_true(bytes_equal(change.row_key, bytes_of("a")));
    record = record_of(*state, "{\"k\":{\"S\":\"a\"},\"until\":{\"N\":\"1600000000\"}}");
    ending.ttl.attribute = "until";
    ending.now_us = 1700000000000000;
    assert_ok(dynamo_change_lay_out(&ending, DYNAMO_BY_TIME, &record, *state, &change));
    assert_true(change.replaces && change.count == 0 && change.ends_us == 0);
}

static void layouts_that_date_cells_are_refused(void **state)
{
    struct item_layout timed = layout, google = layout, ending = layout, collapsed = layout;
    const struct item_mapping mapping = {.has_items = true};
    (void)state;
    timed.timestamp = "t";
    google.form = ITEM_AS_GOOGLE;
    ending.ttl.family = "x";
    collapsed.mapping = &mapping;
    const struct item_layout *const all[] = {&timed, &google, &ending, &collapsed};
    assert_ok(dynamo_change_check(&layout, DYNAMO_BY_TIME));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_status(dynamo_change_check(all[i], DYNAMO_BY_TIME), STATUS_INVALID_ARGUMENT);
    assert_ok(dynamo_change_check(&timed, DYNAMO_IN_ORDER));
    assert_status(dynamo_change_check(&collapsed, DYNAMO_IN_ORDER), STATUS_INVALID_ARGUMENT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_item_as_it_is_only_adds),
        TEST(a_new_image_replaces_what_is_older),
        TEST(an_item_gone_or_expired_has_no_cells),
        TEST(layouts_that_date_cells_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
