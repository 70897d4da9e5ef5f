/* See origin_observer.h. An entry's key is the table's id, 8 bytes, big-endian, and the row key: so
 * a range of a table's rows is a range of keys, and no other table's. */
#include "cluster/origin/origin_observer.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "cluster/cluster_private.h"
#include "stream/log.h"
#include "tablet/drop_records.h"
#include "tablet/event.h"

struct leaving {
    struct shard *shard;
    const struct commit *commit;
    uint32_t ordinal;     /* of the next entry */
    struct buffer key;    /* the entry's */
    struct buffer end;    /* of a range */
    struct buffer change; /* of a row */
};

static struct leaving begin(struct shard *shard, const struct commit *commit)
{
    return (struct leaving){.shard = shard, .commit = commit};
}

static bool finish(struct leaving *leaving, bool is_whole)
{
    buffer_free(&leaving->key);
    buffer_free(&leaving->end);
    buffer_free(&leaving->change);
    return is_whole;
}

static bool add(struct leaving *leaving, struct stream_feed_entry entry)
{
    entry.position = (struct stream_position){leaving->commit->sequence, leaving->ordinal++};
    entry.version = leaving->commit->version;
    entry.key = buffer_bytes(&leaving->key);
    if (leaving->key.failed || leaving->end.failed || leaving->change.failed)
        return false;
    return stream_log_prepare_feed(leaving->shard->streams, &leaving->shard->origin.feed, &entry);
}

static void set_key(struct buffer *out, uint64_t table, bytes row_key)
{
    buffer_clear(out);
    big_endian_append(out, table);
    buffer_append_bytes(out, row_key);
}

/* --- rows --- */

/* The server's own tables are its own. */
static bool is_of_clients(const struct table *table)
{
    return table != NULL && !bytes_start_with(bytes_of(table->name), bytes_of(CLUSTER_OWN_TABLES));
}

static bool add_row(struct leaving *leaving, const struct commit *row)
{
    if (!is_of_clients(row->table))
        return true;
    set_key(&leaving->key, row->table->id, row->row_key);
    buffer_clear(&leaving->change);
    event_change_write(&leaving->change, row->change);
    return add(leaving, (struct stream_feed_entry){.has_change = true,
                                                   .change = buffer_bytes(&leaving->change)});
}

static bool prepare_rows(struct shard *shard, const struct commit *commit)
{
    struct leaving leaving = begin(shard, commit);
    bool is_whole = add_row(&leaving, commit);
    for (size_t i = 0; is_whole && i < commit->other_count; i++)
        is_whole = add_row(&leaving, &commit->others[i]);
    return finish(&leaving, is_whole);
}

/* --- ranges --- */

/* Without an end it ends where the next table would begin. */
static void set_end(struct buffer *out, uint64_t table, bytes to)
{
    set_key(out, to.size == 0 ? table + 1 : table, to);
}

static status add_drop(void *context, const struct store_change *change)
{
    struct leaving *leaving = context;
    struct row_drop_words drop;
    uint64_t keyspace;
    if (!drop_record_is_put(change))
        return status_ok();
    TRY(drop_record_parse(change->key, change->value, &keyspace, &drop));
    set_key(&leaving->key, leaving->commit->table->id, drop.from);
    set_end(&leaving->end, leaving->commit->table->id, drop.to);
    bool is_added =
        add(leaving, (struct stream_feed_entry){
                         .end = buffer_bytes(&leaving->end), .is_range = true, .is_drop = true});
    return is_added ? status_ok() : status_out_of_memory();
}

static bool prepare_drop(struct shard *shard, const struct commit *commit,
                         const struct store_batch *records)
{
    struct leaving leaving = begin(shard, commit);
    DCHECK(commit->table != NULL);
    status s = store_batch_visit(shard->store, records, add_drop, &leaving);
    bool is_whole = status_is_ok(s);
    status_ignore(s);
    return finish(&leaving, is_whole);
}

bool origin_observer_prepare(struct shard *shard, const struct commit *commit,
                             const struct store_batch *records)
{
    bool is_on = atomic_load_explicit(&shard->origin.is_on, memory_order_acquire);
    if (!is_on || commit->given_version != 0)
        return true;
    if (commit->kind == COMMIT_ROWS)
        return prepare_rows(shard, commit);
    return commit->kind != COMMIT_DROP_ROWS || prepare_drop(shard, commit, records);
}
