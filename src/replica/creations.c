/* Clusters that were added to instances, at the server that leads: each is CREATING until its peer
 * has all rows, and READY then. That is all there is to it: who waits for it looks at the cluster
 * (bigtable/cluster_jobs.h). */
#include "replica/placement_private.h"

#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "replica/progress.h"

struct creations {
    struct placement *placement;
    const Replica__PeerList *list;
    struct arena *arena;
    struct vector clusters; /* of BtAdmin__Cluster * */
    status s;
};

static status add_cluster(struct creations *creations, const struct resource *resource)
{
    ProtobufCMessage *message;
    TRY(resource_decode(resource, creations->arena, &message));
    const BtAdmin__Cluster *cluster = (const void *)message;
    if (cluster->state != BT_ADMIN__CLUSTER__STATE__CREATING)
        return status_ok();
    return vector_add(&creations->clusters, creations->arena, &cluster, sizeof cluster);
}

static bool visit_cluster(void *context, struct resource *resource)
{
    struct creations *creations = context;
    creations->s = add_cluster(creations, resource);
    return status_is_ok(creations->s);
}

/* False also of a peer that does not answer. */
static bool is_here_at(struct creations *creations, unsigned number, const char *instance)
{
    const Replica__TellProgressResponse *answer = NULL;
    struct placement *placement = creations->placement;
    if (number == peers_own_number(placement->options.peers))
        return placed_is_here(placement->placed, bytes_of(instance));
    status s =
        progress_ask(placement->options.peers, number, &instance, 1, creations->arena, &answer);
    bool is_so =
        status_is_ok(s) && answer->n_placed == 1 && answer->placed[0]->state == PLACED_HERE;
    status_free(s);
    return is_so;
}

struct readying {
    struct arena *arena;
    const char *name;
};

static status stage(void *context, struct edit *edit)
{
    struct readying *readying = context;
    ProtobufCMessage *message;
    TRY(find_for_change(edit, readying->arena, RESOURCE_CLUSTER, readying->name, "", &message));
    ((BtAdmin__Cluster *)(void *)message)->state = BT_ADMIN__CLUSTER__STATE__READY;
    return put_resource(edit, readying->arena, RESOURCE_CLUSTER, message);
}

static status make_ready(struct creations *creations, const char *name)
{
    struct readying readying = {creations->arena, name};
    status s = control_edit(creations->placement->options.control, stage, &readying);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s); /* it was deleted meanwhile */
    return status_ok();
}

static status look_at(struct creations *creations, const BtAdmin__Cluster *cluster, bool *awaits)
{
    char *instance = name_parent(creations->arena, cluster->name);
    if (instance == NULL)
        return status_out_of_memory();
    unsigned number = sites_peer_of(creations->list, name_id(cluster->location));
    if (is_here_at(creations, number, instance))
        return make_ready(creations, cluster->name);
    *awaits = true;
    return status_ok();
}

status creations_look(struct placement *placement, const Replica__PeerList *list,
                      struct arena *arena, bool *awaits)
{
    struct creations creations = {
        .placement = placement, .list = list, .arena = arena, .s = status_ok()};
    *awaits = false;
    if (list->leader != peers_own_number(placement->options.peers))
        return status_ok();
    TRY(control_list(placement->options.control, RESOURCE_CLUSTER, "", "", visit_cluster,
                     &creations));
    TRY(creations.s);
    const BtAdmin__Cluster *const *clusters = creations.clusters.items;
    for (size_t i = 0; i < creations.clusters.count; i++)
        TRY(look_at(&creations, clusters[i], awaits));
    return status_ok();
}
