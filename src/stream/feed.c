/* See feed.h. A page is filled commit by commit, and put when it is large enough, or the batch
 * ends: so a batch of many small commits costs one put. */
#include "stream/feed.h"

#include "base/check.h"
#include "base/varint.h"
#include "stream/log_private.h"

#include <endian.h>
#include <stdlib.h>

enum {
    PAGE_BYTES = 64 << 10,
    KEPT_BYTES = 256 << 10, /* memory of a page that is kept for the next batch */
    HEAD_BYTES = 1 + 8,
};

/* --- writing --- */

static bool is_next(struct stream_position last, struct stream_position next)
{
    return next.sequence == last.sequence ? next.ordinal == last.ordinal + 1
                                          : next.sequence > last.sequence && next.ordinal == 0;
}

static void write_head(struct buffer *out, struct stream_position first)
{
    uint64_t sequence = htobe64(first.sequence);
    buffer_append_byte(out, STREAM_FEED_PAGE);
    buffer_append(out, &sequence, sizeof sequence);
    buffer_append_varint(out, first.ordinal);
}

static uint64_t zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

static int64_t unzigzag(uint64_t number)
{
    return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

static void write_bytes(struct buffer *out, bytes data)
{
    buffer_append_varint(out, data.size);
    buffer_append_bytes(out, data);
}

/* The second bit is of a range that it is dropped, of a row that its change is there. */
enum { IS_RANGE = 1, HAS_MORE = 2, FLAGS = 2 /* bits */ };

static void write_entry(struct buffer *out, uint64_t before, const struct stream_feed_entry *entry)
{
    uint64_t sequence = entry->position.sequence;
    bool has_more = entry->is_drop || entry->has_change;
    unsigned flags = (entry->is_range ? IS_RANGE : 0) | (has_more ? HAS_MORE : 0);
    DCHECK(entry->is_range ? !entry->has_change : !entry->is_drop);
    buffer_append_varint(out, (sequence - before) << FLAGS | flags);
    buffer_append_varint(out, zigzag((int64_t)(entry->version - sequence)));
    write_bytes(out, entry->key);
    if (entry->is_range)
        write_bytes(out, entry->end);
    if (entry->has_change)
        write_bytes(out, entry->change);
}

static struct feed_page *add_page(struct stream_log *log, struct stream_feed *feed)
{
    if (log->page_count == log->page_capacity) {
        size_t capacity = 2 * log->page_capacity + 4;
        struct feed_page *more = realloc(log->pages, capacity * sizeof *more);
        if (more == NULL)
            return NULL;
        for (size_t i = log->page_capacity; i < capacity; i++)
            more[i] = (struct feed_page){.feed = NULL};
        log->pages = more;
        log->page_capacity = capacity;
    }
    struct feed_page *page = &log->pages[log->page_count++];
    DCHECK(page->values.size == 0);
    page->feed = feed;
    page->settled = 0;
    page->logged = 0;
    return page;
}

/* NULL without memory. */
static struct feed_page *page_of(struct stream_log *log, struct stream_feed *feed)
{
    for (size_t i = log->page_count; i > 0; i--)
        if (log->pages[i - 1].feed == feed)
            return &log->pages[i - 1];
    return add_page(log, feed);
}

bool stream_log_prepare_feed(struct stream_log *log, struct stream_feed *feed,
                             const struct stream_feed_entry *entry)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    struct feed_page *page = page_of(log, feed);
    if (page == NULL)
        return false;
    size_t before = page->values.size;
    bool is_first = before == 0;
    DCHECK(is_first || is_next(page->last, entry->position));
    if (is_first)
        write_head(&page->values, entry->position);
    write_entry(&page->values, is_first ? entry->position.sequence : page->last.sequence, entry);
    if (page->values.failed) {
        page->values.failed = false;
        page->values.size = before;
        return false;
    }
    page->last = entry->position;
    return true;
}

void feeds_cancel(struct stream_log *log)
{
    for (size_t i = 0; i < log->page_count; i++) {
        log->pages[i].values.size = log->pages[i].settled;
        log->pages[i].last = log->pages[i].settled_last;
    }
}

static void empty(struct feed_page *page)
{
    if (page->values.capacity > KEPT_BYTES)
        buffer_free(&page->values);
    buffer_clear(&page->values);
    page->settled = 0;
}

/* Of the first entry; for DCHECKs. */
static uint64_t first_sequence(const struct feed_page *page)
{
    uint64_t sequence;
    memcpy(&sequence, page->values.data + 1, sizeof sequence);
    return be64toh(sequence);
}

static void put_page(struct stream_log *log, struct feed_page *page, struct store_batch *batch)
{
    struct segment *open = atomic_load_explicit(&log->open, memory_order_relaxed);
    uint8_t key[STREAM_KEY_BYTES];
    CHECK(open != NULL);
    if (page->values.size == 0)
        return;
    DCHECK(page->settled == page->values.size);
    DCHECK(first_sequence(page) > open->from);
    stream_record_key(key, page->feed->id, page->last, 0);
    store_batch_put(batch, open->keyspace, bytes_make(key, sizeof key),
                    buffer_bytes(&page->values));
    log_count_appended(log, sizeof key + page->values.size);
    empty(page);
}

void feeds_settle(struct stream_log *log, struct store_batch *batch)
{
    for (size_t i = 0; i < log->page_count; i++) {
        struct feed_page *page = &log->pages[i];
        if (page->settled == page->values.size)
            continue;
        page->settled = page->values.size;
        page->settled_last = page->last;
        page->logged = log->last = page->last.sequence;
        if (page->values.size >= PAGE_BYTES)
            put_page(log, page, batch);
    }
}

void stream_log_put_feeds(struct stream_log *log, struct store_batch *batch)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    for (size_t i = 0; i < log->page_count; i++)
        put_page(log, &log->pages[i], batch);
}

void feeds_written(struct stream_log *log, bool is_written)
{
    for (size_t i = 0; i < log->page_count; i++) {
        struct feed_page *page = &log->pages[i];
        DCHECK(page->values.size == 0);
        if (is_written && page->logged != 0) {
            atomic_store(&page->feed->newest, page->logged);
            stream_log_wake(log, page->feed->id);
        }
    }
    log->page_count = 0;
}

void feeds_free(struct stream_log *log)
{
    for (size_t i = 0; i < log->page_capacity; i++)
        buffer_free(&log->pages[i].values);
    free(log->pages);
}

/* --- reading a page --- */

static const uint8_t *read_bytes(const uint8_t *at, const uint8_t *end, bytes *out)
{
    uint64_t size = 0;
    at = at == NULL ? NULL : varint_read(at, end, &size);
    if (at == NULL || size > (size_t)(end - at))
        return NULL;
    *out = bytes_make(at, (size_t)size);
    return at + size;
}

/* The entry behind `entry`, which is that of before; NULL if it does not parse. */
static const uint8_t *read_entry(const uint8_t *at, const uint8_t *end, bool is_first,
                                 struct stream_feed_entry *entry)
{
    const struct stream_position before = entry->position;
    uint64_t delta, ahead = 0;
    at = varint_read(at, end, &delta);
    at = at == NULL ? NULL : varint_read(at, end, &ahead);
    if (at == NULL)
        return NULL;
    entry->is_range = (delta & IS_RANGE) != 0;
    entry->is_drop = entry->is_range && (delta & HAS_MORE) != 0;
    entry->has_change = !entry->is_range && (delta & HAS_MORE) != 0;
    delta >>= FLAGS;
    if (!is_first)
        entry->position.ordinal = delta == 0 ? entry->position.ordinal + 1 : 0;
    entry->position.sequence += delta;
    entry->version = entry->position.sequence + (uint64_t)unzigzag(ahead);
    entry->end = entry->change = bytes_make(NULL, 0);
    at = read_bytes(at, end, &entry->key);
    if (entry->is_range)
        at = read_bytes(at, end, &entry->end);
    if (entry->has_change)
        at = read_bytes(at, end, &entry->change);
    bool rises = is_first || stream_position_compare(entry->position, before) > 0;
    bool is_sound = entry->is_range || entry->key.size > 0;
    return at != NULL && rises && is_sound ? at : NULL;
}

/* NULL if it does not parse. */
static const uint8_t *read_head(bytes value, struct stream_position *first)
{
    const uint8_t *end = value.data + value.size;
    uint64_t sequence, ordinal = 0;
    if (value.size < HEAD_BYTES || value.data[0] != STREAM_FEED_PAGE)
        return NULL;
    memcpy(&sequence, value.data + 1, sizeof sequence);
    const uint8_t *at = varint_read(value.data + HEAD_BYTES, end, &ordinal);
    *first = (struct stream_position){be64toh(sequence), (uint32_t)ordinal};
    return at;
}

static status bad_page(void)
{
    return status_make(STATUS_DATA_LOSS, "a page of changed rows does not parse");
}

status stream_feed_page_read(bytes key, bytes value,
                             status (*visit)(void *context, const struct stream_feed_entry *entry,
                                             bool *enough),
                             void *context, bool *enough)
{
    struct stream_feed_entry entry = {0};
    struct stream_position last;
    uint64_t feed;
    uint32_t piece;
    const uint8_t *first = read_head(value, &entry.position), *at = first;
    const uint8_t *end = value.data + value.size;
    *enough = false;
    if (!stream_record_key_read(key, &feed, &last, &piece) || piece != 0 || at == NULL)
        return bad_page();
    while (at < end && !*enough) {
        at = read_entry(at, end, at == first, &entry);
        if (at == NULL)
            return bad_page();
        TRY(visit(context, &entry, enough));
    }
    bool is_whole = *enough || stream_position_compare(entry.position, last) == 0;
    return is_whole ? status_ok() : bad_page();
}

/* --- reading the log --- */

struct feed_reading {
    const struct stream_feed_query *query;
    status (*visit)(void *context, const struct stream_feed_entry *entry, bool *enough);
    void *context;
    struct stream_position *reached;
    size_t size; /* bytes of pages that were looked at */
    bool is_over;
};

static status look_at_entry(void *context, const struct stream_feed_entry *entry, bool *enough)
{
    struct feed_reading *r = context;
    if (stream_position_compare(entry->position, r->query->after) <= 0)
        return status_ok();
    TRY(r->visit(r->context, entry, enough));
    *r->reached = entry->position;
    return status_ok();
}

static status look_at_page(struct feed_reading *r, bytes key, bytes value)
{
    bool enough;
    TRY(stream_feed_page_read(key, value, look_at_entry, r, &enough));
    r->size += key.size + value.size;
    r->is_over = enough || r->size >= r->query->most_bytes;
    return status_ok();
}

static status read_segment(struct feed_reading *r, struct keyspace *keyspace)
{
    const struct stream_feed_query *query = r->query;
    uint8_t lower[STREAM_KEY_BYTES], upper[STREAM_KEY_BYTES];
    const struct stream_position behind = {query->through, UINT32_MAX};
    stream_record_key(lower, query->feed, query->after, UINT32_MAX);
    stream_record_key(upper, query->feed, behind, UINT32_MAX);
    const struct store_cursor_options options = {.lower = bytes_make(lower, sizeof lower),
                                                 .upper = bytes_make(upper, sizeof upper),
                                                 .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    status s = status_ok();
    for (store_cursor_first(cursor); status_is_ok(s) && !r->is_over && store_cursor_valid(cursor);
         store_cursor_next(cursor))
        s = look_at_page(r, store_cursor_key(cursor), store_cursor_value(cursor));
    if (status_is_ok(s) && !r->is_over)
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static status read_held(struct feed_reading *r, const struct held_segments *held)
{
    TRY(log_start_check(r->query->after, &held->start));
    for (size_t i = 0; i < held->count && !r->is_over; i++)
        if (segments_may_have(held, i, r->query->after, r->query->through))
            TRY(read_segment(r, held->all[i]->keyspace));
    if (!r->is_over)
        *r->reached = (struct stream_position){r->query->through, UINT32_MAX};
    return status_ok();
}

status stream_log_read_feed(struct stream_log *log, const struct stream_feed_query *query,
                            status (*visit)(void *context, const struct stream_feed_entry *entry,
                                            bool *enough),
                            void *context, struct stream_position *reached)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    struct feed_reading r = {
        .query = query, .visit = visit, .context = context, .reached = reached};
    struct held_segments held;
    *reached = query->after;
    if (!segments_hold(log, &held))
        return status_out_of_memory();
    status s = read_held(&r, &held);
    segments_release(log, &held);
    return s;
}
