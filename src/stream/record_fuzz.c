/* Fuzzer: any bytes as a key and a value of a segment. Reading them never goes wrong in memory;
 * what parses is written and read again as the same.
 *
 * Input: a key of STREAM_KEY_BYTES, then a value. */
#include "base/check.h"
#include "base/testing/fuzzing.h"
#include "stream/record.h"

static bool is_same(const struct stream_record *a, const struct stream_record *b)
{
    return a->kind == b->kind && a->tablet == b->tablet && a->version == b->version &&
           stream_position_compare(a->position, b->position) == 0 &&
           bytes_equal(a->row_key, b->row_key) && bytes_equal(a->list, b->list);
}

static void check_again(const struct stream_record *record, size_t size)
{
    uint8_t key[STREAM_KEY_BYTES];
    struct buffer value = {0};
    struct stream_record again;
    stream_record_key(key, record->tablet, record->position, 0);
    stream_record_write(&value, record);
    CHECK(!value.failed && value.size <= size);
    status s = stream_record_read(bytes_make(key, sizeof key), buffer_bytes(&value), &again);
    CHECK(status_is_ok(s) && is_same(record, &again));
    buffer_free(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t key_size = size < STREAM_KEY_BYTES ? size : STREAM_KEY_BYTES;
    struct stream_record record;
    status s = stream_record_read(bytes_make(data, key_size),
                                  bytes_make(data + key_size, size - key_size), &record);
    if (status_is_ok(s))
        check_again(&record, size - key_size);
    status_free(s);
    return 0;
}
