/* DropRowRange. */
#include "bigtable/names.h"
#include "bigtable/peers_hook.h"
#include "bigtable/table_methods.h"

/* Production refuses calls with a deadline under two minutes; a second is allowed for the way. */
static const int64_t shortest_deadline_us = 119 * INT64_C(1000000);

static status check_deadline(const struct admin_request *request)
{
    int64_t now = clock_steady_us(cluster_clock(request->bigtable->cluster));
    if (request->deadline_us == INT64_MAX || request->deadline_us - now >= shortest_deadline_us)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "DropRowRange needs a deadline of at least 2 minutes");
}

static status drop(const struct admin_request *request, const char *name, bytes prefix)
{
    const char *end = strstr(name, "/tables/"); /* of a name that was checked */
    TRY(check_is_here(request->bigtable, bytes_make(name, (size_t)(end - name))));
    struct table *table;
    TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
    status s = table_drop_rows(table, prefix);
    table_release(table);
    return s;
}

status drop_row_range(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DropRowRangeRequest *message = (const void *)request->message;
    TRY(name_check_table(message->name));
    TRY(check_deadline(request));
    *response = admin_empty_response();
    switch (message->target_case) {
    case BT_ADMIN__DROP_ROW_RANGE_REQUEST__TARGET_ROW_KEY_PREFIX:
        if (message->row_key_prefix.len == 0)
            return status_make(STATUS_INVALID_ARGUMENT, "row_key_prefix must not be empty");
        return drop(request, message->name, proto_bytes(message->row_key_prefix));
    case BT_ADMIN__DROP_ROW_RANGE_REQUEST__TARGET_DELETE_ALL_DATA_FROM_TABLE:
        if (!message->delete_all_data_from_table)
            return status_ok();
        return drop(request, message->name, bytes_make(NULL, 0));
    default:
        return status_make(STATUS_INVALID_ARGUMENT,
                           "One of row_key_prefix and delete_all_data_from_table must be set");
    }
}
