/* Instances: created with their clusters and the app profile `default`, deleted with all that they
 * have. */
#include "base/limits.h"
#include "bigtable/backup_facts.h"
#include "bigtable/cluster_settings.h"
#include "bigtable/default_instance.h"
#include "bigtable/error_place.h"
#include "bigtable/field_mask.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/replicated.h"

static const char project_form[] = "projects/{project}";

/* --- checks --- */

static status check_labels(const BtAdmin__Instance *instance)
{
    if (instance->n_labels <= LIMIT_LABELS_AN_INSTANCE)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "An instance has at most %d labels",
                       LIMIT_LABELS_AN_INSTANCE);
}

static status complete_instance(BtAdmin__Instance *instance)
{
    if (*instance->display_name == '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "display_name must be set");
    if (instance->type == BT_ADMIN__INSTANCE__TYPE__TYPE_UNSPECIFIED)
        instance->type = BT_ADMIN__INSTANCE__TYPE__PRODUCTION;
    if (instance->type < 0 || instance->type > BT_ADMIN__INSTANCE__TYPE__DEVELOPMENT)
        return status_make(STATUS_INVALID_ARGUMENT, "type is unknown");
    if (instance->edition == BT_ADMIN__INSTANCE__EDITION__EDITION_UNSPECIFIED)
        instance->edition = BT_ADMIN__INSTANCE__EDITION__ENTERPRISE;
    if (instance->edition < 0 || instance->edition > BT_ADMIN__INSTANCE__EDITION__ENTERPRISE_PLUS)
        return status_make(STATUS_INVALID_ARGUMENT, "edition is unknown");
    instance->n_tags = 0; /* input only */
    return check_labels(instance);
}

/* --- create --- */

struct creation {
    const struct admin_request *request;
    BtAdmin__Instance instance;
    const ProtobufCMessage *operation;
};

static status stage_cluster(struct creation *creation, struct edit *edit,
                            const BtAdmin__CreateInstanceRequest__ClustersEntry *entry)
{
    struct arena *arena = creation->request->arena;
    TRY(error_in_field("cluster_id",
                       name_check_zonal_id("clusters", entry->key, LIMIT_CLUSTER_ID_BYTES)));
    BtAdmin__Cluster cluster = BT_ADMIN__CLUSTER__INIT;
    if (entry->value != NULL)
        cluster = *entry->value;
    TRY(complete_cluster(&cluster));
    TRY(check_location_is_served(creation->request->bigtable, cluster.location));
    cluster.name = name_join(arena, creation->instance.name, "clusters", entry->key);
    if (cluster.name == NULL)
        return status_out_of_memory();
    return create_resource(edit, arena, RESOURCE_CLUSTER, &cluster.base);
}

static const char *location_of(const BtAdmin__CreateInstanceRequest__ClustersEntry *entry)
{
    return entry->value == NULL ? "" : entry->value->location;
}

static status check_zones(const BtAdmin__CreateInstanceRequest *message)
{
    for (size_t i = 1; i < message->n_clusters; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(location_of(message->clusters[i]), location_of(message->clusters[k])) == 0)
                return zone_is_taken();
    return status_ok();
}

static status stage_clusters(struct creation *creation, struct edit *edit,
                             const BtAdmin__CreateInstanceRequest *message)
{
    struct arena *arena = creation->request->arena;
    const char **ids = arena_alloc(arena, message->n_clusters * sizeof *ids);
    if (ids == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_clusters; i++) {
        ids[i] = message->clusters[i]->key;
        TRY(stage_cluster(creation, edit, message->clusters[i]));
    }
    TRY(check_zones(message));
    return stage_default_profile(edit, arena, creation->instance.name, ids, message->n_clusters);
}

static status stage_creation(void *context, struct edit *edit)
{
    struct creation *creation = context;
    struct arena *arena = creation->request->arena;
    const BtAdmin__CreateInstanceRequest *message = (const void *)creation->request->message;
    BtAdmin__CreateInstanceMetadata metadata = BT_ADMIN__CREATE_INSTANCE_METADATA__INIT;
    TRY(edit_time(edit, arena, &creation->instance.create_time));
    TRY(create_resource(edit, arena, RESOURCE_INSTANCE, &creation->instance.base));
    TRY(stage_clusters(creation, edit, message));
    return finish_operation(edit, creation->request, creation->instance.name, &metadata.base,
                            &creation->instance.base, &creation->operation);
}

status create_instance(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CreateInstanceRequest *message = (const void *)request->message;
    struct creation creation = {.request = request, .instance = BT_ADMIN__INSTANCE__INIT};
    TRY(name_check_form("project", message->parent, project_form));
    TRY(error_in_field("instance_id", name_check_zonal_id("instances", message->instance_id,
                                                          LIMIT_INSTANCE_ID_BYTES)));
    if (message->n_clusters == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "At least one cluster must be given");
    if (message->instance != NULL)
        creation.instance = *message->instance;
    TRY(complete_instance(&creation.instance));
    creation.instance.state = BT_ADMIN__INSTANCE__STATE__READY;
    creation.instance.name =
        name_join(request->arena, message->parent, "instances", message->instance_id);
    if (creation.instance.name == NULL)
        return status_out_of_memory();
    TRY(control_edit(request->bigtable->control, stage_creation, &creation));
    *response = creation.operation;
    return status_ok();
}

/* --- get, list --- */

status get_instance(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetInstanceRequest *message = (const void *)request->message;
    ProtobufCMessage *instance = NULL;
    TRY(get_resource(request, RESOURCE_INSTANCE, message->name, &instance));
    *response = instance;
    return status_ok();
}

status list_instances(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListInstancesRequest *message = (const void *)request->message;
    struct resource_page page;
    BtAdmin__ListInstancesResponse *list;
    TRY(name_check_form("project", message->parent, project_form));
    TRY(list_resources(request, RESOURCE_INSTANCE, message->parent, 0, message->page_token, &page));
    PROTO_NEW(request->arena, list, BT_ADMIN__LIST_INSTANCES_RESPONSE__INIT);
    list->instances = (void *)page.messages;
    list->n_instances = page.count;
    list->next_page_token = page.next_token;
    *response = &list->base;
    return status_ok();
}

/* --- update --- */

struct update {
    const struct admin_request *request;
    const BtAdmin__Instance *wanted;
    const Pb__FieldMask *mask; /* NULL: what UpdateInstance changes */
    BtAdmin__Instance *instance;
    const ProtobufCMessage *operation;
};

static status apply(struct update *update)
{
    static const char *const allowed[] = {"display_name", "type", "labels", "edition", NULL};
    if (update->mask != NULL)
        return field_mask_apply(update->mask, allowed, &update->wanted->base,
                                &update->instance->base, update->request->arena);
    update->instance->display_name = update->wanted->display_name;
    if (update->wanted->type != BT_ADMIN__INSTANCE__TYPE__TYPE_UNSPECIFIED)
        update->instance->type = update->wanted->type;
    return status_ok();
}

static status check_step(BtAdmin__Instance__Type before, const BtAdmin__Instance *after)
{
    if (before == BT_ADMIN__INSTANCE__TYPE__PRODUCTION &&
        after->type == BT_ADMIN__INSTANCE__TYPE__DEVELOPMENT)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A PRODUCTION instance cannot become a DEVELOPMENT one");
    return status_ok();
}

static status stage_update(struct update *update, struct edit *edit)
{
    struct arena *arena = update->request->arena;
    ProtobufCMessage *standing;
    TRY(find_for_change(edit, arena, RESOURCE_INSTANCE, update->wanted->name, "", &standing));
    update->instance = (void *)standing;
    BtAdmin__Instance__Type before = update->instance->type;
    TRY(apply(update));
    TRY(complete_instance(update->instance));
    TRY(check_step(before, update->instance));
    return put_resource(edit, arena, RESOURCE_INSTANCE, standing);
}

static status stage_whole_update(void *context, struct edit *edit)
{
    return stage_update(context, edit);
}

/* Production's answer to a PUT: the fields that are said to be required, display_name and type. */
status update_instance(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__Instance *message = (const void *)request->message;
    struct update update = {.request = request, .wanted = message};
    TRY(check_resource_name(RESOURCE_INSTANCE, message->name));
    TRY(control_edit(request->bigtable->control, stage_whole_update, &update));
    *response = &update.instance->base;
    return status_ok();
}

static status stage_partial_update(void *context, struct edit *edit)
{
    struct update *update = context;
    BtAdmin__UpdateInstanceMetadata metadata = BT_ADMIN__UPDATE_INSTANCE_METADATA__INIT;
    TRY(stage_update(update, edit));
    return finish_operation(edit, update->request, update->instance->name, &metadata.base,
                            &update->instance->base, &update->operation);
}

status partial_update_instance(const struct admin_request *request,
                               const ProtobufCMessage **response)
{
    const BtAdmin__PartialUpdateInstanceRequest *message = (const void *)request->message;
    static const Pb__FieldMask empty_mask = PB__FIELD_MASK__INIT;
    if (message->instance == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "instance must be set");
    struct update update = {.request = request,
                            .wanted = message->instance,
                            .mask =
                                message->update_mask == NULL ? &empty_mask : message->update_mask};
    TRY(check_resource_name(RESOURCE_INSTANCE, message->instance->name));
    TRY(control_edit(request->bigtable->control, stage_partial_update, &update));
    *response = update.operation;
    return status_ok();
}

/* --- delete --- */

static status check_views(struct control *control, struct arena *arena, const char *instance)
{
    char *tables = name_of_table(arena, instance, "-");
    if (tables == NULL)
        return status_out_of_memory();
    TRY(check_none_protected(control, arena, RESOURCE_LOGICAL_VIEW, instance));
    TRY(check_none_protected(control, arena, RESOURCE_MATERIALIZED_VIEW, instance));
    return check_none_protected(control, arena, RESOURCE_AUTHORIZED_VIEW, tables);
}

/* One batch has the ends of all tables, and of all records: protected tables make it fail. */
static status delete_all(void *context, struct edit *edit)
{
    const struct admin_request *request = context;
    const char *name =
        ((const BtAdmin__DeleteInstanceRequest *)(const void *)request->message)->name;
    struct catalog_txn *txn;
    char *whole = name_under(request->arena, name, ""); /* tables, and those of views */
    if (whole == NULL)
        return status_out_of_memory();
    if (edit_find(edit, RESOURCE_INSTANCE, name) == NULL)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
    TRY(check_no_backups(request->bigtable->backups, request->arena, "Instance", name));
    TRY(check_views(edit_control(edit), request->arena, name));
    TRY(edit_delete(edit, RESOURCE_INSTANCE, name));
    TRY(edit_txn(edit, &txn));
    return cluster_delete_tables(request->bigtable->cluster, bytes_of(whole), txn);
}

status delete_instance(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DeleteInstanceRequest *message = (const void *)request->message;
    struct admin_request copy = *request;
    TRY(check_resource_name(RESOURCE_INSTANCE, message->name));
    TRY(control_edit(request->bigtable->control, delete_all, &copy));
    *response = admin_empty_response();
    return status_ok();
}
