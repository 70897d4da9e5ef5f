/* CreateIndex, DeleteIndex, GetIndex and ListIndexes. The long work is in index_work.h.
 *
 * An operation is made durable before the definition that it is about: what a crash leaves between
 * the two, the operation makes up for. */
#include "base/limits.h"
#include "datastore/admin/admin_methods.h"
#include "datastore/ds_operation.h"
#include "datastore/index/index_work.h"
#include "datastore/index/indexes.h"
#include "wire/list_filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- ordering work --- */

struct order {
    struct ds_call *call;
    const char *kind; /* of the operation */
    DsAdmin__OperationType type;
    Datastore__CompositeIndex *definition; /* as it is to be; without an id it gets one */
    ProtobufCMessage *operation;
};

static status encode_argument(const struct order *order, const struct edit *edit, bytes *out)
{
    struct arena *arena = order->call->arena;
    Datastore__IndexWork work = DATASTORE__INDEX_WORK__INIT;
    struct buffer encoded = {0};
    work.project = order->call->project_id;
    work.database = order->call->database_id;
    work.index = order->definition;
    work.start_us = (int64_t)edit_version(edit);
    proto_encode(&work.base, &encoded);
    *out = arena_copy(arena, buffer_bytes(&encoded));
    bool failed = encoded.failed || out->data == NULL;
    buffer_free(&encoded);
    return failed ? status_out_of_memory() : status_ok();
}

static status index_id(const Datastore__CompositeIndex *definition, struct arena *arena,
                       const char **out)
{
    enum { MOST = 24 };
    char *id = arena_alloc(arena, MOST);
    if (id == NULL)
        return status_out_of_memory();
    snprintf(id, MOST, "%" PRId64, definition->id);
    *out = id;
    return status_ok();
}

static status begin(void *context, struct edit *edit)
{
    struct order *order = context;
    struct arena *arena = order->call->arena;
    DsAdmin__IndexOperationMetadata *metadata;
    bytes argument;
    if (order->definition->id == 0)
        order->definition->id = (int64_t)edit_version(edit);
    PROTO_NEW(arena, metadata, DS_ADMIN__INDEX_OPERATION_METADATA__INIT);
    TRY(index_id(order->definition, arena, &metadata->index_id));
    TRY(ds_operation_common(edit, order->type, arena, &metadata->common));
    TRY(encode_argument(order, edit, &argument));
    const struct operation_spec spec = {
        .metadata = &metadata->base, .kind = order->kind, .argument = argument};
    return ds_operation_begin(edit, order->call->project_id, &spec, arena, &order->operation);
}

/* With the lock of the database's indexes held. */
static status place(struct order *order, struct ds_open_database *open)
{
    struct datastore *datastore = order->call->datastore;
    TRY(control_edit(datastore->control, begin, order));
    return ds_indexes_put(datastore, open, order->definition, order->call->arena);
}

/* --- create --- */

static status check_others(const struct ds_index_set *set,
                           const Datastore__CompositeIndex *definition)
{
    size_t count = 0;
    for (size_t i = 0; i < set->definition_count; i++) {
        if (set->definitions[i]->state == (uint32_t)DS_ADMIN__INDEX__STATE__DELETING)
            continue;
        count++;
        if (ds_definition_is_same(set->definitions[i], definition))
            return status_make(STATUS_ALREADY_EXISTS, "index already exists");
    }
    if (count >= LIMIT_DS_COMPOSITE_INDEXES)
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "There are %d composite indexes in the database already.",
                           LIMIT_DS_COMPOSITE_INDEXES);
    return status_ok();
}

static status create_locked(struct order *order, struct ds_open_database *open)
{
    const struct ds_index_set *set = ds_indexes_take(open->indexes);
    status s = check_others(set, order->definition);
    ds_indexes_give_back(open->indexes, set);
    return status_is_ok(s) ? place(order, open) : s;
}

status ds_create_index(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const DsAdmin__CreateIndexRequest *request = (const DsAdmin__CreateIndexRequest *)message;
    struct ds_database database = {call->project_id, call->database_id};
    struct ds_open_database *open;
    struct order order = {
        .call = call, .kind = DS_CREATE_INDEX, .type = DS_ADMIN__OPERATION_TYPE__CREATE_INDEX};
    TRY(ds_definition_make(request->index, call->project_id, call->arena, &order.definition));
    TRY(ds_database_open(call->datastore, &database, true, &open));
    ds_indexes_lock(open->indexes);
    status s = create_locked(&order, open);
    ds_indexes_unlock(open->indexes);
    *response = order.operation;
    return s;
}

/* --- one that is there --- */

static status not_found(const char *id)
{
    return status_make(STATUS_NOT_FOUND, "The index \"%s\" does not exist.", id);
}

/* The database, and the index's number; NOT_FOUND if either cannot be. */
static status find_number(struct ds_call *call, const char *id, struct ds_open_database **open,
                          uint64_t *out)
{
    struct ds_database database = {call->project_id, call->database_id};
    char *end;
    if (*id == '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "The index_id is empty.");
    *out = strtoull(id, &end, 10);
    if (*id < '0' || *id > '9' || *end != '\0')
        return not_found(id);
    TRY(ds_database_open(call->datastore, &database, false, open));
    return *open == NULL ? not_found(id) : status_ok();
}

status ds_get_index(struct ds_call *call, const ProtobufCMessage *message,
                    ProtobufCMessage **response)
{
    const DsAdmin__GetIndexRequest *request = (const DsAdmin__GetIndexRequest *)message;
    struct ds_open_database *open;
    Datastore__CompositeIndex *definition;
    DsAdmin__Index *index;
    uint64_t number;
    TRY(find_number(call, request->index_id, &open, &number));
    TRY(ds_indexes_read(open, number, call->arena, &definition));
    if (definition == NULL)
        return not_found(request->index_id);
    TRY(ds_definition_show(definition, call->project_id, call->arena, &index));
    *response = &index->base;
    return status_ok();
}

/* An operation that makes or removes the index: in a database that came back alone out of a backup
 * an unfinished index may have none. */
struct work_on {
    const struct ds_call *call;
    struct arena *arena;
    int64_t id;
};

/* An argument that cannot be read counts as that index's. */
static bool is_work_on(void *context, const char *kind, bytes argument)
{
    const struct work_on *on = context;
    ProtobufCMessage *message;
    if (strcmp(kind, DS_CREATE_INDEX) != 0 && strcmp(kind, DS_DELETE_INDEX) != 0)
        return false;
    status s = proto_decode(&datastore__index_work__descriptor, argument, on->arena, &message);
    bool is_read = status_is_ok(s);
    status_free(s);
    if (!is_read)
        return true;
    const Datastore__IndexWork *work = (const Datastore__IndexWork *)message;
    return work->index != NULL && work->index->id == on->id &&
           strcmp(work->project, on->call->project_id) == 0 &&
           strcmp(work->database, on->call->database_id) == 0;
}

static bool is_at_rest(const struct order *order)
{
    struct work_on on = {
        .call = order->call, .arena = order->call->arena, .id = order->definition->id};
    return order->definition->state == (uint32_t)DS_ADMIN__INDEX__STATE__READY ||
           order->definition->state == (uint32_t)DS_ADMIN__INDEX__STATE__ERROR ||
           !operation_is_under_way(order->call->datastore->control, is_work_on, &on);
}

static status delete_locked(struct order *order, struct ds_open_database *open, const char *id,
                            uint64_t number)
{
    TRY(ds_indexes_read(open, number, order->call->arena, &order->definition));
    if (order->definition == NULL)
        return not_found(id);
    if (!is_at_rest(order))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "An index can only be deleted when it is READY or ERROR.");
    order->definition->state = DS_ADMIN__INDEX__STATE__DELETING;
    return place(order, open);
}

status ds_delete_index(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const DsAdmin__DeleteIndexRequest *request = (const DsAdmin__DeleteIndexRequest *)message;
    struct ds_open_database *open;
    uint64_t number;
    struct order order = {
        .call = call, .kind = DS_DELETE_INDEX, .type = DS_ADMIN__OPERATION_TYPE__DELETE_INDEX};
    TRY(find_number(call, request->index_id, &open, &number));
    ds_indexes_lock(open->indexes);
    status s = delete_locked(&order, open, request->index_id, number);
    ds_indexes_unlock(open->indexes);
    *response = order.operation;
    return s;
}

/* --- list --- */

enum { MOST_IN_PAGE = 1000 };

/* The beginning of a page: its token is the number of the last index of the page before. */
static status check_page(const DsAdmin__ListIndexesRequest *request, uint64_t *after, size_t *most)
{
    char *end;
    *most = request->page_size == 0 || request->page_size > MOST_IN_PAGE
                ? MOST_IN_PAGE
                : (size_t)request->page_size;
    *after = strtoull(request->page_token, &end, 10);
    if (*end != '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "The page_token is invalid.");
    if (request->page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "The page_size is negative.");
    return status_ok();
}

static status add_index(struct ds_call *call, const Datastore__CompositeIndex *definition,
                        const char *filter, DsAdmin__ListIndexesResponse *list)
{
    DsAdmin__Index *index;
    bool fits;
    TRY(ds_definition_show(definition, call->project_id, call->arena, &index));
    TRY(list_filter_fits(filter, &index->base, call->arena, &fits));
    if (fits)
        list->indexes[list->n_indexes++] = index;
    return status_ok();
}

static status list_kept(struct ds_call *call, const DsAdmin__ListIndexesRequest *request,
                        const struct vector *kept, DsAdmin__ListIndexesResponse *list)
{
    Datastore__CompositeIndex *const *definitions = kept->items;
    uint64_t after;
    size_t most;
    TRY(check_page(request, &after, &most));
    list->indexes = arena_alloc(call->arena, most * sizeof *list->indexes);
    if (list->indexes == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < kept->count; i++) {
        if ((uint64_t)definitions[i]->id <= after)
            continue;
        if (list->n_indexes == most) {
            list->next_page_token = list->indexes[most - 1]->index_id;
            break;
        }
        TRY(add_index(call, definitions[i], request->filter, list));
    }
    return status_ok();
}

status ds_list_indexes(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const DsAdmin__ListIndexesRequest *request = (const DsAdmin__ListIndexesRequest *)message;
    struct ds_database database = {call->project_id, call->database_id};
    struct vector kept = {0};
    struct ds_open_database *open;
    DsAdmin__ListIndexesResponse *list;
    TRY(list_filter_check(&ds_admin__index__descriptor, request->filter, call->arena));
    TRY(ds_database_open(call->datastore, &database, false, &open));
    if (open != NULL)
        TRY(ds_indexes_list(open, call->arena, &kept));
    PROTO_NEW(call->arena, list, DS_ADMIN__LIST_INDEXES_RESPONSE__INIT);
    *response = &list->base;
    return list_kept(call, request, &kept, list);
}
