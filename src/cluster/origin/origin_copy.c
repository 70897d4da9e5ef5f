/* See origin_copy.h. Records and overflow cells are read at one snapshot of the store. A record
 * goes without its mark, which says how it lies here, and without cells that have moved; an
 * overflow cell goes as a large cell of its version, an aggregate's as so many adds. */
#include "cluster/origin/origin_copy.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "row/resolve.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

struct origin_copy {
    struct cluster *cluster;
    struct store_snapshot *snapshot;
    struct origins origins; /* as they were; not its lock */
    unsigned own_number;
    struct origin_applied own;
};

/* --- the moment --- */

bool origin_copy_knows_all(const struct origin_copy *copy)
{
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        if (copy->origins.of[i].is_followed && origin_wants_copy(&copy->origins.of[i].applied))
            return false;
    return true;
}

static status take_moment(struct origin_copy *copy)
{
    struct shard *shard = copy->cluster->home;
    struct stream_position end;
    struct origin_complete complete = origin_feed_complete(shard);
    TRY(shard_log_end(shard, &end));
    copy->own = (struct origin_applied){.position = {complete.sequence, UINT32_MAX},
                                        .complete = complete.version};
    copy->snapshot = store_snapshot_create(shard->store);
    return copy->snapshot == NULL ? status_out_of_memory() : status_ok();
}

status origin_copy_begin(struct cluster *cluster, unsigned own_number, struct origin_copy **out)
{
    struct origin_copy *copy = *out = calloc(1, sizeof *copy);
    if (copy == NULL)
        return status_out_of_memory();
    copy->cluster = cluster;
    copy->own_number = own_number;
    origins_hold(cluster, &copy->origins);
    status s = take_moment(copy);
    if (!status_is_ok(s)) {
        origin_copy_end(copy);
        *out = NULL;
    }
    return s;
}

void origin_copy_end(struct origin_copy *copy)
{
    if (copy == NULL)
        return;
    store_snapshot_release(copy->snapshot);
    origins_let_go(copy->cluster);
    free(copy);
}

bool origin_copy_place(const struct origin_copy *copy, unsigned number, struct origin_applied *out)
{
    DCHECK(number < VERSION_CLUSTERS);
    *out = number == copy->own_number ? copy->own : copy->origins.of[number].applied;
    return number == copy->own_number ||
           (copy->origins.of[number].is_followed && !origin_wants_copy(out));
}

/* --- a table --- */

struct copying {
    const struct origin_copy *copy;
    const struct table *table;
    const struct table_part *part;
    status (*visit)(void *context, const struct origin_change *change);
    void *context;
    struct buffer fragment; /* these three are reused */
    struct buffer encoded;
    struct buffer scratch;
};

/* A change of the row: what the fragment has, and perhaps a large cell. */
static status visit_row(struct copying *c, bytes row_key, uint64_t version, struct big_cell *big)
{
    struct packed_change packed = {
        .fragment = c->fragment, .big = big, .big_count = big == NULL ? 0 : 1};
    struct origin_change change = {.table = c->table->id, .from = row_key, .version = version};
    buffer_clear(&c->encoded);
    event_change_write(&c->encoded, &packed);
    change.encoded = buffer_bytes(&c->encoded);
    if (c->fragment.failed || c->encoded.failed)
        return status_out_of_memory();
    return c->visit(c->context, &change);
}

static status bad_record(void)
{
    return status_make(STATUS_DATA_LOSS, "a row's record does not parse");
}

/* The greatest version of what goes, and up to which version cells have moved. */
static bool look_through(bytes record, uint64_t *version, uint64_t *moved)
{
    struct fragment_reader reader;
    struct entry entry;
    *version = *moved = 0;
    if (!fragment_reader_start(&reader, record))
        return false;
    while (fragment_reader_next(&reader, &entry)) {
        if (entry.kind == ENTRY_OVERFLOW_MARK)
            *moved = entry.moved;
        else if (entry.version > *version)
            *version = entry.version;
    }
    return !reader.is_bad;
}

static void write_rest(bytes record, uint64_t version, uint64_t moved, struct buffer *out)
{
    struct fragment_reader reader;
    struct fragment_writer writer;
    struct entry entry;
    buffer_clear(out);
    fragment_writer_start(&writer, out, version);
    CHECK(fragment_reader_start(&reader, record));
    while (fragment_reader_next(&reader, &entry)) {
        bool has_moved = entry_is_cell(entry.kind) && entry.version <= moved;
        if (entry.kind != ENTRY_OVERFLOW_MARK && !has_moved)
            fragment_writer_add(&writer, &entry);
    }
    fragment_writer_finish(&writer);
}

static status copy_record(struct copying *c, bytes key, bytes record)
{
    uint64_t version, moved;
    if (!look_through(record, &version, &moved))
        return bad_record();
    if (version == 0)
        return status_ok();
    write_rest(record, version, moved, &c->fragment);
    return visit_row(c, bytes_from(key, 1), version, NULL);
}

/* With a mark that moves nothing, as row_change_pack makes it. */
static void write_mark(uint64_t version, struct buffer *out)
{
    buffer_clear(out);
    row_overflow_mark(out, version, 0, 0, true);
}

static status copy_overflow_entry(struct copying *c, const struct overflow_key *at,
                                  struct entry *entry)
{
    struct big_cell big = {.family = at->family,
                           .qualifier = at->qualifier,
                           .timestamp_us = at->timestamp_us,
                           .value = entry->value};
    if (!entry_is_add(entry->kind)) {
        write_mark(entry->version, &c->fragment);
        return visit_row(c, at->row_key, entry->version, &big);
    }
    struct fragment_writer writer;
    entry->family = at->family;
    entry->qualifier = at->qualifier;
    entry->timestamp_us = at->timestamp_us;
    buffer_clear(&c->fragment);
    fragment_writer_start(&writer, &c->fragment, entry->version);
    fragment_writer_add(&writer, entry);
    fragment_writer_finish(&writer);
    return visit_row(c, at->row_key, entry->version, NULL);
}

static status copy_overflow(struct copying *c, bytes key, bytes value)
{
    struct overflow_key at;
    struct fragment_reader reader;
    struct entry entry;
    if (!overflow_key_parse(key, &c->scratch, &at) || !fragment_reader_start(&reader, value))
        return bad_record();
    while (fragment_reader_next(&reader, &entry))
        if (entry_is_cell(entry.kind))
            TRY(copy_overflow_entry(c, &at, &entry));
    return reader.is_bad ? bad_record() : status_ok();
}

static status walk(struct copying *c, struct store_cursor *cursor,
                   status (*copy)(struct copying *c, bytes key, bytes value))
{
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        TRY(copy(c, store_cursor_key(cursor), store_cursor_value(cursor)));
    return store_cursor_status(cursor);
}

static status copy_between(struct copying *c, const struct key_bounds *bounds,
                           status (*copy)(struct copying *c, bytes key, bytes value))
{
    struct store_cursor *cursor;
    const struct store_cursor_options options = {.snapshot = c->copy->snapshot,
                                                 .lower = buffer_bytes(&bounds->lower),
                                                 .upper = buffer_bytes(&bounds->upper),
                                                 .read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true};
    TRY(store_cursor_create(c->part->space.keyspace, &options, &cursor));
    status s = walk(c, cursor, copy);
    store_cursor_destroy(cursor);
    return s;
}

static status copy_rows(struct copying *c)
{
    struct key_bounds records, overflow;
    bool has_records = record_bounds(c->part->from, c->part->to, &records);
    bool has_overflow = overflow_bounds(c->part->from, c->part->to, &overflow);
    status s = has_records && has_overflow ? copy_between(c, &records, copy_record)
                                           : status_out_of_memory();
    if (status_is_ok(s))
        s = copy_between(c, &overflow, copy_overflow);
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return s;
}

/* Of those, too, that came after the moment: they are in the feed as well. */
static status copy_drops(struct copying *c)
{
    struct row_drops *drops = table_drops(c->table, c->part->space.keyspace);
    struct row_drop_words drop;
    struct buffer from = {0}, to = {0};
    status s = status_ok();
    uint64_t after = 0;
    while (status_is_ok(s) &&
           row_drops_within(drops, c->part->from, c->part->to, after, &drop, &from, &to)) {
        struct origin_change change = {.table = c->table->id,
                                       .from = buffer_bytes(&from),
                                       .to = buffer_bytes(&to),
                                       .is_drop = true,
                                       .version = drop.version};
        s = from.failed || to.failed ? status_out_of_memory() : c->visit(c->context, &change);
        after = drop.sequence;
    }
    buffer_free(&from);
    buffer_free(&to);
    return s;
}

static status copy_part(void *context, const struct table_part *part)
{
    struct copying *c = context;
    c->part = part;
    if (part->space.shard != c->copy->cluster->home)
        return status_make(STATUS_FAILED_PRECONDITION, "a table of several shards is not copied");
    TRY(copy_drops(c));
    return copy_rows(c);
}

status origin_copy_read(struct origin_copy *copy, struct table *table,
                        status (*visit)(void *context, const struct origin_change *change),
                        void *context)
{
    struct copying c = {.copy = copy, .table = table, .visit = visit, .context = context};
    const bytes all = bytes_of("");
    status s = table_visit_parts(table, all, all, copy_part, &c);
    buffer_free(&c.fragment);
    buffer_free(&c.encoded);
    buffer_free(&c.scratch);
    return s;
}
