/* Access policies: GetIamPolicy, SetIamPolicy, TestIamPermissions of both admin services.
 *
 * A policy is a resource that has the name of what it is the policy of, and goes with it. With
 * access control off it is kept as it was given, and everybody has every permission; with it on
 * what could not be enforced is refused. */
#include "bigtable/field_mask.h"
#include "bigtable/names.h"
#include "bigtable/policy_methods.h"
#include "bigtable/resource_call.h"

#include <inttypes.h>
#include <stdio.h>

enum { VERSION_WITH_CONDITIONS = 3 };

/* --- what may have a policy --- */

static const char table_form[] = "projects/{project}/instances/{instance}/tables/{table}";
static const char backup_form[] =
    "projects/{project}/instances/{instance}/clusters/{cluster}/backups/{backup}";

static bool has_form(const char *name, const char *form)
{
    status s = name_check_form("", name, form);
    bool has = status_is_ok(s);
    status_free(s);
    return has;
}

static bool is_of_kind(enum resource_kind kind, const char *name)
{
    status s = check_resource_name(kind, name);
    bool is = status_is_ok(s);
    status_free(s);
    return is;
}

static const enum resource_kind kinds[] = {
    RESOURCE_INSTANCE,        RESOURCE_LOGICAL_VIEW,  RESOURCE_MATERIALIZED_VIEW,
    RESOURCE_AUTHORIZED_VIEW, RESOURCE_SCHEMA_BUNDLE,
};

static status check_backup(const struct admin_request *request, const char *name)
{
    struct backup_info info;
    return backup_describe(request->bigtable->backups, name, request->arena, &info);
}

/* NOT_FOUND; INVALID_ARGUMENT for what is no such name. */
static status check_resource(const struct admin_request *request, const char *name)
{
    if (has_form(name, table_form)) {
        struct table *table;
        TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
        table_release(table);
        return status_ok();
    }
    if (has_form(name, backup_form))
        return check_backup(request, name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!is_of_kind(kinds[i], name))
            continue;
        if (control_has(request->bigtable->control, kinds[i], name))
            return status_ok();
        return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
    }
    return status_make(STATUS_INVALID_ARGUMENT, "'%s' is no resource that has a policy", name);
}

/* --- etags --- */

enum { ETAG_SIZE = 16 };

static status set_etag(Iam__Policy *policy, uint64_t version, struct arena *arena)
{
    char *etag = arena_alloc(arena, ETAG_SIZE + 1);
    if (etag == NULL)
        return status_out_of_memory();
    snprintf(etag, ETAG_SIZE + 1, "%0*" PRIx64, ETAG_SIZE, version);
    policy->etag = proto_data(bytes_make(etag, ETAG_SIZE));
    return status_ok();
}

/* The etag that production answers with for a policy that was never set. */
static bytes no_policy_etag(void)
{
    static const uint8_t etag[] = {0x00, 0x20, 0x01};
    return bytes_make(etag, sizeof etag);
}

/* The policy that stands, with its etag; without one, an empty one. */
static status policy_message(const struct resource *resource, struct arena *arena,
                             Iam__Policy **out)
{
    ProtobufCMessage *message;
    if (resource == NULL) {
        PROTO_NEW(arena, *out, IAM__POLICY__INIT);
        (*out)->etag = proto_data(no_policy_etag());
        return status_ok();
    }
    TRY(resource_decode(resource, arena, &message));
    *out = (void *)message;
    return set_etag(*out, resource->version, arena);
}

/* --- get --- */

status get_iam_policy(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Iam__GetIamPolicyRequest *message = (const void *)request->message;
    struct resource *resource;
    Iam__Policy *policy = NULL;
    TRY(check_resource(request, message->resource));
    status s =
        control_find(request->bigtable->control, RESOURCE_POLICY, message->resource, &resource);
    status_free(s); /* there is none: then it is an empty one */
    s = policy_message(resource, request->arena, &policy);
    resource_release(resource);
    TRY(s);
    *response = &policy->base;
    return status_ok();
}

/* --- set --- */

static status check_member(const char *member)
{
    bool is_known = strchr(member, ':') != NULL || strcmp(member, "allUsers") == 0 ||
                    strcmp(member, "allAuthenticatedUsers") == 0;
    if (is_known)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid member '%s': expected allUsers, allAuthenticatedUsers, or "
                       "{type}:{name}",
                       member);
}

static bool is_role(const char *role)
{
    return strncmp(role, "roles/", strlen("roles/")) == 0 || strstr(role, "/roles/") != NULL;
}

static status check_binding(const Iam__Policy *policy, const Iam__Binding *binding)
{
    if (!is_role(binding->role))
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid role '%s': expected roles/{role}",
                           binding->role);
    if (binding->condition != NULL && policy->version != VERSION_WITH_CONDITIONS)
        return status_make(STATUS_INVALID_ARGUMENT, "A policy with conditions must have version %d",
                           VERSION_WITH_CONDITIONS);
    for (size_t i = 0; i < binding->n_members; i++)
        TRY(check_member(binding->members[i]));
    return status_ok();
}

/* Whether all of it can be enforced: a binding that is kept but not in force would mislead. */
static status check_enforceable(const struct admin_request *request, const Iam__Policy *policy)
{
    struct access_binding *bindings;
    size_t count;
    if (request->bigtable->access == NULL)
        return status_ok();
    for (size_t i = 0; i < policy->n_bindings; i++)
        if (policy->bindings[i]->condition != NULL)
            return status_make(STATUS_UNIMPLEMENTED, "Conditions in bindings are not supported");
    TRY(policy_bindings(policy, request->arena, &bindings, &count));
    return policy_check(bindings, count);
}

static status check_policy(const Iam__Policy *policy)
{
    if (policy->version < 0 || policy->version > VERSION_WITH_CONDITIONS || policy->version == 2)
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid policy version %d", policy->version);
    for (size_t i = 0; i < policy->n_bindings; i++)
        TRY(check_binding(policy, policy->bindings[i]));
    return status_ok();
}

struct setting {
    const struct admin_request *request;
    Iam__Policy *policy;
};

/* Every member's roles, also those under a condition. */
static status list_grants(const Iam__Policy *policy, struct arena *arena,
                          struct audit_grant **grants, size_t *count)
{
    size_t bindings = policy->n_bindings;
    struct access_binding *list = arena_alloc(arena, (bindings + 1) * sizeof *list);
    if (list == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < bindings; i++)
        list[i] = (struct access_binding){
            .role = policy->bindings[i]->role,
            .members = (const char *const *)policy->bindings[i]->members,
            .member_count = policy->bindings[i]->n_members,
        };
    *count = audit_grant_count(list, bindings);
    *grants = arena_alloc(arena, (*count + 1) * sizeof **grants);
    if (*grants == NULL)
        return status_out_of_memory();
    audit_grants_of(bytes_make(NULL, 0), list, bindings, *grants);
    return status_ok();
}

/* For the audit log. */
static status note_changes(const struct setting *setting, const Iam__Policy *standing)
{
    struct access_caller *caller = setting->request->caller;
    struct arena *arena = setting->request->arena;
    struct audit_grant *before, *after;
    size_t before_count, after_count;
    if (caller == NULL)
        return status_ok();
    struct audit_changes *changes = arena_zalloc(arena, sizeof *changes);
    if (changes == NULL)
        return status_out_of_memory();
    TRY(list_grants(standing, arena, &before, &before_count));
    TRY(list_grants(setting->policy, arena, &after, &after_count));
    audit_compare_grants(before, before_count, after, after_count, changes);
    caller->changes = changes;
    return status_ok();
}

/* A policy that was read and is set again with its etag replaces only the one that was read. */
static status check_etag(const Iam__Policy *standing, const Iam__Policy *wanted)
{
    bytes etag = proto_bytes(wanted->etag);
    if (etag.size == 0 || bytes_equal(etag, proto_bytes(standing->etag)))
        return status_ok();
    return status_make(STATUS_ABORTED,
                       "The policy was changed meanwhile: read it again, and set it anew");
}

static status apply(const Iam__SetIamPolicyRequest *message, struct arena *arena,
                    Iam__Policy *policy)
{
    static const char *const allowed[] = {"version", "bindings", "audit_configs", "etag", NULL};
    if (message->update_mask != NULL && message->update_mask->n_paths > 0)
        return field_mask_apply(message->update_mask, allowed, &message->policy->base,
                                &policy->base, arena);
    *policy = *message->policy;
    return status_ok();
}

static status stage_policy(void *context, struct edit *edit)
{
    struct setting *setting = context;
    struct arena *arena = setting->request->arena;
    const Iam__SetIamPolicyRequest *message = (const void *)setting->request->message;
    TRY(check_resource(setting->request, message->resource));
    TRY(policy_message(edit_find(edit, RESOURCE_POLICY, message->resource), arena,
                       &setting->policy));
    TRY(check_etag(setting->policy, message->policy));
    const Iam__Policy standing = *setting->policy;
    TRY(apply(message, arena, setting->policy));
    TRY(check_policy(setting->policy));
    TRY(check_enforceable(setting->request, setting->policy));
    TRY(note_changes(setting, &standing));
    setting->policy->etag = proto_data(bytes_of(""));
    TRY(edit_put(edit, RESOURCE_POLICY, message->resource, &setting->policy->base, bytes_of("")));
    return set_etag(setting->policy, edit_version(edit), arena);
}

status set_iam_policy(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Iam__SetIamPolicyRequest *message = (const void *)request->message;
    struct setting setting = {.request = request};
    if (message->policy == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "policy must be set");
    bool is_shared = resource_is_shared(RESOURCE_POLICY, message->resource);
    if (is_shared)
        TRY(change_shared_begin(request->bigtable));
    status s = control_edit(request->bigtable->control, stage_policy, &setting);
    if (is_shared)
        change_shared_end(request->bigtable);
    if (!status_is_ok(s) && request->caller != NULL)
        request->caller->changes = NULL; /* none of them was made */
    TRY(s);
    *response = &setting.policy->base;
    return status_ok();
}

/* --- test --- */

static status select_granted(const struct admin_request *request,
                             const Iam__TestIamPermissionsRequest *message,
                             Iam__TestIamPermissionsResponse *granted)
{
    struct access *access = request->bigtable->access;
    granted->permissions =
        arena_alloc(request->arena, (message->n_permissions + 1) * sizeof *granted->permissions);
    if (granted->permissions == NULL)
        return status_out_of_memory();
    struct permission_set set = {{0}};
    if (access != NULL && request->caller != NULL)
        set = access_granted(access, request->caller, bytes_of(message->resource));
    for (size_t i = 0; i < message->n_permissions; i++) {
        enum access_permission permission;
        if (access == NULL || (permission_find(bytes_of(message->permissions[i]), &permission) &&
                               permission_set_has(set, permission)))
            granted->permissions[granted->n_permissions++] = message->permissions[i];
    }
    return status_ok();
}

/* No caller has permissions on a resource that is not there: production does not say NOT_FOUND
 * here. */
status test_iam_permissions(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Iam__TestIamPermissionsRequest *message = (const void *)request->message;
    Iam__TestIamPermissionsResponse *granted;
    for (size_t i = 0; i < message->n_permissions; i++)
        if (strchr(message->permissions[i], '*') != NULL)
            return status_make(STATUS_INVALID_ARGUMENT, "Permission '%s' has a wildcard",
                               message->permissions[i]);
    PROTO_NEW(request->arena, granted, IAM__TEST_IAM_PERMISSIONS_RESPONSE__INIT);
    status s = check_resource(request, message->resource);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        s = status_ok();
    } else if (status_is_ok(s)) {
        s = select_granted(request, message, granted);
    }
    TRY(s);
    *response = &granted->base;
    return status_ok();
}
