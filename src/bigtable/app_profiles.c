/* App profiles: how an application's requests are routed and ranked. One process serves all
 * clusters: they are checked and kept, and what they say of single-row transactions, of the cluster
 * that answers name, and of change streams holds (served_by.h, stream_profile.h). They have no
 * etags: one that is sent is ignored, so that the last update wins. */
#include "bigtable/children.h"
#include "bigtable/default_instance.h"
#include "bigtable/field_mask.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/replicated.h"

static status invalid(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s", what);
}

/* --- checks: in an edit, under which clusters stay --- */

static status check_cluster(struct edit *edit, struct arena *arena, const char *instance,
                            const char *cluster_id)
{
    char *name = name_join(arena, instance, "clusters", cluster_id);
    if (name == NULL)
        return status_out_of_memory();
    if (edit_find(edit, RESOURCE_CLUSTER, name) != NULL)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "There is no cluster '%s' to route to", cluster_id);
}

static status check_routing(struct edit *edit, struct arena *arena, const char *instance,
                            const BtAdmin__AppProfile *profile)
{
    if (profile->routing_policy_case ==
        BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING)
        return check_cluster(edit, arena, instance, profile->single_cluster_routing->cluster_id);
    if (profile->routing_policy_case !=
        BT_ADMIN__APP_PROFILE__ROUTING_POLICY_MULTI_CLUSTER_ROUTING_USE_ANY)
        return invalid("A routing policy must be set");
    const BtAdmin__AppProfile__MultiClusterRoutingUseAny *any =
        profile->multi_cluster_routing_use_any;
    for (size_t i = 0; i < any->n_cluster_ids; i++)
        TRY(check_cluster(edit, arena, instance, any->cluster_ids[i]));
    return status_ok();
}

static status check_data_boost(const BtAdmin__AppProfile *profile)
{
    const BtAdmin__AppProfile__DataBoostIsolationReadOnly *boost =
        profile->data_boost_isolation_read_only;
    if (boost->has_compute_billing_owner_case == 0 ||
        boost->compute_billing_owner !=
            BT_ADMIN__APP_PROFILE__DATA_BOOST_ISOLATION_READ_ONLY__COMPUTE_BILLING_OWNER__HOST_PAYS)
        return invalid("compute_billing_owner must be HOST_PAYS");
    if (profile->routing_policy_case !=
            BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING ||
        profile->single_cluster_routing->allow_transactional_writes)
        return invalid("Data Boost needs single-cluster routing without transactional writes");
    return status_ok();
}

/* Without a word on isolation it is the standard one with high priority. The field `priority` was
 * its former form. */
static status complete_isolation(BtAdmin__AppProfile *profile, struct arena *arena)
{
    if (profile->isolation_case == BT_ADMIN__APP_PROFILE__ISOLATION_DATA_BOOST_ISOLATION_READ_ONLY)
        return check_data_boost(profile);
    BtAdmin__AppProfile__Priority priority = BT_ADMIN__APP_PROFILE__PRIORITY__PRIORITY_UNSPECIFIED;
    if (profile->isolation_case == BT_ADMIN__APP_PROFILE__ISOLATION_PRIORITY)
        priority = profile->priority;
    if (profile->isolation_case != BT_ADMIN__APP_PROFILE__ISOLATION_STANDARD_ISOLATION) {
        PROTO_NEW(arena, profile->standard_isolation,
                  BT_ADMIN__APP_PROFILE__STANDARD_ISOLATION__INIT);
        profile->standard_isolation->priority = priority;
        profile->isolation_case = BT_ADMIN__APP_PROFILE__ISOLATION_STANDARD_ISOLATION;
    }
    BtAdmin__AppProfile__StandardIsolation *standard = profile->standard_isolation;
    if (standard->priority == BT_ADMIN__APP_PROFILE__PRIORITY__PRIORITY_UNSPECIFIED)
        standard->priority = BT_ADMIN__APP_PROFILE__PRIORITY__PRIORITY_HIGH;
    if (standard->priority < 0 ||
        standard->priority > BT_ADMIN__APP_PROFILE__PRIORITY__PRIORITY_HIGH)
        return invalid("priority is unknown");
    return status_ok();
}

static status complete_profile(struct edit *edit, struct arena *arena, BtAdmin__AppProfile *profile)
{
    char *instance = name_parent(arena, profile->name);
    if (instance == NULL)
        return status_out_of_memory();
    TRY(check_routing(edit, arena, instance, profile));
    return complete_isolation(profile, arena);
}

/* --- create --- */

struct creation {
    const struct admin_request *request;
    const char *instance;
    BtAdmin__AppProfile profile;
};

static status stage_creation(void *context, struct edit *edit)
{
    struct creation *creation = context;
    struct arena *arena = creation->request->arena;
    TRY(require_instance(creation->request->bigtable, edit, arena, creation->instance));
    TRY(complete_profile(edit, arena, &creation->profile));
    return create_resource(edit, arena, RESOURCE_APP_PROFILE, &creation->profile.base);
}

status create_app_profile(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CreateAppProfileRequest *message = (const void *)request->message;
    struct creation *creation;
    PROTO_NEW(request->arena, creation, {request, message->parent, BT_ADMIN__APP_PROFILE__INIT});
    if (message->app_profile != NULL)
        creation->profile = *message->app_profile;
    TRY(name_new_child(request, RESOURCE_APP_PROFILE, message->parent, message->app_profile_id,
                       &creation->profile.name));
    TRY(control_edit(request->bigtable->control, stage_creation, creation));
    *response = &creation->profile.base;
    return status_ok();
}

/* --- get, list --- */

static const struct child_kind app_profiles = {
    .kind = RESOURCE_APP_PROFILE,
    .name = "app_profile",
    .list_response = &bt_admin__list_app_profiles_response__descriptor,
};

CHILD_METHOD(get, app_profile, app_profiles)
CHILD_METHOD(list, app_profiles, app_profiles)

/* --- update --- */

struct update {
    const struct admin_request *request;
    const BtAdmin__UpdateAppProfileRequest *message;
    const ProtobufCMessage *operation;
};

/* Requests that were allowed until now would fail. */
static status warn(const struct update *update, bool allowed_them, const void *profile)
{
    if (!allowed_them || profile_allows_transactions(profile) || update->message->ignore_warnings)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Updating the app profile will cause its single-row transactions "
                       "(CheckAndMutateRow, ReadModifyWriteRow) to fail; set ignore_warnings to "
                       "update it all the same");
}

static status stage_update(void *context, struct edit *edit)
{
    static const char *const allowed[] = {"description",
                                          "multi_cluster_routing_use_any",
                                          "single_cluster_routing",
                                          "priority",
                                          "standard_isolation",
                                          "data_boost_isolation_read_only",
                                          NULL};
    struct update *update = context;
    struct arena *arena = update->request->arena;
    const BtAdmin__AppProfile *wanted = update->message->app_profile;
    ProtobufCMessage *profile;
    BtAdmin__UpdateAppProfileMetadata metadata = BT_ADMIN__UPDATE_APP_PROFILE_METADATA__INIT;
    TRY(find_for_change(edit, arena, RESOURCE_APP_PROFILE, wanted->name, "", &profile));
    bool allowed_them = profile_allows_transactions((const void *)profile);
    TRY(field_mask_apply(update->message->update_mask, allowed, &wanted->base, profile, arena));
    TRY(complete_profile(edit, arena, (void *)profile));
    TRY(warn(update, allowed_them, profile));
    TRY(put_resource(edit, arena, RESOURCE_APP_PROFILE, profile));
    return finish_operation(edit, update->request, wanted->name, &metadata.base, profile,
                            &update->operation);
}

status update_app_profile(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__UpdateAppProfileRequest *message = (const void *)request->message;
    struct update update = {.request = request, .message = message};
    if (message->app_profile == NULL)
        return invalid("app_profile must be set");
    TRY(check_resource_name(RESOURCE_APP_PROFILE, message->app_profile->name));
    TRY(control_edit(request->bigtable->control, stage_update, &update));
    *response = update.operation;
    return status_ok();
}

/* --- delete --- */

status delete_app_profile(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__DeleteAppProfileRequest *message = (const void *)request->message;
    TRY(check_resource_name(RESOURCE_APP_PROFILE, message->name));
    if (strcmp(name_id(message->name), "default") == 0)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "The app profile 'default' cannot be deleted");
    if (control_has(request->bigtable->control, RESOURCE_APP_PROFILE, message->name) &&
        !message->ignore_warnings)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Deleting an app profile will cause all requests using it to fail.");
    return delete_resource(request, RESOURCE_APP_PROFILE, message->name, "", response);
}
