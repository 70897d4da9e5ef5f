/* The log's segments: which there are, how one begins. See log.h. */
#include "base/check.h"
#include "base/dates.h"
#include "base/log.h"
#include "stream/log_private.h"
#include "stream/segment_records.h"
#include "tablet/event.h"

#include <stdlib.h>

#define SEGMENT_US (INT64_C(3600) * 1000000)

/* --- holding --- */

bool segments_hold(struct stream_log *log, struct held_segments *out)
{
    pthread_mutex_lock(&log->lock);
    *out = (struct held_segments){.count = log->count, .start = log->start};
    out->all = malloc((log->count + 1) * sizeof *out->all);
    for (size_t i = 0; i < log->count && out->all != NULL; i++) {
        out->all[i] = log->segments[i];
        out->all[i]->readers++;
    }
    pthread_mutex_unlock(&log->lock);
    return out->all != NULL;
}

void segments_release(struct stream_log *log, struct held_segments *held)
{
    pthread_mutex_lock(&log->lock);
    bool is_last = false;
    for (size_t i = 0; i < held->count; i++) {
        DCHECK(held->all[i]->readers > 0);
        is_last |= --held->all[i]->readers == 0;
    }
    if (is_last)
        pthread_cond_broadcast(&log->left);
    pthread_mutex_unlock(&log->lock);
    free(held->all);
}

/* Of one that is not in the list any more. */
static void wait_for_readers(struct stream_log *log, struct segment *segment)
{
    pthread_mutex_lock(&log->lock);
    while (segment->readers > 0)
        pthread_cond_wait(&log->left, &log->lock);
    pthread_mutex_unlock(&log->lock);
}

/* --- opening --- */

static bool reserve_one(struct stream_log *log)
{
    if (log->count < log->capacity)
        return true;
    size_t capacity = 2 * log->capacity + 8;
    struct segment **more = realloc(log->segments, capacity * sizeof(struct segment *));
    if (more == NULL)
        return false;
    log->segments = more;
    log->capacity = capacity;
    return true;
}

/* What has the id and is no log is not ours: a salvage has made it for a table. */
static struct keyspace *find_log(struct store *store, uint64_t id)
{
    struct keyspace *keyspace = store_keyspace_find(store, id);
    return keyspace != NULL && keyspace_kind(keyspace) == KEYSPACE_LOG ? keyspace : NULL;
}

/* What cannot be read counts. */
static status look_for_any(struct segment *segment)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(segment->keyspace, &options, &cursor));
    store_cursor_first(cursor);
    status s = store_cursor_status(cursor);
    atomic_init(&segment->has_any, store_cursor_valid(cursor) || !status_is_ok(s));
    status_free(s);
    store_cursor_destroy(cursor);
    return status_ok();
}

static status add_segment(void *context, const struct stream_segment_record *record)
{
    struct stream_log *log = context;
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL || !reserve_one(log)) {
        free(segment);
        return status_out_of_memory();
    }
    segment->number = record->number;
    segment->keyspace_id = record->keyspace;
    segment->keyspace = find_log(log->options.store, record->keyspace);
    segment->from = record->from;
    segment->from_us = record->from_us;
    log->segments[log->count++] = segment;
    if (segment->keyspace == NULL)
        return status_ok();
    atomic_init(&segment->written, keyspace_bytes(segment->keyspace).buffered);
    return look_for_any(segment);
}

static const struct log_start nowhere = {.sequence = UINT64_MAX, .time_us = INT64_MIN};

static struct log_start start_of(const struct segment *segment)
{
    return (struct log_start){.sequence = segment->from, .time_us = segment->from_us};
}

static bool is_somewhere(const struct stream_log *log)
{
    return log->start.sequence != UINT64_MAX;
}

/* From where on nothing is missing: the first segment, behind the last number and the last keyspace
 * that are. What was before the first is never known to be nothing: its record may be lost. */
static void find_oldest(struct stream_log *log)
{
    uint64_t expected = 0;
    log->start = nowhere;
    for (size_t i = 0; i < log->count; i++) {
        const struct segment *segment = log->segments[i];
        if (segment->keyspace == NULL)
            log->start = nowhere;
        else if (!is_somewhere(log) || segment->number != expected)
            log->start = start_of(segment);
        expected = segment->number + 1;
    }
    if (is_somewhere(log) && log->count > 0)
        atomic_init(&log->open, log->segments[log->count - 1]);
}

static void init(struct stream_log *log, const struct stream_log_options *options)
{
    log->magic = STREAM_LOG_MAGIC;
    log->options = *options;
    if (log->options.segment_bytes == 0)
        log->options.segment_bytes = STREAM_SEGMENT_BYTES;
    if (log->options.segment_us == 0)
        log->options.segment_us = SEGMENT_US;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->left, NULL);
    waiters_init(log);
}

status stream_log_open(const struct stream_log_options *options, struct stream_log **out)
{
    *out = NULL;
    struct stream_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return status_out_of_memory();
    init(log, options);
    status s = stream_eras_read(options->system, &log->eras);
    if (status_is_ok(s))
        s = stream_segments_visit(options->system, add_segment, log);
    find_oldest(log);
    if (status_is_ok(s))
        *out = log;
    else
        stream_log_close(log);
    return s;
}

void stream_log_close(struct stream_log *log)
{
    if (log == NULL)
        return;
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    DCHECK(log->beginning == NULL);
    for (size_t i = 0; i < log->count; i++)
        free(log->segments[i]);
    free(log->segments);
    stream_eras_free(&log->eras);
    free(log->prepared);
    feeds_free(log);
    buffer_free(&log->values);
    waiters_destroy(log);
    pthread_cond_destroy(&log->left);
    pthread_mutex_destroy(&log->lock);
    log->magic = 0;
    free(log);
}

/* --- what there is --- */

bool stream_log_has_segment(const struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    return atomic_load_explicit(&log->open, memory_order_acquire) != NULL;
}

bool stream_log_wants_segment(struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    pthread_mutex_lock(&log->lock);
    struct segment *open = atomic_load(&log->open);
    if (open != NULL)
        open->readers++;
    pthread_mutex_unlock(&log->lock);
    if (open == NULL)
        return false;
    bool wants = false;
    if (atomic_load(&open->has_any)) {
        int64_t age_us = clock_wall_us(log->options.clock) - open->from_us;
        wants =
            age_us >= log->options.segment_us || segment_bytes(open) >= log->options.segment_bytes;
    }
    pthread_mutex_lock(&log->lock);
    if (--open->readers == 0)
        pthread_cond_broadcast(&log->left);
    pthread_mutex_unlock(&log->lock);
    return wants;
}

size_t stream_log_segments(struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    pthread_mutex_lock(&log->lock);
    size_t count = log->count;
    pthread_mutex_unlock(&log->lock);
    return count;
}

static struct log_start look_at_start(struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    pthread_mutex_lock(&log->lock);
    struct log_start start = log->start;
    pthread_mutex_unlock(&log->lock);
    return start;
}

uint64_t stream_log_oldest(struct stream_log *log)
{
    return look_at_start(log).sequence;
}

int64_t stream_log_since(struct stream_log *log)
{
    return look_at_start(log).time_us;
}

status log_start_refuse(const struct log_start *start)
{
    date_text oldest = "";
    if (start->sequence == UINT64_MAX)
        return status_make(STATUS_OUT_OF_RANGE, "The change stream keeps nothing any more");
    dates_tell_from(start->time_us, oldest);
    return status_make(STATUS_OUT_OF_RANGE,
                       "The change stream keeps no more what comes next there: the oldest "
                       "time that can be read is %s",
                       oldest);
}

uint64_t stream_log_era(const struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    return stream_eras_present(&log->eras);
}

status stream_log_check_era(const struct stream_log *log, const struct stream_token *token)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    return stream_eras_check(&log->eras, token);
}

bool stream_log_has_keyspace(struct stream_log *log, uint64_t id)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    bool has = false;
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < log->count && !has; i++)
        has = log->segments[i]->keyspace_id == id;
    pthread_mutex_unlock(&log->lock);
    return has;
}

/* --- beginning one --- */

struct beginning {
    struct catalog_change change;
    struct commit commit;
    struct stream_log *log;
    struct segment *segment;
    struct store_batch *batch; /* or NULL */
    bool is_seen;
};

static struct stream_segment_record record_of(const struct segment *segment)
{
    return (struct stream_segment_record){.number = segment->number,
                                          .keyspace = segment->keyspace_id,
                                          .from = segment->from,
                                          .from_us = segment->from_us};
}

static void describe_beginning(const struct catalog_change *change, struct event_writer *writer)
{
    const struct beginning *beginning = (const void *)change;
    event_keyspaces_made(writer, KEYSPACE_LOG, beginning->segment->keyspace_id, 1);
}

static void record_beginning(struct commit *commit, struct store_batch *batch)
{
    struct beginning *beginning = (void *)LIST_ENTRY(&commit->link, struct beginning, commit.link);
    struct segment *segment = beginning->segment;
    segment->from = commit->sequence;
    segment->from_us = version_time_us(commit->version);
    const struct stream_segment_record record = record_of(segment);
    stream_segment_put(batch, beginning->log->options.system, &record);
    if (beginning->batch != NULL)
        store_batch_append(beginning->log->options.store, batch, beginning->batch);
}

void stream_log_see_segment(struct stream_log *log, const struct commit *commit,
                            struct store_batch *batch)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    pthread_mutex_lock(&log->lock);
    struct beginning *beginning = log->beginning;
    if (beginning != NULL && &beginning->commit == commit) {
        stream_log_put_feeds(log, batch);
        struct segment *segment = beginning->segment;
        DCHECK(log->count < log->capacity && !log->has_begun && log->prepared_count == 0);
        log->segments[log->count++] = segment;
        log->before = atomic_load(&log->open);
        log->start_before = log->start;
        log->has_begun = beginning->is_seen = true;
        if (!is_somewhere(log))
            log->start = start_of(segment);
        atomic_store(&log->open, segment);
    }
    pthread_mutex_unlock(&log->lock);
}

void segments_written(struct stream_log *log, bool is_written)
{
    if (!log->has_begun)
        return;
    pthread_mutex_lock(&log->lock);
    if (!is_written) {
        log->count--;
        log->start = log->start_before;
        atomic_store(&log->open, log->before);
    }
    log->has_begun = false;
    pthread_mutex_unlock(&log->lock);
}

/* NULL without memory. There is room for it in the list. */
static struct segment *make_segment(struct stream_log *log, struct keyspace *keyspace)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL)
        return NULL;
    segment->keyspace = keyspace;
    segment->keyspace_id = keyspace_id(keyspace);
    pthread_mutex_lock(&log->lock);
    segment->number = log->count == 0 ? 1 : log->segments[log->count - 1]->number + 1;
    bool has_room = reserve_one(log);
    pthread_mutex_unlock(&log->lock);
    if (has_room)
        return segment;
    free(segment);
    return NULL;
}

static status commit_beginning(struct stream_log *log, struct commit_queue *commits,
                               struct segment *segment, struct store_batch *batch)
{
    struct beginning beginning = {
        .change = {.describe = describe_beginning}, .log = log, .segment = segment, .batch = batch};
    beginning.commit = (struct commit){.kind = COMMIT_CATALOG,
                                       .extend = record_beginning,
                                       .catalog = &beginning.change,
                                       .frees_space = true,
                                       .is_synced = true};
    pthread_mutex_lock(&log->lock);
    log->beginning = &beginning;
    pthread_mutex_unlock(&log->lock);
    status s = commit_and_wait(commits, &beginning.commit);
    pthread_mutex_lock(&log->lock);
    log->beginning = NULL;
    pthread_mutex_unlock(&log->lock);
    CHECK(!status_is_ok(s) || beginning.is_seen); /* by an observer of the queue */
    return s;
}

/* Readers may have come to it between its place and the batch's failure. */
static void take_back(struct stream_log *log, struct keyspace *keyspace, struct segment *segment)
{
    if (segment != NULL)
        wait_for_readers(log, segment);
    free(segment);
    status_ignore(store_keyspace_drop(log->options.store, keyspace)); /* else the next start does */
}

status stream_log_begin_segment(struct stream_log *log, struct commit_queue *commits, uint64_t id,
                                struct store_batch *batch)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    TRY(store_log_keyspace_create(log->options.store, id));
    struct keyspace *keyspace = store_keyspace_find(log->options.store, id);
    struct segment *segment = make_segment(log, keyspace);
    status s =
        segment == NULL ? status_out_of_memory() : commit_beginning(log, commits, segment, batch);
    if (!status_is_ok(s))
        take_back(log, keyspace, segment);
    return s;
}

/* --- going --- */

struct segment *segments_take_oldest(struct stream_log *log)
{
    pthread_mutex_lock(&log->lock);
    DCHECK(log->count > 1);
    struct segment *oldest = log->segments[0];
    log->count--;
    memmove(log->segments, log->segments + 1, log->count * sizeof(struct segment *));
    if (is_somewhere(log) && log->start.sequence < log->segments[0]->from)
        log->start = start_of(log->segments[0]);
    pthread_mutex_unlock(&log->lock);
    wait_for_readers(log, oldest);
    return oldest;
}
