/* Structured row keys: vectors, and that what is written is read again. */
#include "base/testing.h"
#include "google/bigtable/admin/v2/types.pb-c.h"
#include "sql/key_schema.h"
#include "sql/ordered_code.h"
#include "sql/testing.h"
#include "wire/proto.h"

enum { ARENA = 1 << 20, FIELDS = 3 };

/* A string, a number, and bytes. */
struct schema_fixture {
    struct arena *arena;
    BtAdmin__Type__String string;
    BtAdmin__Type__Int64 number;
    BtAdmin__Type__Int64__Encoding number_encoding;
    BtAdmin__Type__Int64__Encoding__OrderedCodeBytes ordered_number;
    BtAdmin__Type__Bytes bytes_;
    BtAdmin__Type types[FIELDS];
    BtAdmin__Type__Struct__Field fields[FIELDS];
    BtAdmin__Type__Struct__Field *list[FIELDS];
    BtAdmin__Type__Struct__Encoding encoding;
    BtAdmin__Type__Struct__Encoding__DelimitedBytes delimited;
    BtAdmin__Type__Struct__Encoding__OrderedCodeBytes ordered;
    BtAdmin__Type__Struct structure;
    struct buffer encoded;
    const struct sql_key_schema *schema;
};

static void set_types(struct schema_fixture *f, bool is_ordered)
{
    static const char *const names[] = {"name", "number", "rest"};
    f->string = (BtAdmin__Type__String)BT_ADMIN__TYPE__STRING__INIT;
    f->number = (BtAdmin__Type__Int64)BT_ADMIN__TYPE__INT64__INIT;
    f->bytes_ = (BtAdmin__Type__Bytes)BT_ADMIN__TYPE__BYTES__INIT;
    f->number_encoding = (BtAdmin__Type__Int64__Encoding)BT_ADMIN__TYPE__INT64__ENCODING__INIT;
    f->ordered_number = (BtAdmin__Type__Int64__Encoding__OrderedCodeBytes)
        BT_ADMIN__TYPE__INT64__ENCODING__ORDERED_CODE_BYTES__INIT;
    if (is_ordered) {
        f->number_encoding.encoding_case =
            BT_ADMIN__TYPE__INT64__ENCODING__ENCODING_ORDERED_CODE_BYTES;
        f->number_encoding.ordered_code_bytes = &f->ordered_number;
        f->number.encoding = &f->number_encoding;
    }
    for (size_t i = 0; i < FIELDS; i++) {
        f->types[i] = (BtAdmin__Type)BT_ADMIN__TYPE__INIT;
        f->fields[i] = (BtAdmin__Type__Struct__Field)BT_ADMIN__TYPE__STRUCT__FIELD__INIT;
        f->fields[i].field_name = names[i];
        f->fields[i].type = &f->types[i];
        f->list[i] = &f->fields[i];
    }
    f->types[0].kind_case = BT_ADMIN__TYPE__KIND_STRING_TYPE;
    f->types[0].string_type = &f->string;
    f->types[1].kind_case = BT_ADMIN__TYPE__KIND_INT64_TYPE;
    f->types[1].int64_type = &f->number;
    f->types[2].kind_case = BT_ADMIN__TYPE__KIND_BYTES_TYPE;
    f->types[2].bytes_type = &f->bytes_;
}

/* With a delimiter, or in the ordered code. */
static void read_schema(struct schema_fixture *f, const char *delimiter)
{
    *f = (struct schema_fixture){.arena = arena_create(ARENA)};
    set_types(f, delimiter == NULL);
    f->encoding = (BtAdmin__Type__Struct__Encoding)BT_ADMIN__TYPE__STRUCT__ENCODING__INIT;
    f->delimited = (BtAdmin__Type__Struct__Encoding__DelimitedBytes)
        BT_ADMIN__TYPE__STRUCT__ENCODING__DELIMITED_BYTES__INIT;
    f->ordered = (BtAdmin__Type__Struct__Encoding__OrderedCodeBytes)
        BT_ADMIN__TYPE__STRUCT__ENCODING__ORDERED_CODE_BYTES__INIT;
    if (delimiter != NULL) {
        f->delimited.delimiter = proto_data(bytes_of(delimiter));
        f->encoding.encoding_case = BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_DELIMITED_BYTES;
        f->encoding.delimited_bytes = &f->delimited;
    } else {
        f->encoding.encoding_case = BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_ORDERED_CODE_BYTES;
        f->encoding.ordered_code_bytes = &f->ordered;
    }
    f->structure = (BtAdmin__Type__Struct)BT_ADMIN__TYPE__STRUCT__INIT;
    f->structure.fields = f->list;
    f->structure.n_fields = FIELDS;
    f->structure.encoding = &f->encoding;
    proto_encode(&f->structure.base, &f->encoded);
    assert_ok(sql_key_schema_read(buffer_bytes(&f->encoded), f->arena, &f->schema));
    assert_int_equal(sql_key_schema_count(f->schema), FIELDS);
}

static void free_schema(struct schema_fixture *f)
{
    buffer_free(&f->encoded);
    arena_destroy(f->arena);
}

static bytes encode(struct schema_fixture *f, const struct sql_value *parts, size_t count,
                    bool *is_whole)
{
    struct buffer key = {0};
    assert_ok(sql_key_encode(f->schema, parts, count, &key, is_whole));
    bytes copy = arena_copy(f->arena, buffer_bytes(&key));
    buffer_free(&key);
    return copy;
}

static void check_there_and_back(struct schema_fixture *f, const char *name, int64_t number,
                                 const char *rest)
{
    const struct sql_value parts[FIELDS] = {sql_of_text(bytes_of(name)), sql_of_int64(number),
                                            sql_of_text(bytes_of(rest))};
    struct sql_value read[FIELDS];
    bool is_whole;
    bytes key = encode(f, parts, FIELDS, &is_whole);
    assert_ok(sql_key_decode(f->schema, key, f->arena, read));
    assert_true(bytes_equal(read[0].text, parts[0].text));
    assert_int_equal(read[1].int64, number);
    assert_true(bytes_equal(read[2].text, parts[2].text));
}

static void delimited_keys(void **state)
{
    (void)state;
    struct schema_fixture f;
    bool is_whole;
    read_schema(&f, "#");
    check_there_and_back(&f, "user1", 1, "x");
    check_there_and_back(&f, "", INT64_MAX, "");
    const struct sql_value parts[] = {sql_of_text(bytes_of("user1")), sql_of_int64(258)};
    bytes key = encode(&f, parts, 2, &is_whole);
    assert_false(is_whole);
    assert_true(bytes_equal(key, bytes_make("user1#\0\0\0\0\0\0\1\2#", 15)));
    struct sql_value read[FIELDS];
    assert_status(sql_key_decode(f.schema, bytes_of("user1"), f.arena, read),
                  STATUS_INVALID_ARGUMENT);
    assert_status(sql_key_decode(f.schema, bytes_of("user1#short#x"), f.arena, read),
                  STATUS_INVALID_ARGUMENT);
    free_schema(&f);
}

/* What begins with other parts does not begin with these bytes, and what has these parts does. */
static void ordered_keys(void **state)
{
    (void)state;
    struct schema_fixture f;
    bool is_whole;
    read_schema(&f, NULL);
    check_there_and_back(&f, "user1", -70000, "x");
    check_there_and_back(&f, "", 0, "");
    check_there_and_back(&f, "user1", 5, "");
    const struct sql_value parts[] = {sql_of_text(bytes_of("ab")), sql_of_int64(5),
                                      sql_of_text(bytes_of("c"))};
    bytes key = encode(&f, parts, FIELDS, &is_whole);
    assert_true(is_whole);
    assert_true(bytes_equal(key, bytes_make("ab\0\1\x85\0\1c", 8)));
    assert_true(bytes_start_with(key, encode(&f, parts, 1, &is_whole)));
    assert_true(bytes_start_with(key, encode(&f, parts, 2, &is_whole)));
    free_schema(&f);
}

static void numbers_in_the_ordered_code(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *code;
        size_t size;
    } vectors[] = {
        {0, "\x80", 1},
        {1, "\x81", 1},
        {63, "\xbf", 1},
        {64, "\xc0\x40", 2},
        {-1, "\x7f", 1},
        {-64, "\x40", 1},
        {-65, "\x3f\xbf", 2},
        {8191, "\xdf\xff", 2},
        {8192, "\xe0\x20\x00", 3},
        {-8192, "\x20\x00", 2},
        {-8193, "\x1f\xdf\xff", 3},
        {INT64_MAX, "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff", 10},
        {INT64_MIN, "\x00\x3f\x80\x00\x00\x00\x00\x00\x00\x00", 10},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct buffer code = {0};
        int64_t value;
        ordered_code_append(&code, vectors[i].value);
        assert_true(bytes_equal(buffer_bytes(&code), bytes_make(vectors[i].code, vectors[i].size)));
        assert_int_equal(ordered_code_read(buffer_bytes(&code), &value), vectors[i].size);
        assert_true(value == vectors[i].value);
        buffer_free(&code);
    }
}

/* Of all sizes: the order of the codes is that of the numbers. */
static void the_order_of_numbers(void **state)
{
    (void)state;
    struct buffer last = {0};
    for (int exponent = -63; exponent <= 63; exponent++) {
        uint64_t power = UINT64_C(1) << abs(exponent);
        int64_t value = (int64_t)(exponent < 0 ? 0 - power : exponent == 63 ? power - 1 : power);
        struct buffer code = {0};
        int64_t read;
        ordered_code_append(&code, value);
        assert_int_equal(ordered_code_read(buffer_bytes(&code), &read), code.size);
        assert_true(read == value);
        assert_true(bytes_compare(buffer_bytes(&last), buffer_bytes(&code)) < 0);
        buffer_free(&last);
        last = code;
    }
    buffer_free(&last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delimited_keys),
        cmocka_unit_test(ordered_keys),
        cmocka_unit_test(numbers_in_the_ordered_code),
        cmocka_unit_test(the_order_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
