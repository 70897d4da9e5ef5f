/* See transfers.h. */
#include "datastore/admin/transfers.h"

#include "base/limits.h"
#include "datastore/admin/export.h"
#include "datastore/admin/import.h"
#include "datastore/commit/reading.h"
#include "datastore/ds_operation.h"
#include "google/protobuf/empty.pb-c.h"
#include "store/files.h"

enum { SHOW_EVERY_US = 1000000 };

/* --- what a request orders --- */

/* An order becomes an operation in an edit. */
struct order {
    struct ds_call *call;
    struct ds_export_place place;
    DsAdmin__EntityFilter *filter;
    const char *kind; /* of the operation */
    DsAdmin__OperationType type;
    DsAdmin__CommonMetadata *common;
    ProtobufCMessage *metadata;
    bool is_claimed;
    ProtobufCMessage *operation;
};

static status add_label(struct order *order, const char *key, const char *value)
{
    DsAdmin__CommonMetadata__LabelsEntry *label;
    PROTO_NEW(order->call->arena, label, DS_ADMIN__COMMON_METADATA__LABELS_ENTRY__INIT);
    label->key = key;
    label->value = value;
    order->common->labels[order->common->n_labels++] = label;
    return status_ok();
}

static status make_common(struct order *order, const struct edit *edit, size_t labels)
{
    struct arena *arena = order->call->arena;
    TRY(ds_operation_common(edit, order->type, arena, &order->common));
    order->common->labels = arena_alloc(arena, labels * sizeof(void *));
    return order->common->labels == NULL ? status_out_of_memory() : status_ok();
}

static status begin(struct order *order, struct edit *edit)
{
    struct buffer argument = {0};
    proto_encode(order->metadata, &argument);
    struct operation_spec spec = {
        .metadata = order->metadata, .kind = order->kind, .argument = buffer_bytes(&argument)};
    status s = argument.failed ? status_out_of_memory()
                               : ds_operation_begin(edit, order->call->project_id, &spec,
                                                    order->call->arena, &order->operation);
    buffer_free(&argument);
    return s;
}

/* --- ExportEntities --- */

struct export_order {
    struct order order;
    const DsAdmin__ExportEntitiesRequest *request;
};

static status make_export_metadata(struct export_order *self, struct edit *edit)
{
    struct order *order = &self->order;
    const DsAdmin__ExportEntitiesRequest *request = self->request;
    DsAdmin__ExportEntitiesMetadata *metadata;
    PROTO_NEW(order->call->arena, metadata, DS_ADMIN__EXPORT_ENTITIES_METADATA__INIT);
    TRY(make_common(order, edit, request->n_labels));
    for (size_t i = 0; i < request->n_labels; i++)
        TRY(add_label(order, request->labels[i]->key, request->labels[i]->value));
    metadata->common = order->common;
    metadata->entity_filter = order->filter;
    metadata->output_url_prefix = order->place.url;
    order->metadata = &metadata->base;
    return status_ok();
}

/* One edit at a time: no two take the same place. */
static status stage_export(void *context, struct edit *edit)
{
    struct export_order *self = context;
    TRY(make_export_metadata(self, edit));
    TRY(ds_export_claim(&self->order.place));
    self->order.is_claimed = true;
    return begin(&self->order, edit);
}

status ds_export_entities(struct ds_call *call, const ProtobufCMessage *message,
                          ProtobufCMessage **response)
{
    const DsAdmin__ExportEntitiesRequest *request = (const void *)message;
    struct datastore *datastore = call->datastore;
    struct export_order self = {.order = {.call = call,
                                          .kind = DS_EXPORT,
                                          .type = DS_ADMIN__OPERATION_TYPE__EXPORT_ENTITIES,
                                          .filter = request->entity_filter},
                                .request = request};
    TRY(ds_entity_filter_check(request->entity_filter));
    TRY(ds_export_place(datastore->export_directory, request->output_url_prefix,
                        clock_wall_us(datastore->clock), call->arena, &self.order.place));
    status s = control_edit(datastore->control, stage_export, &self);
    if (!status_is_ok(s) && self.order.is_claimed)
        status_ignore(ds_export_remove(&self.order.place, self.order.filter, call->arena));
    *response = self.order.operation;
    return s;
}

/* --- ImportEntities --- */

struct import_order {
    struct order order;
    const DsAdmin__ImportEntitiesRequest *request;
};

static status stage_import(void *context, struct edit *edit)
{
    struct import_order *self = context;
    struct order *order = &self->order;
    const DsAdmin__ImportEntitiesRequest *request = self->request;
    DsAdmin__ImportEntitiesMetadata *metadata;
    PROTO_NEW(order->call->arena, metadata, DS_ADMIN__IMPORT_ENTITIES_METADATA__INIT);
    TRY(make_common(order, edit, request->n_labels));
    for (size_t i = 0; i < request->n_labels; i++)
        TRY(add_label(order, request->labels[i]->key, request->labels[i]->value));
    metadata->common = order->common;
    metadata->entity_filter = order->filter;
    metadata->input_url = request->input_url;
    order->metadata = &metadata->base;
    return begin(order, edit);
}

/* Before anything is begun. */
static status check_export_is_there(const struct ds_export_place *place, const char *url,
                                    struct arena *arena)
{
    struct file_reader *file;
    const char *path;
    TRY(ds_overall_file(place, arena, &path));
    TRY(ds_export_file(place, path, arena, &path));
    status s = files_open(files_of_system(), path, &file);
    file_reader_close(file);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_NOT_FOUND, "There is no export %s", url);
}

status ds_import_entities(struct ds_call *call, const ProtobufCMessage *message,
                          ProtobufCMessage **response)
{
    const DsAdmin__ImportEntitiesRequest *request = (const void *)message;
    struct import_order self = {.order = {.call = call,
                                          .kind = DS_IMPORT,
                                          .type = DS_ADMIN__OPERATION_TYPE__IMPORT_ENTITIES,
                                          .filter = request->entity_filter},
                                .request = request};
    TRY(ds_entity_filter_check(request->entity_filter));
    TRY(ds_import_place(call->datastore->export_directory, request->input_url, call->arena,
                        &self.order.place));
    TRY(check_export_is_there(&self.order.place, request->input_url, call->arena));
    status s = control_edit(call->datastore->control, stage_import, &self);
    *response = self.order.operation;
    return s;
}

/* --- the work --- */

/* An operation that runs. The progress is in its metadata. */
struct transfer {
    struct datastore *datastore;
    struct operation *operation;
    struct arena *arena;
    const char *project;
    ProtobufCMessage *metadata;
    DsAdmin__CommonMetadata *common;
    DsAdmin__Progress entities;
    DsAdmin__Progress bytes;
    int64_t shown_us; /* clock_steady_us */
    const ProtobufCMessage *response;
};

static bool go_on(void *context, int64_t entities, int64_t size)
{
    struct transfer *transfer = context;
    int64_t now_us = clock_steady_us(transfer->datastore->clock);
    transfer->entities.work_completed = entities;
    transfer->bytes.work_completed = size;
    if (now_us - transfer->shown_us >= SHOW_EVERY_US) {
        transfer->shown_us = now_us;
        status_ignore(operation_report(transfer->operation, transfer->metadata)); /* or later */
    }
    return !operation_is_cancelled(transfer->operation);
}

/* projects/P/operations/… */
static status find_project(struct transfer *transfer)
{
    const char *start = strchr(operation_name(transfer->operation), '/');
    const char *end = start == NULL ? NULL : strchr(start + 1, '/');
    if (end == NULL)
        return status_make(STATUS_INTERNAL, "An operation of no project");
    transfer->project =
        arena_string(transfer->arena, bytes_make(start + 1, (size_t)(end - start) - 1));
    return transfer->project == NULL ? status_out_of_memory() : status_ok();
}

static status decode_argument(struct transfer *transfer, const ProtobufCMessageDescriptor *type)
{
    TRY(find_project(transfer));
    TRY(proto_decode(type, operation_argument(transfer->operation), transfer->arena,
                     &transfer->metadata));
    transfer->entities = (DsAdmin__Progress)DS_ADMIN__PROGRESS__INIT;
    transfer->bytes = (DsAdmin__Progress)DS_ADMIN__PROGRESS__INIT;
    return status_ok();
}

static status set_end(struct transfer *transfer, status outcome)
{
    return ds_operation_ended(transfer->common, ds_operation_state_of(outcome),
                              clock_wall_us(transfer->datastore->clock), transfer->arena);
}

static status stage_end(void *context, struct edit *edit)
{
    struct transfer *transfer = context;
    return operation_finish(transfer->operation, edit, transfer->metadata, transfer->response);
}

static status finish(struct transfer *transfer)
{
    transfer->entities.work_estimated = transfer->entities.work_completed;
    transfer->bytes.work_estimated = transfer->bytes.work_completed;
    TRY(set_end(transfer, status_ok()));
    return control_edit(operation_control(transfer->operation), stage_end, transfer);
}

/* Shows that it failed, before the operation ends with the failure. */
static status fail(struct transfer *transfer, status failure)
{
    if (transfer->common == NULL || operation_is_stopping(transfer->operation))
        return failure;
    status s = set_end(transfer, failure);
    if (status_is_ok(s))
        s = operation_report(transfer->operation, transfer->metadata);
    status_ignore(s);
    return failure;
}

static status run(void *context, struct operation *operation,
                  status (*work)(struct transfer *transfer))
{
    struct transfer transfer = {.datastore = context,
                                .operation = operation,
                                .arena = arena_create(LIMIT_ARENA_DATASTORE_BYTES)};
    if (transfer.arena == NULL)
        return status_out_of_memory();
    status s = work(&transfer);
    if (!status_is_ok(s))
        s = fail(&transfer, s);
    arena_destroy(transfer.arena);
    return s;
}

/* --- of an export --- */

static status read_and_write(struct transfer *transfer, struct ds_export *export)
{
    struct ds_call call = {.datastore = transfer->datastore,
                           .arena = transfer->arena,
                           .project_id = transfer->project,
                           .database_id = "",
                           .deadline_us = INT64_MAX};
    struct ds_reading reading;
    TRY(ds_read_begin(&call, NULL, &reading));
    export->snapshot = reading.snapshot;
    status s = ds_export_run(export);
    ds_read_end(&reading);
    return s;
}

static status finish_export(struct transfer *transfer, const struct ds_export *export)
{
    DsAdmin__ExportEntitiesResponse *response;
    const char *overall;
    PROTO_NEW(transfer->arena, response, DS_ADMIN__EXPORT_ENTITIES_RESPONSE__INIT);
    TRY(ds_overall_file(&export->place, transfer->arena, &overall));
    TRY(ds_export_file_url(&export->place, overall, transfer->arena, &response->output_url));
    transfer->response = &response->base;
    return finish(transfer);
}

static status export_entities(struct transfer *transfer)
{
    TRY(decode_argument(transfer, &ds_admin__export_entities_metadata__descriptor));
    DsAdmin__ExportEntitiesMetadata *metadata = (void *)transfer->metadata;
    transfer->common = metadata->common;
    metadata->progress_entities = &transfer->entities;
    metadata->progress_bytes = &transfer->bytes;
    struct ds_export export = {.filter = metadata->entity_filter,
                               .start_us = ds_timestamp_us(metadata->common->start_time),
                               .clock = transfer->datastore->clock,
                               .progress = {go_on, transfer},
                               .arena = transfer->arena};
    TRY(ds_export_place(transfer->datastore->export_directory, metadata->output_url_prefix, 0,
                        transfer->arena, &export.place));
    status s = read_and_write(transfer, &export);
    if (status_is_ok(s))
        s = finish_export(transfer, &export);
    if (!status_is_ok(s) && !operation_is_stopping(transfer->operation))
        status_ignore(ds_export_remove(&export.place, export.filter, transfer->arena));
    return s;
}

status ds_export_operation(void *context, struct operation *operation)
{
    return run(context, operation, export_entities);
}

/* --- of an import --- */

static status import_entities(struct transfer *transfer)
{
    static const Pb__Empty empty = PB__EMPTY__INIT;
    TRY(decode_argument(transfer, &ds_admin__import_entities_metadata__descriptor));
    DsAdmin__ImportEntitiesMetadata *metadata = (void *)transfer->metadata;
    transfer->common = metadata->common;
    metadata->progress_entities = &transfer->entities;
    metadata->progress_bytes = &transfer->bytes;
    struct ds_import import = {.datastore = transfer->datastore,
                               .database = {transfer->project, ""},
                               .filter = metadata->entity_filter,
                               .progress = {go_on, transfer},
                               .arena = transfer->arena};
    TRY(ds_import_place(transfer->datastore->export_directory, metadata->input_url, transfer->arena,
                        &import.place));
    TRY(ds_import_run(&import));
    transfer->response = &empty.base;
    return finish(transfer);
}

status ds_import_operation(void *context, struct operation *operation)
{
    return run(context, operation, import_entities);
}

status ds_transfer_recover(void *context, const char *name, bytes argument)
{
    (void)context;
    (void)name;
    (void)argument;
    return status_ok();
}
