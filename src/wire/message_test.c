/* Tests of messages and of their reader, in pieces of every size. */
#include "wire/message.h"

#include "base/testing/testing.h"

enum { LIMIT = 100000 };

static struct message *make(size_t size, bool gzip)
{
    struct buffer buffer = {0};
    grpc_message_start(&buffer);
    for (size_t i = 0; i < size; i++)
        buffer_append_byte(&buffer, (uint8_t)(i / 100));
    struct message *message = message_seal(&buffer, gzip);
    assert_non_null(message);
    assert_null(buffer.data);
    return message;
}

static bytes wire(const struct message *message)
{
    return bytes_make(message_data(message), message->size);
}

static void check_body(bytes body, size_t size)
{
    assert_int_equal(body.size, size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(body.data[i], (uint8_t)(i / 100));
}

/* Feeds the bytes in pieces; how many messages came, all of `size` bytes. */
static int read_all(struct message_reader *reader, bytes input, size_t piece, size_t size)
{
    int messages = 0;
    while (input.size > 0) {
        size_t take = input.size < piece ? input.size : piece;
        bytes part = bytes_make(input.data, take);
        input = bytes_from(input, take);
        enum reader_event event;
        do {
            assert_ok(message_reader_step(reader, &part, &event));
            if (event == READER_MESSAGE) {
                check_body(buffer_bytes(&reader->body), size);
                messages++;
            }
        } while (event != READER_MORE);
    }
    return messages;
}

static void check_pieces(size_t size, bool gzip)
{
    static const size_t pieces[] = {1, 2, 3, 5, 7, 1000, 1000000};
    struct message *message = make(size, gzip);
    struct buffer twice = {0};
    buffer_append_bytes(&twice, wire(message));
    buffer_append_bytes(&twice, wire(message));
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct message_reader reader = {.limit = LIMIT, .gzip = gzip};
        assert_int_equal(read_all(&reader, buffer_bytes(&twice), pieces[i], size), 2);
        assert_true(message_reader_is_between(&reader));
        message_reader_reset(&reader, 0);
    }
    buffer_free(&twice);
    message_free(message);
}

static void test_pieces(void **state)
{
    (void)state;
    check_pieces(0, false);
    check_pieces(1, false);
    check_pieces(70000, false);
    check_pieces(100000, false);
}

static void test_pieces_of_gzip(void **state)
{
    (void)state;
    check_pieces(0, true); /* too small to be worth it: goes as it is */
    check_pieces(2000, true);
    check_pieces(100000, true);
}

static void test_gzip_only_if_smaller(void **state)
{
    (void)state;
    struct message *packed = make(5000, true);
    assert_int_equal(wire(packed).data[0], 1);
    assert_true(packed->size < 1000);
    message_free(packed);

    struct buffer noise = {0};
    uint32_t random = 1;
    grpc_message_start(&noise);
    for (int i = 0; i < 5000; i++) {
        random = random * 1664525 + 1013904223;
        buffer_append_byte(&noise, (uint8_t)(random >> 24));
    }
    struct message *plain = message_seal(&noise, true);
    assert_int_equal(wire(plain).data[0], 0);
    assert_int_equal(plain->size, 5005);
    message_free(plain);
}

static void check_refusal(bytes input, bool gzip, enum status_code code)
{
    struct message_reader reader = {.limit = LIMIT, .gzip = gzip};
    status s = status_ok();
    enum reader_event event = READER_BEGIN;
    while (status_is_ok(s) && event != READER_MORE)
        s = message_reader_step(&reader, &input, &event);
    assert_status(s, code);
    message_reader_reset(&reader, 0);
}

static void test_refusals(void **state)
{
    (void)state;
    check_refusal(bytes_make("\0\0\1\206\241", 5), false, STATUS_RESOURCE_EXHAUSTED);
    check_refusal(bytes_make("\0\377\377\377\377", 5), false, STATUS_RESOURCE_EXHAUSTED);
    check_refusal(bytes_make("\2\0\0\0\0", 5), true, STATUS_INTERNAL);
    check_refusal(bytes_make("\1\0\0\0\1x", 6), false, STATUS_INTERNAL);
    check_refusal(bytes_make("\1\0\0\0\4\037\213\010\377", 9), true, STATUS_INTERNAL);
}

/* One byte over the limit, which only inflating shows. */
static void test_inflated_limit(void **state)
{
    (void)state;
    struct message *message = make(LIMIT + 1, true);
    check_refusal(wire(message), true, STATUS_RESOURCE_EXHAUSTED);
    message_free(message);
}

/* The compressed bytes end before the message does. */
static void test_bytes_after_the_gzip(void **state)
{
    (void)state;
    struct message *message = make(5000, true);
    struct buffer longer = {0};
    buffer_append_bytes(&longer, wire(message));
    buffer_append_byte(&longer, 0);
    longer.data[4]++; /* the length's lowest byte */
    check_refusal(buffer_bytes(&longer), true, STATUS_INTERNAL);
    buffer_free(&longer);
    message_free(message);
}

static void test_reset_keeps_little(void **state)
{
    (void)state;
    struct message_reader reader = {.limit = LIMIT};
    struct message *message = make(50000, false);
    assert_int_equal(read_all(&reader, wire(message), 1000, 50000), 1);
    message_reader_reset(&reader, 1000);
    assert_null(reader.body.data);
    message_free(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_pieces_of_gzip),
        cmocka_unit_test(test_gzip_only_if_smaller),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_inflated_limit),
        cmocka_unit_test(test_bytes_after_the_gzip),
        cmocka_unit_test(test_reset_keeps_little),
    };
    return cmocka_run_group_tests_name("wire_message", tests, NULL, NULL);
}
