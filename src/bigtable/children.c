/* See children.h. */
#include "bigtable/children.h"

#include "base/check.h"
#include "base/limits.h"
#include "bigtable/default_instance.h"
#include "bigtable/field_mask.h"
#include "bigtable/names.h"
#include "bigtable/table_methods.h"
#include "bigtable/view_guard.h"

#include <stdio.h>

/* --- messages, by their fields' names --- */

enum { FIELD_NAME_SIZE = 64 };

/* A text field; "" if there is none, as where a request cannot have an etag. */
static const char *text_of(const ProtobufCMessage *message, const char *field)
{
    const char *const *text = resource_field(message, field);
    return text == NULL ? "" : *text;
}

static void set_text(ProtobufCMessage *message, const char *field, const char *text)
{
    const char **place = resource_field(message, field);
    if (place != NULL)
        *place = text;
}

/* The resource in a request that creates or updates it; NULL if it was left out. */
static const ProtobufCMessage *given_child(const struct child_kind *kind,
                                           const ProtobufCMessage *message)
{
    return *(const ProtobufCMessage *const *)resource_field(message, kind->name);
}

static status new_message(const ProtobufCMessageDescriptor *type, struct arena *arena,
                          ProtobufCMessage **out)
{
    *out = arena_alloc(arena, type->sizeof_message);
    if (*out == NULL)
        return status_out_of_memory();
    protobuf_c_message_init(type, *out);
    return status_ok();
}

/* --- parents --- */

static bool is_in_table(enum resource_kind kind)
{
    return (int)resource_type(kind)->parent == RESOURCE_TABLE_PARENT;
}

static size_t most_of_id(enum resource_kind kind)
{
    bool is_view = kind == RESOURCE_LOGICAL_VIEW || kind == RESOURCE_MATERIALIZED_VIEW;
    return is_view ? LIMIT_VIEW_ID_BYTES : LIMIT_RESOURCE_ID_BYTES;
}

status name_new_child(const struct admin_request *request, enum resource_kind kind,
                      const char *parent, const char *id, const char **out)
{
    const struct resource_type *type = resource_type(kind);
    TRY(is_in_table(kind) ? name_check_table(parent) : name_check_instance(parent));
    TRY(name_check_resource_id(type->label, id, most_of_id(kind)));
    *out = name_join(request->arena, parent, type->collection, id);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* No table comes or goes while an edit is under way. */
static status require_parent(const struct admin_request *request, enum resource_kind kind,
                             struct edit *edit, const char *parent)
{
    const struct bigtable *bigtable = request->bigtable;
    struct table *table;
    if (!is_in_table(kind))
        return require_instance(bigtable, edit, request->arena, parent);
    TRY(cluster_table(bigtable->cluster, bytes_of(parent), &table));
    table_release(table);
    return status_ok();
}

static status check_parent_to_list(const struct admin_request *request, enum resource_kind kind,
                                   const char *parent)
{
    if (is_in_table(kind))
        return check_table_to_list(request, parent);
    TRY(name_check_instance(parent));
    return check_instance_to_list(request->bigtable, parent);
}

/* --- create, update: each answers with a finished operation --- */

struct change {
    const struct child_kind *kind;
    const struct admin_request *request;
    const ProtobufCMessage *given;
    ProtobufCMessage *child; /* what it becomes */
    ProtobufCMessage *metadata;
    const ProtobufCMessage *operation;
};

static status make_metadata(struct change *change, const ProtobufCMessageDescriptor *type,
                            const char *name)
{
    TRY(new_message(type, change->request->arena, &change->metadata));
    set_text(change->metadata, "name", name);
    return status_ok();
}

static status stage_creation(void *context, struct edit *edit)
{
    struct change *change = context;
    const struct admin_request *request = change->request;
    const char *parent = text_of(request->message, "parent");
    TRY(require_parent(request, change->kind->kind, edit, parent));
    if (change->kind->shares_ids)
        TRY(check_id_is_free(request->bigtable, request->arena, edit, change->kind->kind, parent,
                             name_id(text_of(change->child, "name"))));
    TRY(create_resource(edit, request->arena, change->kind->kind, change->child));
    return finish_operation(edit, request, parent, change->metadata, change->child,
                            &change->operation);
}

status child_create(const struct child_kind *kind, const struct admin_request *request,
                    const ProtobufCMessage **response)
{
    const ProtobufCMessageDescriptor *type = resource_type(kind->kind)->message;
    struct change change = {
        .kind = kind, .request = request, .given = given_child(kind, request->message)};
    char id_field[FIELD_NAME_SIZE];
    const char *name;
    snprintf(id_field, sizeof id_field, "%s_id", kind->name);
    TRY(new_message(type, request->arena, &change.child));
    if (change.given != NULL)
        memcpy(change.child, change.given, type->sizeof_message);
    TRY(name_new_child(request, kind->kind, text_of(request->message, "parent"),
                       text_of(request->message, id_field), &name));
    set_text(change.child, "name", name);
    TRY(kind->check(request, NULL, change.child));
    TRY(make_metadata(&change, kind->create_metadata, name));
    TRY(control_edit(request->bigtable->control, stage_creation, &change));
    *response = change.operation;
    return status_ok();
}

static status stage_update(void *context, struct edit *edit)
{
    struct change *change = context;
    const struct child_kind *kind = change->kind;
    struct arena *arena = change->request->arena;
    const char *name = text_of(change->given, "name"), *etag = text_of(change->given, "etag");
    const Pb__FieldMask *const *mask = resource_field(change->request->message, "update_mask");
    ProtobufCMessage *before;
    TRY(find_for_change(edit, arena, kind->kind, name, etag, &before));
    TRY(find_for_change(edit, arena, kind->kind, name, etag, &change->child));
    TRY(field_mask_apply_set(*mask, kind->allowed, change->given, change->child, arena));
    TRY(kind->check(change->request, before, change->child));
    TRY(put_resource(edit, arena, kind->kind, change->child));
    return finish_operation(edit, change->request, name, change->metadata, change->child,
                            &change->operation);
}

status child_update(const struct child_kind *kind, const struct admin_request *request,
                    const ProtobufCMessage **response)
{
    struct change change = {
        .kind = kind, .request = request, .given = given_child(kind, request->message)};
    if (change.given == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s must be set", kind->name);
    const char *name = text_of(change.given, "name");
    TRY(check_resource_name(kind->kind, name));
    TRY(make_metadata(&change, kind->update_metadata, name));
    TRY(control_edit(request->bigtable->control, stage_update, &change));
    *response = change.operation;
    return status_ok();
}

/* --- get, list, delete --- */

status child_get(const struct child_kind *kind, const struct admin_request *request,
                 const ProtobufCMessage **response)
{
    ProtobufCMessage *child = NULL;
    TRY(get_resource(request, kind->kind, text_of(request->message, "name"), &child));
    *response = child;
    return status_ok();
}

static void set_page(const struct child_kind *kind, ProtobufCMessage *list,
                     const struct resource_page *page)
{
    char name[FIELD_NAME_SIZE];
    snprintf(name, sizeof name, "%ss", kind->name);
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(list->descriptor, name);
    CHECK(field != NULL);
    memcpy((uint8_t *)list + field->offset, &page->messages, sizeof page->messages);
    memcpy((uint8_t *)list + field->quantifier_offset, &page->count, sizeof page->count);
    set_text(list, "next_page_token", page->next_token);
}

status child_list(const struct child_kind *kind, const struct admin_request *request,
                  const ProtobufCMessage **response)
{
    const char *parent = text_of(request->message, "parent");
    const int32_t *page_size = resource_field(request->message, "page_size");
    struct resource_page page;
    ProtobufCMessage *list;
    TRY(check_parent_to_list(request, kind->kind, parent));
    TRY(list_resources(request, kind->kind, parent, *page_size,
                       text_of(request->message, "page_token"), &page));
    TRY(new_message(kind->list_response, request->arena, &list));
    set_page(kind, list, &page);
    *response = list;
    return status_ok();
}

status child_delete(const struct child_kind *kind, const struct admin_request *request,
                    const ProtobufCMessage **response)
{
    return delete_resource(request, kind->kind, text_of(request->message, "name"),
                           text_of(request->message, "etag"), response);
}
