/* The resources in memory: an array sorted by kind and name, found by bisection. Ten thousand
 * resources are moved in microseconds by the write of one, which waits for the disk anyway. */
#include "base/check.h"
#include "control/control_private.h"

#include "trestle/catalog.pb-c.h"
#include "wire/proto.h"

#include <stdlib.h>

enum { RECORD_MEMORY = 64 << 20 }; /* one record's, while it is read */

/* The place of the first that is not before it. With index_lock held. */
static size_t place_of(const struct control *control, enum resource_kind kind, const char *name)
{
    size_t low = 0, high = control->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (resource_compare(control->resources[middle], kind, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct control *control, size_t at, enum resource_kind kind,
                  const char *name)
{
    return at < control->count && resource_compare(control->resources[at], kind, name) == 0;
}

status registry_make_room(struct control *control, size_t extra)
{
    size_t wanted = control->count + extra;
    if (wanted <= control->capacity)
        return status_ok();
    size_t capacity = wanted + wanted / 2 + 16;
    struct resource **larger = malloc(capacity * sizeof(*larger));
    if (larger == NULL)
        return status_out_of_memory();
    pthread_rwlock_wrlock(&control->index_lock);
    if (control->count > 0)
        memcpy(larger, control->resources, control->count * sizeof(*larger));
    struct resource **smaller = control->resources;
    control->resources = larger;
    control->capacity = capacity;
    pthread_rwlock_unlock(&control->index_lock);
    free(smaller);
    return status_ok();
}

void registry_put(struct control *control, struct resource *resource)
{
    struct resource *former = NULL;
    pthread_rwlock_wrlock(&control->index_lock);
    size_t at = place_of(control, resource->kind, resource->name);
    struct resource **place = control->resources + at;
    if (is_at(control, at, resource->kind, resource->name)) {
        former = *place;
    } else {
        CHECK(control->count < control->capacity);
        memmove(place + 1, place, (control->count - at) * sizeof(*place));
        control->count++;
    }
    *place = resource;
    pthread_rwlock_unlock(&control->index_lock);
    resource_release(former);
}

void registry_remove(struct control *control, enum resource_kind kind, const char *name)
{
    pthread_rwlock_wrlock(&control->index_lock);
    size_t at = place_of(control, kind, name);
    struct resource *former = NULL;
    if (is_at(control, at, kind, name)) {
        struct resource **place = control->resources + at;
        former = *place;
        control->count--;
        memmove(place, place + 1, (control->count - at) * sizeof(*place));
    }
    pthread_rwlock_unlock(&control->index_lock);
    resource_release(former);
}

struct resource *registry_from(struct control *control, enum resource_kind kind, const char *name)
{
    struct resource *found = NULL;
    pthread_rwlock_rdlock(&control->index_lock);
    size_t at = place_of(control, kind, name);
    if (at < control->count && control->resources[at]->kind == kind) {
        found = control->resources[at];
        resource_retain(found);
    }
    pthread_rwlock_unlock(&control->index_lock);
    return found;
}

struct resource *registry_find(struct control *control, enum resource_kind kind, const char *name)
{
    struct resource *found = registry_from(control, kind, name);
    if (found != NULL && strcmp(found->name, name) == 0)
        return found;
    resource_release(found);
    return NULL;
}

/* --- reading records --- */

/* Keys come in the order of the index. */
static status load_record(void *context, bytes key, bytes value, struct arena *arena)
{
    struct control *control = context;
    struct resource *resource;
    TRY(registry_make_room(control, 1));
    status s = resource_parse(key, value, arena, &resource);
    if (s.code == STATUS_DATA_LOSS) {
        status named = status_make(STATUS_DATA_LOSS, "the catalog's record %.*s is damaged: %s",
                                   (int)key.size, (const char *)key.data, status_message(s));
        status_free(s);
        return named;
    }
    TRY(s);
    control->resources[control->count++] = resource;
    if (control->last_version < resource->version)
        control->last_version = resource->version; /* its record may be lost */
    return status_ok();
}

/* --- the newest version --- */

static const uint8_t version_key = 'V';

status registry_save_version(uint64_t version, struct catalog_txn *txn)
{
    Catalog__LastEdit message = CATALOG__LAST_EDIT__INIT;
    struct buffer value = {0};
    message.version = version;
    proto_encode(&message.base, &value);
    bool failed = value.failed;
    if (!failed)
        catalog_txn_put(txn, bytes_make(&version_key, 1), buffer_bytes(&value));
    buffer_free(&value);
    return failed ? status_out_of_memory() : status_ok();
}

static status decode_version(struct control *control, bytes value)
{
    ProtobufCMessage *message;
    struct arena *arena = arena_create(RECORD_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = proto_decode(&catalog__last_edit__descriptor, value, arena, &message);
    if (status_is_ok(s))
        control->last_version = ((const Catalog__LastEdit *)(void *)message)->version;
    arena_destroy(arena);
    return s;
}

static status load_version(struct control *control)
{
    struct buffer value = {0};
    bool is_there;
    status s = catalog_get(cluster_catalog(control->cluster), bytes_make(&version_key, 1), &value,
                           &is_there);
    if (status_is_ok(s) && is_there)
        s = decode_version(control, buffer_bytes(&value));
    buffer_free(&value);
    return s;
}

status registry_load(struct control *control)
{
    TRY(load_version(control));
    static const uint8_t all = RESOURCE_KEY;
    return catalog_visit(cluster_catalog(control->cluster), bytes_make(&all, 1), load_record,
                         control);
}
