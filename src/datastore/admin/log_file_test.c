/* Tests of files of records. */
#include "datastore/admin/log_file.h"

#include "base/testing/testing.h"

enum { MOST_RECORD = 1 << 20 };

/* --- a file in memory --- */

struct memory_file {
    bytes left;
    size_t piece; /* read at once */
};

static status read_memory(void *context, uint8_t *to, size_t size, size_t *got)
{
    struct memory_file *file = context;
    *got = size < file->left.size ? size : file->left.size;
    *got = *got < file->piece ? *got : file->piece;
    if (*got > 0)
        memcpy(to, file->left.data, *got);
    file->left = bytes_from(file->left, *got);
    return status_ok();
}

static struct log_reader *open_memory(struct memory_file *file)
{
    struct log_reader *reader = calloc(1, sizeof *reader);
    assert_non_null(reader);
    reader->source = read_memory;
    reader->context = file;
    reader->most = MOST_RECORD;
    return reader;
}

static void close_memory(struct log_reader *reader)
{
    log_reader_free(reader);
    free(reader);
}

/* The status of reading it to its end, and how many records came before that. */
static status read_all(bytes content, size_t *count)
{
    struct memory_file file = {.left = content, .piece = 1000};
    struct log_reader *reader = open_memory(&file);
    bytes record;
    bool found = true;
    status s = status_ok();
    *count = 0;
    while (status_is_ok(s) && found) {
        s = log_read(reader, &record, &found);
        *count += status_is_ok(s) && found;
    }
    close_memory(reader);
    return s;
}

static void write_record(struct log_writer *writer, size_t size, uint8_t fill, struct buffer *out)
{
    uint8_t *content = malloc(size + 1);
    assert_non_null(content);
    memset(content, fill, size);
    assert_ok(log_append(writer, bytes_make(content, size), out));
    free(content);
}

/* --- tests --- */

static void test_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    /* As Google's emulator begins the metadata of an export: the version "3". */
    const uint8_t expected[] = {0xb8, 0x6d, 0x44, 0x4e, 1, 0, 1, '3'};
    struct log_writer writer = {0};
    struct buffer out = {0};
    assert_ok(log_append(&writer, bytes_of("3"), &out));
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);
    buffer_free(&out);
}

static void test_records_of_all_sizes_come_back(void **state)
{
    (void)state;
    const size_t sizes[] = {0,     1,     32760, 0,     32761, 32762, 7,      32747, 32740,
                            32754, 32755, 32768, 65522, 65536, 100,   300000, 0};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    struct log_writer writer = {0};
    struct buffer out = {0};
    for (size_t i = 0; i < COUNT; i++)
        write_record(&writer, sizes[i], (uint8_t)(i + 1), &out);
    struct memory_file file = {.left = buffer_bytes(&out), .piece = 777};
    struct log_reader *reader = open_memory(&file);
    bool found;
    bytes record;
    for (size_t i = 0; i < COUNT; i++) {
        assert_ok(log_read(reader, &record, &found));
        assert_true(found);
        assert_int_equal(record.size, sizes[i]);
        for (size_t at = 0; at < record.size; at++)
            assert_int_equal(record.data[at], i + 1);
    }
    assert_ok(log_read(reader, &record, &found));
    assert_false(found);
    close_memory(reader);
    buffer_free(&out);
}

static void test_a_writer_that_goes_on_writes_the_same(void **state)
{
    (void)state;
    struct log_writer one = {0}, other = {0};
    struct buffer whole = {0}, part = {0};
    size_t before = 0;
    for (size_t i = 0; i < 100; i++) {
        write_record(&one, i * 401, (uint8_t)i, &whole);
        buffer_clear(&part);
        write_record(&other, i * 401, (uint8_t)i, &part);
        assert_int_equal(whole.size - before, part.size);
        assert_memory_equal(whole.data + before, part.data, part.size);
        before = whole.size;
    }
    buffer_free(&whole);
    buffer_free(&part);
}

/* Cut anywhere but between two records, it is torn. */
static void test_a_torn_file_is_data_loss(void **state)
{
    (void)state;
    const size_t sizes[] = {10, 0, 33000, 5};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    struct log_writer writer = {0};
    struct buffer out = {0};
    size_t ends[COUNT + 1] = {0}, whole = 0, count;
    for (size_t i = 0; i < COUNT; i++) {
        write_record(&writer, sizes[i], 'x', &out);
        ends[i + 1] = out.size;
    }
    for (size_t size = 0; size <= out.size; size++) {
        while (whole < COUNT && ends[whole + 1] <= size)
            whole++;
        status s = read_all(bytes_make(out.data, size), &count);
        assert_int_equal(count, whole);
        assert_int_equal(s.code, size == ends[whole] ? STATUS_OK : STATUS_DATA_LOSS);
        status_free(s);
    }
    buffer_free(&out);
}

static void test_every_damaged_byte_is_data_loss(void **state)
{
    (void)state;
    struct log_writer writer = {0};
    struct buffer out = {0};
    size_t count;
    write_record(&writer, 32757, 'a', &out); /* four bytes are left, which are filled */
    write_record(&writer, 20, 'b', &out);
    for (size_t at = 0; at < out.size; at += at < 50 || at >= 32700 ? 1 : 101) {
        out.data[at] ^= 0x40;
        status s = read_all(buffer_bytes(&out), &count);
        assert_int_equal(count, at >= 32764); /* what fills the block comes behind the first */
        assert_status(s, STATUS_DATA_LOSS);
        out.data[at] ^= 0x40;
    }
    assert_ok(read_all(buffer_bytes(&out), &count));
    assert_int_equal(count, 2);
    buffer_free(&out);
}

static void test_pieces_out_of_order_are_data_loss(void **state)
{
    (void)state;
    struct log_writer writer = {0};
    struct buffer out = {0};
    size_t count;
    write_record(&writer, 40000, 'a', &out);
    status s = read_all(bytes_from(buffer_bytes(&out), LOG_BLOCK_BYTES), &count);
    assert_string_equal(status_message(s), "A part of a record that is none at byte 7246");
    assert_status(s, STATUS_DATA_LOSS);
    /* A first piece, and the next block begins with another first one. */
    bytes first = bytes_make(out.data, LOG_BLOCK_BYTES);
    struct buffer twice = {0};
    buffer_append_bytes(&twice, first);
    buffer_append_bytes(&twice, first);
    assert_status(read_all(buffer_bytes(&twice), &count), STATUS_DATA_LOSS);
    buffer_free(&twice);
    buffer_free(&out);
}

static void test_a_record_has_a_limit(void **state)
{
    (void)state;
    struct log_writer writer = {0};
    struct buffer out = {0};
    size_t count;
    write_record(&writer, MOST_RECORD, 'a', &out);
    assert_ok(read_all(buffer_bytes(&out), &count));
    write_record(&writer, MOST_RECORD + 1, 'a', &out);
    status s = read_all(buffer_bytes(&out), &count);
    assert_non_null(strstr(status_message(s), "too large"));
    assert_status(s, STATUS_DATA_LOSS);
    assert_int_equal(count, 1);
    buffer_free(&out);
}

static status read_nothing(void *context, uint8_t *to, size_t size, size_t *got)
{
    (void)context, (void)to, (void)size;
    *got = 0;
    return status_make(STATUS_UNAVAILABLE, "the disk is gone");
}

static void test_the_failure_of_a_source_is_handed_on(void **state)
{
    (void)state;
    struct log_reader *reader = open_memory(NULL);
    reader->source = read_nothing;
    bytes record;
    bool found;
    assert_status(log_read(reader, &record, &found), STATUS_UNAVAILABLE);
    close_memory(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_those_of_the_format),
        cmocka_unit_test(test_records_of_all_sizes_come_back),
        cmocka_unit_test(test_a_writer_that_goes_on_writes_the_same),
        cmocka_unit_test(test_a_torn_file_is_data_loss),
        cmocka_unit_test(test_every_damaged_byte_is_data_loss),
        cmocka_unit_test(test_pieces_out_of_order_are_data_loss),
        cmocka_unit_test(test_a_record_has_a_limit),
        cmocka_unit_test(test_the_failure_of_a_source_is_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
