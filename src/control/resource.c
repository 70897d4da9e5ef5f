/* See resource.h. */
#include "control/resource.h"

#include "base/big_endian.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "google/bigtable/admin/v2/table.pb-c.h"
#include "google/firestore/admin/v1/field.pb-c.h"
#include "google/iam/v1/policy.pb-c.h"
#include "google/longrunning/operations.pb-c.h"
#include "trestle/catalog.pb-c.h"
#include "wire/proto.h"

#include <stdlib.h>

/* --- kinds --- */

static const struct resource_type types[] = {
    {RESOURCE_AUTHORIZED_VIEW, "Authorized view", "authorizedViews",
     (enum resource_kind)RESOURCE_TABLE_PARENT, &bt_admin__authorized_view__descriptor},
    {RESOURCE_CLUSTER, "Cluster", "clusters", RESOURCE_INSTANCE, &bt_admin__cluster__descriptor},
    {RESOURCE_FIELD, "Field", NULL, (enum resource_kind)0, &fs_admin__field__descriptor},
    {RESOURCE_INSTANCE, "Instance", "instances", (enum resource_kind)0,
     &bt_admin__instance__descriptor},
    {RESOURCE_LOGICAL_VIEW, "Logical view", "logicalViews", RESOURCE_INSTANCE,
     &bt_admin__logical_view__descriptor},
    {RESOURCE_MATERIALIZED_VIEW, "Materialized view", "materializedViews", RESOURCE_INSTANCE,
     &bt_admin__materialized_view__descriptor},
    {RESOURCE_OPERATION, "Operation", NULL, (enum resource_kind)0, &lro__operation__descriptor},
    {RESOURCE_APP_PROFILE, "App profile", "appProfiles", RESOURCE_INSTANCE,
     &bt_admin__app_profile__descriptor},
    {RESOURCE_SCHEMA_BUNDLE, "Schema bundle", "schemaBundles",
     (enum resource_kind)RESOURCE_TABLE_PARENT, &bt_admin__schema_bundle__descriptor},
    {RESOURCE_POLICY, "Policy", NULL, (enum resource_kind)0, &iam__policy__descriptor},
};

enum { TYPES = sizeof types / sizeof *types };

const struct resource_type *resource_type_at(size_t index)
{
    return index < TYPES ? &types[index] : NULL;
}

const struct resource_type *resource_type(enum resource_kind kind)
{
    for (size_t i = 0; i < TYPES; i++)
        if (types[i].kind == kind)
            return &types[i];
    return NULL;
}

bool resource_is_shared(enum resource_kind kind, const char *name)
{
    return kind != RESOURCE_OPERATION && kind != RESOURCE_FIELD &&
           strstr(name, "/instances/") != NULL && strstr(name, "/backups/") == NULL;
}

/* --- one resource --- */

/* Name, body and extra lie behind the structure. */
status resource_create(enum resource_kind kind, const char *name, uint64_t version, bytes body,
                       bytes extra, struct resource **out)
{
    size_t name_size = strlen(name) + 1;
    struct resource *resource = malloc(sizeof *resource + name_size + body.size + extra.size);
    *out = resource;
    if (resource == NULL)
        return status_out_of_memory();
    char *at = (char *)(resource + 1);
    *resource = (struct resource){.references = 1,
                                  .kind = kind,
                                  .version = version,
                                  .name = at,
                                  .body = bytes_make(at + name_size, body.size),
                                  .extra = bytes_make(at + name_size + body.size, extra.size)};
    memcpy(at, name, name_size);
    if (body.size > 0)
        memcpy(at + name_size, body.data, body.size);
    if (extra.size > 0)
        memcpy(at + name_size + body.size, extra.data, extra.size);
    return status_ok();
}

void resource_retain(struct resource *resource)
{
    atomic_fetch_add_explicit(&resource->references, 1, memory_order_relaxed);
}

void resource_release(struct resource *resource)
{
    if (resource == NULL ||
        atomic_fetch_sub_explicit(&resource->references, 1, memory_order_acq_rel) > 1)
        return;
    struct resource_kept *kept = atomic_load_explicit(&resource->kept, memory_order_relaxed);
    if (kept != NULL)
        kept->destroy(kept);
    free(resource);
}

uint64_t resource_made_in(const struct resource *resource)
{
    bool was_changed = resource->extra.size == BIG_ENDIAN_SIZE;
    return was_changed ? big_endian_read(resource->extra.data) : resource->version;
}

struct resource_kept *resource_keep(struct resource *resource, struct resource_kept *kept)
{
    struct resource_kept *present = NULL;
    if (atomic_compare_exchange_strong(&resource->kept, &present, kept))
        return kept;
    kept->destroy(kept);
    return present;
}

/* Of the message, `bytes` fields point into what was decoded: hence the copy. */
status resource_decode(const struct resource *resource, struct arena *arena, ProtobufCMessage **out)
{
    bytes body = arena_copy(arena, resource->body);
    if (body.data == NULL)
        return status_out_of_memory();
    return proto_decode(resource_type(resource->kind)->message, body, arena, out);
}

size_t resource_parent_size(const char *name)
{
    size_t size = strlen(name);
    for (unsigned segments = 0; segments < 2; segments++) {
        while (size > 0 && name[size - 1] != '/')
            size--;
        if (size == 0)
            return 0;
        size--;
    }
    return size;
}

size_t name_shared_size(const char *parent)
{
    const char *wildcard = strstr(parent, "/-");
    return wildcard == NULL ? strlen(parent) : (size_t)(wildcard - parent);
}

/* Segment by segment. */
bool name_is_under(const char *name, const char *parent)
{
    while (*parent != '\0') {
        size_t wanted = strcspn(parent, "/"), there = strcspn(name, "/");
        bool is_any = wanted == 1 && *parent == '-';
        if (!is_any && (wanted != there || memcmp(parent, name, there) != 0))
            return false;
        parent += wanted + (parent[wanted] == '/');
        name += there;
        if (*name++ != '/')
            return false;
    }
    return *name != '\0';
}

int resource_compare(const struct resource *resource, enum resource_kind kind, const char *name)
{
    if (resource->kind != kind)
        return resource->kind < kind ? -1 : 1;
    return strcmp(resource->name, name);
}

/* --- records --- */

enum { KEY_HEAD = 2 };

void resource_append_key(struct buffer *key, enum resource_kind kind, const char *name)
{
    buffer_append_byte(key, RESOURCE_KEY);
    buffer_append_byte(key, (uint8_t)kind);
    buffer_append_bytes(key, bytes_of(name));
}

void resource_append_value(struct buffer *value, const struct resource *resource)
{
    Catalog__Resource message = CATALOG__RESOURCE__INIT;
    message.version = resource->version;
    message.body = proto_data(resource->body);
    message.extra = proto_data(resource->extra);
    proto_encode(&message.base, value);
}

static status damage(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "%s", what);
}

static status check_body(const struct resource *resource, struct arena *arena)
{
    ProtobufCMessage *message;
    status s = resource_decode(resource, arena, &message);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return damage("its message does not parse");
}

status resource_parse(bytes key, bytes value, struct arena *arena, struct resource **out)
{
    *out = NULL;
    ProtobufCMessage *base;
    if (key.size <= KEY_HEAD || memchr(key.data, 0, key.size) != NULL)
        return damage("its key has no name");
    enum resource_kind kind = (enum resource_kind)key.data[1];
    if (resource_type(kind) == NULL)
        return damage("its kind is unknown");
    char *name = arena_string(arena, bytes_from(key, KEY_HEAD));
    if (name == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&catalog__resource__descriptor, value, arena, &base));
    const Catalog__Resource *message = (const void *)base;
    if (message->version == 0)
        return damage("it has no version");
    TRY(resource_create(kind, name, message->version, proto_bytes(message->body),
                        proto_bytes(message->extra), out));
    status s = check_body(*out, arena);
    if (!status_is_ok(s)) {
        resource_release(*out);
        *out = NULL;
    }
    return s;
}
