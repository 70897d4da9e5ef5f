/* See own_routes.h. */
#include "replica/own_routes.h"

#include "base/limits.h"
#include "bigtable/names.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "wire/proto.h"

static unsigned peer_at(struct peers *peers, const char *zone)
{
    bool is_silent;
    unsigned peer = peers_at(peers, zone, &is_silent);
    return peer == 0 ? peers_leader(peers) : peer;
}

/* --- backups --- */

static bool is_of_backups(const char *method, bytes name)
{
    static const char collection[] = "/backups/";
    return strstr(method, "Backup") != NULL ||
           (name.size > 0 &&
            memmem(name.data, name.size, collection, sizeof collection - 1) != NULL);
}

static bytes name_in(const char *method, bytes request)
{
    static const uint32_t in_backup[] = {1, 1}, first[] = {1};
    bytes name = bytes_make(NULL, 0);
    bool is_there = strcmp(method, "UpdateBackup") == 0 ? proto_peek(request, in_backup, 2, &name)
                                                        : proto_peek(request, first, 1, &name);
    return is_there ? name : bytes_make(NULL, 0);
}

static bool ends_with(bytes name, const char *end)
{
    size_t size = strlen(end);
    return name.size >= size && memcmp(name.data + name.size - size, end, size) == 0;
}

/* "projects/P/instances/I/clusters/C" of a name under it, which is not for all clusters; empty: it
 * is no such name. */
static bytes cluster_of(bytes name)
{
    static const char collection[] = "/clusters/";
    size_t slashes = 0, size = 0;
    while (size < name.size && (slashes += name.data[size] == '/') < 6)
        size++;
    bytes cluster = bytes_make(name.data, size);
    bool is_one = slashes >= 5 &&
                  memmem(cluster.data, cluster.size, collection, sizeof collection - 1) != NULL &&
                  !ends_with(cluster, "/clusters/-");
    return is_one ? cluster : bytes_make(NULL, 0);
}

static status find_zone(struct control *control, bytes cluster, struct arena *arena,
                        const char **out)
{
    const char *name = arena_string(arena, cluster);
    struct resource *resource;
    ProtobufCMessage *message;
    if (name == NULL)
        return status_out_of_memory();
    TRY(control_find(control, RESOURCE_CLUSTER, name, &resource));
    status s = resource_decode(resource, arena, &message);
    resource_release(resource);
    TRY(s);
    *out = name_id(((const BtAdmin__Cluster *)(const void *)message)->location);
    return status_ok();
}

unsigned own_route_of_backup(struct peers *peers, struct control *control, const char *method,
                             bytes request)
{
    bytes name = name_in(method, request), cluster = cluster_of(name);
    const char *zone;
    if (cluster.size == 0 || !is_of_backups(method, name))
        return 0;
    struct arena *arena = arena_create(LIMIT_ARENA_ADMIN_BYTES);
    status s = arena == NULL ? status_out_of_memory() : find_zone(control, cluster, arena, &zone);
    unsigned peer = status_is_ok(s) ? peer_at(peers, zone) : peers_own_number(peers);
    status_free(s);
    arena_destroy(arena);
    return peer;
}

/* --- operations --- */

/* What stands behind /locations/ in the name, with a NUL: false, it does not fit, or is not there.
 */
static bool read_location(bytes name, char *out, size_t size)
{
    static const char collection[] = "/locations/";
    const uint8_t *at =
        name.size == 0 ? NULL : memmem(name.data, name.size, collection, sizeof collection - 1);
    if (at == NULL)
        return false;
    bytes rest = bytes_from(name, (size_t)(at - name.data) + sizeof collection - 1);
    size_t length = 0;
    while (length < rest.size && rest.data[length] != '/')
        length++;
    if (length == 0 || length >= size)
        return false;
    memcpy(out, rest.data, length);
    out[length] = '\0';
    return true;
}

unsigned own_route_of_operation(struct peers *peers, bytes request)
{
    enum { LONGEST = 128 };
    char zone[LONGEST];
    return read_location(name_in("", request), zone, sizeof zone) ? peer_at(peers, zone)
                                                                  : peers_leader(peers);
}
