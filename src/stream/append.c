/* The commit thread's side of the log: records come into batches. See log.h.
 *
 * The values of a commit's records are made when they are prepared, one behind the other in
 * `values`, and put when they are appended: memory runs out before the commit is in the batch, or
 * in the batch itself, which then fails as a whole. */
#include "base/check.h"
#include "stream/log_private.h"

#include <endian.h>
#include <stdlib.h>

enum {
    KEEP_BYTES = 4 << 20, /* memory that is kept for the next commit */
    MARK_US = 1000000,    /* from one mark to the next */
};

void stream_log_begin(struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    DCHECK(log->prepared_count == 0 && log->page_count == 0);
    log->last = 0;
    log->touched_count = 0;
    log->has_touched_more = false;
}

/* --- preparing --- */

static bool reserve_prepared(struct stream_log *log)
{
    if (log->prepared_count < log->prepared_capacity)
        return true;
    size_t capacity = 2 * log->prepared_capacity + 16;
    struct prepared *more = realloc(log->prepared, capacity * sizeof *more);
    if (more == NULL)
        return false;
    log->prepared = more;
    log->prepared_capacity = capacity;
    return true;
}

static bool write_value(struct stream_log *log, const struct stream_append *append)
{
    const struct stream_record record = {.kind = append->kind,
                                         .version = append->version,
                                         .row_key = append->row_key,
                                         .list = buffer_bytes(&append->list->list)};
    size_t before = log->values.size;
    stream_record_write(&log->values, &record);
    if (!log->values.failed)
        return true;
    log->values.failed = false;
    log->values.size = before;
    return false;
}

/* Versions that other clusters gave may lie behind. Those of drops do, and would be a wrong time of
 * the commit. */
static bool wants_mark(struct stream_log *log, const struct stream_append *append)
{
    if (append->kind == STREAM_DROPPED)
        return false;
    int64_t time_us = version_time_us(append->version);
    if (time_us - log->marked_us < MARK_US)
        return false;
    log->marked_us = time_us;
    return true;
}

bool stream_log_prepare(struct stream_log *log, const struct stream_append *append)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    DCHECK(append->tablet != 0 && append->row_key.size > 0 && append->list != NULL);
    size_t at = log->values.size;
    if (append->list == NULL || !reserve_prepared(log) || !write_value(log, append))
        return false;
    log->prepared[log->prepared_count++] = (struct prepared){.append = *append,
                                                             .at = at,
                                                             .size = log->values.size - at,
                                                             .has_mark = wants_mark(log, append)};
    return true;
}

static void forget_prepared(struct stream_log *log)
{
    log->prepared_count = 0;
    if (log->values.capacity > KEEP_BYTES)
        buffer_free(&log->values);
    buffer_clear(&log->values);
}

void stream_log_cancel(struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    for (size_t i = 0; i < log->prepared_count; i++)
        if (log->prepared[i].has_mark)
            log->marked_us = 0;
    forget_prepared(log);
    feeds_cancel(log);
}

/* --- what a record puts --- */

typedef status visit_change(void *context, const struct store_change *change);

static status visit_put(struct keyspace *keyspace, bytes key, bytes value, visit_change *visit,
                        void *context)
{
    const struct store_change change = {
        .kind = STORE_PUT, .keyspace = keyspace, .key = key, .value = value};
    return visit(context, &change);
}

static status visit_mark(struct keyspace *keyspace, const struct stream_append *append,
                         visit_change *visit, void *context)
{
    const uint64_t key[] = {0, htobe64(append->position.sequence)};
    uint64_t value = htobe64((uint64_t)version_time_us(append->version));
    return visit_put(keyspace, bytes_make(key, sizeof key), bytes_make(&value, sizeof value), visit,
                     context);
}

static status visit_pieces(struct keyspace *keyspace, const struct stream_append *append,
                           visit_change *visit, void *context)
{
    uint8_t key[STREAM_KEY_BYTES];
    uint32_t piece = 0;
    for (size_t i = 0; i < append->list->apart_count; i++) {
        bytes rest = append->list->apart[i];
        while (rest.size > 0) {
            size_t size = rest.size < STREAM_PIECE_BYTES ? rest.size : STREAM_PIECE_BYTES;
            stream_record_key(key, append->tablet, append->position, ++piece);
            TRY(visit_put(keyspace, bytes_make(key, sizeof key), bytes_make(rest.data, size), visit,
                          context));
            rest = bytes_from(rest, size);
        }
    }
    return status_ok();
}

static status visit_record(const struct stream_log *log, const struct prepared *prepared,
                           visit_change *visit, void *context)
{
    const struct segment *open = atomic_load_explicit(&log->open, memory_order_relaxed);
    const struct stream_append *append = &prepared->append;
    uint8_t key[STREAM_KEY_BYTES];
    CHECK(open != NULL);
    if (prepared->has_mark)
        TRY(visit_mark(open->keyspace, append, visit, context));
    stream_record_key(key, append->tablet, append->position, 0);
    TRY(visit_put(open->keyspace, bytes_make(key, sizeof key),
                  bytes_make(log->values.data + prepared->at, prepared->size), visit, context));
    return visit_pieces(open->keyspace, append, visit, context);
}

status stream_log_visit_prepared(void *log, visit_change *visit, void *context)
{
    const struct stream_log *self = log;
    CHECK_MAGIC(self, STREAM_LOG_MAGIC);
    for (size_t i = 0; i < self->prepared_count; i++)
        TRY(visit_record(self, &self->prepared[i], visit, context));
    return status_ok();
}

/* --- appending --- */

struct putting {
    struct store_batch *batch;
    uint64_t bytes;
};

static status put(void *context, const struct store_change *change)
{
    struct putting *putting = context;
    store_batch_put(putting->batch, change->keyspace, change->key, change->value);
    putting->bytes += change->key.size + change->value.size;
    return status_ok();
}

void log_count_appended(struct stream_log *log, uint64_t bytes)
{
    struct segment *open = atomic_load_explicit(&log->open, memory_order_relaxed);
    atomic_store_explicit(&open->has_any, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&open->written, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&log->written, bytes, memory_order_relaxed);
}

static void touch(struct stream_log *log, uint64_t tablet)
{
    for (size_t i = log->touched_count; i > 0; i--)
        if (log->touched[i - 1] == tablet)
            return;
    if (log->touched_count == MOST_TOUCHED)
        log->has_touched_more = true;
    else
        log->touched[log->touched_count++] = tablet;
}

void stream_log_append(struct stream_log *log, struct store_batch *batch)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    feeds_settle(log, batch);
    if (log->prepared_count == 0)
        return;
    struct putting putting = {.batch = batch};
    status_ignore(stream_log_visit_prepared(log, put, &putting)); /* the batch knows what failed */
    for (size_t i = 0; i < log->prepared_count; i++)
        touch(log, log->prepared[i].append.tablet);
    log->last = log->prepared[log->prepared_count - 1].append.position.sequence;
    log_count_appended(log, putting.bytes);
    forget_prepared(log);
}

void stream_log_written(struct stream_log *log, bool is_written)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    DCHECK(log->prepared_count == 0);
    segments_written(log, is_written);
    if (!is_written)
        log->marked_us = 0; /* the mark may have been among it */
    if (is_written && log->last != 0)
        atomic_store(&log->newest, log->last);
    feeds_written(log, is_written);
    if (is_written && log->last != 0)
        waiters_wake_touched(log);
}

uint64_t stream_log_newest(const struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    return atomic_load(&log->newest);
}

uint64_t stream_log_written_bytes(const struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    return atomic_load_explicit(&log->written, memory_order_relaxed);
}
