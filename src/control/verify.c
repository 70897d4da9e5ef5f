/* The doctor's check of the control plane's records: each parses, and has its parent. Those that
 * are kept for a deleted table have that. */
#include "control/control_private.h"

#include <stdlib.h>

struct verifying {
    struct keyspace *catalog;
    const struct control_check *check;
    size_t count;
};

static status is_recorded(struct keyspace *catalog, enum resource_kind kind, const char *name,
                          bool *is_there)
{
    struct buffer key = {0}, value = {0};
    *is_there = false;
    resource_append_key(&key, kind, name);
    status s = key.failed ? status_out_of_memory()
                          : catalog_get(catalog, buffer_bytes(&key), &value, is_there);
    buffer_free(&value);
    buffer_free(&key);
    return s;
}

/* Whether a resource of any kind has the name: for policies. A backup is in a directory that may be
 * elsewhere today. */
static status is_anything(const struct verifying *verifying, const char *name, bool *is_there)
{
    const struct resource_type *type;
    *is_there = strstr(name, "/backups/") != NULL ||
                verifying->check->has_table(verifying->check->context, name);
    for (size_t i = 0; !*is_there && (type = resource_type_at(i)) != NULL; i++)
        if (type->kind != RESOURCE_POLICY)
            TRY(is_recorded(verifying->catalog, type->kind, name, is_there));
    return status_ok();
}

static status has_parent(const struct verifying *verifying, const struct resource *resource,
                         struct arena *arena, bool *has)
{
    const struct resource_type *type = resource_type(resource->kind);
    *has = true;
    if (resource->kind == RESOURCE_POLICY)
        return is_anything(verifying, resource->name, has);
    if (type->parent == 0)
        return status_ok();
    char *parent =
        arena_string(arena, bytes_make(resource->name, resource_parent_size(resource->name)));
    if (parent == NULL)
        return status_out_of_memory();
    if ((int)type->parent == RESOURCE_TABLE_PARENT)
        *has = verifying->check->has_table(verifying->check->context, parent);
    else
        return is_recorded(verifying->catalog, type->parent, parent, has);
    return status_ok();
}

/* A record that cannot be read is reported, and is no failure of the check. */
static status report_damage(const struct verifying *verifying, bytes key, struct arena *arena,
                            status s)
{
    if (s.code != STATUS_DATA_LOSS && s.code != STATUS_INVALID_ARGUMENT)
        return s;
    char *name = arena_string(arena, key);
    verifying->check->report(verifying->check->context, name == NULL ? "" : name,
                             status_message(s));
    status_free(s);
    return status_ok();
}

static status verify_record(void *context, bytes key, bytes value, struct arena *arena)
{
    struct verifying *verifying = context;
    const struct control_check *check = verifying->check;
    struct resource *resource;
    bool has = false;
    verifying->count++;
    status s = resource_parse(key, value, arena, &resource);
    if (!status_is_ok(s))
        return report_damage(verifying, key, arena, s);
    s = has_parent(verifying, resource, arena, &has);
    if (status_is_ok(s) && !has)
        check->report(check->context, resource->name, "what it belongs to is not there");
    resource_release(resource);
    return s;
}

static status verify_kept(void *context, bytes key, bytes value, struct arena *arena)
{
    struct verifying *verifying = context;
    const struct control_check *check = verifying->check;
    struct resource *resource;
    uint64_t table_id;
    verifying->count++;
    status s = kept_parse(key, value, arena, &table_id, &resource);
    if (!status_is_ok(s))
        return report_damage(verifying, key, arena, s);
    if (!check->has_deleted_table(check->context, table_id))
        check->report(check->context, resource->name, "the deleted table that had it is not there");
    resource_release(resource);
    return status_ok();
}

status control_verify(struct keyspace *catalog, const struct control_check *check, size_t *count)
{
    static const uint8_t all = RESOURCE_KEY;
    struct verifying verifying = {.catalog = catalog, .check = check};
    status s = catalog_visit(catalog, bytes_make(&all, 1), verify_record, &verifying);
    if (status_is_ok(s))
        s = kept_read(catalog, 0, verify_kept, &verifying);
    *count = verifying.count;
    return s;
}
