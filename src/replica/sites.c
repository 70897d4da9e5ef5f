/* See sites.h. */
#include "replica/sites.h"

#include "base/limits.h"
#include "bigtable/names.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

unsigned sites_peer_of(const Replica__PeerList *list, const char *zone)
{
    for (size_t i = 0; i < list->n_peers; i++)
        if (strcmp(list->peers[i]->location, zone) == 0)
            return list->peers[i]->number;
    return list->leader;
}

bytes sites_instance_of(bytes name)
{
    static const char collection[] = "/instances/";
    size_t slashes = 0, size = 0;
    while (size < name.size && (slashes += name.data[size] == '/') < 4)
        size++;
    bytes instance = bytes_make(name.data, size);
    bool is_one = slashes >= 3 &&
                  memmem(instance.data, instance.size, collection, sizeof collection - 1) != NULL;
    return is_one ? instance : bytes_make(NULL, 0);
}

struct looking {
    const Replica__PeerList *list;
    unsigned own_number;
    struct arena *arena;
    struct sites *sites;
    status s;
};

static status add_cluster(struct looking *looking, const struct resource *resource)
{
    ProtobufCMessage *message;
    struct sites *sites = looking->sites;
    TRY(resource_decode(resource, looking->arena, &message));
    const char *location = ((const BtAdmin__Cluster *)(const void *)message)->location;
    unsigned number =
        sites_peer_of(looking->list, location[0] == '\0' ? location : name_id(location));
    sites->peers |= UINT32_C(1) << number;
    if (number == looking->own_number && sites->made_in == 0)
        sites->made_in = resource_made_in(resource);
    return status_ok();
}

static bool visit_cluster(void *context, struct resource *resource)
{
    struct looking *looking = context;
    looking->s = add_cluster(looking, resource);
    return status_is_ok(looking->s);
}

static status look(struct control *control, const char *instance, struct looking *looking)
{
    struct resource *resource;
    TRY(control_find(control, RESOURCE_INSTANCE, instance, &resource));
    looking->sites->instance_made_in = resource_made_in(resource);
    resource_release(resource);
    TRY(control_list(control, RESOURCE_CLUSTER, instance, "", visit_cluster, looking));
    return looking->s;
}

status sites_find(struct control *control, const Replica__PeerList *list, unsigned own_number,
                  const char *instance, struct sites *out)
{
    struct looking looking = {.list = list,
                              .own_number = own_number,
                              .arena = arena_create(LIMIT_ARENA_ADMIN_BYTES),
                              .sites = out,
                              .s = status_ok()};
    *out = (struct sites){0};
    if (looking.arena == NULL)
        return status_out_of_memory();
    status s = look(control, instance, &looking);
    arena_destroy(looking.arena);
    if (out->peers == 0)
        out->peers = UINT32_C(1) << list->leader;
    return s;
}
