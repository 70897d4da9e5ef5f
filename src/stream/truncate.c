/* How segments go: those that are too old, and the oldest ones of a log that is too large. See
 * log.h. */
#include "base/check.h"
#include "stream/log_private.h"
#include "stream/segment_records.h"
#include "tablet/event.h"

#include <stdlib.h>

/* --- one that goes --- */

struct ending {
    struct catalog_change change;
    struct commit commit;
    struct stream_log *log;
    struct segment *segment;
};

static void describe_ending(const struct catalog_change *change, struct event_writer *writer)
{
    const struct ending *ending = (const void *)change;
    event_keyspace_dropped(writer, ending->segment->keyspace_id);
}

static void record_ending(struct commit *commit, struct store_batch *batch)
{
    const struct ending *ending = (void *)LIST_ENTRY(&commit->link, struct ending, commit.link);
    stream_segment_delete(batch, ending->log->options.system, ending->segment->number);
}

/* Durable before the keyspace goes: a start must not miss what a record names. */
static status commit_ending(struct stream_log *log, struct commit_queue *commits,
                            struct segment *segment)
{
    struct ending ending = {
        .change = {.describe = describe_ending}, .log = log, .segment = segment};
    ending.commit = (struct commit){.kind = COMMIT_CATALOG,
                                    .extend = record_ending,
                                    .catalog = &ending.change,
                                    .frees_space = true,
                                    .is_synced = true};
    return commit_and_wait(commits, &ending.commit);
}

static status drop_oldest(struct stream_log *log, struct commit_queue *commits,
                          struct segment *segment)
{
    TRY(commit_ending(log, commits, segment));
    struct segment *taken = segments_take_oldest(log);
    DCHECK(taken == segment);
    status s = segment->keyspace == NULL
                   ? status_ok()
                   : store_keyspace_drop(log->options.store, segment->keyspace);
    if (log->options.dropped != NULL)
        log->options.dropped(log->options.context, segment->keyspace_id);
    free(taken);
    return s;
}

/* --- which go --- */

/* What is asked of the oldest segment. Only who drops and begins them changes the list. */
struct aging {
    struct segment *oldest; /* NULL: it is not to go */
    bool is_outdated;
};

/* The last one stays, also if it is lost: its number is what the next one's follows. */
static struct aging look_at_oldest(struct stream_log *log, const struct stream_bounds *bounds)
{
    struct aging aging = {0};
    pthread_mutex_lock(&log->lock);
    if (log->count > 1) {
        const struct segment *next = log->segments[1];
        aging.oldest = log->segments[0];
        bool is_old = next->from_us < bounds->before_us && next->from <= bounds->keep_from;
        aging.is_outdated = is_old || next->from <= log->start.sequence;
    }
    pthread_mutex_unlock(&log->lock);
    return aging;
}

static void note_evicted(struct stream_log *log, uint64_t bytes, struct stream_evicted *evicted)
{
    evicted->segments++;
    evicted->bytes += bytes;
    atomic_store(&log->has_evicted, true);
}

status stream_log_truncate(struct stream_log *log, struct commit_queue *commits,
                           const struct stream_bounds *bounds, struct stream_evicted *evicted)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    *evicted = (struct stream_evicted){0};
    for (;;) {
        struct aging aging = look_at_oldest(log, bounds);
        if (aging.oldest == NULL)
            return status_ok();
        if (!aging.is_outdated && stream_log_bytes(log) <= bounds->most_bytes)
            return status_ok();
        uint64_t bytes = segment_bytes(aging.oldest);
        TRY(drop_oldest(log, commits, aging.oldest));
        if (!aging.is_outdated)
            note_evicted(log, bytes, evicted);
    }
}

bool stream_log_has_evicted(const struct stream_log *log)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    return atomic_load(&log->has_evicted);
}
