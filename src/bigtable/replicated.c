/* See replicated.h. */
#include "bigtable/replicated.h"

#include "bigtable/names.h"

#include <string.h>

/* --- clusters --- */

static bool count_cluster(void *context, struct resource *resource)
{
    size_t *count = context;
    (void)resource;
    return ++*count < 2;
}

status instance_is_replicated(struct control *control, const char *instance, bool *out)
{
    size_t count = 0;
    TRY(control_list(control, RESOURCE_CLUSTER, instance, "", count_cluster, &count));
    *out = count > 1;
    return status_ok();
}

struct zone_search {
    struct arena *arena;
    const BtAdmin__Cluster *cluster;
    status found;
};

status zone_is_taken(void)
{
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Cannot create multiple clusters in the same zone.");
}

static status look_at_cluster(const struct zone_search *search, const struct resource *resource)
{
    ProtobufCMessage *message;
    TRY(resource_decode(resource, search->arena, &message));
    const BtAdmin__Cluster *other = (const void *)message;
    bool is_taken = strcmp(other->name, search->cluster->name) != 0 &&
                    strcmp(other->location, search->cluster->location) == 0;
    return is_taken ? zone_is_taken() : status_ok();
}

static bool visit_cluster(void *context, struct resource *resource)
{
    struct zone_search *search = context;
    search->found = look_at_cluster(search, resource);
    return status_is_ok(search->found);
}

status check_zone_is_free(struct control *control, struct arena *arena,
                          const BtAdmin__Cluster *cluster)
{
    struct zone_search search = {.arena = arena, .cluster = cluster, .found = status_ok()};
    const char *instance = name_parent(arena, cluster->name);
    if (instance == NULL)
        return status_out_of_memory();
    TRY(control_list(control, RESOURCE_CLUSTER, instance, "", visit_cluster, &search));
    return search.found;
}

/* --- app profiles --- */

bool profile_allows_transactions(const BtAdmin__AppProfile *profile)
{
    return profile->routing_policy_case ==
               BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING &&
           profile->single_cluster_routing->allow_transactional_writes;
}

/* --- garbage collection --- */

/* The age from which on the rule condemns, if it is of ages alone; 0 if it is not. */
static int64_t age_alone_us(const struct gc_rule *rule)
{
    int64_t age_us = 0;
    if (rule == NULL || rule->kind == GC_MAX_VERSIONS)
        return 0;
    if (rule->kind == GC_MAX_AGE)
        return rule->max_age_us;
    for (size_t i = 0; i < rule->child_count; i++) {
        int64_t child_us = age_alone_us(&rule->children[i]);
        if (child_us == 0)
            return 0;
        bool is_stricter = child_us < age_us;
        if (i == 0 || is_stricter == (rule->kind == GC_UNION))
            age_us = child_us;
    }
    return age_us;
}

status check_age_is_not_relaxed(bytes family, const struct gc_rule *before,
                                const struct gc_rule *after)
{
    int64_t before_us = age_alone_us(before), after_us = age_alone_us(after);
    if (before_us == 0 || (after_us > 0 && after_us <= before_us))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Cannot relax pure age-based GC for a replicated family (%.*s). If you must "
                       "relax the age constraint, unreplicate the instance and try again.",
                       (int)family.size, (const char *)family.data);
}
