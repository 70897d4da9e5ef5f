/* Mutations: what they come to in a row's change, and what is refused in which words. */
#include "bigtable/mutations.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "wire/proto.h"

enum {
    ARENA_LIMIT = 128 << 20,
    BIG_VALUE = 1 << 20,
    PLAIN = 1,
    SUM = 2,
    MIN = 3,
    NOW_US = 1234567,
    NOW_MS_US = 1234000,
};

static const struct family families[] = {
    {.id = MIN, .name = {(const uint8_t *)"min", 3}, .aggregate = AGGREGATE_MIN},
    {.id = PLAIN, .name = {(const uint8_t *)"plain", 5}},
    {.id = SUM, .name = {(const uint8_t *)"sum", 3}, .aggregate = AGGREGATE_SUM},
};

struct fixture {
    struct schema *schema;
    struct mutation_context context;
    struct packed_change change;
};

static int setup_granularity(void **state, enum granularity granularity)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_ok(schema_create(granularity, families, 3, 4, &f->schema));
    f->context = (struct mutation_context){.schema = f->schema,
                                           .table_name = "table",
                                           .now_us = NOW_US,
                                           .big_value = BIG_VALUE,
                                           .arena = arena_create(ARENA_LIMIT)};
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_granularity(state, GRANULARITY_MILLIS);
}

static int setup_micros(void **state)
{
    return setup_granularity(state, GRANULARITY_MICROS);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    buffer_free(&f->change.fragment);
    arena_destroy(f->context.arena);
    schema_destroy(f->schema);
    free(f);
    return 0;
}

/* --- mutations by hand; one of each kind at a time --- */

static Bt__Mutation make_set(const char *family, int64_t timestamp_us, bytes value)
{
    static Bt__Mutation__SetCell set;
    bt__mutation__set_cell__init(&set);
    set.family_name = family;
    set.column_qualifier = proto_data(bytes_of("q"));
    set.timestamp_micros = timestamp_us;
    set.value = proto_data(value);
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation.set_cell = &set;
    return mutation;
}

static Bt__Mutation make_delete(const char *family, int64_t start_us, int64_t end_us)
{
    static Bt__TimestampRange range;
    static Bt__Mutation__DeleteFromColumn delete;
    bt__timestamp_range__init(&range);
    range.start_timestamp_micros = start_us;
    range.end_timestamp_micros = end_us;
    bt__mutation__delete_from_column__init(&delete);
    delete.family_name = family;
    delete.column_qualifier = proto_data(bytes_of("q"));
    delete.time_range = &range;
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_COLUMN;
    mutation.delete_from_column = &delete;
    return mutation;
}

static Bt__Value int_value(int64_t number)
{
    Bt__Value value = BT__VALUE__INIT;
    value.kind_case = BT__VALUE__KIND_INT_VALUE;
    value.int_value = number;
    return value;
}

static Bt__Value bytes_value(bytes b)
{
    Bt__Value value = BT__VALUE__INIT;
    value.kind_case = BT__VALUE__KIND_BYTES_VALUE;
    value.bytes_value = proto_data(b);
    return value;
}

static Bt__Value *raw_qualifier(void)
{
    static Bt__Value value;
    bt__value__init(&value);
    value.kind_case = BT__VALUE__KIND_RAW_VALUE;
    value.raw_value = proto_data(bytes_of("q"));
    return &value;
}

static Bt__Value *raw_timestamp(int64_t timestamp_us)
{
    static Bt__Value value;
    bt__value__init(&value);
    value.kind_case = BT__VALUE__KIND_RAW_TIMESTAMP_MICROS;
    value.raw_timestamp_micros = timestamp_us;
    return &value;
}

static Bt__Mutation make_add(const char *family, Bt__Value *input)
{
    static Bt__Mutation__AddToCell add;
    bt__mutation__add_to_cell__init(&add);
    add.family_name = family;
    add.column_qualifier = raw_qualifier();
    add.timestamp = raw_timestamp(5000);
    add.input = input;
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_ADD_TO_CELL;
    mutation.add_to_cell = &add;
    return mutation;
}

static Bt__Mutation make_merge(const char *family, Bt__Value *input)
{
    static Bt__Mutation__MergeToCell merge;
    bt__mutation__merge_to_cell__init(&merge);
    merge.family_name = family;
    merge.column_qualifier = raw_qualifier();
    merge.timestamp = raw_timestamp(5000);
    merge.input = input;
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_MERGE_TO_CELL;
    mutation.merge_to_cell = &merge;
    return mutation;
}

/* --- what they come to --- */

static status pack(struct fixture *f, Bt__Mutation *mutation)
{
    buffer_free(&f->change.fragment);
    TRY(mutations_check(MUTATION_LIST, &mutation, 1));
    TRY(mutations_check_inputs(f->schema, MUTATION_LIST, &mutation, 1));
    return mutations_pack(&f->context, bytes_of("key"), &mutation, 1, &f->change);
}

/* The only entry of what the mutation came to. */
static struct entry pack_entry(struct fixture *f, Bt__Mutation mutation)
{
    struct fragment_reader reader;
    struct entry entry;
    struct entry none;
    Bt__Mutation *list[] = {&mutation};
    assert_true(mutations_fit(f->schema, list, 1));
    assert_ok(pack(f, &mutation));
    assert_true(fragment_reader_start(&reader, buffer_bytes(&f->change.fragment)));
    assert_true(fragment_reader_next(&reader, &entry));
    assert_false(fragment_reader_next(&reader, &none) || reader.is_bad);
    return entry;
}

static void assert_refused(struct fixture *f, Bt__Mutation mutation, enum status_code code)
{
    assert_status(pack(f, &mutation), code);
}

static void assert_type_mismatch(struct fixture *f, Bt__Mutation mutation)
{
    Bt__Mutation *list[] = {&mutation};
    assert_false(mutations_fit(f->schema, list, 1));
    status s = pack(f, &mutation);
    assert_string_equal(status_message(s), "Error while mutating the row 'key' (table) : "
                                           "Column family type mismatch");
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void a_cell_is_set(void **state)
{
    struct entry entry = pack_entry(*state, make_set("plain", 7000, bytes_of("value")));
    assert_int_equal(entry.kind, ENTRY_CELL);
    assert_int_equal(entry.family, PLAIN);
    assert_int_equal(entry.timestamp_us, 7000);
    assert_true(bytes_equal(entry.qualifier, bytes_of("q")));
    assert_true(bytes_equal(entry.value, bytes_of("value")));
}

static void server_time_is_truncated_to_what_the_table_keeps(void **state)
{
    struct fixture *f = *state;
    bool keeps_micros = f->schema->granularity == GRANULARITY_MICROS;
    struct entry entry = pack_entry(f, make_set("plain", -1, bytes_of("v")));
    assert_int_equal(entry.timestamp_us, keeps_micros ? NOW_US : NOW_MS_US);
}

static void timestamps_must_fit_the_table(void **state)
{
    struct fixture *f = *state;
    bytes v = bytes_of("v");
    int64_t most = INT64_MAX - INT64_MAX % 1000;
    assert_int_equal(pack_entry(f, make_set("plain", most, v)).timestamp_us, most);
    assert_int_equal(pack_entry(f, make_set("plain", 0, v)).timestamp_us, 0);
    assert_refused(f, make_set("plain", -2, v), STATUS_INVALID_ARGUMENT);
    assert_refused(f, make_set("plain", INT64_MIN, v), STATUS_INVALID_ARGUMENT);
    assert_refused(f, make_set("plain", 1001, v), STATUS_INVALID_ARGUMENT);
    assert_refused(f, make_set("plain", INT64_MAX, v), STATUS_INVALID_ARGUMENT);
}

static void microseconds_are_kept_where_the_table_keeps_them(void **state)
{
    struct entry entry = pack_entry(*state, make_set("plain", 1001, bytes_of("v")));
    assert_int_equal(entry.timestamp_us, 1001);
}

/* A cell there was in no range without an end, neither of a filter nor of a deletion. */
static void the_last_microsecond_is_refused(void **state)
{
    bytes v = bytes_of("v");
    assert_refused(*state, make_set("plain", INT64_MAX, v), STATUS_INVALID_ARGUMENT);
    struct entry entry = pack_entry(*state, make_set("plain", INT64_MAX - 1, v));
    assert_int_equal(entry.timestamp_us, INT64_MAX - 1);
}

static void timestamps_that_a_client_made_up_are_truncated(void **state)
{
    Bt__Mutation mutation = make_set("plain", 1001, bytes_of("v"));
    mutation.timestamp_origin = BT__MUTATION__TIMESTAMP_ORIGIN__CLIENT_AUTO_GENERATED;
    assert_int_equal(pack_entry(*state, mutation).timestamp_us, 1000);
    mutation = make_set("plain", -1001, bytes_of("v"));
    mutation.timestamp_origin = BT__MUTATION__TIMESTAMP_ORIGIN__CLIENT_AUTO_GENERATED;
    assert_refused(*state, mutation, STATUS_INVALID_ARGUMENT);
}

static void a_column_is_deleted(void **state)
{
    struct entry entry = pack_entry(*state, make_delete("plain", 1000, 3000));
    assert_int_equal(entry.kind, ENTRY_COLUMN_TOMBSTONE);
    assert_int_equal(entry.timestamp_us, 1000);
    assert_int_equal(entry.end_us, 3000);
    entry = pack_entry(*state, make_delete("plain", 1000, 0));
    assert_int_equal(entry.end_us, INT64_MAX);
}

static void delete_ranges_must_make_sense(void **state)
{
    static const int64_t ranges[][2] = {{3000, 2000}, {2000, 2000}, {1, 2000}, {0, 1}, {-1000, 0}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        assert_refused(*state, make_delete("plain", ranges[i][0], ranges[i][1]),
                       STATUS_INVALID_ARGUMENT);
}

static void a_family_and_a_row_are_deleted(void **state)
{
    Bt__Mutation__DeleteFromFamily delete_family = BT__MUTATION__DELETE_FROM_FAMILY__INIT;
    delete_family.family_name = "sum";
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_FAMILY;
    mutation.delete_from_family = &delete_family;
    struct entry entry = pack_entry(*state, mutation);
    assert_int_equal(entry.kind, ENTRY_FAMILY_TOMBSTONE);
    assert_int_equal(entry.family, SUM);

    Bt__Mutation__DeleteFromRow delete_row = BT__MUTATION__DELETE_FROM_ROW__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_ROW;
    mutation.delete_from_row = &delete_row;
    assert_int_equal(pack_entry(*state, mutation).kind, ENTRY_ROW_TOMBSTONE);
}

static void an_unknown_family_is_not_found(void **state)
{
    Bt__Mutation mutation = make_set("nope", 0, bytes_of("v"));
    status s = pack(*state, &mutation);
    assert_string_equal(status_message(s), "Error while mutating the row 'key' (table) : "
                                           "Requested column family not found.");
    assert_status(s, STATUS_NOT_FOUND);
    assert_refused(*state, make_delete("nope", 0, 0), STATUS_NOT_FOUND);
    Bt__Value one = int_value(1);
    assert_refused(*state, make_add("nope", &one), STATUS_NOT_FOUND);
}

static void sizes_are_limited(void **state)
{
    struct fixture *f = *state;
    static uint8_t qualifier[LIMIT_QUALIFIER_BYTES + 1];
    Bt__Mutation mutation = make_set("plain", 0, bytes_of("v"));
    mutation.set_cell->column_qualifier = proto_data(bytes_make(qualifier, LIMIT_QUALIFIER_BYTES));
    assert_ok(pack(f, &mutation));
    mutation.set_cell->column_qualifier.len++;
    assert_refused(f, mutation, STATUS_INVALID_ARGUMENT);
    mutation = make_set("plain", 0, bytes_of("v"));
    mutation.set_cell->value.len = LIMIT_CELL_BYTES + 1; /* never looked at */
    assert_refused(f, mutation, STATUS_INVALID_ARGUMENT);
}

/* --- aggregates --- */

static void an_input_is_added(void **state)
{
    Bt__Value input = int_value(-2);
    struct entry entry = pack_entry(*state, make_add("sum", &input));
    assert_int_equal(entry.kind, ENTRY_SUM);
    assert_int_equal(entry.timestamp_us, 5000);
    assert_true(bytes_equal(entry.value, bytes_make("\xff\xff\xff\xff\xff\xff\xff\xfe", 8)));
    assert_int_equal(pack_entry(*state, make_add("min", &input)).kind, ENTRY_MIN);
}

static void no_input_adds_zero(void **state)
{
    Bt__Value no_kind = BT__VALUE__INIT;
    bytes zero = bytes_make("\0\0\0\0\0\0\0\0", 8);
    assert_true(bytes_equal(pack_entry(*state, make_add("sum", NULL)).value, zero));
    assert_true(bytes_equal(pack_entry(*state, make_add("sum", &no_kind)).value, zero));
}

static void a_state_is_merged(void **state)
{
    bytes seven = bytes_make("\0\0\0\0\0\0\0\7", 8);
    Bt__Value input = bytes_value(seven);
    struct entry entry = pack_entry(*state, make_merge("sum", &input));
    assert_int_equal(entry.kind, ENTRY_SUM);
    assert_true(bytes_equal(entry.value, seven));
}

static void an_absent_or_empty_state_changes_nothing(void **state)
{
    struct fixture *f = *state;
    Bt__Value empty = bytes_value(bytes_of(""));
    Bt__Value *const inputs[] = {NULL, &empty};
    for (size_t i = 0; i < 2; i++) {
        Bt__Mutation mutation = make_merge("sum", inputs[i]);
        assert_ok(pack(f, &mutation));
        assert_true(fragment_is_empty(buffer_bytes(&f->change.fragment)));
    }
}

static void families_take_only_what_is_of_their_type(void **state)
{
    Bt__Value one = int_value(1);
    Bt__Value three_bytes = bytes_value(bytes_of("abc"));
    Bt__Value nine_bytes = bytes_value(bytes_of("abcdefghi"));
    assert_type_mismatch(*state, make_set("sum", 0, bytes_of("12345678")));
    assert_type_mismatch(*state, make_add("plain", &one));
    assert_type_mismatch(*state, make_merge("plain", NULL));
    assert_type_mismatch(*state, make_merge("sum", &three_bytes));
    assert_type_mismatch(*state, make_merge("sum", &nine_bytes));
}

static void aggregate_timestamps_are_given(void **state)
{
    Bt__Value one = int_value(1);
    Bt__Mutation mutation = make_add("sum", &one);
    mutation.add_to_cell->timestamp->raw_timestamp_micros = -1;
    assert_refused(*state, mutation, STATUS_INVALID_ARGUMENT);
    mutation.add_to_cell->timestamp->raw_timestamp_micros = 1001;
    assert_refused(*state, mutation, STATUS_INVALID_ARGUMENT);
    mutation.timestamp_origin = BT__MUTATION__TIMESTAMP_ORIGIN__CLIENT_AUTO_GENERATED;
    assert_int_equal(pack_entry(*state, mutation).timestamp_us, 1000);
    const uint8_t eight_bytes[8] = {0};
    Bt__Value sum = bytes_value(bytes_make(eight_bytes, sizeof eight_bytes));
    mutation = make_merge("sum", &sum);
    mutation.merge_to_cell->timestamp->raw_timestamp_micros = 1001;
    assert_refused(*state, mutation, STATUS_INVALID_ARGUMENT);
    mutation.timestamp_origin = BT__MUTATION__TIMESTAMP_ORIGIN__CLIENT_AUTO_GENERATED;
    assert_int_equal(pack_entry(*state, mutation).timestamp_us, 1000);
}

/* --- what needs no table to be refused --- */

static void assert_malformed(Bt__Mutation mutation)
{
    Bt__Mutation *list[] = {&mutation};
    assert_status(mutations_check(MUTATION_LIST, list, 1), STATUS_INVALID_ARGUMENT);
}

static void values_must_be_of_the_right_kind(void **state)
{
    (void)state;
    Bt__Value number = int_value(1);
    Bt__Value text = bytes_value(bytes_of("12345678"));
    assert_malformed(make_merge("sum", &number));
    Bt__Mutation mutation = make_add("sum", &number);
    mutation.add_to_cell->column_qualifier = &text;
    assert_malformed(mutation);
    mutation = make_add("sum", &number);
    mutation.add_to_cell->timestamp = &number;
    assert_malformed(mutation);
    mutation = make_add("sum", &number);
    mutation.add_to_cell->timestamp = NULL;
    assert_malformed(mutation);
}

static void adds_must_be_of_the_kind_of_their_family(void **state)
{
    struct fixture *f = *state;
    Bt__Value text = bytes_value(bytes_of("12345678"));
    Bt__Mutation to_sum = make_add("sum", &text);
    Bt__Mutation *list[] = {&to_sum};
    assert_ok(mutations_check(MUTATION_LIST, list, 1));
    status s = mutations_check_inputs(f->schema, MUTATION_LIST, list, 1);
    assert_string_equal(status_message(s), "Error in field 'Mutation list' : Error in element #0 : "
                                           "Error in field 'input' : must use `int_value`");
    assert_status(s, STATUS_INVALID_ARGUMENT);
    to_sum.add_to_cell->family_name = "plain"; /* is the row's fault, not the call's */
    assert_ok(mutations_check_inputs(f->schema, MUTATION_LIST, list, 1));
}

static void a_mutation_of_no_kind_is_refused(void **state)
{
    (void)state;
    assert_malformed((Bt__Mutation)BT__MUTATION__INIT);
}

static void mutations_are_counted(void **state)
{
    struct fixture *f = *state;
    size_t count = LIMIT_MUTATIONS_A_REQUEST + 1;
    Bt__Mutation mutation = make_set("plain", 0, bytes_of("v"));
    Bt__Mutation **list = arena_alloc(f->context.arena, count * sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < count; i++)
        list[i] = &mutation;
    assert_status(mutations_check(MUTATION_LIST, list, count), STATUS_INVALID_ARGUMENT);
    assert_ok(mutations_check(MUTATION_LIST, list, count - 1));
    assert_ok(mutations_pack(&f->context, bytes_of("key"), list, count - 1, &f->change));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cell_is_set),
        TEST(server_time_is_truncated_to_what_the_table_keeps),
        cmocka_unit_test_setup_teardown(server_time_is_truncated_to_what_the_table_keeps,
                                        setup_micros, teardown),
        TEST(timestamps_must_fit_the_table),
        cmocka_unit_test_setup_teardown(microseconds_are_kept_where_the_table_keeps_them,
                                        setup_micros, teardown),
        cmocka_unit_test_setup_teardown(the_last_microsecond_is_refused, setup_micros, teardown),
        TEST(timestamps_that_a_client_made_up_are_truncated),
        TEST(a_column_is_deleted),
        TEST(delete_ranges_must_make_sense),
        TEST(a_family_and_a_row_are_deleted),
        TEST(an_unknown_family_is_not_found),
        TEST(sizes_are_limited),
        TEST(an_input_is_added),
        TEST(no_input_adds_zero),
        TEST(a_state_is_merged),
        TEST(an_absent_or_empty_state_changes_nothing),
        TEST(families_take_only_what_is_of_their_type),
        TEST(aggregate_timestamps_are_given),
        TEST(values_must_be_of_the_right_kind),
        TEST(adds_must_be_of_the_kind_of_their_family),
        TEST(a_mutation_of_no_kind_is_refused),
        TEST(mutations_are_counted),
    };
    return cmocka_run_group_tests_name("mutations", tests, NULL, NULL);
}
