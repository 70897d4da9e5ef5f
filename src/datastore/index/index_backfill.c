/* See index_backfill.h. */
#include "datastore/index/index_backfill.h"

#include "base/limits.h"
#include "base/vector.h"
#include "cluster/rows.h"
#include "datastore/commit/range_locks.h"
#include "datastore/commit/rows_write.h"
#include "datastore/commit/snapshot.h"
#include "datastore/commit/transaction.h"
#include "row/key_text.h"
#include "row/row_key.h"
#include "wire/proto.h"

enum {
    CHUNK_ENTITIES = 200,
    CHUNK_BYTES = 4 << 20, /* of rows; an entity may be begun below */
    LOCK_WAIT_US = 2 * 1000 * 1000,
    ARENA_BYTES = 64 << 20,
};

/* An entity whose rows are to be made. */
struct candidate {
    bytes kind_row;
    bytes entity_row;
    Ds__Key *key;
};

struct chunk {
    struct ds_backfill *backfill;
    struct ds_snapshot newest;
    struct arena *arena;   /* of the chunk */
    struct arena *scratch; /* of one entity */
    bytes kind;            /* as text of a row key */
    struct vector candidates;
    const struct ds_index *indexes; /* the ready ones, and at last the one that is made */
    size_t index_count;
    struct vector rows; /* of struct ds_row_write */
    size_t row_bytes;
};

static status copy(struct arena *arena, const struct buffer *made, bytes *out)
{
    *out = arena_copy(arena, buffer_bytes(made));
    return made->failed || out->data == NULL ? status_out_of_memory() : status_ok();
}

/* --- which entities --- */

static status add_candidate(struct chunk *chunk, bytes row_key)
{
    struct candidate candidate;
    struct ds_row row;
    struct buffer entity_row = {0};
    candidate.kind_row = arena_copy(chunk->arena, row_key);
    if (candidate.kind_row.data == NULL)
        return status_out_of_memory();
    if (!ds_row_parse(candidate.kind_row, NULL, &row))
        return ds_damaged("a row key");
    TRY(ds_row_entity(&row, chunk->newest.database.project, chunk->newest.database.id, chunk->arena,
                      &candidate.key));
    ds_entity_row(&entity_row, candidate.key);
    status s = copy(chunk->arena, &entity_row, &candidate.entity_row);
    buffer_free(&entity_row);
    TRY(s);
    return vector_add(&chunk->candidates, chunk->arena, &candidate, sizeof candidate);
}

/* To where the kind's rows of the namespace begin; or behind the namespace. */
static status leap(struct ds_rows_reader *reader, const struct ds_row *row, bytes kind)
{
    struct buffer prefix = {0}, to = {0};
    buffer_append_byte(&prefix, DS_KIND_ROW);
    buffer_append_bytes(&prefix, row->name_space);
    if (bytes_compare(row->kind_name, kind) < 0) {
        buffer_append_bytes(&to, buffer_bytes(&prefix));
        buffer_append_bytes(&to, kind);
    } else if (!key_after_prefix(&to, buffer_bytes(&prefix))) {
        to.failed = true; /* its first byte is DS_KIND_ROW: there is one */
    }
    status s = prefix.failed || to.failed ? status_out_of_memory()
                                          : ds_rows_seek(reader, buffer_bytes(&to));
    buffer_free(&prefix);
    buffer_free(&to);
    return s;
}

static status collect_from(struct chunk *chunk, struct ds_rows_reader *reader)
{
    struct ds_row_found found_row;
    struct ds_row row;
    bool found = true;
    while (chunk->candidates.count < CHUNK_ENTITIES) {
        TRY(ds_rows_next(reader, &found_row, &found));
        if (!found)
            break;
        if (!ds_row_parse(found_row.key, NULL, &row))
            return ds_damaged("a row key");
        if (bytes_equal(row.kind_name, chunk->kind))
            TRY(add_candidate(chunk, found_row.key));
        else
            TRY(leap(reader, &row, chunk->kind));
    }
    return status_ok();
}

/* The next of the kind, behind the definition's position. */
static status collect(struct chunk *chunk)
{
    static const uint8_t end = DS_KIND_ROW + 1;
    bytes position = proto_bytes(chunk->backfill->definition->position);
    struct ds_rows_reader *reader;
    struct buffer from = {0};
    bytes start;
    buffer_append_bytes(&from, position);
    buffer_append_byte(&from, position.size == 0 ? DS_KIND_ROW : 0);
    status s = copy(chunk->arena, &from, &start);
    buffer_free(&from);
    TRY(s);
    TRY(ds_rows_open(&chunk->newest, DS_FORWARDS, start, bytes_make(&end, 1), chunk->arena,
                     &reader));
    s = collect_from(chunk, reader);
    ds_rows_close(reader);
    return s;
}

/* --- their rows --- */

/* The limits of an entity's rows count with the ready indexes, and with this one: not with others
 * that are being made, which then fail themselves. */
static status choose_indexes(struct chunk *chunk, const struct ds_index_set *set)
{
    size_t ready = ds_index_set_ready(set, INT64_MAX - 1);
    struct ds_index *indexes = arena_alloc(chunk->arena, (ready + 1) * sizeof *indexes);
    if (indexes == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < ready; i++)
        indexes[i] = set->indexes[i];
    chunk->indexes = indexes;
    chunk->index_count = ready + 1;
    return ds_definition_index(chunk->backfill->definition, chunk->arena, &indexes[ready]);
}

static status add_row(struct chunk *chunk, const struct ds_index_row *made)
{
    uint64_t id;
    if (!ds_composite_row_index(made->key, &id) || id != (uint64_t)chunk->backfill->definition->id)
        return status_ok();
    struct ds_row_write row = {.key = arena_copy(chunk->arena, made->key), .is = true};
    row.now = arena_copy(chunk->arena, made->types);
    if (row.key.data == NULL || row.now.data == NULL)
        return status_out_of_memory();
    chunk->row_bytes += row.key.size + row.now.size;
    return vector_add(&chunk->rows, chunk->arena, &row, sizeof row);
}

static status add_rows(struct chunk *chunk, const struct candidate *candidate)
{
    struct ds_version version;
    struct ds_index_rows rows;
    arena_reset(chunk->scratch);
    TRY(ds_snapshot_get(&chunk->newest, candidate->key, chunk->scratch, &version));
    if (version.entity == NULL)
        return status_ok();
    TRY(ds_index_rows(version.entity, chunk->indexes, chunk->index_count, chunk->scratch, &rows));
    for (size_t i = 0; i < rows.count; i++)
        TRY(add_row(chunk, &rows.rows[i]));
    return status_ok();
}

static status add_position(struct chunk *chunk, size_t done)
{
    const struct candidate *candidates = chunk->candidates.items;
    Datastore__CompositeIndex definition = *chunk->backfill->definition;
    struct ds_row_write row;
    definition.position = proto_data(candidates[done - 1].kind_row);
    definition.entities += (int64_t)done;
    TRY(ds_definition_row(&definition, chunk->arena, &row));
    return vector_add(&chunk->rows, chunk->arena, &row, sizeof row);
}

static status write_rows(const struct chunk *chunk)
{
    const struct ds_backfill *backfill = chunk->backfill;
    return ds_rows_write_in_order(backfill->open->table, chunk->rows.items, chunk->rows.count,
                                  &backfill->open->sequencer,
                                  cluster_version_us(backfill->datastore->cluster), chunk->arena);
}

/* With commits of them kept out, of the first that fit. */
static status make_rows(struct chunk *chunk, size_t *done)
{
    const struct candidate *candidates = chunk->candidates.items;
    *done = 0;
    while (*done < chunk->candidates.count && chunk->row_bytes < CHUNK_BYTES)
        TRY(add_rows(chunk, &candidates[(*done)++]));
    TRY(add_position(chunk, *done));
    return write_rows(chunk);
}

/* --- a chunk --- */

static status cancelled(void)
{
    return status_make(STATUS_CANCELLED, "The operation was cancelled");
}

/* An exclusion keeps commits of the chunk's entities out, by what commits take themselves: which of
 * the two depends on the mode. */
struct exclusion {
    struct ds_lock *locks;        /* of an optimistic database */
    struct ds_read_range *ranges; /* of a pessimistic one: the entities' rows, which are shared */
    struct ds_locker locker;      /* that shares them; younger than all others */
};

static status make_locks(const struct chunk *chunk, struct exclusion *out)
{
    const struct candidate *candidates = chunk->candidates.items;
    size_t count = chunk->candidates.count;
    out->locks = arena_zalloc(chunk->arena, count * sizeof *out->locks);
    if (out->locks == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        out->locks[i].key = candidates[i].entity_row;
    return status_ok();
}

static status make_ranges(const struct chunk *chunk, struct exclusion *out)
{
    const struct candidate *candidates = chunk->candidates.items;
    size_t count = chunk->candidates.count;
    out->locker =
        (struct ds_locker){.database = chunk->backfill->open,
                           .age = ds_transactions_age(chunk->backfill->datastore->transactions),
                           .arena = chunk->arena,
                           .is_apart = true,
                           .until_us = INT64_MAX};
    out->ranges = arena_alloc(chunk->arena, count * sizeof *out->ranges);
    if (out->ranges == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        out->ranges[i].from = candidates[i].entity_row;
        if (!key_successor(chunk->arena, candidates[i].entity_row, &out->ranges[i].to))
            return status_out_of_memory();
    }
    return status_ok();
}

static status try_to_exclude(const struct chunk *chunk, struct exclusion *exclusion)
{
    const struct ds_backfill *backfill = chunk->backfill;
    size_t count = chunk->candidates.count;
    if (exclusion->locks != NULL)
        return ds_locks_take(backfill->open->locks, exclusion->locks, count, LOCK_WAIT_US);
    return ds_range_locks_share(backfill->datastore->range_locks, &exclusion->locker,
                                exclusion->ranges, count, NULL);
}

/* Waits for commits that write one of the entities, for as long as they do. */
static status exclude_commits(const struct chunk *chunk, struct exclusion *out)
{
    *out = (struct exclusion){.locks = NULL};
    TRY(chunk->backfill->datastore->range_locks != NULL ? make_ranges(chunk, out)
                                                        : make_locks(chunk, out));
    for (;;) {
        status s = try_to_exclude(chunk, out);
        if (s.code != STATUS_ABORTED)
            return s;
        status_free(s);
        if (operation_is_cancelled(chunk->backfill->operation))
            return cancelled();
    }
}

static void let_commits_in(const struct chunk *chunk, struct exclusion *exclusion)
{
    const struct ds_backfill *backfill = chunk->backfill;
    if (exclusion->locks != NULL)
        ds_locks_release(backfill->open->locks, exclusion->locks, chunk->candidates.count);
    else
        ds_range_locks_release(backfill->datastore->range_locks, &exclusion->locker);
}

static status make_locked(struct chunk *chunk, size_t *done)
{
    struct ds_indexes *indexes = chunk->backfill->open->indexes;
    struct exclusion exclusion;
    TRY(exclude_commits(chunk, &exclusion));
    const struct ds_index_set *set = ds_indexes_take(indexes);
    status s = choose_indexes(chunk, set);
    if (status_is_ok(s))
        s = make_rows(chunk, done);
    ds_indexes_give_back(indexes, set);
    let_commits_in(chunk, &exclusion);
    return s;
}

/* The position, which outlives the chunk, is where it ended. */
static status advance(struct chunk *chunk, size_t done, struct buffer *position)
{
    const struct candidate *candidates = chunk->candidates.items;
    buffer_clear(position);
    buffer_append_bytes(position, candidates[done - 1].kind_row);
    chunk->backfill->definition->position = proto_data(buffer_bytes(position));
    chunk->backfill->definition->entities += (int64_t)done;
    return position->failed ? status_out_of_memory() : status_ok();
}

/* `*done`: of how many entities; 0: none was left. */
static status fill_chunk(struct ds_backfill *backfill, struct chunk *chunk, struct buffer *position,
                         size_t *done)
{
    chunk->candidates = chunk->rows = (struct vector){0};
    chunk->row_bytes = 0;
    *done = 0;
    if (operation_is_cancelled(backfill->operation))
        return cancelled();
    arena_reset(chunk->arena);
    TRY(collect(chunk));
    if (chunk->candidates.count == 0)
        return status_ok();
    TRY(make_locked(chunk, done));
    TRY(advance(chunk, *done, position));
    backfill->progress(backfill->context);
    return status_ok();
}

static status fill(struct ds_backfill *backfill, struct chunk *chunk, struct buffer *position)
{
    struct buffer kind = {0};
    size_t done = 1;
    key_text_append(&kind, bytes_of(backfill->definition->kind));
    status s = kind.failed || chunk->arena == NULL || chunk->scratch == NULL
                   ? status_out_of_memory()
                   : status_ok();
    chunk->kind = buffer_bytes(&kind);
    while (status_is_ok(s) && done > 0)
        s = fill_chunk(backfill, chunk, position, &done);
    buffer_free(&kind);
    return s;
}

status ds_backfill(struct ds_backfill *backfill)
{
    struct ds_open_database *open = backfill->open;
    struct buffer position = {0};
    struct chunk chunk = {
        .backfill = backfill,
        .newest = {.table = open->table, .database = {open->project, open->id}, .at_us = INT64_MAX},
        .arena = arena_create(ARENA_BYTES),
        .scratch = arena_create(ARENA_BYTES)};
    status s = fill(backfill, &chunk, &position);
    backfill->definition->position = (ProtobufCBinaryData){.len = 0};
    arena_destroy(chunk.arena);
    arena_destroy(chunk.scratch);
    buffer_free(&position);
    return s;
}

/* --- removal --- */

/* The first row at or behind `from` that is a composite index's, of whatever cells: what was
 * counts, too. */
static status first_row(struct table *table, bytes from, struct arena *arena, bytes *out,
                        bool *found)
{
    static const uint8_t end = DS_COMPOSITE_ROW + 1;
    struct key_range range = {.from = from, .to = bytes_make(&end, 1)};
    struct scan_spec spec = {.table = table,
                             .ranges = &range,
                             .range_count = 1,
                             .schema = table_schema(table),
                             .arena = arena};
    enum row_outcome outcome = ROW_ABSENT;
    struct scan_row row;
    struct scan *scan;
    TRY(scan_create(&spec, &scan));
    status s = status_ok();
    while (status_is_ok(s) && outcome == ROW_ABSENT)
        s = scan_next(scan, STORE_READ_ANY, &row, &outcome);
    *found = status_is_ok(s) && outcome != ROW_END;
    if (*found) {
        *out = arena_copy(arena, row.key);
        if (out->data == NULL)
            s = status_out_of_memory();
    }
    scan_destroy(scan);
    return s;
}

/* Of the namespace whose row this is; `from` goes behind the namespace. */
static status remove_in_namespace(struct table *table, bytes row_key, uint64_t index,
                                  struct buffer *from)
{
    struct buffer name_space = {0}, prefix = {0};
    size_t size = key_text_size(bytes_from(row_key, 1), DS_ASCENDING);
    if (size == 0)
        return ds_damaged("a row key");
    buffer_append(&name_space, row_key.data, 1 + size);
    buffer_append_bytes(&prefix, buffer_bytes(&name_space));
    ds_number_append(&prefix, index);
    buffer_clear(from);
    bool failed = !key_after_prefix(from, buffer_bytes(&name_space)) || name_space.failed ||
                  prefix.failed || from->failed;
    status s = failed ? status_out_of_memory() : table_drop_rows(table, buffer_bytes(&prefix));
    buffer_free(&name_space);
    buffer_free(&prefix);
    return s;
}

static status remove_all(struct table *table, uint64_t index, const struct operation *operation,
                         struct arena *arena, struct buffer *from)
{
    bytes row_key;
    bool found = true;
    buffer_append_byte(from, DS_COMPOSITE_ROW);
    for (;;) {
        if (operation_is_stopping(operation))
            return cancelled();
        arena_reset(arena);
        TRY(first_row(table, buffer_bytes(from), arena, &row_key, &found));
        if (!found)
            return status_ok();
        TRY(remove_in_namespace(table, row_key, index, from));
    }
}

status ds_index_rows_remove(struct ds_open_database *open, uint64_t index,
                            const struct operation *operation)
{
    struct buffer from = {0};
    struct arena *arena = arena_create(LIMIT_ROW_BYTES);
    status s = arena == NULL ? status_out_of_memory()
                             : remove_all(open->table, index, operation, arena, &from);
    arena_destroy(arena);
    buffer_free(&from);
    return s;
}
