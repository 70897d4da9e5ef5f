/* From the policies that clients set to those that access control goes by. */
#include "bigtable/policy_methods.h"
#include "bigtable/services.h"

enum { POLICY_MEMORY = 64 << 20 };

/* A binding with a condition grants nothing: whether it holds cannot be told. */
status policy_bindings(const Iam__Policy *policy, struct arena *arena,
                       struct access_binding **bindings, size_t *count)
{
    *count = 0;
    *bindings = arena_alloc(arena, (policy->n_bindings + 1) * sizeof **bindings);
    if (*bindings == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < policy->n_bindings; i++) {
        const Iam__Binding *binding = policy->bindings[i];
        if (binding->condition != NULL)
            continue;
        (*bindings)[(*count)++] =
            (struct access_binding){.role = binding->role,
                                    .members = (const char *const *)binding->members,
                                    .member_count = binding->n_members};
    }
    return status_ok();
}

static status set_policy(struct access *access, const struct resource *resource,
                         struct arena *arena)
{
    ProtobufCMessage *message;
    struct access_binding *bindings;
    size_t count;
    TRY(resource_decode(resource, arena, &message));
    TRY(policy_bindings((const void *)message, arena, &bindings, &count));
    return access_set_policy(access, bytes_of(resource->name), bindings, count);
}

/* A policy that cannot be used grants nothing. Taking one away needs no memory. */
static void policy_changed(void *context, const char *name, const struct resource *resource)
{
    struct bigtable *bigtable = context;
    struct arena *arena = resource == NULL ? NULL : arena_create(POLICY_MEMORY);
    status s = status_ok();
    if (arena != NULL)
        s = set_policy(bigtable->access, resource, arena);
    else if (resource != NULL)
        s = status_out_of_memory();
    if (resource == NULL || !status_is_ok(s))
        access_drop_policy(bigtable->access, bytes_of(name));
    if (!status_is_ok(s))
        log_error(control_log(bigtable->control), "policy is not in force",
                  LOG_STR("resource", name), LOG_STR("error", status_message(s)));
    status_free(s);
    arena_destroy(arena);
}

void bigtable_enforce_policies(struct bigtable *bigtable, struct access *access)
{
    bigtable->access = access;
    bigtable->policy_watcher = (struct control_watcher){
        .kind = RESOURCE_POLICY, .context = bigtable, .changed = policy_changed};
    control_watch(bigtable->control, &bigtable->policy_watcher);
}
