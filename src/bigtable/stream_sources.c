/* See stream_sources.h. */
#include "bigtable/stream_sources.h"

#include "bigtable/names.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

/* The locations of numbers, and the clusters that are held against them. */
struct finding {
    struct buffer locations[VERSION_CLUSTERS];
    struct arena *arena;
    struct stream_sources *out;
    status s;
};

static void note(struct finding *finding, bytes zone, const char *id)
{
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        if (zone.size > 0 && bytes_equal(buffer_bytes(&finding->locations[i]), zone))
            finding->out->of[i] = bytes_of(id);
}

static status look_at(struct finding *finding, const struct resource *cluster)
{
    ProtobufCMessage *message;
    const char *id = arena_string(finding->arena, bytes_of(name_id(cluster->name)));
    if (id == NULL)
        return status_out_of_memory();
    TRY(resource_decode(cluster, finding->arena, &message));
    const char *location = ((const BtAdmin__Cluster *)(const void *)message)->location;
    if (location[0] != '\0')
        note(finding, bytes_of(name_id(location)), id);
    return status_ok();
}

static bool visit(void *context, struct resource *cluster)
{
    struct finding *finding = context;
    finding->s = look_at(finding, cluster);
    return status_is_ok(finding->s);
}

static bool find_locations(const struct bigtable_peers *peers, struct finding *finding)
{
    bool has_any = false;
    for (unsigned i = 1; peers != NULL && i < VERSION_CLUSTERS; i++)
        has_any |= peers->location(peers->replication, i, &finding->locations[i]);
    return has_any;
}

status stream_sources_find(const struct bigtable *bigtable, const char *table, struct arena *arena,
                           struct stream_sources *out)
{
    struct finding finding = {.arena = arena, .out = out, .s = status_ok()};
    status s = status_ok();
    if (find_locations(bigtable->peers, &finding)) {
        const char *instance = name_parent(arena, table);
        s = instance == NULL
                ? status_out_of_memory()
                : control_list(bigtable->control, RESOURCE_CLUSTER, instance, "", visit, &finding);
        if (status_is_ok(s))
            s = finding.s;
        else
            status_free(finding.s);
    }
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        buffer_free(&finding.locations[i]);
    return s;
}
