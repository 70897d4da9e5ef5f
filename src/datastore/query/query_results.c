/* Results: see query_results.h.
 *
 * A result with several positions comes at its first. As long as all results since the first are
 * known, they say which has been; after a cursor, or when there are too many, the entity does. In
 * the past it always does. */
#include "datastore/query/query_results.h"

#include "base/limits.h"
#include "datastore/query/query_cursor.h"
#include "datastore/query/query_match.h"
#include "datastore/query/query_metadata.h"
#include "datastore/query/query_seen.h"
#include "row/row_key.h"

struct ds_results {
    const struct ds_query *query;
    struct ds_reading *reading;
    struct arena *arena;
    struct arena *scratch;        /* of one result at a time */
    struct ds_metadata *metadata; /* of a query about what there is; NULL: of entities */
    struct ds_branch **branches;
    size_t branch_count;
    struct buffer position; /* where it is */
    struct buffer types;
    struct buffer distinct; /* the distinct values of the last result */
    struct ds_seen seen;
    bool may_repeat; /* an entity may have several positions */
    bool has_begun;
    bool stopped_at_cursor;
    int64_t entities; /* that were read */
};

/* --- opening --- */

/* Whether an entity may have several positions: not in the order of keys, nor in that of constants
 * or projected values. */
static bool may_repeat(const struct ds_query *query)
{
    for (size_t i = 0; i < query->order_count; i++) {
        const struct ds_order *order = &query->orders[i];
        bool is_constant =
            query->conjunction_count == 1 &&
            ds_equality_find(query->conjunctions, order->property, order->flip) != NULL;
        if (!order->is_projected && !is_constant)
            return true;
    }
    return false;
}

static status keep_distinct(struct ds_results *results, bytes position)
{
    const struct ds_query *query = results->query;
    bytes rest;
    buffer_clear(&results->distinct);
    if (query->distinct_count == 0 || position.size == 0)
        return status_ok();
    if (!ds_position_values(query, position, query->distinct_count, NULL, &rest))
        return ds_damaged("a row without its values");
    buffer_append(&results->distinct, position.data, position.size - rest.size);
    return results->distinct.failed ? status_out_of_memory() : status_ok();
}

static status open_branches(struct ds_results *results, const struct ds_plan *plan)
{
    if (ds_is_metadata(results->query))
        return ds_metadata_open(results->query, results->reading, results->arena,
                                &results->metadata);
    for (; results->branch_count < plan->branch_count; results->branch_count++)
        TRY(ds_branch_open(results->query, &plan->branches[results->branch_count], results->reading,
                           results->arena, &results->branches[results->branch_count]));
    return keep_distinct(results, results->query->start);
}

status ds_results_open(const struct ds_query *query, const struct ds_plan *plan,
                       struct ds_reading *reading, struct arena *arena, struct ds_results **out)
{
    struct ds_results *results = arena_zalloc(arena, sizeof *results);
    struct ds_branch **branches = arena_zalloc(arena, plan->branch_count * sizeof *branches);
    if (results == NULL || branches == NULL)
        return status_out_of_memory();
    results->query = query;
    results->reading = reading;
    results->arena = arena;
    results->branches = branches;
    results->may_repeat = may_repeat(query);
    results->scratch = arena_create(LIMIT_ARENA_DATASTORE_BYTES);
    status s = results->scratch == NULL ? status_out_of_memory() : open_branches(results, plan);
    if (status_is_ok(s))
        *out = results;
    else
        status_ignore(ds_results_close(results));
    return s;
}

status ds_results_close(struct ds_results *results)
{
    status s = status_ok();
    for (size_t i = 0; i < results->branch_count; i++) {
        status closed = ds_branch_close(results->branches[i]);
        if (status_is_ok(s))
            s = closed;
        else
            status_free(closed);
    }
    ds_metadata_close(results->metadata);
    arena_destroy(results->scratch);
    buffer_free(&results->position);
    buffer_free(&results->types);
    buffer_free(&results->distinct);
    return s;
}

/* --- positions, merged --- */

static status advance(struct ds_results *results)
{
    bytes position = buffer_bytes(&results->position);
    for (size_t i = 0; i < results->branch_count; i++) {
        struct ds_branch *branch = results->branches[i];
        if (!results->has_begun ||
            (!ds_branch_is_at_end(branch) && bytes_equal(ds_branch_position(branch), position)))
            TRY(ds_branch_next(branch));
    }
    results->has_begun = true;
    return status_ok();
}

static const struct ds_branch *first_branch(const struct ds_results *results)
{
    const struct ds_branch *first = NULL;
    for (size_t i = 0; i < results->branch_count; i++) {
        const struct ds_branch *branch = results->branches[i];
        if (!ds_branch_is_at_end(branch) &&
            (first == NULL ||
             bytes_compare(ds_branch_position(branch), ds_branch_position(first)) < 0))
            first = branch;
    }
    return first;
}

/* On to the next position of any branch. */
static status next_position(struct ds_results *results, bool *found)
{
    const struct ds_query *query = results->query;
    TRY(advance(results));
    const struct ds_branch *first = first_branch(results);
    *found = first != NULL;
    if (!*found)
        return status_ok();
    buffer_clear(&results->position);
    buffer_append_bytes(&results->position, ds_branch_position(first));
    buffer_clear(&results->types);
    buffer_append_bytes(&results->types, ds_branch_types(first));
    if (results->position.failed || results->types.failed)
        return status_out_of_memory();
    results->stopped_at_cursor =
        query->has_end && bytes_compare(buffer_bytes(&results->position), query->end) > 0;
    *found = !results->stopped_at_cursor;
    return status_ok();
}

/* --- a position's result --- */

static status path_of(const struct ds_results *results, bytes position, struct arena *arena,
                      bytes *out)
{
    const struct ds_query *query = results->query;
    struct ds_row row = {.key_flip = query->key_flip};
    if (!ds_position_values(query, position, query->order_count, NULL, &row.path))
        return ds_damaged("a row without its values");
    return ds_row_path(&row, arena, out);
}

static status key_of(const struct ds_results *results, bytes position, struct arena *arena,
                     Ds__Key **out)
{
    const struct ds_query *query = results->query;
    Ds__PartitionId *partition;
    bytes path = {0};
    TRY(path_of(results, position, arena, &path));
    TRY(ds_path_decode(path, arena, out));
    PROTO_NEW(arena, partition, DS__PARTITION_ID__INIT);
    partition->project_id = query->database.project;
    partition->database_id = query->database.id;
    partition->namespace_id = query->name_space;
    (*out)->partition_id = partition;
    return status_ok();
}

static status read_entity(struct ds_results *results, const Ds__Key *key, struct arena *arena,
                          struct ds_version *out)
{
    struct buffer from = {0}, to = {0};
    ds_entity_row(&from, key);
    buffer_append_bytes(&to, buffer_bytes(&from));
    buffer_append_byte(&to, 0);
    status s =
        from.failed || to.failed
            ? status_out_of_memory()
            : ds_reading_note_range(results->reading, buffer_bytes(&from), buffer_bytes(&to));
    buffer_free(&from);
    buffer_free(&to);
    TRY(s);
    results->entities++;
    TRY(ds_snapshot_get(&results->reading->snapshot, key, arena, out));
    if (out->entity == NULL && !results->reading->snapshot.is_past)
        return ds_damaged("an index row without its entity");
    return status_ok();
}

/* The entity, and for a projection the projected values: what a result is one of. */
static status add_seen(struct ds_results *results, bool *is_new)
{
    const struct ds_query *query = results->query;
    bytes rest = buffer_bytes(&results->position);
    struct buffer identity = {0};
    for (size_t i = 0; i < query->order_count; i++) {
        size_t size = ds_value_size(rest, query->orders[i].flip);
        if (query->orders[i].is_projected)
            buffer_append(&identity, rest.data, size);
        rest = bytes_from(rest, size);
    }
    buffer_append_bytes(&identity, rest);
    status s = identity.failed
                   ? status_out_of_memory()
                   : ds_seen_add(&results->seen, buffer_bytes(&identity), results->arena, is_new);
    buffer_free(&identity);
    return s;
}

/* Asks the entity whether the position is that of a result. */
static status match(struct ds_results *results, struct ds_result *result, struct arena *arena,
                    bool *is_result)
{
    struct ds_match matched;
    TRY(read_entity(results, result->key, arena, &result->version));
    *is_result = result->version.entity != NULL;
    if (!*is_result)
        return status_ok();
    TRY(ds_query_match(results->query, result->version.entity, result->position, results->scratch,
                       &matched));
    *is_result = matched.is_first;
    result->types = matched.types;
    return status_ok();
}

static bool repeats_distinct(const struct ds_results *results, bytes position)
{
    bytes last = buffer_bytes(&results->distinct);
    return last.size > 0 && bytes_start_with(position, last);
}

/* Whether the position is one of a result, and what it is. */
static status look(struct ds_results *results, bool wants_entity, struct arena *arena,
                   struct ds_result *out, bool *is_result)
{
    bool is_past = results->reading->snapshot.is_past;
    bool knows_all = results->query->start.size == 0 && !ds_seen_is_full(&results->seen);
    bool asks = is_past || (results->may_repeat && !knows_all);
    Ds__Key *key;
    arena_reset(results->scratch);
    *out = (struct ds_result){.position = buffer_bytes(&results->position),
                              .types = buffer_bytes(&results->types)};
    *is_result = true;
    if (!asks && results->may_repeat)
        TRY(add_seen(results, is_result));
    if (!*is_result || repeats_distinct(results, out->position)) {
        *is_result = false;
        return status_ok();
    }
    TRY(key_of(results, out->position, arena, &key));
    out->key = key;
    if (asks)
        return match(results, out, wants_entity ? arena : results->scratch, is_result);
    return wants_entity ? read_entity(results, key, arena, &out->version) : status_ok();
}

static status next_metadata(struct ds_results *results, struct arena *arena, struct ds_result *out,
                            bool *found)
{
    const struct ds_query *query = results->query;
    Ds__Entity *entity = NULL;
    *out = (struct ds_result){.key = NULL};
    TRY(ds_metadata_next(results->metadata, arena, &entity, &out->position, found));
    if (!*found)
        return status_ok();
    out->key = entity->key;
    out->version.entity = entity;
    results->stopped_at_cursor = query->has_end && bytes_compare(out->position, query->end) > 0;
    *found = !results->stopped_at_cursor;
    return status_ok();
}

status ds_results_next(struct ds_results *results, bool wants_entity, struct arena *arena,
                       struct ds_result *out, bool *found)
{
    bool is_result = false;
    if (arena == NULL)
        arena = results->scratch;
    if (results->metadata != NULL) {
        arena_reset(results->scratch);
        return next_metadata(results, arena, out, found);
    }
    do {
        TRY(next_position(results, found));
        if (*found)
            TRY(look(results, wants_entity, arena, out, &is_result));
    } while (*found && !is_result);
    return *found ? keep_distinct(results, out->position) : status_ok();
}

bool ds_results_stopped_at_cursor(const struct ds_results *results)
{
    return results->stopped_at_cursor;
}

struct ds_reads ds_results_reads(const struct ds_results *results)
{
    struct ds_reads reads = {.entities = results->entities};
    for (size_t i = 0; i < results->branch_count; i++)
        reads.rows += ds_branch_rows(results->branches[i]);
    return reads;
}
