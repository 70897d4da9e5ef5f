/* Tests of inputs of unique counts: the bytes of the states, and what is refused. Sums and the like
 * are in mutations_test.c. */
#include "bigtable/aggregates.h"

#include "base/testing/testing.h"
#include "row/hll.h"
#include "wire/proto.h"

enum { ARENA_LIMIT = 1 << 20 };

static const struct family numbers = {.aggregate = AGGREGATE_HLL, .input = INPUT_INT64};
static const struct family raws = {.aggregate = AGGREGATE_HLL, .input = INPUT_BYTES};
static const struct family strings = {.aggregate = AGGREGATE_HLL, .input = INPUT_STRING};

static int setup(void **state)
{
    *state = arena_create(ARENA_LIMIT);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

static Bt__Value number(int64_t n)
{
    Bt__Value value = BT__VALUE__INIT;
    value.kind_case = BT__VALUE__KIND_INT_VALUE;
    value.int_value = n;
    return value;
}

static Bt__Value text(const char *string)
{
    Bt__Value value = BT__VALUE__INIT;
    value.kind_case = BT__VALUE__KIND_STRING_VALUE;
    value.string_value = string;
    return value;
}

static Bt__Value raw(const char *string)
{
    Bt__Value value = BT__VALUE__INIT;
    value.kind_case = BT__VALUE__KIND_RAW_VALUE;
    value.raw_value = proto_data(bytes_of(string));
    return value;
}

static Bt__Value binary(const char *string)
{
    Bt__Value value = BT__VALUE__INIT;
    value.kind_case = BT__VALUE__KIND_BYTES_VALUE;
    value.bytes_value = proto_data(bytes_of(string));
    return value;
}

/* --- adds --- */

static bytes added(struct arena *arena, const struct family *family, const Bt__Value *input)
{
    enum entry_kind kind;
    bytes state;
    assert_ok(aggregate_check_input(family, input));
    assert_ok(aggregate_add(family, input, arena, &kind, &state));
    assert_int_equal(kind, ENTRY_HLL);
    return state;
}

/* A sketch of the one value with this hash, as it begins for this type. */
static void assert_counts(bytes state, enum hll_value_type type, uint64_t hash)
{
    uint8_t expected[HLL_ONE_MOST];
    size_t size = hll_state_write_one(type, hash, expected);
    assert_true(bytes_equal(state, bytes_make(expected, size)));
}

static void an_add_counts_the_value_of_the_familys_type(void **arena)
{
    Bt__Value one = number(1), a = text("a"), raw_a = raw("a"), binary_a = binary("a");
    static const uint8_t first_number[] = {0x08, 0x70, 0x10, 0x01, 0x18, 0x02, 0x20, 0x08,
                                           0x82, 0x07, 0x0b, 0x10, 0x01, 0x18, 0x0f, 0x20,
                                           0x14, 0x32, 0x03, 0x96, 0xa3, 0x2e};
    assert_true(
        bytes_equal(added(*arena, &numbers, &one), bytes_make(first_number, sizeof first_number)));
    uint64_t hash = hll_hash(bytes_of("a"));
    assert_counts(added(*arena, &strings, &a), HLL_BYTES, hash);
    assert_counts(added(*arena, &raws, &raw_a), HLL_BYTES, hash);
    assert_counts(added(*arena, &raws, &binary_a), HLL_BYTES, hash);
}

static void nothing_added_is_zero_or_empty(void **arena)
{
    const Bt__Value no_kind = BT__VALUE__INIT;
    uint64_t nothing = hll_hash(bytes_of(""));
    assert_counts(added(*arena, &numbers, NULL), HLL_INT64, hll_hash_int64(0));
    assert_counts(added(*arena, &numbers, &no_kind), HLL_INT64, hll_hash_int64(0));
    assert_counts(added(*arena, &strings, NULL), HLL_BYTES, nothing);
    assert_counts(added(*arena, &raws, &no_kind), HLL_BYTES, nothing);
}

static void assert_wrong_kind(const struct family *family, const Bt__Value *input,
                              const char *words)
{
    status s = aggregate_check_input(family, input);
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void adds_are_of_the_kind_of_the_familys_type(void **arena)
{
    Bt__Value one = number(1), a = text("a"), raw_a = raw("a");
    (void)arena;
    assert_wrong_kind(&numbers, &a, "Error in field 'input' : must use `int_value`");
    assert_wrong_kind(&numbers, &raw_a, "Error in field 'input' : must use `int_value`");
    assert_wrong_kind(&strings, &one, "Error in field 'input' : must use `string_value`");
    assert_wrong_kind(&strings, &raw_a, "Error in field 'input' : must use `string_value`");
    assert_wrong_kind(&raws, &one,
                      "Error in field 'input' : must use `bytes_value` or `raw_value`");
    assert_wrong_kind(&raws, &a, "Error in field 'input' : must use `bytes_value` or `raw_value`");
}

/* --- merges --- */

static bytes merged(struct arena *arena, const struct family *family, bytes given)
{
    enum entry_kind kind;
    bytes state;
    assert_true(aggregate_takes_state(family, given));
    assert_ok(aggregate_merge(family, given, arena, &kind, &state));
    assert_int_equal(kind, ENTRY_HLL);
    return state;
}

static void a_state_is_merged_as_it_is(void **arena)
{
    Bt__Value one = number(1);
    bytes given = added(*arena, &numbers, &one);
    assert_ptr_equal(merged(*arena, &numbers, given).data, given.data);
    assert_int_equal(merged(*arena, &numbers, bytes_of("")).size, 0);
}

/* Fields in another order, one of them twice, one unknown. */
static void a_state_in_another_form_is_written_anew(void **arena)
{
    static const uint8_t given[] = {0x82, 0x07, 0x0b, 0x32, 0x03, 0x96, 0xa3, 0x2e,
                                    0x10, 0x01, 0x20, 0x14, 0x18, 0x0f, 0x78, 0x05,
                                    0x20, 0x08, 0x18, 0x02, 0x10, 0x07, 0x10, 0x01};
    Bt__Value one = number(1);
    bytes expected = added(*arena, &numbers, &one);
    assert_true(bytes_equal(merged(*arena, &numbers, bytes_make(given, sizeof given)), expected));
}

static void assert_no_state(struct arena *arena, const struct family *family, bytes given,
                            const char *words)
{
    enum entry_kind kind;
    bytes state;
    assert_false(aggregate_takes_state(family, given));
    status s = aggregate_merge(family, given, arena, &kind, &state);
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void states_of_other_types_are_refused(void **arena)
{
    Bt__Value one = number(1), a = text("a");
    bytes of_number = added(*arena, &numbers, &one), of_string = added(*arena, &strings, &a);
    assert_no_state(
        *arena, &numbers, of_string,
        "Aggregator of type [LONG] is incompatible with aggregator of type [STRING, BYTES]");
    assert_no_state(
        *arena, &raws, of_number,
        "Aggregator of type [STRING, BYTES] is incompatible with aggregator of type [LONG]");
    assert_true(bytes_equal(merged(*arena, &raws, of_string), of_string));
}

static void what_is_no_state_is_refused(void **arena)
{
    assert_no_state(*arena, &numbers, bytes_make("\0\0\0\0\0\0\0\1", 8),
                    "The sketch is not a whole protobuf message");
    assert_no_state(*arena, &numbers, bytes_make("\x08\x64", 2),
                    "Expected proto to be of type HYPERLOGLOG_PLUS_UNIQUE but was SUM");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_add_counts_the_value_of_the_familys_type),
        TEST(nothing_added_is_zero_or_empty),
        TEST(adds_are_of_the_kind_of_the_familys_type),
        TEST(a_state_is_merged_as_it_is),
        TEST(a_state_in_another_form_is_written_anew),
        TEST(states_of_other_types_are_refused),
        TEST(what_is_no_state_is_refused),
    };
    return cmocka_run_group_tests_name("aggregates", tests, NULL, NULL);
}
