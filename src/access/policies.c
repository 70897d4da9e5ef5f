/* See policies.h. Policies are sorted by resource, the grants of each by principal: 10,000 policies
 * are 14 comparisons. */
#include "access/policies.h"

#include "access/resource.h"

#include <stdlib.h>

static const char everybody[] = "allUsers";
static const char everybody_known[] = "allAuthenticatedUsers";

struct grant {
    bytes principal; /* owned */
    struct permission_set set;
};

struct policy {
    bytes resource; /* owned */
    struct permission_set everybody;
    struct permission_set everybody_known;
    struct grant *grants;
    size_t count;
};

/* --- checking --- */

static bool is_member(const char *member)
{
    static const char *const kinds[] = {"user:", "serviceAccount:", "cert:"};
    if (strcmp(member, everybody) == 0 || strcmp(member, everybody_known) == 0)
        return true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(member, kinds[i], strlen(kinds[i])) == 0 && member[strlen(kinds[i])] != '\0')
            return true;
    return false;
}

status policy_check(const struct access_binding *bindings, size_t count)
{
    struct permission_set set;
    for (size_t i = 0; i < count; i++) {
        if (!role_find(bytes_of(bindings[i].role), &set))
            return status_make(STATUS_INVALID_ARGUMENT,
                               "Role %s is not supported for this resource.", bindings[i].role);
        for (size_t j = 0; j < bindings[i].member_count; j++)
            if (!is_member(bindings[i].members[j]))
                return status_make(STATUS_INVALID_ARGUMENT,
                                   "The member %s is of an unknown type. Members are user:…, "
                                   "serviceAccount:…, cert:…, allUsers and allAuthenticatedUsers.",
                                   bindings[i].members[j]);
    }
    return status_ok();
}

/* --- compiling --- */

static void free_policy(struct policy *policy)
{
    for (size_t i = 0; i < policy->count; i++)
        free((void *)(uintptr_t)policy->grants[i].principal.data);
    free(policy->grants);
    free((void *)(uintptr_t)policy->resource.data);
    free(policy);
}

static bool copy(bytes from, bytes *to)
{
    uint8_t *data = malloc(from.size + 1);
    if (data == NULL)
        return false;
    memcpy(data, from.data, from.size);
    *to = bytes_make(data, from.size);
    return true;
}

static bool add_member(struct policy *policy, bytes member, struct permission_set set)
{
    if (bytes_equal(member, bytes_of(everybody))) {
        policy->everybody = permission_set_union(policy->everybody, set);
        return true;
    }
    if (bytes_equal(member, bytes_of(everybody_known))) {
        policy->everybody_known = permission_set_union(policy->everybody_known, set);
        return true;
    }
    struct grant *grant = &policy->grants[policy->count];
    if (!copy(member, &grant->principal))
        return false;
    grant->set = set;
    policy->count++;
    return true;
}

static int compare_grants(const void *a, const void *b)
{
    const struct grant *left = a;
    const struct grant *right = b;
    return bytes_compare(left->principal, right->principal);
}

/* One grant for each principal: those of the same become one. */
static void unite(struct policy *policy)
{
    size_t kept = 0;
    qsort(policy->grants, policy->count, sizeof *policy->grants, compare_grants);
    for (size_t i = 0; i < policy->count; i++) {
        struct grant *grant = &policy->grants[i];
        struct grant *last = kept == 0 ? NULL : &policy->grants[kept - 1];
        if (last != NULL && bytes_equal(last->principal, grant->principal)) {
            last->set = permission_set_union(last->set, grant->set);
            free((void *)(uintptr_t)grant->principal.data);
        } else {
            policy->grants[kept++] = *grant;
        }
    }
    policy->count = kept;
}

static bool fill(struct policy *policy, const struct access_binding *bindings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct permission_set set;
        if (!role_find(bytes_of(bindings[i].role), &set))
            continue;
        for (size_t j = 0; j < bindings[i].member_count; j++)
            if (!add_member(policy, bytes_of(bindings[i].members[j]), set))
                return false;
    }
    unite(policy);
    return true;
}

static status compile(bytes resource, const struct access_binding *bindings, size_t count,
                      struct policy **out)
{
    size_t members = 0;
    for (size_t i = 0; i < count; i++)
        members += bindings[i].member_count;
    struct policy *policy = calloc(1, sizeof *policy);
    if (policy == NULL)
        return status_out_of_memory();
    policy->grants = calloc(members + 1, sizeof *policy->grants);
    if (policy->grants == NULL || !copy(resource, &policy->resource) ||
        !fill(policy, bindings, count)) {
        free_policy(policy);
        return status_out_of_memory();
    }
    *out = policy;
    return status_ok();
}

/* --- the list --- */

/* The place of the first policy at the resource, or behind it. */
static size_t lower_bound(const struct policies *policies, bytes resource)
{
    size_t low = 0, high = policies->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(policies->list[middle]->resource, resource) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct policy *find(const struct policies *policies, bytes resource)
{
    size_t at = lower_bound(policies, resource);
    bool is_there = at < policies->count && bytes_equal(policies->list[at]->resource, resource);
    return is_there ? policies->list[at] : NULL;
}

static bool make_room(struct policies *policies)
{
    if (policies->count < policies->capacity)
        return true;
    size_t capacity = 2 * policies->capacity + 8;
    struct policy **list = realloc(policies->list, capacity * sizeof *list);
    if (list == NULL)
        return false;
    policies->list = list;
    policies->capacity = capacity;
    return true;
}

static void remove_at(struct policies *policies, size_t at)
{
    free_policy(policies->list[at]);
    policies->count--;
    memmove(&policies->list[at], &policies->list[at + 1],
            (policies->count - at) * sizeof *policies->list);
}

status policies_set(struct policies *policies, bytes resource,
                    const struct access_binding *bindings, size_t count)
{
    struct policy *policy;
    if (!make_room(policies))
        return status_out_of_memory();
    TRY(compile(resource, bindings, count, &policy));
    policies_remove(policies, resource);
    size_t at = lower_bound(policies, resource);
    memmove(&policies->list[at + 1], &policies->list[at],
            (policies->count - at) * sizeof *policies->list);
    policies->list[at] = policy;
    policies->count++;
    return status_ok();
}

void policies_remove(struct policies *policies, bytes resource)
{
    if (find(policies, resource) != NULL)
        remove_at(policies, lower_bound(policies, resource));
}

void policies_free(struct policies *policies)
{
    for (size_t i = 0; i < policies->count; i++)
        free_policy(policies->list[i]);
    free(policies->list);
    *policies = (struct policies){0};
}

/* --- asking --- */

static struct permission_set policy_grant(const struct policy *policy, bytes principal)
{
    const struct grant key = {.principal = principal};
    if (policy == NULL || principal.size == 0)
        return policy == NULL ? (struct permission_set){{0}} : policy->everybody;
    const struct grant *grant =
        bsearch(&key, policy->grants, policy->count, sizeof key, compare_grants);
    struct permission_set set = permission_set_union(policy->everybody, policy->everybody_known);
    return grant == NULL ? set : permission_set_union(set, grant->set);
}

struct permission_set policies_grant(const struct policies *policies, bytes principal,
                                     bytes resource)
{
    struct permission_set set = policy_grant(find(policies, bytes_of("*")), principal);
    bytes at = resource_root(resource);
    while (at.size > 0) {
        set = permission_set_union(set, policy_grant(find(policies, at), principal));
        resource_parent(&at);
    }
    return set;
}

bool policies_grant_inside(const struct policies *policies, bytes principal, bytes resource,
                           enum access_permission permission)
{
    for (size_t i = lower_bound(policies, resource); i < policies->count; i++) {
        bytes at = policies->list[i]->resource;
        if (!bytes_start_with(at, resource))
            return false;
        bool is_inside = at.size > resource.size && at.data[resource.size] == '/';
        if (is_inside && permission_set_has(policy_grant(policies->list[i], principal), permission))
            return true;
    }
    return false;
}

bool policies_have_owner(const struct policies *policies)
{
    const struct policy *policy = find(policies, bytes_of("*"));
    for (size_t i = 0; policy != NULL && i < policy->count; i++)
        if (permission_set_has(policy->grants[i].set, PERMISSION_instances_setIamPolicy))
            return true;
    return false;
}
