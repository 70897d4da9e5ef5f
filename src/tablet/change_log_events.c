/* The change log as an observer of the commit queue: what it makes of commits.
 *
 * Events are gathered in one entry for the batch, which is put into it at the end, or, so that a
 * batch does not need its memory twice, whenever it has ENTRY_BYTES. */
#include "base/check.h"
#include "tablet/change_log_private.h"
#include "tablet/commit_observer.h"

enum {
    ENTRY_BYTES = 256 << 10,
    KEEP_BYTES = 4 << 20, /* memory that is kept for the next batch */
};

static bool begin(void *context, struct store_batch *batch)
{
    struct change_log *log = context;
    log->pending.from = 0;
    log->pending.writer.sequence = 0;
    buffer_clear(&log->pending.bytes);
    return change_log_begin_batch(log, batch);
}

static bool is_logged(const struct change_log *log, const struct commit *commit)
{
    return commit->kind != COMMIT_INTERNAL && change_log_is_on(log);
}

static enum event_kind event_kind_of(const struct commit *commit)
{
    static const enum event_kind kinds[] = {
        [COMMIT_ROWS] = EVENT_ROWS,      [COMMIT_COLLECT] = EVENT_COLLECT,
        [COMMIT_UPKEEP] = EVENT_UPKEEP,  [COMMIT_DROP] = EVENT_DROP,
        [COMMIT_DROP_ROWS] = EVENT_DROP, [COMMIT_TELL] = EVENT_CATALOG,
        [COMMIT_CATALOG] = EVENT_CATALOG};
    return commit_is_structural(commit->kind) ? EVENT_CATALOG : kinds[commit->kind];
}

/* --- entries --- */

static void put_entry(struct change_log *log, struct store_batch *batch)
{
    struct pending_events *pending = &log->pending;
    if (pending->from == 0)
        return;
    DCHECK(pending->from <= pending->writer.sequence);
    change_log_append(log, batch, pending->from, buffer_bytes(&pending->bytes));
    pending->from = 0;
    if (pending->bytes.capacity > KEEP_BYTES)
        buffer_free(&pending->bytes);
    buffer_clear(&pending->bytes);
}

static void begin_event(struct pending_events *pending, const struct commit *commit)
{
    DCHECK(pending->from == 0 || commit->sequence > pending->writer.sequence);
    pending->before.size = pending->bytes.size;
    pending->before.writer = pending->writer;
    pending->before.from = pending->from;
    if (pending->from == 0) {
        event_writer_start(&pending->writer, &pending->bytes);
        pending->from = commit->sequence;
    }
    event_begin(&pending->writer, event_kind_of(commit), commit->sequence, commit->version);
    if (commit->catalog != NULL && commit->catalog->describe != NULL)
        commit->catalog->describe(commit->catalog, &pending->writer);
}

static void take_event_back(struct pending_events *pending)
{
    DCHECK(pending->before.size <= pending->bytes.size);
    pending->bytes.size = pending->before.size;
    pending->bytes.failed = false;
    pending->writer = pending->before.writer;
    pending->from = pending->before.from;
}

/* --- changes --- */

static void add_row(struct event_writer *writer, const struct commit *commit)
{
    event_row(writer, keyspace_id(commit->keyspace), commit->row_key, commit->change,
              commit->tokens != NULL ? &commit->token : NULL);
}

static status add_record(void *context, const struct store_change *change)
{
    DCHECK(change->kind <= STORE_DELETE_RANGE);
    static const enum event_change_kind kinds[] = {[STORE_PUT] = CHANGE_PUT,
                                                   [STORE_MERGE] = CHANGE_MERGE,
                                                   [STORE_DELETE] = CHANGE_DELETE,
                                                   [STORE_DELETE_RANGE] = CHANGE_DELETE_RANGE};
    struct event_writer *writer = context;
    event_record(writer, kinds[change->kind], keyspace_id(change->keyspace), change->key,
                 change->value);
    return writer->out->failed ? status_out_of_memory() : status_ok();
}

static status add_rows(struct change_log *log, const struct commit *commit)
{
    struct event_writer *writer = &log->pending.writer;
    const struct change_log_options *options = &log->options;
    add_row(writer, commit);
    for (size_t i = 0; i < commit->other_count; i++)
        add_row(writer, &commit->others[i]);
    return options->visit_beside == NULL
               ? status_ok()
               : options->visit_beside(options->beside_context, add_record, writer);
}

/* --- the observer --- */

static bool prepare(void *context, const struct commit *commit, const struct store_batch *records)
{
    struct change_log *log = context;
    struct pending_events *pending = &log->pending;
    if (!is_logged(log, commit))
        return true;
    begin_event(pending, commit);
    status s = commit_changes_rows(commit->kind)
                   ? add_rows(log, commit)
                   : store_batch_visit(log->options.store, records, add_record, &pending->writer);
    event_end(&pending->writer);
    bool is_whole = status_is_ok(s) && !pending->bytes.failed;
    status_free(s);
    if (!is_whole)
        take_event_back(pending);
    return is_whole;
}

static void cancel(void *context, const struct commit *commit)
{
    struct change_log *log = context;
    if (is_logged(log, commit))
        take_event_back(&log->pending);
}

/* An internal commit may be the log's own, which changes what entries there are: none spans it. */
static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct change_log *log = context;
    (void)records;
    if (commit->kind == COMMIT_INTERNAL || log->pending.bytes.size >= ENTRY_BYTES)
        put_entry(log, batch);
}

static void end(void *context, struct store_batch *batch)
{
    put_entry(context, batch);
}

static void written(void *context, bool is_written)
{
    struct change_log *log = context;
    change_log_end_batch(log, is_written, log->pending.writer.sequence);
}

struct commit_observer change_log_observer(struct change_log *log)
{
    CHECK_MAGIC(log, CHANGE_LOG_MAGIC);
    return (struct commit_observer){.context = log,
                                    .begin = begin,
                                    .prepare = prepare,
                                    .cancel = cancel,
                                    .see = see,
                                    .end = end,
                                    .written = written};
}
