/* Decoding: what Google's parsers accept comes out right, and hostile bytes cost little. */
#include "wire/proto.h"

#include "base/testing/testing.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"

enum { SMALL = 64 << 10, MIB = 1 << 20 };

/* --- wire bytes by hand --- */

struct fixture {
    struct arena *arena;
    struct buffer wire;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->arena = arena_create(SMALL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    arena_destroy(f->arena);
    buffer_free(&f->wire);
    free(f);
    return 0;
}

static void put_tag(struct buffer *wire, uint32_t id, ProtobufCWireType type)
{
    buffer_append_varint(wire, id << 3 | (uint32_t)type);
}

static void put_number(struct buffer *wire, uint32_t id, uint64_t value)
{
    put_tag(wire, id, PROTOBUF_C_WIRE_TYPE_VARINT);
    buffer_append_varint(wire, value);
}

static void put_content(struct buffer *wire, uint32_t id, const void *data, size_t size)
{
    put_tag(wire, id, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    buffer_append_varint(wire, size);
    buffer_append(wire, data, size);
}

static void put_text(struct buffer *wire, uint32_t id, const char *text)
{
    put_content(wire, id, text, strlen(text));
}

/* Wraps all that is in the buffer as a field of an outer message. */
static void wrap(struct buffer *wire, uint32_t id)
{
    struct buffer inner = *wire;
    *wire = (struct buffer){0};
    put_content(wire, id, inner.data, inner.size);
    buffer_free(&inner);
}

static void *decode(struct fixture *f, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(type, buffer_bytes(&f->wire), f->arena, &message));
    assert_ptr_equal(message->descriptor, type);
    return message;
}

static void assert_refused(struct fixture *f, const ProtobufCMessageDescriptor *type,
                           enum status_code code)
{
    ProtobufCMessage *message;
    assert_status(proto_decode(type, buffer_bytes(&f->wire), f->arena, &message), code);
    assert_null(message);
}

static void assert_refused_with(struct fixture *f, const ProtobufCMessageDescriptor *type,
                                const char *words)
{
    ProtobufCMessage *message;
    status s = proto_decode(type, buffer_bytes(&f->wire), f->arena, &message);
    assert_non_null(strstr(status_message(s), words));
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

/* --- what is well formed --- */

static void an_empty_message_has_defaults(void **state)
{
    Bt__ReadRowsRequest *request = decode(*state, &bt__read_rows_request__descriptor);
    assert_string_equal(request->table_name, "");
    assert_int_equal(request->rows_limit, 0);
    assert_null(request->rows);
    assert_null(request->filter);
}

static void a_message_survives_encoding_and_decoding(void **state)
{
    struct fixture *f = *state;
    Bt__Mutation__SetCell set = BT__MUTATION__SET_CELL__INIT;
    set.family_name = "f";
    set.column_qualifier = proto_data(bytes_of("q"));
    set.timestamp_micros = -1;
    set.value = proto_data(bytes_make("\0\xff", 2));
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation.set_cell = &set;
    Bt__Mutation *mutations[] = {&mutation, &mutation, &mutation, &mutation, &mutation};
    Bt__MutateRowRequest request = BT__MUTATE_ROW_REQUEST__INIT;
    request.table_name = "projects/p/instances/i/tables/t";
    request.n_mutations = 5;
    request.mutations = mutations;
    proto_encode(&request.base, &f->wire);
    assert_false(f->wire.failed);

    Bt__MutateRowRequest *copy = decode(f, &bt__mutate_row_request__descriptor);
    assert_string_equal(copy->table_name, request.table_name);
    assert_int_equal(copy->n_mutations, 5);
    const Bt__Mutation__SetCell *cell = copy->mutations[4]->set_cell;
    assert_int_equal(copy->mutations[4]->mutation_case, BT__MUTATION__MUTATION_SET_CELL);
    assert_string_equal(cell->family_name, "f");
    assert_int_equal(cell->timestamp_micros, -1);
    assert_true(bytes_equal(proto_bytes(cell->value), bytes_make("\0\xff", 2)));
}

static void encoding_appends(void **state)
{
    struct fixture *f = *state;
    buffer_append(&f->wire, "12345", 5);
    Pb__Int64Value value = PB__INT64_VALUE__INIT;
    value.value = 7;
    proto_encode(&value.base, &f->wire);
    assert_true(bytes_equal(buffer_bytes(&f->wire), bytes_make("12345\x08\x07", 7)));
}

/* What both encoders write is the same. */
static void assert_same(const ProtobufCMessage *message)
{
    struct arena *arena = arena_create(1 << 20);
    struct buffer theirs = {0}, small = {0};
    buffer_append(&theirs, "12345", 5);
    buffer_append(&small, "12345", 5);
    proto_encode(message, &theirs);
    proto_encode_small(message, &small);
    bytes in = proto_encode_in(arena, message);
    assert_false(theirs.failed || small.failed);
    assert_true(bytes_equal(buffer_bytes(&theirs), buffer_bytes(&small)));
    assert_true(bytes_equal(bytes_from(buffer_bytes(&theirs), 5), in));
    buffer_free(&theirs);
    buffer_free(&small);
    arena_destroy(arena);
}

static void assert_same_value(const Ds__Value *value)
{
    Ds__ArrayValue array = DS__ARRAY_VALUE__INIT;
    Ds__Value outer = DS__VALUE__INIT;
    Ds__Value values[3] = {*value, *value, outer};
    Ds__Value *items[] = {&values[0], &values[1], &values[2]};
    array.values = items;
    array.n_values = 3;
    outer.value_type_case = DS__VALUE__VALUE_TYPE_ARRAY_VALUE;
    outer.array_value = &array;
    outer.meaning = -18;
    outer.exclude_from_indexes = 1;
    assert_same(&value->base);
    assert_same(&outer.base);
}

static void a_small_message_is_encoded_as_any_other(void **state)
{
    (void)state;
    const int64_t numbers[] = {0, 1, 127, 128, -1, INT64_MAX, INT64_MIN};
    const double doubles[] = {0, -0.0, 1.5, -1e300};
    const char *const texts[] = {"", "x", "two words", NULL};
    Ds__Value value = DS__VALUE__INIT;
    assert_same_value(&value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        value.value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
        value.integer_value = numbers[i];
        value.meaning = (int32_t)numbers[i];
        assert_same_value(&value);
    }
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        Ds__Value number = DS__VALUE__INIT;
        number.value_type_case = DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
        number.double_value = doubles[i];
        assert_same_value(&number);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Ds__Value text = DS__VALUE__INIT;
        text.value_type_case = DS__VALUE__VALUE_TYPE_STRING_VALUE;
        text.string_value = texts[i];
        assert_same_value(&text);
    }
}

static void what_is_not_small_is_encoded_too(void **state)
{
    static uint8_t large[5000];
    struct fixture *f = *state;
    Ds__Value value = DS__VALUE__INIT;
    value.value_type_case = DS__VALUE__VALUE_TYPE_BLOB_VALUE;
    for (size_t size = 4080; size < 4110; size++) {
        value.blob_value = proto_data(bytes_make(large, size));
        assert_same(&value.base);
    }
    value.blob_value = proto_data(bytes_make(large, sizeof large));
    assert_same_value(&value);
    put_text(&f->wire, 100, "a field that is not known");
    ProtobufCMessage *unknown =
        protobuf_c_message_unpack(&ds__value__descriptor, NULL, f->wire.size, f->wire.data);
    assert_int_equal(unknown->n_unknown_fields, 1);
    assert_same(unknown);
    protobuf_c_message_free_unpacked(unknown, NULL);
    struct arena *none = arena_create(0);
    assert_null(proto_encode_in(none, &value.base).data);
    arena_destroy(none);
}

static void bytes_fields_point_into_the_wire(void **state)
{
    struct fixture *f = *state;
    put_text(&f->wire, 2, "key");
    Bt__MutateRowRequest *request = decode(f, &bt__mutate_row_request__descriptor);
    assert_ptr_equal(request->row_key.data, f->wire.data + 2);
}

static void fixed_and_negative_numbers_decode(void **state)
{
    struct fixture *f = *state;
    double half = 0.5;
    put_tag(&f->wire, 14, PROTOBUF_C_WIRE_TYPE_64BIT);
    buffer_append(&f->wire, &half, sizeof half);
    Bt__RowFilter *filter = decode(f, &bt__row_filter__descriptor);
    assert_int_equal(filter->filter_case, BT__ROW_FILTER__FILTER_ROW_SAMPLE_FILTER);
    assert_true(filter->row_sample_filter == 0.5);

    buffer_clear(&f->wire);
    float quarter = 0.25f;
    put_tag(&f->wire, 1, PROTOBUF_C_WIRE_TYPE_32BIT);
    buffer_append(&f->wire, &quarter, sizeof quarter);
    Pb__FloatValue *value = decode(f, &pb__float_value__descriptor);
    assert_true(value->value == 0.25f);

    buffer_clear(&f->wire);
    put_number(&f->wire, 10, (uint64_t)-5); /* an int32 is sign-extended to 64 bits */
    filter = decode(f, &bt__row_filter__descriptor);
    assert_int_equal(filter->cells_per_row_offset_filter, -5);
}

static void any_non_zero_number_is_true(void **state)
{
    struct fixture *f = *state;
    put_number(&f->wire, 7, 1ull << 40);
    Bt__ReadRowsRequest *request = decode(f, &bt__read_rows_request__descriptor);
    assert_int_equal(request->reversed, 1);
}

static void repeated_scalars_come_packed_or_not(void **state)
{
    struct fixture *f = *state;
    put_number(&f->wire, 2, 1);
    put_content(&f->wire, 2, "\x02\x03\x04", 3);
    put_content(&f->wire, 2, "", 0);
    put_number(&f->wire, 2, 5);
    Reflection__ExtensionNumberResponse *numbers =
        decode(f, &reflection__extension_number_response__descriptor);
    assert_int_equal(numbers->n_extension_number, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(numbers->extension_number[i], i + 1);
}

static void many_elements_keep_their_order(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 1000; i++)
        put_content(&f->wire, 1, &i, sizeof i);
    Bt__RowSet *rows = decode(f, &bt__row_set__descriptor);
    assert_int_equal(rows->n_row_keys, 1000);
    for (unsigned i = 0; i < 1000; i++)
        assert_memory_equal(rows->row_keys[i].data, &i, sizeof i);
}

static void the_last_member_of_a_oneof_wins(void **state)
{
    struct fixture *f = *state;
    put_number(&f->wire, 17, 1);
    put_text(&f->wire, 4, "key");
    put_content(&f->wire, 8, "\x08\x01", 2); /* timestamp_range_filter {start: 1} */
    Bt__RowFilter *filter = decode(f, &bt__row_filter__descriptor);
    assert_int_equal(filter->filter_case, BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER);
    assert_int_equal(filter->timestamp_range_filter->start_timestamp_micros, 1);

    put_number(&f->wire, 11, 3);
    filter = decode(f, &bt__row_filter__descriptor);
    assert_int_equal(filter->filter_case, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER);
    assert_int_equal(filter->cells_per_row_limit_filter, 3);
}

static void occurrences_of_a_message_merge(void **state)
{
    struct fixture *f = *state;
    put_text(&f->wire, 1, "a"); /* RowSet.row_keys */
    wrap(&f->wire, 2);          /* ReadRowsRequest.rows */
    size_t once = f->wire.size;
    for (int i = 0; i < 4; i++) { /* over the array's first capacity */
        assert_non_null(buffer_reserve(&f->wire, once));
        buffer_append(&f->wire, f->wire.data, once);
    }
    Bt__ReadRowsRequest *request = decode(f, &bt__read_rows_request__descriptor);
    assert_int_equal(request->rows->n_row_keys, 5);
    assert_memory_equal(request->rows->row_keys[4].data, "a", 1);
}

static void a_chosen_member_merges_with_itself(void **state)
{
    struct fixture *f = *state;
    put_content(&f->wire, 8, "\x08\x01", 2);
    put_content(&f->wire, 8, "\x10\x02", 2);
    Bt__RowFilter *filter = decode(f, &bt__row_filter__descriptor);
    assert_int_equal(filter->timestamp_range_filter->start_timestamp_micros, 1);
    assert_int_equal(filter->timestamp_range_filter->end_timestamp_micros, 2);
}

static void the_last_occurrence_of_a_scalar_counts(void **state)
{
    struct fixture *f = *state;
    put_text(&f->wire, 1, "first");
    put_text(&f->wire, 1, "second");
    Bt__ReadRowsRequest *request = decode(f, &bt__read_rows_request__descriptor);
    assert_string_equal(request->table_name, "second");
}

static void unknown_fields_are_skipped(void **state)
{
    struct fixture *f = *state;
    put_number(&f->wire, 1000, 1);
    put_content(&f->wire, 1001, "abc", 3);
    put_text(&f->wire, 1, "t");
    Bt__ReadRowsRequest *request = decode(f, &bt__read_rows_request__descriptor);
    assert_string_equal(request->table_name, "t");
    assert_int_equal(request->base.n_unknown_fields, 0);
}

static void a_wrong_wire_type_is_an_unknown_field(void **state)
{
    struct fixture *f = *state;
    put_number(&f->wire, 1, 7);          /* table_name as a varint */
    put_content(&f->wire, 4, "\x05", 1); /* rows_limit as bytes */
    put_tag(&f->wire, 4, PROTOBUF_C_WIRE_TYPE_32BIT);
    buffer_append(&f->wire, "\1\0\0\0", 4);
    Bt__ReadRowsRequest *request = decode(f, &bt__read_rows_request__descriptor);
    assert_string_equal(request->table_name, "");
    assert_int_equal(request->rows_limit, 0);
}

/* --- hostile bytes --- */

static void nested_filters(struct fixture *f, int levels)
{
    buffer_clear(&f->wire);
    for (int i = 0; i < levels; i++) {
        wrap(&f->wire, 1); /* Chain.filters */
        wrap(&f->wire, 1); /* RowFilter.chain */
    }
}

static void ten_thousand_nested_filters_are_refused(void **state)
{
    nested_filters(*state, 10000);
    assert_refused_with(*state, &bt__row_filter__descriptor, "nested more than 100 deep");
}

static void the_depth_limit_is_exact(void **state)
{
    struct fixture *f = *state;
    nested_filters(f, 49); /* each a filter and a chain, and the filter within: 99 deep */
    wrap(&f->wire, 3);     /* ReadRowsRequest.filter */
    (void)decode(f, &bt__read_rows_request__descriptor);
    nested_filters(f, 50);
    assert_refused_with(f, &bt__row_filter__descriptor, "nested more than 100 deep");
}

/* 64 MiB of fields of two bytes each: tag, then 0. */
static void many_two_byte_fields(struct fixture *f, uint8_t tag)
{
    uint8_t *to = buffer_reserve(&f->wire, 64 * MIB);
    assert_non_null(to);
    for (size_t i = 0; i < 64 * MIB; i += 2) {
        to[i] = tag;
        to[i + 1] = 0;
    }
    f->wire.size = 64 * MIB;
}

static void unknown_fields_of_64_mib_cost_nothing(void **state)
{
    struct fixture *f = *state;
    size_t before = arena_footprint(f->arena);
    many_two_byte_fields(f, 15 << 3);
    Bt__ReadRowsRequest *request = decode(f, &bt__read_rows_request__descriptor);
    assert_string_equal(request->table_name, "");
    assert_int_equal(arena_footprint(f->arena), before);
}

static void empty_messages_of_64_mib_are_bounded_by_the_arena(void **state)
{
    struct fixture *f = *state;
    many_two_byte_fields(f, 3 << 3 | 2); /* MutateRowRequest.mutations */
    assert_refused(f, &bt__mutate_row_request__descriptor, STATUS_RESOURCE_EXHAUSTED);
    assert_true(arena_footprint(f->arena) < 4 * SMALL);
}

static void empty_strings_of_64_mib_are_bounded_by_the_arena(void **state)
{
    struct fixture *f = *state;
    many_two_byte_fields(f, 5 << 3 | 2); /* CellChunk.labels */
    assert_refused(f, &bt__read_rows_response__cell_chunk__descriptor, STATUS_RESOURCE_EXHAUSTED);
    assert_true(arena_footprint(f->arena) < 4 * SMALL);
}

static void every_truncation_is_refused_or_shorter(void **state)
{
    struct fixture *f = *state;
    put_text(&f->wire, 1, "f");
    put_text(&f->wire, 2, "q");
    put_number(&f->wire, 3, 1234567);
    wrap(&f->wire, 1);
    wrap(&f->wire, 3);
    size_t whole = f->wire.size;
    for (size_t size = 1; size < whole; size++) {
        /* A copy of its own, so that a read past the end is seen. */
        struct fixture cut = {.arena = f->arena};
        cut.wire.data = malloc(size);
        memcpy(cut.wire.data, f->wire.data, size);
        cut.wire.size = size;
        assert_refused(&cut, &bt__mutate_row_request__descriptor, STATUS_INVALID_ARGUMENT);
        free(cut.wire.data);
    }
    (void)decode(f, &bt__mutate_row_request__descriptor);
}

static void invalid_utf8_is_refused(void **state)
{
    struct fixture *f = *state;
    put_text(&f->wire, 1, "caf\xe9");
    assert_refused_with(f, &bt__read_rows_request__descriptor, "'table_name' : invalid UTF-8");
}

static void a_nul_inside_a_family_name_is_refused(void **state)
{
    struct fixture *f = *state;
    put_content(&f->wire, 1, "cf\0evil", 7);
    wrap(&f->wire, 1); /* Mutation.set_cell */
    wrap(&f->wire, 3); /* MutateRowRequest.mutations */
    assert_refused_with(f, &bt__mutate_row_request__descriptor, "'family_name' : contains a NUL");
}

static void varints_of_more_than_64_bits_are_refused(void **state)
{
    struct fixture *f = *state;
    put_tag(&f->wire, 4, PROTOBUF_C_WIRE_TYPE_VARINT);
    buffer_append(&f->wire, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11);
    assert_refused(f, &bt__read_rows_request__descriptor, STATUS_INVALID_ARGUMENT);
    buffer_clear(&f->wire);
    buffer_append(&f->wire, "\xa0\x80\x80\x80\x80\x01\x01", 7); /* a tag of 36 bits */
    assert_refused(f, &bt__read_rows_request__descriptor, STATUS_INVALID_ARGUMENT);
}

static void a_longer_form_of_a_varint_is_fine(void **state)
{
    struct fixture *f = *state;
    put_tag(&f->wire, 4, PROTOBUF_C_WIRE_TYPE_VARINT);
    buffer_append(&f->wire, "\x85\x80\x00", 3);
    Bt__ReadRowsRequest *request = decode(f, &bt__read_rows_request__descriptor);
    assert_int_equal(request->rows_limit, 5);
}

static void a_length_past_the_end_is_refused(void **state)
{
    struct fixture *f = *state;
    put_tag(&f->wire, 1, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    buffer_append_varint(&f->wire, UINT64_MAX);
    buffer_append(&f->wire, "abc", 3);
    assert_refused(f, &bt__read_rows_request__descriptor, STATUS_INVALID_ARGUMENT);
}

static void groups_and_field_zero_are_refused(void **state)
{
    static const char *const wires[] = {"\x0b\x0c", "\x0c", "\x0e", "\x0f", "\x02\x01x"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
        buffer_clear(&f->wire);
        buffer_append_bytes(&f->wire, bytes_of(wires[i]));
        assert_refused(f, &bt__read_rows_request__descriptor, STATUS_INVALID_ARGUMENT);
    }
}

static void utf8_is_checked_as_the_rfc_says(void **state)
{
    (void)state;
    static const char *const good[] = {
        "", "a", "\x7f", "é", "\xe0\xa0\x80", "☃", "\xed\x9f\xbf", "😀", "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xe2\x98",
                                      "\xe2\x98x",
                                      "\xff",
                                      "a\xc3"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(utf8_is_valid(bytes_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(utf8_is_valid(bytes_of(bad[i])));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_message_has_defaults),
        TEST(a_message_survives_encoding_and_decoding),
        TEST(encoding_appends),
        TEST(a_small_message_is_encoded_as_any_other),
        TEST(what_is_not_small_is_encoded_too),
        TEST(bytes_fields_point_into_the_wire),
        TEST(fixed_and_negative_numbers_decode),
        TEST(any_non_zero_number_is_true),
        TEST(repeated_scalars_come_packed_or_not),
        TEST(many_elements_keep_their_order),
        TEST(the_last_member_of_a_oneof_wins),
        TEST(occurrences_of_a_message_merge),
        TEST(a_chosen_member_merges_with_itself),
        TEST(the_last_occurrence_of_a_scalar_counts),
        TEST(unknown_fields_are_skipped),
        TEST(a_wrong_wire_type_is_an_unknown_field),
        TEST(ten_thousand_nested_filters_are_refused),
        TEST(the_depth_limit_is_exact),
        TEST(unknown_fields_of_64_mib_cost_nothing),
        TEST(empty_messages_of_64_mib_are_bounded_by_the_arena),
        TEST(empty_strings_of_64_mib_are_bounded_by_the_arena),
        TEST(every_truncation_is_refused_or_shorter),
        TEST(invalid_utf8_is_refused),
        TEST(a_nul_inside_a_family_name_is_refused),
        TEST(varints_of_more_than_64_bits_are_refused),
        TEST(a_longer_form_of_a_varint_is_fine),
        TEST(a_length_past_the_end_is_refused),
        TEST(groups_and_field_zero_are_refused),
        TEST(utf8_is_checked_as_the_rfc_says),
    };
    return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
