/* The frames that a client may not send any more, found in bytes that come in pieces. */
#include "wire/h2_guard.h"

#include "base/testing/testing.h"

#include <nghttp2/nghttp2.h>

enum { DATA = NGHTTP2_DATA, HEADERS = NGHTTP2_HEADERS, RST_STREAM = NGHTTP2_RST_STREAM };
enum { END_STREAM = NGHTTP2_FLAG_END_STREAM };

struct fixture {
    struct h2_guard guard;
    struct buffer input;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    h2_guard_init(&f->guard);
    buffer_append(&f->input, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    buffer_free(&f->input);
    free(f);
    return 0;
}

/* Its payload is a header of a frame that would offend: it must not be taken for one. */
static void put(struct fixture *f, uint8_t type, uint8_t flags, int32_t stream)
{
    static const uint8_t payload[9] = {0, 0, 0, HEADERS, 0, 0, 0, 0, 1};
    uint32_t id = (uint32_t)stream;
    const uint8_t header[H2_FRAME_HEADER] = {0,
                                             0,
                                             sizeof payload,
                                             type,
                                             flags,
                                             (uint8_t)(id >> 24),
                                             (uint8_t)(id >> 16),
                                             (uint8_t)(id >> 8),
                                             (uint8_t)id};
    buffer_append(&f->input, header, sizeof header);
    buffer_append(&f->input, payload, sizeof payload);
}

/* Scans what was put, a piece at a time, up to the first offence. */
static struct h2_offence scan(struct fixture *f, size_t piece)
{
    bytes rest = buffer_bytes(&f->input);
    struct h2_offence offence = {0};
    while (rest.size > 0 && offence.code == NGHTTP2_NO_ERROR) {
        bytes now = bytes_make(rest.data, rest.size < piece ? rest.size : piece);
        size_t scanned = h2_guard_scan(&f->guard, now, &offence);
        assert_true(scanned == now.size || offence.code != NGHTTP2_NO_ERROR);
        rest = bytes_from(rest, scanned);
    }
    buffer_clear(&f->input);
    f->guard.payload_left = 0; /* what is put next begins a frame */
    return offence;
}

static void assert_harmless(struct fixture *f)
{
    assert_int_equal(scan(f, SIZE_MAX).code, NGHTTP2_NO_ERROR);
}

static void assert_fatal(struct fixture *f, int32_t stream, uint32_t code)
{
    struct h2_offence offence = scan(f, SIZE_MAX);
    assert_int_equal(offence.code, code);
    assert_int_equal(offence.stream, stream);
    assert_true(offence.ends_connection);
}

static void test_calls_one_after_the_other(void **state)
{
    struct fixture *f = *state;
    for (int32_t stream = 1; stream < 10 * LIMIT_STREAMS_REMEMBERED; stream += 2) {
        put(f, HEADERS, 0, stream);
        put(f, DATA, 0, stream);
        put(f, DATA, END_STREAM, stream);
        put(f, NGHTTP2_WINDOW_UPDATE, 0, stream);
        put(f, RST_STREAM, 0, stream);
        put(f, RST_STREAM, 0, stream);
        put(f, NGHTTP2_PRIORITY, 0, stream);
    }
    assert_harmless(f);
}

static void test_trailers(void **state)
{
    struct fixture *f = *state;
    put(f, HEADERS, 0, 1);
    put(f, DATA, 0, 1);
    put(f, HEADERS, END_STREAM, 1);
    put(f, NGHTTP2_CONTINUATION, 0, 1);
    assert_harmless(f);
}

static void test_after_end_stream(void **state)
{
    static const uint8_t types[] = {HEADERS, DATA};
    for (size_t i = 0; i < sizeof types; i++) {
        struct fixture *f = *state;
        h2_guard_init(&f->guard);
        f->guard.preface_left = 0;
        buffer_clear(&f->input);
        put(f, HEADERS, END_STREAM, 1);
        put(f, HEADERS, 0, 3);
        put(f, types[i], 0, 1);
        assert_fatal(f, 1, NGHTTP2_STREAM_CLOSED);
    }
}

static void test_after_a_reset(void **state)
{
    struct fixture *f = *state;
    put(f, HEADERS, 0, 1);
    put(f, RST_STREAM, 0, 1);
    put(f, DATA, 0, 1);
    struct h2_offence offence = scan(f, SIZE_MAX);
    assert_int_equal(offence.code, NGHTTP2_STREAM_CLOSED);
    assert_int_equal(offence.stream, 1);
    assert_false(offence.ends_connection);
}

static void test_an_id_that_goes_back(void **state)
{
    struct fixture *f = *state;
    put(f, HEADERS, END_STREAM, 5);
    put(f, HEADERS, END_STREAM, 3);
    assert_fatal(f, 3, NGHTTP2_PROTOCOL_ERROR);
}

/* The offence is told after its header, whatever the pieces: the rest is read as if nothing were.
 */
static void test_in_pieces(void **state)
{
    struct fixture *f = *state;
    for (size_t piece = 1; piece < 40; piece++) {
        h2_guard_init(&f->guard);
        buffer_clear(&f->input);
        buffer_append(&f->input, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
        put(f, HEADERS, 0, 5);
        put(f, DATA, END_STREAM, 5);
        put(f, DATA, 0, 5);
        assert_int_equal(scan(f, piece).code, NGHTTP2_STREAM_CLOSED);
    }
}

static void test_goes_on_after_an_offence(void **state)
{
    struct fixture *f = *state;
    put(f, HEADERS, 0, 1);
    put(f, RST_STREAM, 0, 1);
    put(f, HEADERS, END_STREAM, 1);
    put(f, HEADERS, END_STREAM, 3);
    put(f, HEADERS, END_STREAM, 3);
    bytes input = buffer_bytes(&f->input);
    struct h2_offence offence;
    size_t scanned = h2_guard_scan(&f->guard, input, &offence);
    assert_int_equal(scanned, NGHTTP2_CLIENT_MAGIC_LEN + 2 * 18 + H2_FRAME_HEADER);
    assert_false(offence.ends_connection);
    input = bytes_from(input, scanned);
    scanned = h2_guard_scan(&f->guard, input, &offence);
    assert_int_equal(scanned, 9 + 18 + H2_FRAME_HEADER);
    assert_int_equal(offence.stream, 3);
    assert_true(offence.ends_connection);
}

/* The oldest are forgotten, and then nothing is known against them. */
static void test_remembers_so_many(void **state)
{
    struct fixture *f = *state;
    const int32_t newest = 1 + 2 * LIMIT_STREAMS_REMEMBERED;
    put(f, HEADERS, END_STREAM, 1);
    put(f, HEADERS, END_STREAM, 3);
    put(f, HEADERS, END_STREAM, newest);
    put(f, HEADERS, END_STREAM, 1);
    assert_harmless(f);
    put(f, HEADERS, END_STREAM, newest - 2);
    assert_fatal(f, newest - 2, NGHTTP2_PROTOCOL_ERROR);
    put(f, DATA, 0, 3);
    assert_fatal(f, 3, NGHTTP2_STREAM_CLOSED);
    put(f, HEADERS, 0, INT32_MAX);
    put(f, HEADERS, END_STREAM, newest);
    assert_harmless(f);
    put(f, HEADERS, 0, INT32_MAX - 2);
    assert_fatal(f, INT32_MAX - 2, NGHTTP2_PROTOCOL_ERROR);
}

/* nghttp2 knows what to say to these. */
static void test_leaves_the_rest_to_nghttp2(void **state)
{
    struct fixture *f = *state;
    put(f, DATA, 0, 0);
    put(f, DATA, 0, 7);
    put(f, RST_STREAM, 0, 7);
    put(f, HEADERS, 0, 2);
    put(f, HEADERS, 0, 2);
    put(f, 0xee, 0xff, 7);
    put(f, HEADERS, 0, 7);
    assert_harmless(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls_one_after_the_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_trailers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_after_end_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_after_a_reset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_id_that_goes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_goes_on_after_an_offence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_remembers_so_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leaves_the_rest_to_nghttp2, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("wire_h2_guard", tests, NULL, NULL);
}
