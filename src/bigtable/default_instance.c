/* See default_instance.h. */
#include "bigtable/default_instance.h"

#include "bigtable/names.h"

/* With one cluster production routes every request there, whatever else it does, and allows
 * transactions. */
static status route(struct arena *arena, const char *const *cluster_ids, size_t count,
                    BtAdmin__AppProfile *profile)
{
    if (count > 1) {
        profile->routing_policy_case =
            BT_ADMIN__APP_PROFILE__ROUTING_POLICY_MULTI_CLUSTER_ROUTING_USE_ANY;
        PROTO_NEW(arena, profile->multi_cluster_routing_use_any,
                  BT_ADMIN__APP_PROFILE__MULTI_CLUSTER_ROUTING_USE_ANY__INIT);
        return status_ok();
    }
    profile->routing_policy_case = BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING;
    PROTO_NEW(arena, profile->single_cluster_routing,
              BT_ADMIN__APP_PROFILE__SINGLE_CLUSTER_ROUTING__INIT);
    profile->single_cluster_routing->cluster_id = cluster_ids[0];
    profile->single_cluster_routing->allow_transactional_writes = true;
    return status_ok();
}

status stage_default_profile(struct edit *edit, struct arena *arena, const char *instance,
                             const char *const *cluster_ids, size_t count)
{
    BtAdmin__AppProfile profile = BT_ADMIN__APP_PROFILE__INIT;
    profile.name = name_join(arena, instance, "appProfiles", "default");
    if (profile.name == NULL)
        return status_out_of_memory();
    profile.description = "Made with the instance";
    TRY(route(arena, cluster_ids, count, &profile));
    profile.isolation_case = BT_ADMIN__APP_PROFILE__ISOLATION_STANDARD_ISOLATION;
    PROTO_NEW(arena, profile.standard_isolation, BT_ADMIN__APP_PROFILE__STANDARD_ISOLATION__INIT);
    profile.standard_isolation->priority = BT_ADMIN__APP_PROFILE__PRIORITY__PRIORITY_HIGH;
    return create_resource(edit, arena, RESOURCE_APP_PROFILE, &profile.base);
}

static status stage_cluster(const struct bigtable *bigtable, struct edit *edit, struct arena *arena,
                            const char *instance)
{
    BtAdmin__Cluster cluster = BT_ADMIN__CLUSTER__INIT;
    char *project = name_parent(arena, instance);
    if (project == NULL)
        return status_out_of_memory();
    cluster.name = name_join(arena, instance, "clusters", BIGTABLE_CLUSTER_ID);
    cluster.location = name_join(arena, project, "locations", bigtable->zone_id);
    if (cluster.name == NULL || cluster.location == NULL)
        return status_out_of_memory();
    cluster.state = BT_ADMIN__CLUSTER__STATE__READY;
    cluster.serve_nodes = 1;
    cluster.default_storage_type = BT_ADMIN__STORAGE_TYPE__SSD;
    return create_resource(edit, arena, RESOURCE_CLUSTER, &cluster.base);
}

struct first_cluster {
    struct arena *arena;
    char *name; /* NULL: there is none */
    bool is_out_of_memory;
};

static bool take_first(void *context, struct resource *resource)
{
    struct first_cluster *first = context;
    first->name = arena_string(first->arena, bytes_of(resource->name));
    first->is_out_of_memory = first->name == NULL;
    return false;
}

/* Makes one, unless the instance has some: its own record may have been lost (lost_records.h). */
static status require_cluster(const struct bigtable *bigtable, struct edit *edit,
                              struct arena *arena, const char *instance, const char **id)
{
    struct first_cluster first = {.arena = arena};
    TRY(control_list(edit_control(edit), RESOURCE_CLUSTER, instance, "", take_first, &first));
    if (first.is_out_of_memory)
        return status_out_of_memory();
    *id = first.name == NULL ? BIGTABLE_CLUSTER_ID : name_id(first.name);
    return first.name == NULL ? stage_cluster(bigtable, edit, arena, instance) : status_ok();
}

static status require_default_profile(struct edit *edit, struct arena *arena, const char *instance,
                                      const char *cluster_id)
{
    char *name = name_join(arena, instance, "appProfiles", "default");
    if (name == NULL)
        return status_out_of_memory();
    return edit_find(edit, RESOURCE_APP_PROFILE, name) != NULL
               ? status_ok()
               : stage_default_profile(edit, arena, instance, &cluster_id, 1);
}

static status stage_instance(const struct bigtable *bigtable, struct edit *edit,
                             struct arena *arena, const char *name)
{
    BtAdmin__Instance instance = BT_ADMIN__INSTANCE__INIT;
    const char *cluster_id;
    instance.name = name;
    instance.display_name = name_id(name);
    instance.state = BT_ADMIN__INSTANCE__STATE__READY;
    instance.type = BT_ADMIN__INSTANCE__TYPE__PRODUCTION;
    instance.edition = BT_ADMIN__INSTANCE__EDITION__ENTERPRISE;
    TRY(edit_time(edit, arena, &instance.create_time));
    TRY(create_resource(edit, arena, RESOURCE_INSTANCE, &instance.base));
    TRY(require_cluster(bigtable, edit, arena, name, &cluster_id));
    return require_default_profile(edit, arena, name, cluster_id);
}

static status not_found(const char *name)
{
    return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
}

status require_instance(const struct bigtable *bigtable, struct edit *edit, struct arena *arena,
                        const char *name)
{
    if (edit_find(edit, RESOURCE_INSTANCE, name) != NULL)
        return status_ok();
    return bigtable->auto_create ? stage_instance(bigtable, edit, arena, name) : not_found(name);
}

status check_instance_to_list(const struct bigtable *bigtable, const char *name)
{
    bool is_any = strcmp(name_id(name), "-") == 0;
    if (is_any || bigtable->auto_create || control_has(bigtable->control, RESOURCE_INSTANCE, name))
        return status_ok();
    return not_found(name);
}

/* --- what is there without its instance: tables that are older than instances, and whatever was
 * in one whose record the catalog has lost --- */

struct adoption {
    const struct bigtable *bigtable;
    struct edit *edit;
    struct arena *arena;
    status failure;
};

static status adopt(struct adoption *adoption, const char *name)
{
    char *instance = name_parent(adoption->arena, name);
    if (instance == NULL)
        return status_out_of_memory();
    if (edit_find(adoption->edit, RESOURCE_INSTANCE, instance) != NULL)
        return status_ok();
    return stage_instance(adoption->bigtable, adoption->edit, adoption->arena, instance);
}

/* Datastore's tables have no instance, and nor do the server's own. */
static bool has_instance(const char *table)
{
    return strstr(table, "/instances/") != NULL;
}

static bool visit_table(void *context, struct table *table)
{
    struct adoption *adoption = context;
    if (!has_instance(table_name(table)))
        return true;
    adoption->failure = adopt(adoption, table_name(table));
    return status_is_ok(adoption->failure);
}

static bool visit_resource(void *context, struct resource *resource)
{
    struct adoption *adoption = context;
    adoption->failure = adopt(adoption, resource->name);
    return status_is_ok(adoption->failure);
}

static status adopt_resources(struct adoption *adoption, enum resource_kind kind)
{
    TRY(control_list(edit_control(adoption->edit), kind, "", "", visit_resource, adoption));
    return adoption->failure;
}

static status adopt_all(void *context, struct edit *edit)
{
    const bytes none = bytes_of("");
    struct adoption *adoption = context;
    struct cluster *cluster = control_cluster(edit_control(edit));
    adoption->edit = edit;
    TRY(cluster_list_tables(cluster, none, none, visit_table, adoption));
    TRY(adoption->failure);
    TRY(adopt_resources(adoption, RESOURCE_CLUSTER));
    return adopt_resources(adoption, RESOURCE_APP_PROFILE);
}

status adopt_tables(struct bigtable *bigtable)
{
    enum { MEMORY = 1 << 30 };
    struct arena *arena = arena_create(MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    struct adoption adoption = {.bigtable = bigtable, .arena = arena, .failure = status_ok()};
    status s = control_edit(bigtable->control, adopt_all, &adoption);
    arena_destroy(arena);
    return s;
}
