/* The commit thread's side of the change log: for commit.c and commit_batch.c.
 *
 * Events are gathered in one entry for the batch, which is put into it at the end, or, so that a
 * batch does not need its memory twice, whenever it has ENTRY_BYTES. A change that `extend` makes
 * is one of records, not of rows: it is written aside, read there, and then appended. */
#include "tablet/commit_private.h"

enum {
    ENTRY_BYTES = 256 << 10,
    KEEP_BYTES = 4 << 20, /* memory that is kept for the next batch */
};

status commit_events_init(struct commit_batch *batch)
{
    if (batch->log == NULL)
        return status_ok();
    batch->aside = store_batch_create();
    return batch->aside == NULL ? status_out_of_memory() : status_ok();
}

void commit_events_free(struct commit_batch *batch)
{
    if (batch->aside != NULL)
        store_batch_destroy(batch->aside);
    buffer_free(&batch->events);
}

void commit_events_begin(struct commit_batch *batch)
{
    if (batch->log == NULL)
        return;
    batch->events_from = 0;
    batch->writer.sequence = 0;
    buffer_clear(&batch->events);
    if (change_log_begin_batch(batch->log, batch->store_batch)) {
        batch->has_content = true;
        batch->wants_sync = true;
    }
}

static bool is_logged(const struct commit_batch *batch, const struct commit *commit)
{
    return batch->log != NULL && commit->kind != COMMIT_INTERNAL && change_log_is_on(batch->log);
}

static enum event_kind event_kind_of(const struct commit *commit)
{
    static const enum event_kind kinds[] = {[COMMIT_ROWS] = EVENT_ROWS,
                                            [COMMIT_UPKEEP] = EVENT_UPKEEP,
                                            [COMMIT_DROP] = EVENT_DROP,
                                            [COMMIT_CATALOG] = EVENT_CATALOG};
    return kinds[commit->kind];
}

/* --- entries --- */

static void put_entry(struct commit_batch *batch)
{
    change_log_append(batch->log, batch->store_batch, batch->events_from,
                      buffer_bytes(&batch->events));
    batch->events_from = 0;
    if (batch->events.capacity > KEEP_BYTES)
        buffer_free(&batch->events);
    buffer_clear(&batch->events);
}

/* What is to be undone if there is no memory for the event. */
struct event_start {
    size_t size;
    struct event_writer writer;
    uint64_t events_from;
};

static struct event_start begin_event(struct commit_batch *batch, const struct commit *commit)
{
    if (batch->events.size >= ENTRY_BYTES)
        put_entry(batch);
    struct event_start start = {
        .size = batch->events.size, .writer = batch->writer, .events_from = batch->events_from};
    if (batch->events_from == 0) {
        event_writer_start(&batch->writer, &batch->events);
        batch->events_from = commit->version;
    }
    event_begin(&batch->writer, event_kind_of(commit), commit->version, commit->version);
    if (commit->describe != NULL)
        commit->describe(commit, &batch->writer);
    return start;
}

static bool end_event(struct commit_batch *batch, const struct event_start *start, bool is_whole)
{
    event_end(&batch->writer);
    if (is_whole && !batch->events.failed)
        return true;
    batch->events.size = start->size;
    batch->events.failed = false;
    batch->writer = start->writer;
    batch->events_from = start->events_from;
    return false;
}

/* --- changes of rows --- */

static void add_row(struct commit_batch *batch, const struct commit *commit)
{
    fragment_set_version(commit->change->fragment.data, commit->version);
    event_row(&batch->writer, keyspace_id(commit->keyspace), commit->row_key, commit->change,
              commit->tokens != NULL ? &commit->token : NULL);
}

bool commit_events_add(struct commit_batch *batch, struct commit *commit)
{
    if (!is_logged(batch, commit))
        return true;
    struct event_start start = begin_event(batch, commit);
    if (commit->change != NULL)
        add_row(batch, commit);
    for (size_t i = 0; i < commit->other_count; i++)
        add_row(batch, &commit->others[i]);
    return end_event(batch, &start, true);
}

/* --- changes of records --- */

static status add_record(void *context, const struct store_change *change)
{
    static const enum event_change_kind kinds[] = {[STORE_PUT] = CHANGE_PUT,
                                                   [STORE_MERGE] = CHANGE_MERGE,
                                                   [STORE_DELETE] = CHANGE_DELETE,
                                                   [STORE_DELETE_RANGE] = CHANGE_DELETE_RANGE};
    struct commit_batch *batch = context;
    event_record(&batch->writer, kinds[change->kind], keyspace_id(change->keyspace), change->key,
                 change->value);
    return batch->events.failed ? status_out_of_memory() : status_ok();
}

bool commit_events_extend(struct commit_batch *batch, struct commit *commit)
{
    if (!is_logged(batch, commit)) {
        commit_events_end(batch); /* it may change which entries there are: none spans it */
        commit->extend(commit, batch->store_batch);
        return true;
    }
    store_batch_clear(batch->aside);
    commit->extend(commit, batch->aside);
    struct event_start start = begin_event(batch, commit);
    status s = store_batch_visit(batch->store, batch->aside, add_record, batch);
    if (!end_event(batch, &start, status_is_ok(s))) {
        status_free(s);
        return false;
    }
    store_batch_append(batch->store, batch->store_batch, batch->aside);
    return true;
}

/* --- the batch's end --- */

void commit_events_end(struct commit_batch *batch)
{
    if (batch->log != NULL && batch->events_from != 0)
        put_entry(batch);
}

void commit_events_written(struct commit_batch *batch, bool is_written)
{
    if (batch->log != NULL)
        change_log_end_batch(batch->log, is_written, batch->writer.sequence);
}
