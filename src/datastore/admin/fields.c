/* GetField, UpdateField and ListFields of google.firestore.admin.v1.FirestoreAdmin: which property
 * says when the entities of a kind expire. How a property is indexed is not kept here: entities say
 * it, value by value. */
#include "base/limits.h"
#include "datastore/admin/admin_methods.h"
#include "datastore/admin/ttl.h"
#include "datastore/entity_result.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"
#include "google/firestore/admin/v1/operation.pb-c.h"
#include "wire/proto.h"

#define ENABLED FS_ADMIN__FIELD__TTL_CONFIG__STATE__ACTIVE

/* --- where to --- */

static status take_database(struct ds_call *call, const struct ds_field_name *field)
{
    call->project_id = field->database.project;
    call->database_id = field->database.id;
    return status_ok();
}

static status locate_by_name(struct ds_call *call, const char *name)
{
    struct ds_field_name field;
    TRY(ds_field_parse(name, call->arena, &field));
    return take_database(call, &field);
}

status ds_get_field_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    return locate_by_name(call, ((const FsAdmin__GetFieldRequest *)request)->name);
}

status ds_update_field_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    const FsAdmin__Field *field = ((const FsAdmin__UpdateFieldRequest *)request)->field;
    if (field == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "The request has no field.");
    return locate_by_name(call, field->name);
}

status ds_list_fields_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    struct ds_field_name field;
    TRY(ds_field_parent_parse(((const FsAdmin__ListFieldsRequest *)request)->parent, call->arena,
                              &field));
    return take_database(call, &field);
}

/* --- get --- */

static status make_field(const char *name, bool is_enabled, struct arena *arena,
                         FsAdmin__Field **out)
{
    PROTO_NEW(arena, *out, FS_ADMIN__FIELD__INIT);
    (*out)->name = name;
    if (!is_enabled)
        return status_ok();
    PROTO_NEW(arena, (*out)->ttl_config, FS_ADMIN__FIELD__TTL_CONFIG__INIT);
    (*out)->ttl_config->state = ENABLED;
    return status_ok();
}

status ds_get_field(struct ds_call *call, const ProtobufCMessage *message,
                    ProtobufCMessage **response)
{
    const FsAdmin__GetFieldRequest *request = (const FsAdmin__GetFieldRequest *)message;
    struct control *control = call->datastore->control;
    struct ds_field_name name;
    FsAdmin__Field *field;
    TRY(ds_field_parse(request->name, call->arena, &name));
    TRY(make_field(name.name, control_has(control, RESOURCE_FIELD, name.name), call->arena,
                   &field));
    *response = &field->base;
    return status_ok();
}

/* --- update --- */

struct update {
    struct ds_call *call;
    struct ds_field_name field;
    bool is_enabled; /* from now on */
    const ProtobufCMessage *operation;
};

/* Only what says when entities expire can be set. */
static status check_mask(const FsAdmin__UpdateFieldRequest *request)
{
    const Pb__FieldMask *mask = request->update_mask;
    for (size_t i = 0; mask != NULL && i < mask->n_paths; i++)
        if (strcmp(mask->paths[i], "ttl_config") != 0 && strcmp(mask->paths[i], "ttlConfig") != 0)
            return status_make(STATUS_UNIMPLEMENTED,
                               "Only the ttl_config of a field can be updated, not its %s.",
                               mask->paths[i]);
    return status_ok();
}

/* Entities that live on for a while behind their moment would be gone too early. */
static status check_offset(const FsAdmin__Field *field)
{
    const Pb__Duration *offset =
        field->ttl_config == NULL ? NULL : field->ttl_config->expiration_offset;
    if (offset == NULL || (offset->seconds == 0 && offset->nanos == 0))
        return status_ok();
    return status_make(STATUS_UNIMPLEMENTED, "ttl_config.expiration_offset is not supported.");
}

static status check_others(const struct update *update, struct control *control)
{
    const struct ds_field_name *field = &update->field;
    struct vector all = {0}; /* of struct ds_field_name */
    TRY(ds_ttl_list(control, &field->database, update->call->arena, &all));
    const struct ds_field_name *others = all.items;
    for (size_t i = 0; i < all.count; i++) {
        if (strcmp(others[i].name, field->name) == 0)
            return status_ok();
        if (strcmp(others[i].kind, field->kind) == 0)
            return status_make(STATUS_FAILED_PRECONDITION,
                               "The entities of the kind \"%s\" expire by the property %s already.",
                               field->kind, others[i].property);
    }
    if (all.count >= LIMIT_DS_TTL_FIELDS)
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "There are %d fields with a ttl_config in the database already.",
                           LIMIT_DS_TTL_FIELDS);
    return status_ok();
}

static status make_metadata(const struct update *update, const struct edit *edit,
                            FsAdmin__FieldOperationMetadata **out)
{
    struct arena *arena = update->call->arena;
    int64_t now_us = (int64_t)edit_version(edit);
    PROTO_NEW(arena, *out, FS_ADMIN__FIELD_OPERATION_METADATA__INIT);
    (*out)->field = update->field.name;
    (*out)->state = FS_ADMIN__OPERATION_STATE__SUCCESSFUL;
    PROTO_NEW(arena, (*out)->ttl_config_delta,
              FS_ADMIN__FIELD_OPERATION_METADATA__TTL_CONFIG_DELTA__INIT);
    (*out)->ttl_config_delta->change_type =
        update->is_enabled
            ? FS_ADMIN__FIELD_OPERATION_METADATA__TTL_CONFIG_DELTA__CHANGE_TYPE__ADD
            : FS_ADMIN__FIELD_OPERATION_METADATA__TTL_CONFIG_DELTA__CHANGE_TYPE__REMOVE;
    TRY(ds_time_message(now_us, arena, &(*out)->start_time));
    return ds_time_message(now_us, arena, &(*out)->end_time);
}

static status change(void *context, struct edit *edit)
{
    struct update *update = context;
    FsAdmin__Field *field;
    FsAdmin__FieldOperationMetadata *metadata;
    TRY(make_field(update->field.name, update->is_enabled, update->call->arena, &field));
    TRY(make_metadata(update, edit, &metadata));
    if (update->is_enabled)
        TRY(check_others(update, edit_control(edit)));
    TRY(update->is_enabled
            ? edit_put(edit, RESOURCE_FIELD, field->name, &field->base, bytes_make(NULL, 0))
            : edit_delete(edit, RESOURCE_FIELD, field->name));
    const struct operation_spec spec = {.parent = update->field.database_name,
                                        .metadata = &metadata->base,
                                        .response = &field->base};
    return operation_done(edit, &spec, update->call->arena, &update->operation);
}

status ds_update_field(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const FsAdmin__UpdateFieldRequest *request = (const FsAdmin__UpdateFieldRequest *)message;
    struct update update = {.call = call, .is_enabled = request->field->ttl_config != NULL};
    TRY(ds_field_parse(request->field->name, call->arena, &update.field));
    TRY(check_mask(request));
    TRY(check_offset(request->field));
    TRY(control_edit(call->datastore->control, change, &update));
    union {
        const ProtobufCMessage *given;
        ProtobufCMessage *wanted;
    } pointer = {.given = update.operation};
    *response = pointer.wanted; /* methods answer with what is not const */
    return status_ok();
}

/* --- list --- */

enum { MOST_IN_PAGE = LIMIT_DS_TTL_FIELDS };

struct listing {
    struct arena *arena;
    FsAdmin__ListFieldsResponse *list;
    size_t most;
    status result;
};

static bool add_field(void *context, struct resource *resource)
{
    struct listing *listing = context;
    FsAdmin__ListFieldsResponse *list = listing->list;
    if (list->n_fields == listing->most) {
        list->next_page_token = list->fields[list->n_fields - 1]->name;
        return false;
    }
    const char *name = arena_string(listing->arena, bytes_of(resource->name));
    listing->result = name == NULL
                          ? status_out_of_memory()
                          : make_field(name, true, listing->arena, &list->fields[list->n_fields]);
    list->n_fields += status_is_ok(listing->result);
    return status_is_ok(listing->result);
}

/* Checks a filter. Production takes these: fields that expire, those whose indexes are not as usual
 * (of which there are none), or both. */
static status check_filter(const char *filter, bool *has_ttls)
{
    static const char ttl[] = "ttlConfig:*", index[] = "indexConfig.usesAncestorConfig:false";
    static const char *const fine[] = {
        "",
        ttl,
        "indexConfig.usesAncestorConfig:false OR ttlConfig:*",
        "ttlConfig:* OR indexConfig.usesAncestorConfig:false",
    };
    *has_ttls = true;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (strcmp(filter, fine[i]) == 0)
            return status_ok();
    *has_ttls = false;
    return strcmp(filter, index) == 0
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT,
                             "The filter '%s' is none of these: %s, %s, or both with OR between.",
                             filter, ttl, index);
}

static status list(struct ds_call *call, const FsAdmin__ListFieldsRequest *request,
                   struct listing *listing)
{
    struct ds_field_name parent;
    bool has_ttls;
    TRY(ds_field_parent_parse(request->parent, call->arena, &parent));
    TRY(check_filter(request->filter, &has_ttls));
    if (request->page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "The page_size is negative.");
    if (request->page_size > 0 && request->page_size < MOST_IN_PAGE)
        listing->most = (size_t)request->page_size;
    if (!has_ttls)
        return status_ok();
    TRY(control_list(call->datastore->control, RESOURCE_FIELD, parent.name, request->page_token,
                     add_field, listing));
    return listing->result;
}

status ds_list_fields(struct ds_call *call, const ProtobufCMessage *message,
                      ProtobufCMessage **response)
{
    struct listing listing = {.arena = call->arena, .most = MOST_IN_PAGE};
    PROTO_NEW(call->arena, listing.list, FS_ADMIN__LIST_FIELDS_RESPONSE__INIT);
    listing.list->fields = arena_alloc(call->arena, MOST_IN_PAGE * sizeof(FsAdmin__Field *));
    if (listing.list->fields == NULL)
        return status_out_of_memory();
    *response = &listing.list->base;
    return list(call, (const FsAdmin__ListFieldsRequest *)message, &listing);
}
