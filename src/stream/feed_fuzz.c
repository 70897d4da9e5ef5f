/* Fuzzer: any bytes as a key and a value of a segment, read as a page of a feed. Reading it never
 * goes wrong in memory; entries come by rising position, and the last is where the key says.
 *
 * Input: a key of STREAM_KEY_BYTES, then a value. */
#include "base/check.h"
#include "base/testing/fuzzing.h"
#include "stream/feed.h"
#include "stream/record.h"

struct seen {
    struct stream_position last;
    bool has_any;
    size_t bytes;
};

static status see(void *context, const struct stream_feed_entry *entry, bool *enough)
{
    struct seen *seen = context;
    (void)enough;
    CHECK(!seen->has_any || stream_position_compare(entry->position, seen->last) > 0);
    CHECK(entry->is_range || (entry->key.size > 0 && entry->end.size == 0 && !entry->is_drop));
    CHECK(entry->has_change ? !entry->is_range : entry->change.size == 0);
    for (size_t i = 0; i < entry->key.size; i++)
        seen->bytes += entry->key.data[i];
    for (size_t i = 0; i < entry->end.size; i++)
        seen->bytes += entry->end.data[i];
    for (size_t i = 0; i < entry->change.size; i++)
        seen->bytes += entry->change.data[i];
    seen->last = entry->position;
    seen->has_any = true;
    return status_ok();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t key_size = size < STREAM_KEY_BYTES ? size : STREAM_KEY_BYTES;
    bytes key = bytes_make(data, key_size);
    struct seen seen = {.has_any = false};
    struct stream_position last;
    uint64_t feed;
    uint32_t piece;
    bool enough;
    status s = stream_feed_page_read(key, bytes_make(data + key_size, size - key_size), see, &seen,
                                     &enough);
    if (status_is_ok(s) && seen.has_any) {
        CHECK(stream_record_key_read(key, &feed, &last, &piece) && piece == 0);
        CHECK(stream_position_compare(last, seen.last) == 0);
    }
    status_free(s);
    return 0;
}
