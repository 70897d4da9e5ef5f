/* See refill.h.
 *
 * The range is closed all the while, so nobody sees how far it has got; one that ends early is told
 * anew from its beginning, which deletes the range once more. It goes through the commit queue, as
 * all that an archive is to have.
 *
 *     delete all of it, then in batches: large cells ──► records
 *
 * A record comes after its large cells: what deletes the row meanwhile deletes them through it.
 * Rows that are dropped meanwhile (DropRowRange) must not come back: the range is looked at with
 * every row lock held, under which drops are committed. */
#include "cluster/refill.h"

#include "cluster/cluster_private.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

enum { BATCH_BYTES = 2 << 20 };

struct refill {
    struct commit commit;
    struct cluster *cluster;
    struct keyspace *keyspace;
    const struct foreign_table *source;
    struct damage_part rows;
    struct store_batch *batch;
    size_t bytes; /* in the batch */
};

/* --- whether it fits --- */

static bool has_same_families(const struct schema *then, const struct schema *now)
{
    if (then->next_family_id > now->next_family_id)
        return false;
    for (size_t i = 0; i < then->family_count; i++) {
        const struct family *family = schema_family(now, then->families[i].id);
        if (family != NULL && !bytes_equal(family->name, then->families[i].name))
            return false;
    }
    return true;
}

status refill_check(const struct foreign_table *source, uint64_t table_id,
                    const struct schema *schema)
{
    const struct table_record *record = source->record;
    if (record->id == table_id && (schema == NULL || has_same_families(record->schema, schema)))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the backup has another table that was called %s: this one was made later, "
                       "or on another server",
                       record->name);
}

/* --- reading the source --- */

struct reading {
    status (*visit)(void *context, bytes key, bytes value);
    void *context;
};

static status read_source(const struct foreign_table *source, bytes from, bytes to,
                          const struct reading *reading)
{
    const struct store_cursor_options options = {
        .lower = from, .upper = to, .reach = STORE_ANYWHERE};
    struct store_cursor *cursor;
    status s = status_ok();
    TRY(store_cursor_create(source->keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor) && status_is_ok(s);
         store_cursor_next(cursor))
        s = reading->visit(reading->context, store_cursor_key(cursor), store_cursor_value(cursor));
    if (status_is_ok(s))
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static status count_entry(void *context, bytes key, bytes value)
{
    uint64_t *count = context;
    (void)key, (void)value;
    *count += 1;
    return status_ok();
}

static status count_between(const struct foreign_table *source, const struct key_bounds *bounds,
                            uint64_t *count)
{
    const struct reading counting = {.visit = count_entry, .context = count};
    *count = 0;
    return read_source(source, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper),
                       &counting);
}

status refill_count(const struct foreign_table *source, bytes from, bytes to, uint64_t *rows)
{
    struct key_bounds records, spilled;
    uint64_t cells;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = spill_bounds(from, to, &spilled) && is_bounded;
    status s = is_bounded ? count_between(source, &records, rows) : status_out_of_memory();
    if (status_is_ok(s))
        s = count_between(source, &spilled, &cells);
    key_bounds_free(&records);
    key_bounds_free(&spilled);
    return s;
}

/* --- batches --- */

static void append_batch(struct commit *commit, struct store_batch *batch)
{
    struct refill *refill = LIST_ENTRY(&commit->link, struct refill, commit.link);
    store_batch_append(refill->cluster->store, batch, refill->batch);
}

static status commit_batch(struct refill *refill)
{
    struct cluster *cluster = refill->cluster;
    if (store_batch_failed(refill->batch))
        return status_out_of_memory();
    refill->commit =
        (struct commit){.kind = COMMIT_DROP, .keyspace = refill->keyspace, .extend = append_batch};
    row_locks_acquire_all(cluster->locks);
    status s = cluster->refilling.is_dropped
                   ? status_make(STATUS_UNAVAILABLE,
                                 "rows of the range were dropped meanwhile: repair it again")
                   : commit_and_wait(cluster->commits, &refill->commit);
    row_locks_release_all(cluster->locks, commit_applied_version(cluster->commits));
    store_batch_clear(refill->batch);
    refill->bytes = 0;
    return s;
}

static status put(void *context, bytes key, bytes value)
{
    struct refill *refill = context;
    store_batch_put(refill->batch, refill->keyspace, key, value);
    refill->bytes += key.size + value.size;
    return refill->bytes < BATCH_BYTES ? status_ok() : commit_batch(refill);
}

static status put_between(struct refill *refill, const struct key_bounds *bounds)
{
    const struct reading putting = {.visit = put, .context = refill};
    return read_source(refill->source, buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper),
                       &putting);
}

/* --- all of it --- */

static void append_deletion(struct refill *refill, bytes from, bytes to)
{
    store_batch_delete_range(refill->batch, refill->keyspace, from, to);
}

static status refill_bounded(struct refill *refill, const struct key_bounds *records,
                             const struct key_bounds *spilled)
{
    append_deletion(refill, buffer_bytes(&records->lower), buffer_bytes(&records->upper));
    append_deletion(refill, buffer_bytes(&spilled->lower), buffer_bytes(&spilled->upper));
    TRY(put_between(refill, spilled));
    TRY(put_between(refill, records));
    return commit_batch(refill); /* with the last, or the deletions alone */
}

static status refill_rows(struct refill *refill)
{
    bytes from = damage_row(refill->rows.from), to = damage_row(refill->rows.to);
    struct key_bounds records, spilled;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = spill_bounds(from, to, &spilled) && is_bounded;
    status s = is_bounded ? refill_bounded(refill, &records, &spilled) : status_out_of_memory();
    key_bounds_free(&records);
    key_bounds_free(&spilled);
    return s;
}

/* Versions of what comes are to be in the past, or it would win over what is written later. */
static status check_clock(struct cluster *cluster, const struct foreign_table *source)
{
    return source->newest_us <= cluster_version_us(cluster)
               ? status_ok()
               : status_make(STATUS_FAILED_PRECONDITION,
                             "the backup is of a later time than this server's clock shows");
}

static void watch_drops(struct cluster *cluster, const struct damage_record *record)
{
    row_locks_acquire_all(cluster->locks);
    cluster->refilling.record = record;
    cluster->refilling.is_dropped = false;
    row_locks_release_all(cluster->locks, commit_applied_version(cluster->commits));
}

void refill_note_drop(struct cluster *cluster, const struct keyspace *keyspace, bytes from,
                      bytes to)
{
    const struct damage_record *record = cluster->refilling.record;
    if (record == NULL || record->keyspace_id != keyspace_id(keyspace))
        return;
    bool begins_before = record->to.size == 0 || bytes_compare(from, record->to) < 0;
    if (begins_before && bytes_compare(to, record->from) > 0)
        cluster->refilling.is_dropped = true;
}

status refill_run(struct cluster *cluster, struct keyspace *keyspace,
                  const struct damage_record *record, const struct foreign_table *source)
{
    struct refill refill = {.cluster = cluster,
                            .keyspace = keyspace,
                            .source = source,
                            .rows = damage_part(record, ROW_SPACE),
                            .batch = store_batch_create()};
    if (refill.batch == NULL)
        return status_out_of_memory();
    status s = check_clock(cluster, source);
    if (status_is_ok(s)) {
        watch_drops(cluster, record);
        s = refill_rows(&refill);
        watch_drops(cluster, NULL);
    }
    store_batch_destroy(refill.batch);
    return s;
}
