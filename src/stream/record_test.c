/* Records of a change stream's log, as they are stored. */
#include "base/testing/testing.h"
#include "stream/record.h"

static void assert_bytes(bytes found, const void *expected, size_t size)
{
    assert_int_equal(found.size, size);
    assert_memory_equal(found.data, expected, size);
}

static const struct stream_record example = {
    .kind = STREAM_COLLECTED,
    .tablet = 0x0102030405060708,
    .position = {.sequence = 0x1112131415161718, .ordinal = 0x21222324},
    .version = 0x3132333435363738,
};

static void bytes_are_as_documented(void **state)
{
    (void)state;
    static const uint8_t key[] = {1,    2,    3,    4,    5,    6,    7,    8,
                                  0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                                  0x21, 0x22, 0x23, 0x24, 0,    0,    1,    2};
    static const uint8_t value[] = {2, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
                                    3, 'r',  'o',  'w',  'l',  'i',  's',  't'};
    uint8_t written[STREAM_KEY_BYTES];
    struct stream_record record = example;
    struct buffer out = {0};
    record.row_key = bytes_of("row");
    record.list = bytes_of("list");
    stream_record_key(written, record.tablet, record.position, 0x102);
    stream_record_write(&out, &record);
    assert_bytes(bytes_make(written, sizeof written), key, sizeof key);
    assert_bytes(buffer_bytes(&out), value, sizeof value);
    buffer_free(&out);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    static char long_row[4096];
    const bytes rows[] = {bytes_of("r"), bytes_make(long_row, sizeof long_row)};
    for (size_t i = 0; i < 4; i++) {
        uint8_t key[STREAM_KEY_BYTES];
        struct buffer value = {0};
        struct stream_record record = example, read;
        record.row_key = rows[i / 2];
        record.list = i % 2 == 0 ? bytes_of("") : bytes_make(long_row, 1000);
        stream_record_key(key, record.tablet, record.position, 0);
        stream_record_write(&value, &record);
        assert_ok(stream_record_read(bytes_make(key, sizeof key), buffer_bytes(&value), &read));
        assert_int_equal(read.kind, record.kind);
        assert_int_equal(read.tablet, record.tablet);
        assert_int_equal(stream_position_compare(read.position, record.position), 0);
        assert_int_equal(read.version, record.version);
        assert_true(bytes_equal(read.row_key, record.row_key));
        assert_true(bytes_equal(read.list, record.list));
        buffer_free(&value);
    }
}

static void assert_no_record(bytes key, const char *value, size_t size)
{
    struct stream_record record;
    assert_status(stream_record_read(key, bytes_make(value, size), &record), STATUS_DATA_LOSS);
}

static void what_is_no_record_is_damage(void **state)
{
    (void)state;
    uint8_t key[STREAM_KEY_BYTES], of_piece[STREAM_KEY_BYTES], of_none[STREAM_KEY_BYTES];
    static const char whole[] = "\1"
                                "12345678"
                                "\3"
                                "row";
    stream_record_key(key, 7, (struct stream_position){1, 2}, 0);
    stream_record_key(of_piece, 7, (struct stream_position){1, 2}, 1);
    stream_record_key(of_none, 0, (struct stream_position){1, 2}, 0);
    struct stream_record record;
    bytes good = bytes_make(key, sizeof key);
    assert_ok(stream_record_read(good, bytes_make(whole, sizeof whole - 1), &record));
    assert_no_record(bytes_make(of_piece, sizeof of_piece), whole, sizeof whole - 1);
    assert_no_record(bytes_make(of_none, sizeof of_none), whole, sizeof whole - 1);
    assert_no_record(bytes_make(key, sizeof key - 1), whole, sizeof whole - 1);
    for (size_t size = 0; size < sizeof whole - 1; size++)
        assert_no_record(good, whole, size);
    assert_no_record(good,
                     "\4"
                     "12345678"
                     "\3"
                     "row",
                     sizeof whole - 1); /* of no kind */
    assert_no_record(good,
                     "\1"
                     "12345678"
                     "\0"
                     "row",
                     sizeof whole - 1); /* of no row */
    assert_no_record(good,
                     "\1"
                     "12345678"
                     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                     19);
}

/* The order of keys is the order in which readers get them. */
static void keys_rise_with_positions(void **state)
{
    (void)state;
    static const struct {
        uint64_t tablet;
        struct stream_position position;
        uint32_t piece;
    } rising[] = {{1, {1, 0}, 0},   {1, {1, 0}, 1}, {1, {1, 0}, 256}, {1, {1, 1}, 0},
                  {1, {1, 256}, 0}, {1, {2, 0}, 0}, {1, {256, 0}, 0}, {2, {1, 0}, 0}};
    uint8_t before[STREAM_KEY_BYTES] = {0}, key[STREAM_KEY_BYTES];
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        stream_record_key(key, rising[i].tablet, rising[i].position, rising[i].piece);
        assert_true(memcmp(before, key, sizeof key) < 0);
        memcpy(before, key, sizeof key);
    }
}

static void pieces_are_counted(void **state)
{
    (void)state;
    assert_int_equal(stream_piece_count(1), 1);
    assert_int_equal(stream_piece_count(STREAM_PIECE_BYTES), 1);
    assert_int_equal(stream_piece_count(STREAM_PIECE_BYTES + 1), 2);
    assert_int_equal(stream_piece_count(3 * STREAM_PIECE_BYTES), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_as_documented),     cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_no_record_is_damage), cmocka_unit_test(keys_rise_with_positions),
        cmocka_unit_test(pieces_are_counted),
    };
    return cmocka_run_group_tests_name("stream_record", tests, NULL, NULL);
}
