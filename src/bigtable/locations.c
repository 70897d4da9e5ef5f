/* google.cloud.location.Locations: zones. Any name of one will do for a cluster, so that each is
 * there when it is asked for; the list has those that clusters of the project name, and our own. */
#include "bigtable/names.h"
#include "bigtable/resource_call.h"

#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "google/cloud/location/locations.pb-c.h"

#include <stdlib.h>

static status make_location(struct arena *arena, const char *name, Location__Location **out)
{
    PROTO_NEW(arena, *out, LOCATION__LOCATION__INIT);
    (*out)->name = name;
    (*out)->location_id = name_id(name);
    (*out)->display_name = name_id(name);
    return status_ok();
}

static status get_location(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Location__GetLocationRequest *message = (const void *)request->message;
    Location__Location *location;
    TRY(name_check_form("name", message->name, "projects/{project}/locations/{location}"));
    TRY(make_location(request->arena, message->name, &location));
    *response = &location->base;
    return status_ok();
}

/* --- list --- */

/* Names of locations, sorted, each once. */
struct zones {
    struct arena *arena;
    const char **names;
    size_t count;
    size_t capacity;
    status failure;
};

static status reserve(struct zones *zones)
{
    if (zones->count < zones->capacity)
        return status_ok();
    size_t capacity = zones->capacity * 2 + 8;
    const char **names = arena_alloc(zones->arena, capacity * sizeof *names);
    if (names == NULL)
        return status_out_of_memory();
    if (zones->count > 0)
        memcpy(names, zones->names, zones->count * sizeof *names);
    zones->names = names;
    zones->capacity = capacity;
    return status_ok();
}

static status add_zone(struct zones *zones, const char *name)
{
    size_t place = 0;
    while (place < zones->count && strcmp(zones->names[place], name) < 0)
        place++;
    if (place < zones->count && strcmp(zones->names[place], name) == 0)
        return status_ok();
    TRY(reserve(zones));
    memmove(zones->names + place + 1, zones->names + place,
            (zones->count - place) * sizeof *zones->names);
    zones->names[place] = name;
    zones->count++;
    return status_ok();
}

static bool visit_cluster(void *context, struct resource *resource)
{
    struct zones *zones = context;
    ProtobufCMessage *cluster;
    zones->failure = resource_decode(resource, zones->arena, &cluster);
    if (status_is_ok(zones->failure))
        zones->failure = add_zone(zones, ((const BtAdmin__Cluster *)cluster)->location);
    return status_is_ok(zones->failure);
}

static status find_zones(const struct admin_request *request, const char *project,
                         struct zones *zones)
{
    *zones = (struct zones){.arena = request->arena, .failure = status_ok()};
    const char *own = name_join(request->arena, project, "locations", request->bigtable->zone_id);
    const char *instances = name_join(request->arena, project, "instances", "-");
    if (own == NULL || instances == NULL)
        return status_out_of_memory();
    TRY(add_zone(zones, own));
    TRY(control_list(request->bigtable->control, RESOURCE_CLUSTER, instances, "", visit_cluster,
                     zones));
    return zones->failure;
}

/* A page's token is the last name on the page before. */
static status list_locations(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Location__ListLocationsRequest *message = (const void *)request->message;
    struct zones zones;
    size_t limit, next = 0;
    Location__ListLocationsResponse *list;
    TRY(name_check_form("name", message->name, "projects/{project}"));
    if (*message->filter != '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "locations have no filter");
    TRY(page_limit(message->page_size, &limit));
    TRY(find_zones(request, message->name, &zones));
    PROTO_NEW(request->arena, list, LOCATION__LIST_LOCATIONS_RESPONSE__INIT);
    list->locations = arena_alloc(request->arena, zones.count * sizeof(void *));
    if (list->locations == NULL)
        return status_out_of_memory();
    while (next < zones.count && strcmp(zones.names[next], message->page_token) <= 0)
        next++;
    for (; next < zones.count && list->n_locations < limit; next++)
        TRY(make_location(request->arena, zones.names[next],
                          &list->locations[list->n_locations++]));
    if (next < zones.count)
        list->next_page_token = zones.names[next - 1];
    *response = &list->base;
    return status_ok();
}

ADMIN_HANDLER(get_location, location__get_location_request)
ADMIN_HANDLER(list_locations, location__list_locations_request)

struct grpc_service bigtable_locations_service(struct bigtable *bigtable)
{
    static const struct grpc_method methods[] = {
        {"ListLocations", GRPC_UNARY, handle_list_locations},
        {"GetLocation", GRPC_UNARY, handle_get_location},
    };
    return (struct grpc_service){.name = "google.cloud.location.Locations",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = bigtable,
                                 .rest = &location__locations__descriptor};
}
