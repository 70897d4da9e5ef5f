/* Tests of answers in gzip: what has been added can be read at once, and all of it in the end. */
#include "wire/http_packer.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <zlib.h>

enum { GZIP = 15 + 16, PIECES = 100 };

struct fixture {
    struct http_packer *packer;
    z_stream reader;
    struct buffer read;
    bool is_over;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->packer = http_packer_create();
    assert_non_null(f->packer);
    assert_int_equal(inflateInit2(&f->reader, GZIP), Z_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    http_packer_destroy(f->packer);
    inflateEnd(&f->reader);
    buffer_free(&f->read);
    free(f);
    return 0;
}

/* As a client that gets what is packed now. Returns how many bytes these were. */
static size_t pack(struct fixture *f, bytes more, bool is_last)
{
    struct buffer packed = {0};
    uint8_t piece[512];
    http_packer_add(f->packer, more, is_last, &packed);
    assert_false(packed.failed);
    f->reader.next_in = packed.data;
    f->reader.avail_in = (uInt)packed.size;
    do {
        f->reader.next_out = piece;
        f->reader.avail_out = sizeof piece;
        int result = inflate(&f->reader, Z_SYNC_FLUSH);
        f->is_over |= result == Z_STREAM_END;
        assert_true(result == Z_OK || result == Z_BUF_ERROR || result == Z_STREAM_END);
        buffer_append(&f->read, piece, sizeof piece - f->reader.avail_out);
    } while (f->reader.avail_out == 0);
    size_t size = packed.size;
    buffer_free(&packed);
    return size;
}

static void what_is_added_can_be_read_at_once(void **state)
{
    struct fixture *f = *state;
    struct buffer added = {0};
    for (int i = 0; i < PIECES; i++) {
        char piece[64];
        snprintf(piece, sizeof piece, "{\"row\": %d, \"value\": \"again and again\"},\n", i);
        buffer_append_bytes(&added, bytes_of(piece));
        pack(f, bytes_of(piece), false);
        assert_true(bytes_equal(buffer_bytes(&f->read), buffer_bytes(&added)));
    }
    assert_false(f->is_over);
    pack(f, bytes_make(NULL, 0), true);
    assert_true(f->is_over);
    assert_true(bytes_equal(buffer_bytes(&f->read), buffer_bytes(&added)));
    buffer_free(&added);
}

static void much_at_once_gets_small(void **state)
{
    static uint8_t same[1 << 20];
    struct fixture *f = *state;
    size_t size = pack(f, bytes_make(same, sizeof same), false);
    size += pack(f, bytes_make(NULL, 0), true);
    assert_true(f->is_over);
    assert_true(bytes_equal(buffer_bytes(&f->read), bytes_make(same, sizeof same)));
    assert_in_range(size, 1, sizeof same / 100);
}

static void of_nothing_there_is_an_end(void **state)
{
    struct fixture *f = *state;
    pack(f, bytes_make(NULL, 0), true);
    assert_true(f->is_over);
    assert_int_equal(f->read.size, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_added_can_be_read_at_once),
        TEST(much_at_once_gets_small),
        TEST(of_nothing_there_is_an_end),
    };
    return cmocka_run_group_tests_name("http_packer", tests, NULL, NULL);
}
