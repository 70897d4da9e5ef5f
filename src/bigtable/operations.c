/* See operations.h. */
#include "bigtable/operations.h"

#include "bigtable/names.h"
#include "bigtable/schema_message.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/longrunning/operations.pb-c.h"

#include <inttypes.h>
#include <stdio.h>

static const char name_prefix[] = "operations/";
static const char name_infix[] = "/updates/";

static status to_any(const ProtobufCMessage *message, struct arena *arena, Pb__Any **out)
{
    static const char type_prefix[] = "type.googleapis.com/";
    size_t size = protobuf_c_message_get_packed_size(message);
    size_t url_size = sizeof type_prefix + strlen(message->descriptor->name);
    uint8_t *packed = arena_alloc(arena, size);
    char *url = arena_alloc(arena, url_size);
    if (packed == NULL || url == NULL)
        return status_out_of_memory();
    snprintf(url, url_size, "%s%s", type_prefix, message->descriptor->name);
    PROTO_NEW(arena, *out, PB__ANY__INIT);
    (*out)->type_url = url;
    (*out)->value = proto_data(bytes_make(packed, protobuf_c_message_pack(message, packed)));
    return status_ok();
}

static status operation_name(struct arena *arena, const char *table, uint64_t generation,
                             const char **out)
{
    size_t size = sizeof name_prefix + strlen(table) + sizeof name_infix + 20;
    char *name = arena_alloc(arena, size);
    if (name == NULL)
        return status_out_of_memory();
    snprintf(name, size, "%s%s%s%" PRIu64, name_prefix, table, name_infix, generation);
    *out = name;
    return status_ok();
}

static status done_operation(struct arena *arena, const struct table_info *info,
                             uint64_t generation, const ProtobufCMessage **response)
{
    BtAdmin__Table *table = NULL;
    TRY(table_to_message(info, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, arena, &table));
    BtAdmin__UpdateTableMetadata metadata = BT_ADMIN__UPDATE_TABLE_METADATA__INIT;
    metadata.name = table->name;
    Lro__Operation *operation;
    PROTO_NEW(arena, operation, LRO__OPERATION__INIT);
    TRY(operation_name(arena, table->name, generation, &operation->name));
    TRY(to_any(&metadata.base, arena, &operation->metadata));
    operation->done = true;
    operation->result_case = LRO__OPERATION__RESULT_RESPONSE;
    TRY(to_any(&table->base, arena, &operation->response));
    *response = &operation->base;
    return status_ok();
}

/* `generation` 0: the table's present one. */
static status operation_of_table(const struct admin_request *request, const char *table_name,
                                 uint64_t generation, const ProtobufCMessage **response)
{
    struct table *table;
    struct table_info info;
    TRY(cluster_table(request->bigtable->cluster, bytes_of(table_name), &table));
    status s = table_describe(table, request->arena, &info);
    table_release(table);
    TRY(s);
    if (generation > info.generation)
        return status_make(STATUS_NOT_FOUND, "No such update of %s", table_name);
    return done_operation(request->arena, &info, generation == 0 ? info.generation : generation,
                          response);
}

status operation_of_update(const struct admin_request *request, const char *table_name,
                           const ProtobufCMessage **response)
{
    return operation_of_table(request, table_name, 0, response);
}

/* --- google.longrunning.Operations --- */

/* Takes the name apart; `*table` is in the arena. */
static status parse_name(const char *name, struct arena *arena, char **table, uint64_t *generation)
{
    const char *infix = strstr(name, name_infix);
    bool has_form = strncmp(name, name_prefix, sizeof name_prefix - 1) == 0 && infix != NULL &&
                    sscanf(infix + sizeof name_infix - 1, "%" SCNu64, generation) == 1 &&
                    *generation > 0;
    if (!has_form)
        return status_make(STATUS_NOT_FOUND, "Operation not found: %s", name);
    const char *start = name + sizeof name_prefix - 1;
    *table = arena_string(arena, bytes_make(start, (size_t)(infix - start)));
    return *table == NULL ? status_out_of_memory() : status_ok();
}

static status find_operation(const struct admin_request *request, const char *name,
                             const ProtobufCMessage **response)
{
    char *table;
    uint64_t generation;
    TRY(parse_name(name, request->arena, &table, &generation));
    status s = operation_of_table(request, table, generation, response);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_make(STATUS_NOT_FOUND, "Operation not found: %s", name);
    }
    return s;
}

static status get_operation(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Lro__GetOperationRequest *message = (const void *)request->message;
    return find_operation(request, message->name, response);
}

/* Nothing is ever left to wait for. */
static status wait_operation(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Lro__WaitOperationRequest *message = (const void *)request->message;
    return find_operation(request, message->name, response);
}

ADMIN_HANDLER(get_operation, lro__get_operation_request)
ADMIN_HANDLER(wait_operation, lro__wait_operation_request)

struct grpc_service bigtable_operations_service(struct bigtable *bigtable)
{
    static const struct grpc_method methods[] = {
        {"GetOperation", GRPC_UNARY, handle_get_operation},
        {"WaitOperation", GRPC_UNARY, handle_wait_operation},
    };
    return (struct grpc_service){.name = "google.longrunning.Operations",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = bigtable};
}
