/* Lookup: entities by their keys, all as of one moment. */
#include "base/limits.h"
#include "datastore/commit/reading.h"
#include "datastore/entity_result.h"
#include "datastore/methods.h"
#include "datastore/model/mask.h"
#include "datastore/model/validate.h"
#include "datastore/usage_note.h"

#include "row/row_key.h"

/* An answer is no longer than this, if it has more than one entity: what does not fit is left for
 * another call. Clients that were told of an emulator take messages of 4 MiB, as gRPC's are. */
enum { ANSWER_BYTES = 4 << 20, RESULT_FRAME = 8, MISSING_FRAME = 24 };

struct lookup {
    struct ds_call *call;
    const Ds__LookupRequest *request;
    struct ds_reading reading;
    Ds__LookupResponse *response;
    size_t size; /* of the answer, with all keys that may yet be missing or deferred */
};

static status check_keys(struct lookup *lookup)
{
    const struct ds_database *database = &lookup->reading.snapshot.database;
    const Ds__LookupRequest *request = lookup->request;
    if (request->n_keys > LIMIT_DS_LOOKUP_KEYS)
        return status_make(STATUS_INVALID_ARGUMENT, "cannot get more than %d keys in a single call",
                           LIMIT_DS_LOOKUP_KEYS);
    for (size_t i = 0; i < request->n_keys; i++) {
        TRY(ds_key_fill(request->keys[i], database, lookup->call->arena));
        TRY(ds_key_check(request->keys[i], database, DS_KEY_READ));
    }
    return status_ok();
}

static status range_of(const Ds__Key *key, struct arena *arena, struct ds_read_range *out)
{
    struct buffer row = {0};
    ds_entity_row(&row, key);
    out->from = arena_copy(arena, buffer_bytes(&row));
    bool failed =
        row.failed || out->from.data == NULL || !key_successor(arena, out->from, &out->to);
    buffer_free(&row);
    return failed ? status_out_of_memory() : status_ok();
}

static status announce_keys(struct lookup *lookup)
{
    struct arena *arena = lookup->call->arena;
    size_t count = lookup->request->n_keys;
    struct ds_read_range *ranges = arena_alloc(arena, count * sizeof *ranges);
    if (ranges == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(range_of(lookup->request->keys[i], arena, &ranges[i]));
    return ds_reading_announce(&lookup->reading, ranges, count);
}

static status add_missing(struct lookup *lookup, Ds__Key *key)
{
    Ds__EntityResult *result;
    struct arena *arena = lookup->call->arena;
    PROTO_NEW(arena, result, DS__ENTITY_RESULT__INIT);
    PROTO_NEW(arena, result->entity, DS__ENTITY__INIT);
    result->entity->key = key;
    result->version = lookup->reading.snapshot.at_us;
    lookup->response->missing[lookup->response->n_missing++] = result;
    return status_ok();
}

static void defer(struct lookup *lookup, Ds__Key *key)
{
    lookup->response->deferred[lookup->response->n_deferred++] = key;
}

static status add_found(struct lookup *lookup, Ds__Key *key, const struct ds_version *version)
{
    Ds__EntityResult *result;
    Ds__LookupResponse *response = lookup->response;
    TRY(ds_entity_result(version, lookup->request->property_mask, lookup->call->arena, &result));
    size_t size = protobuf_c_message_get_packed_size(&result->base) + RESULT_FRAME;
    if (response->n_found > 0 && lookup->size + size > ANSWER_BYTES) {
        defer(lookup, key);
        return status_ok();
    }
    lookup->size += size;
    response->found[response->n_found++] = result;
    return status_ok();
}

static status look_up(struct lookup *lookup, Ds__Key *key)
{
    struct ds_version version;
    if (lookup->response->n_deferred > 0) {
        defer(lookup, key);
        return status_ok();
    }
    TRY(ds_snapshot_get(&lookup->reading.snapshot, key, lookup->call->arena, &version));
    return version.entity == NULL ? add_missing(lookup, key) : add_found(lookup, key, &version);
}

static status make_response(struct lookup *lookup)
{
    struct arena *arena = lookup->call->arena;
    size_t count = lookup->request->n_keys;
    Ds__LookupResponse *response;
    PROTO_NEW(arena, response, DS__LOOKUP_RESPONSE__INIT);
    response->found = arena_alloc(arena, count * sizeof(void *));
    response->missing = arena_alloc(arena, count * sizeof(void *));
    response->deferred = arena_alloc(arena, count * sizeof(void *));
    if (response->found == NULL || response->missing == NULL || response->deferred == NULL)
        return status_out_of_memory();
    response->transaction = proto_data(lookup->reading.new_transaction);
    lookup->response = response;
    lookup->size = 0;
    return ds_time_message(lookup->reading.read_time_us, arena, &response->read_time);
}

/* A key that is there twice is answered once. */
static bool was_before(const Ds__LookupRequest *request, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (ds_key_value_compare(request->keys[i], request->keys[at]) == 0)
            return true;
    return false;
}

static status look_up_all(struct lookup *lookup)
{
    const Ds__LookupRequest *request = lookup->request;
    TRY(check_keys(lookup));
    if (request->property_mask != NULL)
        TRY(ds_mask_check(request->property_mask, DS_MASK_READ, lookup->call->arena));
    if (lookup->reading.transaction != NULL)
        TRY(announce_keys(lookup));
    TRY(make_response(lookup));
    for (size_t i = 0; i < request->n_keys; i++)
        lookup->size += protobuf_c_message_get_packed_size(&request->keys[i]->base) + MISSING_FRAME;
    for (size_t i = 0; i < request->n_keys; i++)
        if (!was_before(request, i))
            TRY(look_up(lookup, request->keys[i]));
    return status_ok();
}

status ds_lookup(struct ds_call *call, const ProtobufCMessage *request, ProtobufCMessage **response)
{
    struct lookup lookup = {.call = call, .request = (const Ds__LookupRequest *)request};
    TRY(ds_read_begin(call, lookup.request->read_options, &lookup.reading));
    status s;
    do
        s = look_up_all(&lookup);
    while (ds_reading_again(&lookup.reading, &s));
    if (status_is_ok(s))
        ds_usage_note_lookup(call, &lookup.reading, lookup.request->keys, lookup.request->n_keys);
    ds_read_end(&lookup.reading);
    if (status_is_ok(s))
        grpc_call_count(call->call, (int64_t)lookup.response->n_found,
                        (int64_t)lookup.request->n_keys);
    *response = status_is_ok(s) ? &lookup.response->base : NULL;
    return s;
}
