/* Clusters that were added to instances, at the server that leads: each is CREATING until its peer
 * has all rows, and READY then. That is all there is to it: who waits for it looks at the cluster
 * (bigtable/cluster_jobs.h). */
#include "replica/placement_private.h"

#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "replica/progress.h"
#include "wire/proto.h"

enum { TELL_US = 1000 * 1000 };

struct creations {
    struct placement *placement;
    struct arena *told; /* of the next one; NULL: it is not time to tell */
    struct vector tell; /* of struct creation */
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

/* --- telling how far they are --- */

static status note(struct creations *creations, const char *cluster,
                   const Replica__PlacedInstance *placed)
{
    struct arena *arena = creations->told;
    struct creation creation = {.cluster = arena_string(arena, bytes_of(cluster)), .is_news = true};
    struct buffer packed = {0};
    ProtobufCMessage *copy = NULL;
    proto_encode(&placed->base, &packed);
    status s = packed.failed || creation.cluster == NULL
                   ? status_out_of_memory()
                   : proto_decode(&replica__placed_instance__descriptor, buffer_bytes(&packed),
                                  arena, &copy);
    buffer_free(&packed);
    TRY(s);
    creation.placed = (const void *)copy;
    return vector_add(&creations->tell, arena, &creation, sizeof creation);
}

static bool is_time(struct placement *placement)
{
    int64_t now_us = clock_steady_us(cluster_clock(placement_cluster(placement)));
    pthread_mutex_lock(&placement->lock);
    bool is_so = now_us - placement->created_us >= TELL_US;
    if (is_so)
        placement->created_us = now_us;
    pthread_mutex_unlock(&placement->lock);
    return is_so;
}

static void show(struct placement *placement, struct creations *creations)
{
    pthread_mutex_lock(&placement->lock);
    struct arena *former = placement->created;
    placement->created = creations->told;
    placement->creations = creations->tell;
    pthread_mutex_unlock(&placement->lock);
    arena_destroy(former);
}

/* With the lock held. */
static struct creation *find_news(struct placement *placement, const char *cluster)
{
    struct creation *all = placement->creations.items;
    for (size_t i = 0; i < placement->creations.count; i++)
        if (all[i].is_news && strcmp(all[i].cluster, cluster) == 0)
            return &all[i];
    return NULL;
}

/* With the lock held. */
static void tell_all(const Replica__PlacedInstance *placed,
                     void (*tell)(void *context, const struct table_copied *table), void *context)
{
    for (size_t i = 0; i < placed->n_tables; i++) {
        const Replica__TableCopy *table = placed->tables[i];
        const struct table_copied copied = {.name = table->name,
                                            .size_bytes = table->size_bytes,
                                            .copied_bytes = table->copied_bytes,
                                            .is_over = table->is_over};
        tell(context, &copied);
    }
}

bool placement_creation(struct placement *placement, const char *cluster,
                        void (*tell)(void *context, const struct table_copied *table),
                        void *context)
{
    pthread_mutex_lock(&placement->lock);
    struct creation *creation = find_news(placement, cluster);
    bool is_news = creation != NULL && creation->placed->n_tables > 0;
    if (is_news)
        tell_all(creation->placed, tell, context);
    if (creation != NULL)
        creation->is_news = false;
    pthread_mutex_unlock(&placement->lock);
    return is_news;
}

/* --- asking --- */

static status ask(struct creations *creations, unsigned number, const char *instance,
                  const Replica__PlacedInstance **out)
{
    struct placement *placement = creations->placement;
    const Replica__TellProgressResponse *answer;
    Replica__TellProgressResponse *own;
    if (number == peers_own_number(placement->options.peers)) {
        PROTO_NEW(creations->arena, own, REPLICA__TELL_PROGRESS_RESPONSE__INIT);
        TRY(placement_tell(placement, &instance, 1, creations->arena, own));
        answer = own;
    } else {
        TRY(progress_ask(placement->options.peers, number, &instance, 1, creations->arena,
                         &answer));
    }
    if (answer->n_placed != 1)
        return status_make(STATUS_UNAVAILABLE, "peer %u does not say what it has", number);
    *out = answer->placed[0];
    return status_ok();
}

/* --- becoming ready --- */

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
    const Replica__PlacedInstance *placed = NULL;
    status s = ask(creations, number, instance, &placed);
    status_free(s); /* one that does not answer is asked again */
    if (placed != NULL && placed->state == PLACED_HERE)
        return make_ready(creations, cluster->name);
    *awaits = true;
    return placed == NULL || creations->told == NULL ? status_ok()
                                                     : note(creations, cluster->name, placed);
}

static status look_at_all(struct creations *creations, bool *awaits)
{
    const BtAdmin__Cluster *const *clusters = creations->clusters.items;
    for (size_t i = 0; i < creations->clusters.count; i++)
        TRY(look_at(creations, clusters[i], awaits));
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
    if (creations.clusters.count > 0 && is_time(placement))
        creations.told = arena_create(PLACEMENT_ARENA_BYTES);
    status s = look_at_all(&creations, awaits);
    if (creations.told != NULL)
        show(placement, &creations);
    return s;
}
