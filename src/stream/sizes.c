/* How large the log is, and what of it is some tablets', or a feed's. See log.h, feed.h. */
#include "base/check.h"
#include "stream/log_private.h"

#include <endian.h>
#include <stdlib.h>

/* Ranges whose size is asked for, at most: some 20 us each, and more if an index is not cached. */
enum { MOST_RANGES = 2048 };

/* --- the whole log --- */

/* Of a write buffer's memory no more than what it was given: the smallest takes 1 MiB. */
uint64_t segment_bytes(const struct segment *segment)
{
    if (segment->keyspace == NULL)
        return 0;
    const struct keyspace_bytes bytes = keyspace_bytes(segment->keyspace);
    uint64_t written = atomic_load_explicit(&segment->written, memory_order_relaxed);
    return bytes.tables + (bytes.buffers < written ? bytes.buffers : written);
}

uint64_t stream_log_bytes(struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    struct held_segments held;
    uint64_t sum = 0;
    if (!segments_hold(log, &held))
        return 0; /* not known */
    for (size_t i = 0; i < held.count; i++)
        sum += segment_bytes(held.all[i]);
    segments_release(log, &held);
    return sum;
}

/* --- tablets --- */

static uint64_t bytes_of_tablet(struct keyspace *keyspace, uint64_t tablet)
{
    uint64_t from = htobe64(tablet), to = htobe64(tablet + 1);
    return keyspace_size(keyspace, bytes_make(&from, sizeof from), bytes_make(&to, sizeof to));
}

static uint64_t bytes_of_tablets(struct keyspace *keyspace, const uint64_t *tablets, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; keyspace != NULL && i < count; i++)
        sum += bytes_of_tablet(keyspace, tablets[i]);
    return sum;
}

/* Every so many segments, taken for those between them, too. */
static size_t stride_of(size_t segments, size_t tablets)
{
    return segments * tablets / MOST_RANGES + 1;
}

uint64_t stream_log_tablets_bytes(struct stream_log *log, const uint64_t *tablets, size_t count)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    struct held_segments held;
    uint64_t sum = 0;
    if (!segments_hold(log, &held))
        return 0; /* not known */
    size_t stride = stride_of(held.count, count);
    for (size_t i = 0; i < held.count; i += stride) {
        size_t stands_for = held.count - i < stride ? held.count - i : stride;
        sum += stands_for * bytes_of_tablets(held.all[i]->keyspace, tablets, count);
    }
    segments_release(log, &held);
    return sum;
}

/* --- feeds --- */

static uint64_t bytes_of_feed(struct keyspace *keyspace, uint64_t feed,
                              struct stream_position after)
{
    uint8_t lower[STREAM_KEY_BYTES];
    uint64_t upper = htobe64(feed + 1);
    stream_record_key(lower, feed, after, UINT32_MAX);
    return keyspace_size(keyspace, bytes_make(lower, sizeof lower),
                         bytes_make(&upper, sizeof upper));
}

uint64_t stream_log_feed_bytes(struct stream_log *log, uint64_t feed, struct stream_position after)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    struct held_segments held;
    uint64_t sum = 0;
    if (!segments_hold(log, &held))
        return 0; /* not known */
    for (size_t i = 0; i < held.count; i++)
        if (segments_may_have(&held, i, after, UINT64_MAX))
            sum += bytes_of_feed(held.all[i]->keyspace, feed, after);
    segments_release(log, &held);
    return sum;
}
