/* Clusters: what an instance says of its machines. It is kept and checked; a process without peers
 * serves them all, and with peers each is copied to the one at its location (cluster_jobs.h). */
#include "base/limits.h"
#include "bigtable/backup_facts.h"
#include "bigtable/cluster_jobs.h"
#include "bigtable/cluster_settings.h"
#include "bigtable/default_instance.h"
#include "bigtable/error_place.h"
#include "bigtable/field_mask.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/replicated.h"

/* --- create --- */

struct creation {
    const struct admin_request *request;
    int32_t given_nodes;
    BtAdmin__Cluster cluster;
    const ProtobufCMessage *operation;
};

/* The metadata as it is at first is what the work needs to know. */
static status begin_copy(struct creation *creation, struct edit *edit)
{
    struct arena *arena = creation->request->arena;
    BtAdmin__CreateClusterMetadata metadata = BT_ADMIN__CREATE_CLUSTER_METADATA__INIT;
    union { /* the message is not changed, but its field's type has no const */
        const ProtobufCMessage *given;
        void *wanted;
    } request = {.given = creation->request->message};
    struct buffer argument = {0};
    metadata.original_request = request.wanted;
    TRY(edit_time(edit, arena, &metadata.request_time));
    proto_encode(&metadata.base, &argument);
    struct operation_spec spec = {.metadata = &metadata.base,
                                  .kind = create_cluster_kind.name,
                                  .argument = buffer_bytes(&argument)};
    status s = argument.failed ? status_out_of_memory()
                               : begin_operation(edit, arena, creation->cluster.name, &spec,
                                                 &creation->operation);
    buffer_free(&argument);
    return s;
}

/* Under autoscaling the answer has the number of nodes that was given, mostly none, as production's
 * has; GetCluster then tells how many there are. */
static status stage_creation(void *context, struct edit *edit)
{
    struct creation *creation = context;
    struct arena *arena = creation->request->arena;
    BtAdmin__CreateClusterMetadata metadata = BT_ADMIN__CREATE_CLUSTER_METADATA__INIT;
    bool is_copied = bigtable_has_peers(creation->request->bigtable);
    if (is_copied)
        creation->cluster.state = BT_ADMIN__CLUSTER__STATE__CREATING;
    TRY(create_resource(edit, arena, RESOURCE_CLUSTER, &creation->cluster.base));
    TRY(check_zone_is_free(edit_control(edit), arena, &creation->cluster));
    if (is_copied)
        return begin_copy(creation, edit);
    BtAdmin__Cluster answer = creation->cluster;
    if (cluster_autoscales(&answer))
        answer.serve_nodes = creation->given_nodes;
    return finish_operation(edit, creation->request, answer.name, &metadata.base, &answer.base,
                            &creation->operation);
}

status create_cluster(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CreateClusterRequest *message = (const void *)request->message;
    struct creation creation = {.request = request, .cluster = BT_ADMIN__CLUSTER__INIT};
    TRY(name_check_instance(message->parent));
    TRY(error_in_field("cluster_id", name_check_zonal_id("clusters", message->cluster_id,
                                                         LIMIT_CLUSTER_ID_BYTES)));
    if (message->cluster != NULL)
        creation.cluster = *message->cluster;
    creation.given_nodes = creation.cluster.serve_nodes;
    TRY(complete_cluster(&creation.cluster));
    TRY(check_location_is_served(request->bigtable, creation.cluster.location));
    creation.cluster.name =
        name_join(request->arena, message->parent, "clusters", message->cluster_id);
    if (creation.cluster.name == NULL)
        return status_out_of_memory();
    TRY(control_edit(request->bigtable->control, stage_creation, &creation));
    *response = creation.operation;
    return status_ok();
}

/* --- get, list --- */

status get_cluster(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetClusterRequest *message = (const void *)request->message;
    ProtobufCMessage *cluster = NULL;
    TRY(get_resource(request, RESOURCE_CLUSTER, message->name, &cluster));
    *response = cluster;
    return status_ok();
}

status list_clusters(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListClustersRequest *message = (const void *)request->message;
    struct resource_page page;
    BtAdmin__ListClustersResponse *list;
    TRY(name_check_instance(message->parent));
    TRY(check_instance_to_list(request->bigtable, message->parent));
    TRY(list_resources(request, RESOURCE_CLUSTER, message->parent, 0, message->page_token, &page));
    PROTO_NEW(request->arena, list, BT_ADMIN__LIST_CLUSTERS_RESPONSE__INIT);
    list->clusters = (void *)page.messages;
    list->n_clusters = page.count;
    list->next_page_token = page.next_token;
    *response = &list->base;
    return status_ok();
}

/* --- update --- */

struct update {
    const struct admin_request *request;
    const BtAdmin__Cluster *wanted;
    BtAdmin__Cluster *cluster;
    const ProtobufCMessage *operation;
};

static status find_cluster(struct update *update, struct edit *edit)
{
    ProtobufCMessage *standing;
    TRY(find_for_change(edit, update->request->arena, RESOURCE_CLUSTER, update->wanted->name, "",
                        &standing));
    update->cluster = (void *)standing;
    return status_ok();
}

static status put_cluster(struct update *update, struct edit *edit, ProtobufCMessage *metadata)
{
    struct arena *arena = update->request->arena;
    TRY(complete_cluster_size(update->cluster));
    TRY(put_resource(edit, arena, RESOURCE_CLUSTER, &update->cluster->base));
    return finish_operation(edit, update->request, update->cluster->name, metadata,
                            &update->cluster->base, &update->operation);
}

/* The whole of a cluster is put, but its number of nodes is all that this can change. */
static status stage_update(void *context, struct edit *edit)
{
    struct update *update = context;
    BtAdmin__UpdateClusterMetadata metadata = BT_ADMIN__UPDATE_CLUSTER_METADATA__INIT;
    TRY(find_cluster(update, edit));
    update->cluster->serve_nodes = update->wanted->serve_nodes;
    return put_cluster(update, edit, &metadata.base);
}

status update_cluster(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__Cluster *message = (const void *)request->message;
    struct update update = {.request = request, .wanted = message};
    TRY(check_resource_name(RESOURCE_CLUSTER, message->name));
    TRY(control_edit(request->bigtable->control, stage_update, &update));
    *response = update.operation;
    return status_ok();
}

static status stage_partial_update(void *context, struct edit *edit)
{
    static const char *const allowed[] = {"serve_nodes", "cluster_config", NULL};
    struct update *update = context;
    struct arena *arena = update->request->arena;
    const BtAdmin__PartialUpdateClusterRequest *message = (const void *)update->request->message;
    BtAdmin__PartialUpdateClusterMetadata metadata =
        BT_ADMIN__PARTIAL_UPDATE_CLUSTER_METADATA__INIT;
    TRY(find_cluster(update, edit));
    TRY(field_mask_apply(message->update_mask, allowed, &update->wanted->base,
                         &update->cluster->base, arena));
    return put_cluster(update, edit, &metadata.base);
}

status partial_update_cluster(const struct admin_request *request,
                              const ProtobufCMessage **response)
{
    const BtAdmin__PartialUpdateClusterRequest *message = (const void *)request->message;
    if (message->cluster == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "cluster must be set");
    struct update update = {.request = request, .wanted = message->cluster};
    TRY(check_resource_name(RESOURCE_CLUSTER, message->cluster->name));
    TRY(control_edit(request->bigtable->control, stage_partial_update, &update));
    *response = update.operation;
    return status_ok();
}

/* --- delete --- */

struct deletion {
    struct arena *arena;
    struct backups *backups;
    const char *name;
    const char *id;
    status found;
};

/* A group of clusters has those that it names; without names, any. */
static bool group_has(const BtAdmin__AppProfile__MultiClusterRoutingUseAny *any, const char *id)
{
    for (size_t i = 0; i < any->n_cluster_ids; i++)
        if (strcmp(any->cluster_ids[i], id) == 0)
            return true;
    return false;
}

static bool profile_names(const BtAdmin__AppProfile *profile, const char *id)
{
    switch (profile->routing_policy_case) {
    case BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING:
        return strcmp(profile->single_cluster_routing->cluster_id, id) == 0;
    case BT_ADMIN__APP_PROFILE__ROUTING_POLICY_MULTI_CLUSTER_ROUTING_USE_ANY:
        return group_has(profile->multi_cluster_routing_use_any, id);
    default:
        return false;
    }
}

static status check_profile(struct deletion *deletion, const struct resource *resource)
{
    ProtobufCMessage *message;
    TRY(resource_decode(resource, deletion->arena, &message));
    const BtAdmin__AppProfile *profile = (const void *)message;
    if (!profile_names(profile, deletion->id))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Cluster \"%s\" cannot be deleted: app profile \"%s\" routes to it",
                       deletion->name, profile->name);
}

static bool visit_profile(void *context, struct resource *resource)
{
    struct deletion *deletion = context;
    deletion->found = check_profile(deletion, resource);
    return status_is_ok(deletion->found);
}

static status stage_deletion(void *context, struct edit *edit)
{
    struct deletion *deletion = context;
    struct control *control = edit_control(edit);
    char *instance = name_parent(deletion->arena, deletion->name);
    if (instance == NULL)
        return status_out_of_memory();
    if (edit_find(edit, RESOURCE_CLUSTER, deletion->name) == NULL)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", deletion->name);
    bool has_others;
    TRY(instance_is_replicated(control, instance, &has_others));
    if (!has_others)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Cluster \"%s\" cannot be deleted: it is the last of its instance",
                           deletion->name);
    TRY(control_list(control, RESOURCE_APP_PROFILE, instance, "", visit_profile, deletion));
    TRY(deletion->found);
    TRY(check_no_backups(deletion->backups, deletion->arena, "Cluster", deletion->name));
    return edit_delete(edit, RESOURCE_CLUSTER, deletion->name);
}

status delete_cluster(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DeleteClusterRequest *message = (const void *)request->message;
    TRY(check_resource_name(RESOURCE_CLUSTER, message->name));
    struct deletion deletion = {.arena = request->arena,
                                .backups = request->bigtable->backups,
                                .name = message->name,
                                .id = name_id(message->name),
                                .found = status_ok()};
    TRY(control_edit(request->bigtable->control, stage_deletion, &deletion));
    *response = admin_empty_response();
    return status_ok();
}
