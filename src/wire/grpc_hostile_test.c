/* Attacks on the gRPC server, and mistakes, each made of raw frames: the stream or the connection
 * ends with the right code, in bounded memory, and what is legitimate goes on. */
#include "base/limits.h"
#include "wire/testing/raw_client.h"

#include <zlib.h>

/* --- broken frames --- */

static void test_not_http2(void **state)
{
    struct raw_client *f = *state;
    buffer_clear(&f->t.to_server);
    buffer_append_bytes(&f->t.to_server, bytes_of("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    testing_turn(&f->t);
    assert_true(grpc_connection_is_finished(f->t.connection));
    assert_true(f->t.signals > 0); /* the socket's owner has been told */
}

static void test_frame_larger_than_allowed(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_frame_header(f, 1 << 20, NGHTTP2_DATA, 0, 1);
    assert_closed(f, NGHTTP2_FRAME_SIZE_ERROR);
}

static void test_data_on_stream_0(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_data(f, 0, 0, "x", 1);
    assert_closed(f, NGHTTP2_PROTOCOL_ERROR);
}

static void test_damaged_header_block(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_frame(f, NGHTTP2_HEADERS, END_HEADERS, 1, bytes_make("\377\377\377\377\377\377", 6));
    assert_closed(f, NGHTTP2_COMPRESSION_ERROR);
}

static void test_noise(void **state)
{
    struct raw_client *f = *state;
    uint32_t random = 1;
    put_settings(f);
    for (int i = 0; i < 100000; i++) {
        random = random * 1664525 + 1013904223;
        buffer_append_byte(&f->t.to_server, (uint8_t)(random >> 24));
    }
    turn(f);
    assert_true(grpc_connection_is_finished(f->t.connection));
}

/* Each makes the server reset a stream: as costly as a client's reset, and counted as one. */
static void test_flood_of_invalid_frames(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    for (int32_t i = 0; i < LIMIT_NUISANCES_AT_ONCE && !f->goaway; i++) {
        put_headers(f, 2 * i + 1, "/test.Service/Echo");
        put_window_update(f, 2 * i + 1, 0x7fffffff); /* with what it has, more than allowed */
        turn(f);
    }
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_true(grpc_connection_is_idle(f->t.connection));
}

/* The same, of calls whose handler works already. */
static void test_flood_of_invalid_frames_for_calls(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    for (int32_t i = 0; i < LIMIT_NUISANCES_AT_ONCE + 10 && !f->goaway; i++) {
        put_request(f, 2 * i + 1, "/test.Service/Wait");
        put_window_update(f, 2 * i + 1, 0x7fffffff);
        turn(f);
    }
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_true(grpc_server_call_count(f->t.server) <= 1); /* the last, until all is destroyed */
}

/* --- frames on streams that have ended, or may not begin any more --- */

/* A request that has been answered. */
static void answer_one(struct raw_client *f)
{
    put_settings(f);
    put_request(f, 1, "/test.Service/Echo");
    assert_answer(f, "0");
}

static void test_headers_on_a_closed_stream(void **state)
{
    answer_one(*state);
    put_headers(*state, 1, "/test.Service/Echo");
    assert_closed(*state, NGHTTP2_STREAM_CLOSED);
}

static void test_data_on_a_closed_stream(void **state)
{
    answer_one(*state);
    put_data(*state, 1, END_STREAM, "more", 4);
    assert_closed(*state, NGHTTP2_STREAM_CLOSED);
}

static void assert_reset_as_closed(struct raw_client *f, int32_t stream)
{
    turn(f);
    assert_int_equal(f->resets, 1);
    assert_int_equal(f->reset_stream, stream);
    assert_int_equal(f->reset_code, NGHTTP2_STREAM_CLOSED);
    f->resets = 0;
}

/* That costs the stream, not the connection; and the header table goes on. */
static void test_frames_on_a_stream_that_the_client_has_reset(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_headers(f, 1, "/test.Service/Echo");
    put_reset(f, 1);
    put_data(f, 1, END_STREAM, "more", 4);
    assert_reset_as_closed(f, 1);
    start_block(f, "/test.Service/Echo");
    put_literal(&f->block, "x-table", bytes_of("entry"), true);
    put_block(f, END_HEADERS | END_STREAM, 1);
    assert_reset_as_closed(f, 1);
    start_block(f, "/test.Service/Echo");
    buffer_append_byte(&f->block, 0x80 + 62); /* that entry */
    put_block(f, END_HEADERS, 3);
    put_data(f, 3, END_STREAM, "\0\0\0\0\0", 5);
    assert_answer(f, "0");
    assert_alive(f, 5);
}

static void test_flood_on_a_stream_that_the_client_has_reset(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_headers(f, 1, "/test.Service/Echo");
    put_reset(f, 1);
    for (int i = 0; i < LIMIT_NUISANCES_AT_ONCE + 10; i++)
        put_data(f, 1, 0, "", 0);
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void test_stream_id_that_goes_back(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_request(f, 5, "/test.Service/Echo");
    put_request(f, 3, "/test.Service/Echo");
    assert_closed(f, NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(f->t.handled, 1);
}

/* A server that answers early must expect the rest of the request. */
static void test_frames_on_a_stream_that_the_server_has_ended(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_headers(f, 1, "/test.Service/NoSuchMethod");
    assert_answer(f, "12");
    put_data(f, 1, 0, "on its way", 10);
    start_block(f, "/test.Service/Echo");
    put_block(f, END_HEADERS | END_STREAM, 1); /* trailers */
    put_reset(f, 1);
    put_window_update(f, 1, 10);
    turn(f);
    assert_alive(f, 3);
}

/* --- headers --- */

static void test_hpack_bomb(void **state)
{
    struct raw_client *f = *state;
    static uint8_t large[3900];
    memset(large, 'x', sizeof large);
    put_settings(f);
    start_block(f, "/test.Service/Echo");
    put_literal(&f->block, "x", bytes_make(large, sizeof large), true);
    for (int i = 0; i < 10000; i++)
        buffer_append_byte(&f->block, 0x80 + 62); /* the entry made above, in one byte: 39 MB */
    put_block(f, END_HEADERS, 1);
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void test_header_list_too_large(void **state)
{
    struct raw_client *f = *state;
    static uint8_t value[1000];
    memset(value, 'x', sizeof value);
    put_settings(f);
    start_block(f, "/test.Service/Echo");
    for (int i = 0; i < 15; i++)
        put_literal(&f->block, "x-large", bytes_make(value, sizeof value), false);
    size_t split = f->block.size;
    for (int i = 0; i < 5; i++)
        put_literal(&f->block, "x-large", bytes_make(value, sizeof value), false);
    put_frame(f, NGHTTP2_HEADERS, 0, 1, bytes_make(f->block.data, split));
    put_frame(f, NGHTTP2_CONTINUATION, END_HEADERS, 1, bytes_from(buffer_bytes(&f->block), split));
    assert_answer(f, "8");
    assert_int_equal(f->t.handled, 0);
    assert_alive(f, 3);
}

static void test_too_many_fields(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    start_block(f, "/test.Service/Echo");
    for (int i = 0; i < LIMIT_METADATA_FIELDS + 1; i++)
        put_field(f, "x", "y");
    put_block(f, END_HEADERS, 1);
    assert_answer(f, "8");
    assert_alive(f, 3);
}

static void test_forbidden_bytes_in_a_field(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    start_block(f, "/test.Service/Echo");
    put_field(f, "x-evil", "a\r\nb: c");
    put_block(f, END_HEADERS, 1);
    turn(f);
    assert_int_equal(f->resets, 1);
    assert_int_equal(f->reset_code, NGHTTP2_PROTOCOL_ERROR);
    assert_alive(f, 3);
}

static void test_continuation_flood(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    start_block(f, "/test.Service/Echo");
    put_block(f, 0, 1);
    for (int i = 0; i < 1000; i++)
        put_frame(f, NGHTTP2_CONTINUATION, 0, 1, bytes_make(NULL, 0));
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void test_not_grpc(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    buffer_clear(&f->block);
    put_field(f, ":method", "POST");
    put_field(f, ":scheme", "http");
    put_field(f, ":path", "/test.Service/Echo");
    put_field(f, ":authority", "test");
    put_field(f, "content-type", "application/grpc-web");
    put_block(f, END_HEADERS | END_STREAM, 1);
    turn(f);
    assert_string_equal(f->http_status, "415");

    buffer_clear(&f->block);
    put_field(f, ":method", "GET");
    put_field(f, ":scheme", "http");
    put_field(f, ":path", "/test.Service/Echo");
    put_field(f, ":authority", "test");
    put_block(f, END_HEADERS | END_STREAM, 3);
    turn(f);
    assert_string_equal(f->http_status, "405");
    assert_alive(f, 5);
}

static void ask_with_header(struct raw_client *f, int32_t stream, const char *name,
                            const char *value)
{
    start_block(f, "/test.Service/Echo");
    put_field(f, name, value);
    put_block(f, END_HEADERS, stream);
    put_data(f, stream, END_STREAM, "\0\0\0\0\0", 5);
}

static void test_unknown_encoding(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    ask_with_header(f, 1, "grpc-encoding", "snappy");
    assert_answer(f, "12");
    assert_string_equal(f->accept_encoding, "identity,gzip");
    ask_with_header(f, 3, "grpc-encoding", "identity");
    assert_answer(f, "0");
}

static void test_malformed_timeout(void **state)
{
    static const char *const timeouts[] = {"1", "S", "-1S", "123456789S", "1s", "1 S"};
    struct raw_client *f = *state;
    put_settings(f);
    for (int32_t i = 0; i < 6; i++) {
        f->grpc_status[0] = '\0';
        ask_with_header(f, 2 * i + 1, "grpc-timeout", timeouts[i]);
        assert_answer(f, "13");
    }
    ask_with_header(f, 13, "grpc-timeout", "99999999H");
    assert_answer(f, "0");
}

/* The deadline of a call that was reset before its request was whole comes to nothing. */
static void test_deadline_after_a_reset(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    start_block(f, "/test.Service/Echo");
    put_field(f, "grpc-timeout", "1S");
    put_block(f, END_HEADERS, 1);
    put_reset(f, 1);
    turn(f);
    assert_true(grpc_connection_is_idle(f->t.connection));
    testing_advance(&f->t, 2000000);
    assert_int_equal(f->t.records, 1);
    assert_alive(f, 3);
    assert_alive(f, 5);
}

/* --- messages --- */

/* A request of these bytes on stream 1 is answered with this status. */
static void check_body(struct raw_client *f, const char *encoding, bytes body, const char *expected)
{
    put_settings(f);
    start_block(f, "/test.Service/Echo");
    if (encoding != NULL)
        put_field(f, "grpc-encoding", encoding);
    put_block(f, END_HEADERS, 1);
    for (size_t at = 0; at < body.size; at += 16384) {
        size_t size = body.size - at < 16384 ? body.size - at : 16384;
        put_data(f, 1, 0, body.data + at, size);
    }
    put_data(f, 1, END_STREAM, NULL, 0);
    assert_answer(f, expected);
    assert_int_equal(f->t.handled, strcmp(expected, "0") == 0);
    assert_alive(f, 3);
}

static void test_truncated_prefix(void **state)
{
    check_body(*state, NULL, bytes_make("\0\0\0", 3), "13");
}

static void test_truncated_message(void **state)
{
    check_body(*state, NULL, bytes_make("\0\0\0\0\5abc", 8), "13");
}

static void test_no_message(void **state)
{
    check_body(*state, NULL, bytes_make(NULL, 0), "13");
}

static void test_two_messages(void **state)
{
    check_body(*state, NULL, bytes_make("\0\0\0\0\1a\0\0\0\0\1b", 12), "13");
}

static void test_message_and_a_part(void **state)
{
    check_body(*state, NULL, bytes_make("\0\0\0\0\1a\0\0", 8), "13");
}

static void test_wrong_flag(void **state)
{
    check_body(*state, NULL, bytes_make("\7\0\0\0\0", 5), "13");
}

static void test_compressed_without_encoding(void **state)
{
    check_body(*state, NULL, bytes_make("\1\0\0\0\1a", 6), "13");
}

static void test_damaged_gzip(void **state)
{
    check_body(*state, "gzip", bytes_make("\1\0\0\0\5abcde", 10), "13");
}

static void test_empty_gzip(void **state)
{
    check_body(*state, "gzip", bytes_make("\1\0\0\0\0", 5), "13");
}

/* The prefix promises more than the limit: refused before anything of it is buffered. */
static void test_promise_over_the_limit(void **state)
{
    check_body(*state, NULL, bytes_make("\0\177\377\377\377abc", 8), "8");
}

/* A message of `size` zeroes, in gzip. */
static void make_gzip(size_t size, size_t cut, struct buffer *out)
{
    static const uint8_t zeroes[1 << 16];
    z_stream stream = {0};
    buffer_append(out, "\1\0\0\0\0", 5);
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
    uint8_t *to = buffer_reserve(out, size / 500 + 1000);
    assert_non_null(to);
    stream.next_out = to;
    stream.avail_out = (uInt)(size / 500 + 1000);
    for (size_t done = 0; done < size; done += sizeof zeroes) {
        union {
            const uint8_t *given;
            uint8_t *wanted;
        } input = {.given = zeroes};
        stream.next_in = input.wanted;
        stream.avail_in = sizeof zeroes;
        assert_int_equal(deflate(&stream, Z_NO_FLUSH), Z_OK);
    }
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t packed = stream.total_out - cut;
    deflateEnd(&stream);
    out->size += packed;
    for (int i = 0; i < 4; i++)
        out->data[1 + i] = (uint8_t)(packed >> (24 - 8 * i));
}

static void check_gzip(void **state, size_t size, size_t cut, const char *expected)
{
    struct buffer body = {0};
    put_initial_window(*state, 2 << 20);
    put_window_update(*state, 0, 2 << 20);
    make_gzip(size, cut, &body);
    check_body(*state, "gzip", buffer_bytes(&body), expected);
    buffer_free(&body);
}

static void test_gzip_of_the_largest_message(void **state)
{
    check_gzip(state, 1 << 20, 0, "0");
}

/* 64 MiB in 65 KB, where a message may have 1 MiB. */
static void test_gzip_bomb(void **state)
{
    check_gzip(state, 64 << 20, 0, "8");
}

static void test_truncated_gzip(void **state)
{
    check_gzip(state, 1 << 20, 9, "13");
}

static void test_endless_empty_data(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_headers(f, 1, "/test.Service/Echo");
    for (int i = 0; i < LIMIT_NUISANCES_AT_ONCE + 10; i++)
        put_data(f, 1, 0, NULL, 0);
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void test_request_that_stops_halfway(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    put_headers(f, 1, "/test.Service/Echo");
    put_data(f, 1, 0, "\0\0\0\0\5abc", 8);
    turn(f);
    for (int i = 0; i < 6; i++) {
        advance_a_quarter(f);
        turn(f);
        assert_true(f->resets == 0 || i >= 4);
    }
    assert_int_equal(f->resets, 1);
    assert_int_equal(f->reset_code, NGHTTP2_CANCEL);
    assert_alive(f, 3);
}

/* --- floods of streams and control frames --- */

static void test_rapid_reset(void **state)
{
    struct raw_client *f = *state;
    int32_t stream = 1;
    put_settings(f);
    for (int i = 0; i < LIMIT_NUISANCES_AT_ONCE + 10; i++, stream += 2) {
        put_headers(f, stream, "/test.Service/Echo");
        put_reset(f, stream);
    }
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(f->t.handled, 0);
}

/* What gRPC clients do at the end of each scan that they stop early. */
static void test_5000_cancelled_scans(void **state)
{
    enum { SCANS = 5000 };
    struct raw_client *f = *state;
    int32_t stream = 1;
    put_settings(f);
    for (int i = 0; i < SCANS; i++, stream += 2) {
        put_request(f, stream, "/test.Service/Wait");
        if (i % 2 == 0) /* half of them after the first row, half at once */
            turn(f);
        put_reset(f, stream);
        if (i % 50 == 0)
            turn(f);
    }
    turn(f);
    assert_int_equal(f->t.handled, SCANS);
    assert_int_equal(f->t.cancelled, SCANS);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
    assert_alive(f, stream);
}

/* Resetting frees the stream, but not the handler: those at work stay bounded. */
static void test_resets_while_handlers_work(void **state)
{
    struct raw_client *f = *state;
    int32_t stream = 1;
    put_settings(f);
    for (int i = 0; i < 50; i++, stream += 2) {
        put_request(f, stream, "/test.Service/Keep");
        put_reset(f, stream);
        turn(f);
    }
    assert_int_equal(f->t.kept_count, 10 * LIMIT_CALLS_A_STREAM);
    assert_int_equal(f->reset_code, NGHTTP2_REFUSED_STREAM);
    for (int i = 0; i < f->t.kept_count; i++)
        grpc_call_finish(f->t.kept[i], status_ok());
    f->t.kept_count = 0;
    turn(f);
    assert_alive(f, stream);
}

static void test_more_streams_than_allowed(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    for (int32_t i = 0; i < 11; i++)
        put_headers(f, 2 * i + 1, "/test.Service/Echo");
    turn(f);
    assert_int_equal(f->resets, 1);
    assert_int_equal(f->reset_stream, 21);
    assert_int_equal(f->reset_code, NGHTTP2_REFUSED_STREAM);
}

static void test_settings_flood(void **state)
{
    struct raw_client *f = *state;
    for (int i = 0; i < LIMIT_NUISANCES_AT_ONCE + 10; i++) {
        put_settings(f);
        if (i % 100 == 0)
            turn(f);
    }
    assert_closed(f, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void test_settings_flood_without_reading(void **state)
{
    struct raw_client *f = *state;
    f->t.is_stalled = true;
    for (int i = 0; i < 2 * LIMIT_QUEUED_ACKS; i++)
        put_settings(f);
    testing_turn(&f->t);
    assert_true(grpc_connection_is_finished(f->t.connection));
}

static void test_ping_flood_without_reading(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    f->t.is_stalled = true;
    for (int i = 0; i < 2 * LIMIT_QUEUED_ACKS; i++)
        put_frame(f, NGHTTP2_PING, 0, 0, bytes_make("12345678", 8));
    testing_turn(&f->t);
    assert_true(grpc_connection_is_finished(f->t.connection));
}

/* Clients that watch their connection, or measure it, ping as often as they like. */
static void test_pings_are_allowed(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    for (int i = 0; i < 20000; i++) {
        put_frame(f, NGHTTP2_PING, 0, 0, bytes_make("12345678", 8));
        if (i % 500 == 0)
            turn(f);
    }
    turn(f);
    assert_int_equal(f->pings, 20000);
    assert_alive(f, 1);
}

/* --- readers that do not read --- */

static void test_zero_window(void **state)
{
    struct raw_client *f = *state;
    put_initial_window(f, 0);
    f->t.to_flood = 100000000;
    put_request(f, 1, "/test.Service/Flood");
    turn(f);
    assert_int_equal(f->data_bytes, 0);
    assert_true(f->t.to_flood > 99000000); /* little was made */
    for (int i = 0; i < 6; i++) {
        advance_a_quarter(f);
        turn(f);
        assert_true(f->resets == 0 || i >= 4);
    }
    assert_int_equal(f->resets, 1);
    assert_int_equal(f->reset_code, NGHTTP2_CANCEL);
    assert_int_equal(f->t.cancelled, 1);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
}

/* Calls of one connection share what may wait: 1,000 scans that are not read stay small. */
static void test_many_zero_windows(void **state)
{
    enum { CALLS = 1000 };
    struct raw_client *f = *state;
    size_t made = 0;
    put_initial_window(f, 0);
    for (int32_t i = 0; i < CALLS; i++) {
        f->t.to_flood = 1000000;
        put_request(f, 2 * i + 1, "/test.Service/Pour");
        turn(f);
        made += 1000000 - f->t.to_flood;
    }
    assert_int_equal(f->t.handled, CALLS);
    assert_true(made > (size_t)CALLS * LIMIT_CALL_OUTPUT_LEAST_BYTES);
    assert_true(made < 60 * LIMIT_MB);
}

static void test_one_byte_windows(void **state)
{
    struct raw_client *f = *state;
    put_initial_window(f, 1);
    f->t.to_flood = 100000000;
    put_request(f, 1, "/test.Service/Flood");
    turn(f);
    for (int i = 0; i < 1000; i++) {
        put_window_update(f, 1, 1);
        turn(f);
    }
    assert_int_equal(f->data_bytes, 1001);
    assert_true(f->t.to_flood > 99000000);
    assert_int_equal(f->resets, 0);
}

static void test_socket_that_is_never_read(void **state)
{
    struct raw_client *f = *state;
    put_settings(f);
    turn(f);
    f->t.to_flood = 100000000;
    put_request(f, 1, "/test.Service/Flood");
    f->t.is_unread = true;
    testing_turn(&f->t);
    for (int i = 0; i < 5; i++) {
        assert_false(grpc_connection_is_finished(f->t.connection));
        advance_a_quarter(f);
    }
    assert_true(grpc_connection_is_finished(f->t.connection));
    assert_true(f->t.to_flood > 99000000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, raw_client_set_up, raw_client_tear_down)
#define SMALL(name)                                                                                \
    cmocka_unit_test_setup_teardown(name, raw_client_set_up_small, raw_client_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_not_http2),
        TEST(test_frame_larger_than_allowed),
        TEST(test_data_on_stream_0),
        TEST(test_damaged_header_block),
        TEST(test_noise),
        TEST(test_flood_of_invalid_frames),
        TEST(test_flood_of_invalid_frames_for_calls),
        TEST(test_headers_on_a_closed_stream),
        TEST(test_data_on_a_closed_stream),
        TEST(test_frames_on_a_stream_that_the_client_has_reset),
        TEST(test_flood_on_a_stream_that_the_client_has_reset),
        TEST(test_stream_id_that_goes_back),
        TEST(test_frames_on_a_stream_that_the_server_has_ended),
        TEST(test_hpack_bomb),
        TEST(test_header_list_too_large),
        TEST(test_too_many_fields),
        TEST(test_forbidden_bytes_in_a_field),
        TEST(test_continuation_flood),
        TEST(test_not_grpc),
        TEST(test_unknown_encoding),
        TEST(test_malformed_timeout),
        TEST(test_deadline_after_a_reset),
        TEST(test_truncated_prefix),
        TEST(test_truncated_message),
        TEST(test_no_message),
        TEST(test_two_messages),
        TEST(test_message_and_a_part),
        TEST(test_wrong_flag),
        TEST(test_compressed_without_encoding),
        TEST(test_damaged_gzip),
        TEST(test_empty_gzip),
        TEST(test_promise_over_the_limit),
        SMALL(test_gzip_of_the_largest_message),
        SMALL(test_gzip_bomb),
        SMALL(test_truncated_gzip),
        TEST(test_endless_empty_data),
        TEST(test_request_that_stops_halfway),
        TEST(test_rapid_reset),
        TEST(test_5000_cancelled_scans),
        SMALL(test_resets_while_handlers_work),
        SMALL(test_more_streams_than_allowed),
        TEST(test_settings_flood),
        TEST(test_settings_flood_without_reading),
        TEST(test_ping_flood_without_reading),
        TEST(test_pings_are_allowed),
        TEST(test_zero_window),
        TEST(test_many_zero_windows),
        TEST(test_one_byte_windows),
        TEST(test_socket_that_is_never_read),
    };
    return cmocka_run_group_tests_name("wire_grpc_hostile", tests, NULL, NULL);
}
