/* Operations as records: made, found, forgotten. Those that run are operation_runs.c's. */
#include "control/operations.h"

#include "control/operation_runs.h"
#include "google/longrunning/operations.pb-c.h"
#include "trestle/catalog.pb-c.h"
#include "wire/proto.h"

#include <inttypes.h>
#include <stdio.h>

/* --- records that stand --- */

struct standing {
    Lro__Operation *message;
    Catalog__Operation *beside;
};

static status decode(const struct resource *resource, struct arena *arena, struct standing *out)
{
    ProtobufCMessage *message, *beside;
    bytes extra = arena_copy(arena, resource->extra);
    if (extra.data == NULL)
        return status_out_of_memory();
    TRY(resource_decode(resource, arena, &message));
    TRY(proto_decode(&catalog__operation__descriptor, extra, arena, &beside));
    *out = (struct standing){(void *)message, (void *)beside};
    return status_ok();
}

/* A pass over all operations; what is done with each is the visitor's. */
struct pass {
    struct control *control;
    struct edit *edit;
    struct arena *arena;
    bool are_abandoned; /* none goes on */
    status failure;
};

static status forget_if_old(struct pass *pass, const struct resource *resource)
{
    const int64_t kept_us = (int64_t)OPERATION_DAYS * 24 * 3600 * 1000000;
    struct standing standing;
    TRY(decode(resource, pass->arena, &standing));
    if (standing.message->done &&
        standing.beside->end_us + kept_us < (int64_t)edit_version(pass->edit))
        TRY(edit_delete(pass->edit, RESOURCE_OPERATION, resource->name));
    return status_ok();
}

static bool visit_old(void *context, struct resource *resource)
{
    struct pass *pass = context;
    arena_reset(pass->arena);
    pass->failure = forget_if_old(pass, resource);
    return status_is_ok(pass->failure);
}

static status pass_over(struct pass *pass, resource_visitor *visit)
{
    TRY(control_list(pass->control, RESOURCE_OPERATION, "", "", visit, pass));
    return pass->failure;
}

/* Once a day, in an edit that comes by. */
static status forget_old(struct edit *edit)
{
    const uint64_t day_us = UINT64_C(24) * 3600 * 1000000;
    struct control *control = edit_control(edit);
    if (edit_version(edit) < control->swept_version + day_us)
        return status_ok();
    struct arena *arena = arena_create(OPERATION_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    control->swept_version = edit_version(edit);
    struct pass pass = {.control = control, .edit = edit, .arena = arena};
    status s = pass_over(&pass, visit_old);
    arena_destroy(arena);
    return s;
}

/* --- messages --- */

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

static status make_name(const struct edit *edit, const char *parent, struct arena *arena,
                        const char **out)
{
    enum { FRAME = sizeof "/operations/" + 20 };
    size_t size = strlen(parent) + FRAME;
    char *name = arena_alloc(arena, size);
    *out = name;
    if (name == NULL)
        return status_out_of_memory();
    snprintf(name, size, "%s/operations/%" PRIu64, parent, edit_version(edit));
    return status_ok();
}

static status put_record(struct edit *edit, const Lro__Operation *message,
                         const Catalog__Operation *beside)
{
    struct buffer extra = {0};
    proto_encode(&beside->base, &extra);
    status s = extra.failed ? status_out_of_memory()
                            : edit_put(edit, RESOURCE_OPERATION, message->name, &message->base,
                                       buffer_bytes(&extra));
    buffer_free(&extra);
    return s;
}

static status put_new(struct edit *edit, const struct operation_spec *spec,
                      const Catalog__Operation *beside, struct arena *arena,
                      const ProtobufCMessage **out)
{
    Lro__Operation *message;
    PROTO_NEW(arena, message, LRO__OPERATION__INIT);
    TRY(make_name(edit, spec->parent, arena, &message->name));
    TRY(to_any(spec->metadata, arena, &message->metadata));
    message->done = spec->response != NULL;
    if (message->done) {
        message->result_case = LRO__OPERATION__RESULT_RESPONSE;
        TRY(to_any(spec->response, arena, &message->response));
    }
    *out = &message->base;
    TRY(put_record(edit, message, beside));
    return forget_old(edit);
}

status operation_done(struct edit *edit, const struct operation_spec *spec, struct arena *arena,
                      const ProtobufCMessage **out)
{
    Catalog__Operation beside = CATALOG__OPERATION__INIT;
    beside.end_us = (int64_t)edit_version(edit);
    return put_new(edit, spec, &beside, arena, out);
}

status operation_begin(struct edit *edit, const struct operation_spec *spec, struct arena *arena,
                       const ProtobufCMessage **out)
{
    Catalog__Operation beside = CATALOG__OPERATION__INIT;
    beside.kind = spec->kind;
    beside.argument = proto_data(spec->argument);
    TRY(put_new(edit, spec, &beside, arena, out));
    const Lro__Operation *message = (const void *)*out;
    return runs_add(edit, message->name, spec->kind, spec->argument);
}

static status find(const struct edit *edit, const char *name, struct arena *arena,
                   struct standing *out)
{
    const struct resource *resource = edit_find(edit, RESOURCE_OPERATION, name);
    if (resource == NULL)
        return status_make(STATUS_NOT_FOUND, "Operation not found: %s", name);
    return decode(resource, arena, out);
}

status operation_put_end(struct edit *edit, struct arena *arena, const char *name,
                         const struct operation_end *end)
{
    struct standing standing;
    TRY(find(edit, name, arena, &standing));
    Lro__Operation *message = standing.message;
    if (end->metadata != NULL)
        TRY(to_any(end->metadata, arena, &message->metadata));
    if (end->response != NULL) {
        message->result_case = LRO__OPERATION__RESULT_RESPONSE;
        TRY(to_any(end->response, arena, &message->response));
    } else if (end->error != NULL) {
        message->result_case = LRO__OPERATION__RESULT_ERROR;
        PROTO_NEW(arena, message->error, RPC__STATUS__INIT);
        message->error->code = (int)end->error->code;
        message->error->message = status_message(*end->error);
    }
    message->done = message->result_case != LRO__OPERATION__RESULT__NOT_SET;
    if (message->done)
        standing.beside->end_us = (int64_t)edit_version(edit);
    return put_record(edit, message, standing.beside);
}

/* --- what clients ask --- */

struct forgetting {
    const char *name;
    struct arena *arena;
};

static status forget(void *context, struct edit *edit)
{
    const struct forgetting *forgetting = context;
    struct standing standing;
    TRY(find(edit, forgetting->name, forgetting->arena, &standing));
    if (!standing.message->done)
        return status_make(STATUS_FAILED_PRECONDITION, "Operation is still running: %s",
                           forgetting->name);
    return edit_delete(edit, RESOURCE_OPERATION, forgetting->name);
}

status operation_forget(struct control *control, const char *name)
{
    struct forgetting forgetting = {name, arena_create(OPERATION_MEMORY)};
    if (forgetting.arena == NULL)
        return status_out_of_memory();
    status s = control_edit(control, forget, &forgetting);
    arena_destroy(forgetting.arena);
    return s;
}

/* --- what a restore leaves to be ended --- */

static bytes abandoned_key(void)
{
    return bytes_of("abandoned-operations");
}

void operations_mark_abandoned(struct catalog_txn *txn)
{
    catalog_txn_put(txn, abandoned_key(), bytes_of("-"));
}

static status are_abandoned(struct control *control, bool *out)
{
    struct buffer value = {0};
    status s = catalog_get(cluster_catalog(control_cluster(control)), abandoned_key(), &value, out);
    buffer_free(&value);
    return s;
}

static status forget_abandoned(struct control *control)
{
    struct cluster *cluster = control_cluster(control);
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(cluster));
    if (txn == NULL)
        return status_out_of_memory();
    catalog_txn_delete(txn, abandoned_key());
    status s = cluster_write_removal(cluster, txn);
    catalog_txn_destroy(txn);
    return s;
}

static status abandon(struct pass *pass, const struct resource *resource)
{
    struct standing standing;
    TRY(decode(resource, pass->arena, &standing));
    if (standing.message->done)
        return status_ok();
    return runs_abandon(pass->control, resource->name, standing.beside->kind,
                        proto_bytes(standing.beside->argument));
}

static bool visit_abandoned(void *context, struct resource *resource)
{
    struct pass *pass = context;
    arena_reset(pass->arena);
    pass->failure = abandon(pass, resource);
    return status_is_ok(pass->failure);
}

/* --- taking up --- */

static status outcome_of(const struct pass *pass, const struct resource *resource,
                         const Catalog__Operation *beside)
{
    if (pass->are_abandoned)
        return status_make(STATUS_ABORTED,
                           "The server was restored from a backup that was made meanwhile");
    return runs_recover(pass->control, resource->name, beside->kind, proto_bytes(beside->argument));
}

static status take_up(struct pass *pass, const struct resource *resource)
{
    struct standing standing;
    TRY(decode(resource, pass->arena, &standing));
    if (standing.message->done)
        return status_ok();
    const Catalog__Operation *beside = standing.beside;
    bytes argument = proto_bytes(beside->argument);
    status outcome = outcome_of(pass, resource, beside);
    if (status_is_ok(outcome))
        return runs_add(pass->edit, resource->name, beside->kind, argument);
    struct operation_end end = {.error = &outcome};
    status s = operation_put_end(pass->edit, pass->arena, resource->name, &end);
    status_free(outcome);
    return s;
}

static bool visit_running(void *context, struct resource *resource)
{
    struct pass *pass = context;
    arena_reset(pass->arena);
    pass->failure = take_up(pass, resource);
    return status_is_ok(pass->failure);
}

static status take_up_all(void *context, struct edit *edit)
{
    struct pass *pass = context;
    pass->edit = edit;
    return pass_over(pass, visit_running);
}

static status take_up_or_end(struct control *control, struct arena *arena)
{
    struct pass pass = {.control = control, .arena = arena};
    TRY(are_abandoned(control, &pass.are_abandoned));
    if (pass.are_abandoned)
        TRY(pass_over(&pass, visit_abandoned));
    TRY(control_edit(control, take_up_all, &pass));
    return pass.are_abandoned ? forget_abandoned(control) : status_ok();
}

status operations_start(struct control *control, const struct operation_kind *kinds, size_t count)
{
    struct arena *arena = arena_create(OPERATION_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    runs_set_kinds(control, kinds, count);
    status s = take_up_or_end(control, arena);
    arena_destroy(arena);
    return s;
}
