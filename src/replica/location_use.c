/* See location_use.h. */
#include "replica/location_use.h"

#include "google/bigtable/admin/v2/instance.pb-c.h"

#include <string.h>

enum { CLUSTER_MEMORY = 4 << 20 };

struct looking {
    const char *location;
    struct arena *arena;
    status s;
};

static bool is_at(const char *zone, const char *location)
{
    const char *slash = strrchr(zone, '/');
    return strcmp(slash == NULL ? zone : slash + 1, location) == 0;
}

static bool look(void *context, struct resource *resource)
{
    struct looking *looking = context;
    ProtobufCMessage *message;
    arena_reset(looking->arena);
    looking->s = resource_decode(resource, looking->arena, &message);
    if (!status_is_ok(looking->s))
        return false;
    const BtAdmin__Cluster *cluster = (const void *)message;
    if (is_at(cluster->location, looking->location))
        looking->s =
            status_make(STATUS_FAILED_PRECONDITION, "%s is in %s: delete it first, or --force",
                        resource->name, looking->location);
    return status_is_ok(looking->s);
}

status location_check_unused(struct control *control, const char *location)
{
    struct looking looking = {location, arena_create(CLUSTER_MEMORY), status_ok()};
    if (looking.arena == NULL)
        return status_out_of_memory();
    status s = control_list(control, RESOURCE_CLUSTER, "", "", look, &looking);
    arena_destroy(looking.arena);
    if (status_is_ok(s))
        return looking.s;
    status_free(looking.s);
    return s;
}
