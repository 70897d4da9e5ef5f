/* See policy_file.h. */
#include "access/policy_file.h"

#include "access/resource.h"

#include <jansson.h>
#include <stdlib.h>

static status refuse(const char *resource, const char *why)
{
    return status_make(STATUS_INVALID_ARGUMENT, "policy of %s: %s", resource, why);
}

/* The strings are the JSON's; the array of them is to be freed. */
static status read_binding(const char *resource, const json_t *json, struct access_binding *out)
{
    const json_t *members = json_object_get(json, "members");
    size_t index;
    const json_t *member;
    out->role = json_string_value(json_object_get(json, "role"));
    if (out->role == NULL || !json_is_array(members))
        return refuse(resource, "a binding should have a role and members");
    if (json_object_get(json, "condition") != NULL)
        return refuse(resource, "conditions are not supported");
    const char **list = calloc(json_array_size(members) + 1, sizeof *list);
    if (list == NULL)
        return status_out_of_memory();
    out->members = list;
    json_array_foreach(members, index, member)
    {
        list[out->member_count] = json_string_value(member);
        if (list[out->member_count++] == NULL)
            return refuse(resource, "a member should be a text");
    }
    return status_ok();
}

static status set_policy(const char *resource, const json_t *list, struct access_binding *bindings,
                         struct policies *out)
{
    size_t index;
    const json_t *json;
    json_array_foreach(list, index, json) TRY(read_binding(resource, json, &bindings[index]));
    TRY(policy_check(bindings, json_array_size(list)));
    return policies_set(out, bytes_of(resource), bindings, json_array_size(list));
}

static status read_policy(const char *resource, const json_t *json, struct policies *out)
{
    enum access_kind kind;
    const json_t *list = json_object_get(json, "bindings");
    if (!json_is_array(list))
        return refuse(resource, "it should have bindings");
    if (strcmp(resource, "*") != 0 &&
        (!resource_kind(bytes_of(resource), &kind) || kind == KIND_PROJECT_ID))
        return refuse(resource, "this is no name of a resource");
    struct access_binding *bindings = calloc(json_array_size(list) + 1, sizeof *bindings);
    if (bindings == NULL)
        return status_out_of_memory();
    status s = set_policy(resource, list, bindings, out);
    for (size_t i = 0; i < json_array_size(list); i++)
        free((void *)(uintptr_t)bindings[i].members);
    free(bindings);
    return s;
}

static status read_all(json_t *json, struct policies *out)
{
    const char *resource;
    json_t *policy;
    if (!json_is_object(json))
        return status_make(STATUS_INVALID_ARGUMENT, "it should be an object of policies");
    json_object_foreach(json, resource, policy) TRY(read_policy(resource, policy, out));
    return status_ok();
}

status policy_file_parse(bytes text, struct policies *out)
{
    json_error_t error;
    json_t *json = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "line %d: %s", error.line, error.text);
    status s = read_all(json, out);
    json_decref(json);
    if (!status_is_ok(s))
        policies_free(out);
    return s;
}

/* --- to compare two files --- */

static size_t count_members(json_t *json)
{
    const char *resource;
    json_t *policy, *binding;
    size_t index, count = 0;
    json_object_foreach(json, resource, policy)
        json_array_foreach(json_object_get(policy, "bindings"), index, binding) count +=
        json_array_size(json_object_get(binding, "members"));
    return count;
}

static void add_members(struct arena *arena, bytes resource, const json_t *binding,
                        struct audit_grant *grants, size_t *count)
{
    size_t index;
    const json_t *member;
    const char *role = json_string_value(json_object_get(binding, "role"));
    bytes name = arena_copy(arena, bytes_of(role));
    json_array_foreach(json_object_get(binding, "members"), index, member) grants[(*count)++] =
        (struct audit_grant){.resource = resource,
                             .role = name,
                             .member = arena_copy(arena, bytes_of(json_string_value(member)))};
}

/* Lists the grants of a file that has been found to be good. */
static status list_grants(json_t *json, struct arena *arena, struct audit_grant **out,
                          size_t *count)
{
    const char *resource;
    json_t *policy, *binding;
    size_t index;
    *out = arena_alloc(arena, (count_members(json) + 1) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    json_object_foreach(json, resource, policy)
    {
        bytes name = arena_copy(arena, bytes_of(resource));
        json_array_foreach(json_object_get(policy, "bindings"), index, binding)
            add_members(arena, name, binding, *out, count);
    }
    for (size_t i = 0; i < *count; i++)
        if ((*out)[i].resource.size == 0 || (*out)[i].role.size == 0 || (*out)[i].member.size == 0)
            return status_out_of_memory();
    return status_ok();
}

status policy_file_grants(bytes text, struct arena *arena, struct audit_grant **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    if (text.size == 0)
        return status_ok();
    json_t *json = json_loadb((const char *)text.data, text.size, 0, NULL);
    if (json == NULL)
        return status_out_of_memory();
    status s = list_grants(json, arena, out, count);
    json_decref(json);
    return s;
}
