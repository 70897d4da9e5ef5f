/* See quick_change.h. */
#include "bigtable/quick_change.h"

#include "bigtable/default_instance.h"
#include "bigtable/field_mask.h"
#include "bigtable/names.h"

struct change {
    const struct admin_request *request;
    const struct resource_creation *creation;
    const struct resource_update *update;
    const ProtobufCMessage *operation;
};

/* --- create --- */

static bool is_in_table(enum resource_kind kind)
{
    return (int)resource_type(kind)->parent == RESOURCE_TABLE_PARENT;
}

status name_new_resource(const struct admin_request *request, enum resource_kind kind,
                         const char *parent, const char *id, const char **out)
{
    const struct resource_type *type = resource_type(kind);
    TRY(is_in_table(kind) ? name_check_table(parent) : name_check_instance(parent));
    TRY(name_check_resource_id(type->label, id));
    *out = name_join(request->arena, parent, type->collection, id);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* No table comes or goes while an edit is under way. */
static status require_parent(const struct change *change, struct edit *edit)
{
    const struct resource_creation *creation = change->creation;
    const struct bigtable *bigtable = change->request->bigtable;
    struct table *table;
    if (!is_in_table(creation->kind))
        return require_instance(bigtable, edit, change->request->arena, creation->parent);
    TRY(cluster_table(bigtable->cluster, bytes_of(creation->parent), &table));
    table_release(table);
    return status_ok();
}

static status stage_creation(void *context, struct edit *edit)
{
    struct change *change = context;
    const struct resource_creation *creation = change->creation;
    struct arena *arena = change->request->arena;
    TRY(require_parent(change, edit));
    TRY(create_resource(edit, arena, creation->kind, creation->message));
    return finish_operation(edit, change->request, creation->parent, creation->metadata,
                            creation->message, &change->operation);
}

status create_quickly(const struct admin_request *request, const struct resource_creation *creation,
                      const ProtobufCMessage **response)
{
    struct change change = {.request = request, .creation = creation};
    TRY(control_edit(request->bigtable->control, stage_creation, &change));
    *response = change.operation;
    return status_ok();
}

/* --- update --- */

static status stage_update(void *context, struct edit *edit)
{
    struct change *change = context;
    const struct resource_update *update = change->update;
    struct arena *arena = change->request->arena;
    ProtobufCMessage *before, *after;
    TRY(find_for_change(edit, arena, update->kind, update->name, update->etag, &before));
    TRY(find_for_change(edit, arena, update->kind, update->name, update->etag, &after));
    TRY(field_mask_apply_set(update->mask, update->allowed, update->wanted, after, arena));
    TRY(update->check(change->request, before, after));
    TRY(put_resource(edit, arena, update->kind, after));
    return finish_operation(edit, change->request, update->name, update->metadata, after,
                            &change->operation);
}

status update_quickly(const struct admin_request *request, const struct resource_update *update,
                      const ProtobufCMessage **response)
{
    struct change change = {.request = request, .update = update};
    TRY(check_resource_name(update->kind, update->name));
    TRY(control_edit(request->bigtable->control, stage_update, &change));
    *response = change.operation;
    return status_ok();
}
