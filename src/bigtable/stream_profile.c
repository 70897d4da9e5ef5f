/* See stream_profile.h. */
#include "bigtable/stream_profile.h"

#include "bigtable/names.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

static status check_profile(const BtAdmin__AppProfile *profile, const char **cluster_id)
{
    if (profile->isolation_case == BT_ADMIN__APP_PROFILE__ISOLATION_DATA_BOOST_ISOLATION_READ_ONLY)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Change streams cannot be read with Data Boost: '%s'", profile->name);
    if (profile->routing_policy_case !=
        BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Change streams are read with single-cluster routing, which app profile "
                           "'%s' does not have",
                           profile->name);
    *cluster_id = profile->single_cluster_routing->cluster_id;
    return status_ok();
}

static status look_up_profile(const struct bigtable *bigtable, const char *name,
                              struct arena *arena, const char **cluster_id)
{
    struct resource *resource;
    ProtobufCMessage *message;
    TRY(control_find(bigtable->control, RESOURCE_APP_PROFILE, name, &resource));
    status s = resource_decode(resource, arena, &message);
    resource_release(resource);
    TRY(s);
    return check_profile((const void *)message, cluster_id);
}

struct first_cluster {
    struct arena *arena;
    const char *id; /* NULL: there is none, or no memory */
};

static bool take_first(void *context, struct resource *resource)
{
    struct first_cluster *first = context;
    first->id = arena_string(first->arena, bytes_of(name_id(resource->name)));
    return false;
}

static status find_first_cluster(const struct bigtable *bigtable, const char *instance,
                                 struct arena *arena, const char **cluster_id)
{
    struct first_cluster first = {.arena = arena};
    TRY(control_list(bigtable->control, RESOURCE_CLUSTER, instance, "", take_first, &first));
    *cluster_id = first.id == NULL ? BIGTABLE_CLUSTER_ID : first.id;
    return status_ok();
}

/* An instance that was never made has no default profile either. */
status stream_profile_check(const struct bigtable *bigtable, const char *table, const char *profile,
                            struct arena *arena, const char **cluster_id)
{
    char *instance = name_parent(arena, table);
    const char *id = profile[0] == '\0' ? "default" : profile;
    char *name = instance == NULL ? NULL : name_join(arena, instance, "appProfiles", id);
    if (name == NULL)
        return status_out_of_memory();
    status s = look_up_profile(bigtable, name, arena, cluster_id);
    if (s.code != STATUS_NOT_FOUND || strcmp(id, "default") != 0)
        return s;
    status_ignore(s);
    return find_first_cluster(bigtable, instance, arena, cluster_id);
}
