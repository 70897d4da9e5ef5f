/* Avro: schemas, values of every type, container files whole and damaged. */
#include "formats/avro.h"

#include "formats/testing/testing.h"

static const uint8_t mark[AVRO_MARK] = "0123456789abcde";

static const char all_types[] =
    "{\"type\":\"record\",\"name\":\"a.All\",\"doc\":\"x\",\"fields\":["
    "{\"name\":\"null\",\"type\":\"null\"},{\"name\":\"yes\",\"type\":\"boolean\"},"
    "{\"name\":\"int\",\"type\":\"int\"},{\"name\":\"long\",\"type\":{\"type\":\"long\"}},"
    "{\"name\":\"float\",\"type\":\"float\"},{\"name\":\"double\",\"type\":\"double\"},"
    "{\"name\":\"bytes\",\"type\":\"bytes\"},{\"name\":\"string\",\"type\":\"string\"},"
    "{\"name\":\"enum\",\"type\":{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"X\",\"Y\"]}},"
    "{\"name\":\"again\",\"type\":\"a.E\"},"
    "{\"name\":\"fixed\",\"type\":{\"type\":\"fixed\",\"name\":\"b.F\",\"size\":2}},"
    "{\"name\":\"list\",\"type\":{\"type\":\"array\",\"items\":\"int\"}},"
    "{\"name\":\"map\",\"type\":{\"type\":\"map\",\"values\":\"string\"}},"
    "{\"name\":\"next\",\"type\":[\"null\",\"All\"]}]}";

/* The fields of one record, except `next`. */
static const uint8_t one[] = "\x01"                 /* yes */
                             "\x03"                 /* -2 */
                             "\xac\x02"             /* 150 */
                             "\0\0\xc0\x3f"         /* 1.5 */
                             "\0\0\0\0\0\0\x04\xc0" /* -2.5 */
                             "\x04\0\xff"           /* bytes */
                             "\x06"
                             "abc"
                             "\x02"
                             "\0"
                             "hi"                     /* string, Y, X, fixed */
                             "\x02\x0a\x01\x02\x0c\0" /* 5; in a block with a size 6 */
                             "\x02\x02"
                             "k\x02"
                             "v\0"; /* map */

static void append_one(struct buffer *out, bool is_last)
{
    buffer_append(out, one, sizeof one - 1);
    buffer_append_byte(out, is_last ? 0 : 2);
}

static int64_t integer(const struct avro_value *record, const char *name)
{
    return avro_find(record, name)->integer;
}

static void check_text(const struct avro_value *record, const char *name, bytes expected)
{
    assert_true(bytes_equal(avro_find(record, name)->text, expected));
}

static void check_all(const struct avro_value *v)
{
    assert_int_equal(avro_find(v, "null")->kind, AVRO_NULL);
    assert_int_equal(integer(v, "yes"), 1);
    assert_int_equal(integer(v, "int"), -2);
    assert_int_equal(integer(v, "long"), 150);
    assert_true(avro_find(v, "float")->number == 1.5);
    assert_true(avro_find(v, "double")->number == -2.5);
    check_text(v, "bytes", bytes_make("\0\xff", 2));
    check_text(v, "string", bytes_of("abc"));
    check_text(v, "enum", bytes_of("Y"));
    check_text(v, "again", bytes_of("X"));
    check_text(v, "fixed", bytes_of("hi"));
    assert_int_equal(avro_find(v, "list")->count, 2);
    assert_int_equal(avro_find(v, "list")->elements[1].integer, 6);
    assert_true(bytes_equal(avro_find(v, "map")->elements[0].name, bytes_of("k")));
    assert_true(bytes_equal(avro_find(v, "map")->elements[0].text, bytes_of("v")));
    assert_null(avro_find(v, "other"));
}

static void every_type_is_read(void **state)
{
    struct avro_type *type;
    struct avro_value value;
    struct buffer data = {0};
    append_one(&data, false);
    append_one(&data, true);
    bytes from = buffer_bytes(&data);
    assert_ok(avro_schema_read(bytes_of(all_types), *state, &type));
    assert_ok(avro_value_read(type, &from, *state, &value));
    assert_int_equal(from.size, 0);
    check_all(&value);
    assert_int_equal(avro_find(&value, "next")->kind, AVRO_RECORD);
    check_all(avro_find(&value, "next"));
    for (size_t size = 0; size < data.size; size++) {
        from = bytes_make(data.data, size);
        assert_status(avro_value_read(type, &from, *state, &value), STATUS_DATA_LOSS);
    }
    buffer_free(&data);
}

static void what_is_no_schema_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "{",
        "1",
        "null",
        "\"nothing\"",
        "\"record\"",
        "[]",
        "{\"type\":\"record\"}",
        "{\"type\":\"record\",\"name\":\"R\"}",
        "{\"type\":\"enum\",\"name\":\"E\"}",
        "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\"}]}",
        "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"type\":\"int\"}]}",
        "{\"type\":\"fixed\",\"name\":\"F\",\"size\":-1}",
        "{\"type\":\"array\"}",
        "{\"type\":\"union\"}",
        "[\"int\",{\"type\":\"map\",\"values\":\"M\"}]",
        "[{\"type\":\"map\",\"values\":{\"type\":\"fixed\",\"name\":\"F\"}}]",
        ("{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":"
         "{\"type\":\"enum\",\"name\":\"R\",\"symbols\":[]}}]}"),
    };
    struct avro_type *type;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_status(avro_schema_read(bytes_of(cases[i]), *state, &type), STATUS_INVALID_ARGUMENT);
}

static void depth_is_bounded(void **state)
{
    struct buffer schema = {0}, data = {0};
    struct avro_type *type;
    struct avro_value value;
    for (int i = 0; i < 100; i++)
        buffer_append_byte(&schema, '[');
    for (int i = 0; i < 100; i++)
        buffer_append_byte(&schema, ']');
    assert_status(avro_schema_read(buffer_bytes(&schema), *state, &type), STATUS_INVALID_ARGUMENT);
    assert_ok(avro_schema_read(bytes_of(all_types), *state, &type));
    for (int i = 0; i < 100; i++)
        append_one(&data, i == 99);
    bytes from = buffer_bytes(&data);
    assert_status(avro_value_read(type, &from, *state, &value), STATUS_DATA_LOSS);
    buffer_free(&schema);
    buffer_free(&data);
}

/* A count that costs no bytes costs memory, of which there is so much. */
static void a_list_of_nothing_is_bounded(void **state)
{
    struct avro_type *type;
    struct avro_value value;
    bytes from = bytes_of("\xfe\xff\xff\xff\x0f");
    assert_ok(avro_schema_read(bytes_of("{\"type\":\"array\",\"items\":\"null\"}"), *state, &type));
    assert_status(avro_value_read(type, &from, *state, &value), STATUS_RESOURCE_EXHAUSTED);
}

/* --- files --- */

static status read_file(bytes file, struct arena *arena, size_t *count)
{
    struct input *input;
    struct avro_reader *reader;
    bool is_end = false;
    *count = 0;
    assert_ok(input_open_bytes(file, &input));
    status s = avro_reader_create(input, &reader);
    while (status_is_ok(s)) {
        struct avro_value value;
        s = avro_next(reader, arena, &value, &is_end);
        if (!status_is_ok(s) || is_end)
            break;
        check_all(&value);
        (*count)++;
    }
    avro_reader_destroy(reader);
    input_close(input);
    return s;
}

static void make_file(bool is_deflated, struct buffer *out, size_t *first_block, size_t *second)
{
    struct buffer objects = {0};
    append_one(&objects, true);
    append_one(&objects, true);
    avro_write_header(all_types, is_deflated, mark, out);
    *first_block = out->size;
    assert_ok(avro_write_block(2, buffer_bytes(&objects), is_deflated, mark, out));
    *second = out->size;
    assert_ok(avro_write_block(2, buffer_bytes(&objects), is_deflated, mark, out));
    buffer_free(&objects);
}

static void files_are_read(void **state)
{
    for (int is_deflated = 0; is_deflated < 2; is_deflated++) {
        struct buffer file = {0};
        size_t first, second, count;
        make_file(is_deflated, &file, &first, &second);
        assert_ok(read_file(buffer_bytes(&file), *state, &count));
        assert_int_equal(count, 4);
        buffer_free(&file);
    }
}

static void a_file_that_ends_too_early_is_told(void **state)
{
    struct buffer file = {0};
    size_t first, second, count;
    make_file(false, &file, &first, &second);
    for (size_t size = 0; size < file.size; size++) {
        bool is_whole = size == first || size == second;
        assert_status(read_file(bytes_make(file.data, size), *state, &count),
                      is_whole ? STATUS_OK : STATUS_DATA_LOSS);
        assert_int_equal(count, size < second ? 0 : 2);
        arena_reset(*state);
    }
    buffer_free(&file);
}

static void check_damage(const struct buffer *file, struct arena *arena, const char *message)
{
    size_t count;
    status s = read_file(buffer_bytes(file), arena, &count);
    assert_string_equal(status_message(s), message);
    assert_status(s, STATUS_DATA_LOSS);
}

static void damage_is_told_with_its_block(void **state)
{
    struct buffer file = {0};
    size_t first, second;
    make_file(false, &file, &first, &second);
    file.data[file.size - 1] ^= 1;
    check_damage(&file, *state, "block 2: its end is not where its size says");
    file.data[file.size - 1] ^= 1;
    file.data[first] = 6; /* three objects */
    check_damage(&file, *state, "block 1: a value ends too early");
    file.data[first] = 2;
    check_damage(&file, *state, "block 1: there are bytes behind its last object");
    file.data[first] = 0;
    check_damage(&file, *state, "block 1: there are bytes behind its last object");
    file.data[first] = 1;
    check_damage(&file, *state, "block 1: its number of objects makes no sense");
    buffer_free(&file);
    make_file(true, &file, &first, &second);
    memset(file.data + second + 2, 0x55, 20);
    check_damage(&file, *state, "block 2: the deflated data are damaged");
    buffer_clear(&file);
    buffer_append_bytes(&file, bytes_of("key,value\n"));
    check_damage(&file, *state, "this is no Avro object container file");
    buffer_free(&file);
}

static void other_codecs_are_named(void **state)
{
    struct buffer file = {0};
    size_t count;
    buffer_append(&file, "Obj\x01\x02", 5);
    avro_write_bytes(bytes_of("avro.codec"), &file);
    avro_write_bytes(bytes_of("snappy"), &file);
    status s = read_file(buffer_bytes(&file), *state, &count);
    assert_string_equal(status_message(s),
                        "the file's codec is snappy; only null and deflate are read");
    assert_status(s, STATUS_UNIMPLEMENTED);
    buffer_free(&file);
}

/* 44 bytes may say that 15 GB follow: they are not asked for. */
static void sizes_are_not_believed(void **state)
{
    struct buffer file = {0};
    size_t count;
    buffer_append(&file, "Obj\x01\x02", 5);
    avro_write_long(1ll << 33, &file);
    check_damage(&file, *state, "the header: a size makes no sense");
    buffer_clear(&file);
    avro_write_header("\"int\"", false, mark, &file);
    avro_write_long(1, &file);
    avro_write_long(500 << 20, &file);
    assert_status(read_file(buffer_bytes(&file), *state, &count), STATUS_DATA_LOSS);
    assert_int_equal(count, 0);
    buffer_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_type_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_schema_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(depth_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_of_nothing_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_ends_too_early_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_told_with_its_block, setup, teardown),
        cmocka_unit_test_setup_teardown(other_codecs_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_are_not_believed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
