/* AllocateIds and ReserveIds. */
#include "base/vector.h"
#include "datastore/commit/allocate.h"
#include "datastore/commit/rows_write.h"
#include "datastore/methods.h"
#include "datastore/model/validate.h"
#include "google/datastore/v1/datastore.pb-c.h"

#include <stdlib.h>

static status open_for(struct ds_call *call, struct ds_open_database **out)
{
    struct ds_database database = {call->project_id, call->database_id};
    return ds_database_open(call->datastore, &database, true, out);
}

static status check_keys(struct ds_call *call, Ds__Key **keys, size_t count, enum ds_key_use use)
{
    struct ds_database database = {call->project_id, call->database_id};
    for (size_t i = 0; i < count; i++) {
        TRY(ds_key_fill(keys[i], &database, call->arena));
        TRY(ds_key_check(keys[i], &database, use));
    }
    return status_ok();
}

status ds_allocate_ids(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const Ds__AllocateIdsRequest *request = (const Ds__AllocateIdsRequest *)message;
    struct ds_open_database *open;
    Ds__AllocateIdsResponse *answer;
    PROTO_NEW(call->arena, answer, DS__ALLOCATE_IDS_RESPONSE__INIT);
    TRY(check_keys(call, request->keys, request->n_keys, DS_KEY_ALLOCATE));
    TRY(open_for(call, &open));
    for (size_t i = 0; i < request->n_keys; i++)
        TRY(ds_id_allocate(call->datastore, open, request->keys[i], call->arena));
    answer->keys = request->keys;
    answer->n_keys = request->n_keys;
    *response = &answer->base;
    return status_ok();
}

static int compare_rows(const void *a, const void *b)
{
    const struct ds_row_write *left = a, *right = b;
    return bytes_compare(left->key, right->key);
}

/* The marks' rows, each once. */
static status collect_marks(struct ds_call *call, struct ds_open_database *open,
                            const Ds__ReserveIdsRequest *request, struct ds_held_ids *held,
                            struct vector *rows)
{
    for (size_t i = 0; i < request->n_keys; i++) {
        struct ds_row_write row = {.is = true};
        TRY(ds_id_mark(open, request->keys[i], held, call->arena, &row.key));
        if (row.key.size > 0)
            TRY(vector_add(rows, call->arena, &row, sizeof row));
    }
    struct ds_row_write *all = rows->items;
    size_t kept = 0;
    if (rows->count > 0)
        qsort(all, rows->count, sizeof *all, compare_rows);
    for (size_t i = 0; i < rows->count; i++)
        if (kept == 0 || compare_rows(&all[kept - 1], &all[i]) != 0)
            all[kept++] = all[i];
    rows->count = kept;
    return status_ok();
}

static status reserve(struct ds_call *call, struct ds_open_database *open,
                      const Ds__ReserveIdsRequest *request, struct ds_held_ids *held)
{
    struct vector rows = {0}; /* of struct ds_row_write */
    TRY(collect_marks(call, open, request, held, &rows));
    return rows.count == 0
               ? status_ok()
               : ds_rows_write(open->table, rows.items, rows.count,
                               cluster_version_us(call->datastore->cluster), call->arena);
}

status ds_reserve_ids(struct ds_call *call, const ProtobufCMessage *message,
                      ProtobufCMessage **response)
{
    const Ds__ReserveIdsRequest *request = (const Ds__ReserveIdsRequest *)message;
    struct ds_open_database *open;
    struct ds_held_ids held = {.is_listed = false};
    Ds__ReserveIdsResponse *answer;
    PROTO_NEW(call->arena, answer, DS__RESERVE_IDS_RESPONSE__INIT);
    TRY(check_keys(call, request->keys, request->n_keys, DS_KEY_WRITE));
    TRY(open_for(call, &open));
    status s = reserve(call, open, request, &held);
    ds_ids_release(open, &held);
    TRY(s);
    *response = &answer->base;
    return status_ok();
}
