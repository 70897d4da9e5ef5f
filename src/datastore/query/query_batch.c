/* Batches: see query_batch.h. */
#include "datastore/query/query_batch.h"

#include "datastore/model/mask.h"
#include "datastore/model/property_path.h"
#include "datastore/query/query_cursor.h"
#include "wire/timestamps.h"

#define MORE(name) DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__##name

struct batching {
    const struct ds_query *query;
    const Ds__PropertyMask *mask;
    struct ds_results *results;
    struct arena *arena;
    Ds__QueryResultBatch *batch;
    size_t bytes;
};

/* --- one result --- */

static size_t order_of(const struct ds_query *query, const char *property)
{
    size_t i = 0;
    while (i < query->order_count && strcmp(query->orders[i].property, property) != 0)
        i++;
    return i;
}

/* The values that are projected, which are in the position. */
static status add_projected(const struct batching *batching, const struct ds_result *result,
                            Ds__Entity *entity)
{
    const struct ds_query *query = batching->query;
    bytes rest, *values = arena_alloc(batching->arena, query->order_count * sizeof *values);
    if (values == NULL)
        return status_out_of_memory();
    if (!ds_position_values(query, result->position, query->order_count, values, &rest))
        return ds_damaged("a row without its values");
    for (size_t i = 0; i < query->projected_count; i++) {
        size_t at = order_of(query, query->projected[i]);
        Ds__Value *value;
        TRY(ds_value_decode(values[at], query->orders[at].flip, result->types.data[at],
                            batching->arena, &value));
        TRY(ds_property_append(entity, query->projected[i], value, batching->arena));
    }
    return status_ok();
}

static status set_part(const struct batching *batching, const struct ds_result *result,
                       Ds__EntityResult *out)
{
    TRY(ds_entity_like(NULL, batching->query->projected_count, batching->arena, &out->entity));
    out->entity->key = (Ds__Key *)(uintptr_t)result->key;
    return add_projected(batching, result, out->entity);
}

static status set_whole(const struct batching *batching, const struct ds_result *result,
                        Ds__EntityResult *out)
{
    const struct ds_version *version = &result->version;
    out->entity = (Ds__Entity *)(uintptr_t)version->entity;
    if (batching->mask != NULL)
        TRY(ds_mask_read(version->entity, batching->mask, batching->arena, &out->entity));
    if (version->version_us == 0) /* metadata: it was never written */
        return status_ok();
    out->version = version->version_us;
    TRY(timestamp_message(version->create_us, batching->arena, &out->create_time));
    return timestamp_message(version->version_us, batching->arena, &out->update_time);
}

static bool is_whole(const struct ds_query *query)
{
    return query->result_type == DS__ENTITY_RESULT__RESULT_TYPE__FULL;
}

static status add_result(struct batching *batching, const struct ds_result *result)
{
    Ds__QueryResultBatch *batch = batching->batch;
    Ds__EntityResult *made;
    PROTO_NEW(batching->arena, made, DS__ENTITY_RESULT__INIT);
    TRY((is_whole(batching->query) ? set_whole : set_part)(batching, result, made));
    TRY(ds_cursor_make(batching->query, result->position, batching->arena, &made->cursor));
    batch->entity_results[batch->n_entity_results++] = made;
    batch->end_cursor = made->cursor;
    batching->bytes += protobuf_c_message_get_packed_size(&made->base);
    return status_ok();
}

/* --- all of them --- */

static size_t most_results(const struct ds_query *query)
{
    return query->limit >= 0 && query->limit < DS_BATCH_RESULTS ? (size_t)query->limit
                                                                : DS_BATCH_RESULTS;
}

static Ds__QueryResultBatch__MoreResultsType end_of(const struct ds_results *results)
{
    return ds_results_stopped_at_cursor(results) ? MORE(MORE_RESULTS_AFTER_CURSOR)
                                                 : MORE(NO_MORE_RESULTS);
}

static status skip(struct batching *batching, bool *found)
{
    Ds__QueryResultBatch *batch = batching->batch;
    struct ds_result result = {.key = NULL};
    struct buffer last = {0};
    status s = status_ok();
    *found = true;
    while (status_is_ok(s) && *found && batch->skipped_results < batching->query->offset) {
        s = ds_results_next(batching->results, false, NULL, &result, found);
        if (!status_is_ok(s) || !*found)
            break;
        batch->skipped_results++;
        buffer_clear(&last);
        buffer_append_bytes(&last, result.position);
    }
    if (status_is_ok(s) && last.failed)
        s = status_out_of_memory();
    if (status_is_ok(s) && batch->skipped_results > 0) {
        s = ds_cursor_make(batching->query, buffer_bytes(&last), batching->arena,
                           &batch->skipped_cursor);
        batch->end_cursor = batch->skipped_cursor;
    }
    buffer_free(&last);
    return s;
}

static status fill(struct batching *batching)
{
    const struct ds_query *query = batching->query;
    Ds__QueryResultBatch *batch = batching->batch;
    size_t most = most_results(query);
    bool found;
    TRY(ds_cursor_make(query, query->start, batching->arena, &batch->end_cursor));
    TRY(skip(batching, &found));
    while (found && batch->n_entity_results < most && batching->bytes < DS_BATCH_BYTES) {
        struct ds_result result;
        TRY(ds_results_next(batching->results, is_whole(query), batching->arena, &result, &found));
        if (found)
            TRY(add_result(batching, &result));
    }
    bool is_limit = query->limit >= 0 && batch->n_entity_results == (size_t)query->limit;
    batch->more_results = !found     ? end_of(batching->results)
                          : is_limit ? MORE(MORE_RESULTS_AFTER_LIMIT)
                                     : MORE(NOT_FINISHED);
    return status_ok();
}

static status make_batch(struct batching *batching, const struct ds_reading *reading)
{
    Ds__QueryResultBatch *batch;
    PROTO_NEW(batching->arena, batch, DS__QUERY_RESULT_BATCH__INIT);
    batching->batch = batch;
    batch->entity_result_type = batching->query->result_type;
    batch->snapshot_version = reading->snapshot.at_us;
    batch->entity_results =
        arena_alloc(batching->arena, most_results(batching->query) * sizeof(Ds__EntityResult *));
    if (batch->entity_results == NULL)
        return status_out_of_memory();
    TRY(timestamp_message(reading->read_time_us, batching->arena, &batch->read_time));
    return fill(batching);
}

status ds_batch_make(const struct ds_query *query, const Ds__PropertyMask *mask,
                     const struct ds_plan *plan, struct ds_reading *reading, struct arena *arena,
                     struct ds_reads *reads, Ds__QueryResultBatch **out)
{
    struct batching batching = {.query = query, .mask = mask, .arena = arena};
    TRY(ds_results_open(query, plan, reading, arena, &batching.results));
    status s = make_batch(&batching, reading);
    *reads = ds_results_reads(batching.results);
    status closed = ds_results_close(batching.results);
    if (status_is_ok(s))
        s = closed;
    else
        status_free(closed);
    *out = batching.batch;
    return s;
}
