/* See snapshot.h.
 *
 * A row has a cell in `e` if it is, and one in `h` for each time that it ended to be what it was,
 * of the last hour. At a moment T it is what its `e` says, if that is of T or before; else what the
 * first `h` after T says, if that had begun by T. An entity's record says when it began. An index
 * row does not: the entity at T tells whether it had the row, and with which types. The value of an
 * `h` of an index row is never read: those that older versions wrote hold the types of later. */
#include "datastore/commit/snapshot.h"

#include "base/limits.h"
#include "cluster/rows.h"
#include "datastore/database.h"
#include "datastore/index/index_rows.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "row/row_key.h"
#include "trestle/datastore.pb-c.h"
#include "wire/grpc.h"
#include "wire/proto.h"

#include <stdlib.h>

/* The clock is asked after so many rows; what was is thought to go a while sooner than it does. */
enum { ROWS_A_LOOK = 256 };
#define MARGIN_US (INT64_C(60) * 1000000)

/* --- cells --- */

/* The cells of a row: what it is, and what it was when it first ended after the moment. */
struct seen {
    const struct cell *is;  /* NULL: nothing, or since later */
    const struct cell *was; /* NULL: it has not ended since */
};

static struct seen look_at(const struct cell_list *cells, int64_t at_us)
{
    struct seen seen = {0};
    for (size_t i = 0; i < cells->count; i++) {
        const struct cell *cell = &cells->items[i];
        bool is_present = bytes_equal(cell->family->name, bytes_of(DS_FAMILY_IS));
        if (is_present && seen.is == NULL && cell->timestamp_us <= at_us)
            seen.is = cell; /* newest first: the first is the last by the moment */
        else if (!is_present && cell->timestamp_us > at_us)
            seen.was = cell; /* and the last the first after it */
    }
    return seen;
}

/* --- one row --- */

/* What is read of a row: of what it was, that of after the moment, which may be little of an
 * hour's.
 */
enum wanted {
    WHAT_WAS_THERE, /* at the moment */
    WHAT_CAME_LATER,
};

static void set_scope(struct family_scope *scope, bytes family, int64_t at_us, enum wanted wanted)
{
    bool is_all = wanted == WHAT_WAS_THERE && bytes_equal(family, bytes_of(DS_FAMILY_IS));
    scope->is_wanted = is_all || at_us < INT64_MAX; /* nothing is later than that */
    scope->least_us = is_all || at_us == INT64_MAX ? 0 : at_us + 1;
}

static status scope_of(const struct schema *schema, int64_t at_us, enum wanted wanted,
                       struct arena *arena, struct read_scope *out)
{
    struct family_scope *families = arena_zalloc(arena, schema->family_count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < schema->family_count; i++)
        set_scope(&families[i], schema->families[i].name, at_us, wanted);
    *out = (struct read_scope){.families = families,
                               .cells_per_column = INT32_MAX,
                               .cells_per_row = INT32_MAX,
                               .wants_values = true};
    return status_ok();
}

static status open_scan(const struct ds_snapshot *snapshot, enum wanted wanted,
                        struct scan_spec spec, struct scan **out)
{
    struct read_scope scope;
    *out = NULL;
    if (snapshot->table == NULL) /* a database that was never written to */
        return status_ok();
    spec.table = snapshot->table;
    spec.schema = table_schema(spec.table);
    spec.applies_gc = true;
    TRY(scope_of(spec.schema, snapshot->at_us, wanted, spec.arena, &scope));
    spec.scope = &scope;
    return scan_create(&spec, out);
}

bool ds_is_older(struct cluster *cluster, int64_t at_us, int64_t age_us)
{
    return at_us < cluster_version_us(cluster) - age_us; /* never behind the wall clock */
}

status ds_too_old(void)
{
    return status_make(STATUS_FAILED_PRECONDITION, "The requested 'read_time' is too old.");
}

status ds_snapshot_check(const struct ds_snapshot *snapshot)
{
    bool is_gone = snapshot->table != NULL && ds_is_older(table_cluster(snapshot->table),
                                                          snapshot->at_us, DS_KEPT_US - MARGIN_US);
    return is_gone ? ds_too_old() : status_ok();
}

static status check_call(const struct ds_snapshot *snapshot)
{
    if (snapshot->call != NULL && grpc_call_is_cancelled(snapshot->call))
        return status_make(STATUS_CANCELLED, "The call was cancelled");
    return status_ok();
}

/* The next row with cells that are wanted; `*found` false at the end. */
static status next_row(const struct ds_snapshot *snapshot, struct scan *scan, struct scan_row *row,
                       bool *found)
{
    enum row_outcome outcome;
    *found = false;
    if (scan == NULL)
        return status_ok();
    TRY(check_call(snapshot));
    TRY(scan_next(scan, STORE_READ_ANY, row, &outcome));
    while (outcome == ROW_ABSENT) { /* it has passed many */
        TRY(check_call(snapshot));
        TRY(ds_snapshot_check(snapshot));
        TRY(scan_next(scan, STORE_READ_ANY, row, &outcome));
    }
    if (outcome == ROW_TOO_LARGE)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "A row of the database is too large to be read");
    *found = outcome == ROW_FOUND;
    return status_ok();
}

/* --- entities --- */

static status decode_record(bytes stored, struct arena *arena, const Datastore__Record **out)
{
    ProtobufCMessage *message;
    bytes copy = arena_copy(arena, stored);
    if (copy.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&datastore__record__descriptor, copy, arena, &message));
    *out = (const void *)message;
    return status_ok();
}

/* `database`: NULL: the key says which. */
static status take_record(const struct ds_database *database, const Datastore__Record *record,
                          int64_t version_us, struct arena *arena, struct ds_version *out)
{
    ProtobufCMessage *entity;
    TRY(proto_decode(&ds__entity__descriptor, proto_bytes(record->entity), arena, &entity));
    if (database != NULL)
        ds_key_move(((Ds__Entity *)entity)->key, database);
    *out = (struct ds_version){.entity = (const void *)entity,
                               .stored = proto_bytes(record->entity),
                               .version_us = version_us,
                               .create_us = record->create_us};
    return status_ok();
}

static status entity_of(const struct ds_snapshot *snapshot, const struct cell_list *cells,
                        struct arena *arena, struct ds_version *out)
{
    const Datastore__Record *record;
    int64_t at_us = snapshot->at_us;
    struct seen seen = look_at(cells, at_us);
    *out = (struct ds_version){0};
    if (seen.is == NULL && seen.was == NULL)
        return status_ok();
    TRY(decode_record(seen.is != NULL ? seen.is->value : seen.was->value, arena, &record));
    int64_t version_us = seen.is != NULL ? seen.is->timestamp_us : record->version_us;
    return version_us > at_us ? status_ok()
                              : take_record(&snapshot->database, record, version_us, arena, out);
}

status ds_snapshot_get(const struct ds_snapshot *snapshot, const Ds__Key *key, struct arena *arena,
                       struct ds_version *out)
{
    struct buffer row_key = {0};
    ds_entity_row(&row_key, key);
    bytes from = arena_copy(arena, buffer_bytes(&row_key)), to;
    bool failed = row_key.failed || from.data == NULL || !key_successor(arena, from, &to);
    buffer_free(&row_key);
    if (failed)
        return status_out_of_memory();
    struct key_range range = {.from = from, .to = to, .is_point = true};
    struct scan_row row;
    struct scan *scan;
    bool found;
    *out = (struct ds_version){0};
    TRY(open_scan(snapshot, WHAT_WAS_THERE,
                  (struct scan_spec){.ranges = &range, .range_count = 1, .arena = arena}, &scan));
    status s = next_row(snapshot, scan, &row, &found);
    if (status_is_ok(s) && found)
        s = entity_of(snapshot, row.cells, arena, out);
    scan_destroy(scan);
    return s;
}

/* --- rows in order --- */

/* Rows that are passed one by one before it is tried to leap. */
enum { NEXTS_BEFORE_SEEK = 8, SCRATCH_LIMIT = 64 << 20 };

struct ds_rows_reader {
    struct ds_snapshot snapshot;
    enum ds_way way;
    struct key_range range; /* what the scan reads */
    bytes end;              /* where reading ends: a copy of `to`, or backwards of `from` */
    struct scan *scan;
    struct arena *arena;   /* of the scan: made again with it */
    struct arena *scratch; /* of entities that are looked at */
    struct buffer edge;    /* where the scan begins, or backwards ends */
    bool has_row;          /* one that a seek came upon is to be given next */
    struct scan_row row;
    unsigned looked; /* rows since the clock was asked */
};

static status open_at(struct ds_rows_reader *reader, bytes at)
{
    scan_destroy(reader->scan);
    reader->scan = NULL;
    reader->has_row = false;
    buffer_clear(&reader->edge);
    buffer_append_bytes(&reader->edge, at);
    if (reader->edge.failed)
        return status_out_of_memory();
    arena_reset(reader->arena);
    bytes edge = buffer_bytes(&reader->edge);
    struct key_range range = {.from = edge, .to = reader->end};
    if (reader->way == DS_BACKWARDS)
        range = (struct key_range){.from = reader->end, .to = edge};
    reader->range = range;
    size_t count = range.to.size == 0 || bytes_compare(range.from, range.to) < 0;
    return open_scan(&reader->snapshot, WHAT_WAS_THERE,
                     (struct scan_spec){.ranges = &reader->range,
                                        .range_count = count,
                                        .reversed = reader->way == DS_BACKWARDS,
                                        .arena = reader->arena},
                     &reader->scan);
}

static status begin(struct ds_rows_reader *reader, bytes at)
{
    reader->arena = arena_create(LIMIT_ROW_BYTES);
    reader->scratch = arena_create(SCRATCH_LIMIT);
    if (reader->arena == NULL || reader->scratch == NULL)
        return status_out_of_memory();
    return open_at(reader, at);
}

status ds_rows_open(const struct ds_snapshot *snapshot, enum ds_way way, bytes from, bytes to,
                    struct arena *arena, struct ds_rows_reader **out)
{
    struct ds_rows_reader *reader = *out = arena_zalloc(arena, sizeof *reader);
    bytes end = way == DS_FORWARDS ? to : from;
    if (reader == NULL)
        return status_out_of_memory();
    reader->snapshot = *snapshot;
    reader->way = way;
    reader->end = arena_copy(arena, end);
    status s = end.size > 0 && reader->end.data == NULL
                   ? status_out_of_memory()
                   : begin(reader, way == DS_FORWARDS ? from : to);
    if (!status_is_ok(s)) {
        ds_rows_close(reader);
        *out = NULL;
    }
    return s;
}

void ds_rows_close(struct ds_rows_reader *reader)
{
    if (reader == NULL)
        return;
    scan_destroy(reader->scan);
    arena_destroy(reader->arena);
    arena_destroy(reader->scratch);
    buffer_free(&reader->edge);
}

/* NULL: it is none of them. */
static const struct ds_index_row *find_row(const struct ds_index_rows *rows, bytes key)
{
    for (size_t i = 0; i < rows->count; i++)
        if (bytes_equal(rows->rows[i].key, key))
            return &rows->rows[i];
    return NULL;
}

/* The index that a composite row is of; NULL of another row, or if it is not one that is read. */
static const struct ds_index *index_of(const struct ds_snapshot *snapshot, bytes row_key)
{
    uint64_t id;
    if (ds_composite_row_index(row_key, &id))
        for (size_t i = 0; i < snapshot->index_count; i++)
            if (snapshot->indexes[i].id == id)
                return &snapshot->indexes[i];
    return NULL;
}

/* The index row as the entity of the moment had it, in `scratch`; NULL: it had no such row. */
static status row_of_then(struct ds_rows_reader *reader, bytes row_key,
                          const struct ds_index_row **out)
{
    const struct ds_snapshot *snapshot = &reader->snapshot;
    struct ds_row row;
    struct ds_version version;
    struct ds_index_rows rows;
    Ds__Key *key;
    *out = NULL;
    arena_reset(reader->scratch);
    const struct ds_index *index = index_of(snapshot, row_key);
    if (!ds_row_parse(row_key, index == NULL ? NULL : &index->shape, &row))
        return ds_damaged("a row key");
    TRY(ds_row_entity(&row, snapshot->database.project, snapshot->database.id, reader->scratch,
                      &key));
    TRY(ds_snapshot_get(snapshot, key, reader->scratch, &version));
    if (version.entity == NULL)
        return status_ok();
    TRY(ds_index_rows(version.entity, index, index != NULL, reader->scratch, &rows));
    *out = find_row(&rows, row_key);
    return status_ok();
}

static status show_past_index_row(struct ds_rows_reader *reader, struct ds_row_found *out,
                                  bool *found)
{
    const struct ds_index_row *row;
    TRY(row_of_then(reader, reader->row.key, &row));
    *found = row != NULL;
    if (*found)
        *out = (struct ds_row_found){reader->row.key, row->types};
    return status_ok();
}

/* The row as it was at the moment, if it was there. */
static status show(struct ds_rows_reader *reader, struct ds_row_found *out, bool *found)
{
    const struct scan_row *row = &reader->row;
    struct seen seen = look_at(row->cells, reader->snapshot.at_us);
    *found = seen.is != NULL;
    if (seen.is != NULL)
        *out = (struct ds_row_found){row->key, seen.is->value};
    if (seen.is != NULL || seen.was == NULL)
        return status_ok();
    if (row->key.data[0] != DS_ENTITY_ROW)
        return show_past_index_row(reader, out, found);
    const Datastore__Record *record;
    arena_reset(reader->scratch);
    TRY(decode_record(seen.was->value, reader->scratch, &record));
    *out = (struct ds_row_found){row->key, seen.was->value};
    *found = record->version_us <= reader->snapshot.at_us;
    return status_ok();
}

static status look_at_clock(struct ds_rows_reader *reader, bool is_at_end)
{
    if (++reader->looked < ROWS_A_LOOK && !is_at_end)
        return status_ok();
    reader->looked = 0;
    return ds_snapshot_check(&reader->snapshot);
}

status ds_rows_next(struct ds_rows_reader *reader, struct ds_row_found *row, bool *found)
{
    for (;;) {
        bool there = reader->has_row;
        if (!there)
            TRY(next_row(&reader->snapshot, reader->scan, &reader->row, &there));
        reader->has_row = false;
        *found = there;
        TRY(look_at_clock(reader, !there));
        if (!there)
            return status_ok();
        TRY(show(reader, row, found));
        if (*found)
            return status_ok();
    }
}

/* Whether a row of this key comes after what a seek leaps over. */
static bool is_reached(const struct ds_rows_reader *reader, bytes row_key, bytes key)
{
    int order = bytes_compare(row_key, key);
    return reader->way == DS_FORWARDS ? order >= 0 : order < 0;
}

status ds_rows_seek(struct ds_rows_reader *reader, bytes key)
{
    for (int i = 0; i < NEXTS_BEFORE_SEEK; i++) {
        if (!reader->has_row)
            TRY(next_row(&reader->snapshot, reader->scan, &reader->row, &reader->has_row));
        if (!reader->has_row || is_reached(reader, reader->row.key, key))
            return status_ok();
        reader->has_row = false;
    }
    return open_at(reader, key);
}

status ds_record_version(bytes record, struct arena *arena, struct ds_version *out)
{
    const Datastore__Record *decoded;
    TRY(decode_record(record, arena, &decoded));
    return take_record(NULL, decoded, 0, arena, out);
}

status ds_record_entity(bytes record, struct arena *arena, const Ds__Entity **out)
{
    struct ds_version version;
    TRY(ds_record_version(record, arena, &version));
    *out = version.entity;
    return status_ok();
}

/* --- changes --- */

status ds_changed_since(const struct ds_snapshot *snapshot, bytes from, bytes to,
                        struct arena *arena, bool *out)
{
    struct key_range range = {.from = from, .to = to, .is_point = ds_is_one_entity(from, to)};
    struct scan_row row;
    struct scan *scan;
    *out = false;
    TRY(open_scan(snapshot, WHAT_CAME_LATER,
                  (struct scan_spec){.ranges = &range, .range_count = 1, .arena = arena}, &scan));
    status s = next_row(snapshot, scan, &row, out);
    scan_destroy(scan);
    return status_is_ok(s) ? ds_snapshot_check(snapshot) : s;
}
