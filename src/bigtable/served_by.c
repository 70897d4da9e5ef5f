/* See served_by.h.
 *
 * Invariants
 *  1. `places` only grows until the end; its metadata may be used without the lock.
 *  2. An answer is believed if nothing has changed since before it was looked up: `changes` goes up
 *     after a change is visible, and is read before the look. */
#include "bigtable/served_by.h"

#include "bigtable/names.h"
#include "bigtable/services.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "google/bigtable/v2/response_params.pb-c.h"
#include "wire/grpc.h"
#include "wire/proto.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ANSWERS = 256, ARENA_BYTES = 1 << 20 };

struct place {
    struct place *next;
    struct buffer params; /* ResponseParams */
    struct metadata *metadata;
};

struct answer {
    struct buffer asked; /* the instance, a zero, the profile; empty: none */
    uint64_t changes;
    const struct metadata *metadata;
};

struct served_by {
    struct control *control;
    struct control_watcher clusters;
    struct control_watcher profiles;
    atomic_uint_fast64_t changes;
    const struct metadata *nowhere; /* of an instance without clusters */
    pthread_mutex_t lock;           /* of what follows; held for a few instructions */
    struct place *places;
    struct answer answers[ANSWERS]; /* by a hash of what was asked */
};

/* --- places --- */

static void encode_params(const char *zone, const char *cluster, struct buffer *out)
{
    Bt__ResponseParams params = BT__RESPONSE_PARAMS__INIT;
    union { /* the message's strings have no const */
        const char *given;
        char *wanted;
    } zone_id = {.given = zone}, cluster_id = {.given = cluster};
    params.has_zone_id_case = BT__RESPONSE_PARAMS__HAS_ZONE_ID_ZONE_ID;
    params.zone_id = zone_id.wanted;
    params.has_cluster_id_case = BT__RESPONSE_PARAMS__HAS_CLUSTER_ID_CLUSTER_ID;
    params.cluster_id = cluster_id.wanted;
    proto_encode(&params.base, out);
}

static void free_place(struct place *place)
{
    buffer_free(&place->params);
    grpc_headers_destroy(place->metadata);
    free(place);
}

/* NULL without memory. */
static struct place *make_place(struct buffer *params)
{
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL || params->failed) {
        buffer_free(params);
        free(place);
        return NULL;
    }
    place->params = *params;
    const struct grpc_field field = {.name = "x-goog-ext-425905942-bin",
                                     .value = buffer_bytes(&place->params)};
    place->metadata = grpc_headers_create(&field, 1);
    if (place->metadata != NULL)
        return place;
    free_place(place);
    return NULL;
}

static const struct place *find_place(const struct served_by *served_by, bytes params)
{
    const struct place *place = served_by->places;
    while (place != NULL && !bytes_equal(buffer_bytes(&place->params), params))
        place = place->next;
    return place;
}

/* Takes the params. NULL without memory. */
static const struct metadata *keep_place(struct served_by *served_by, struct buffer *params)
{
    struct place *made = make_place(params);
    if (made == NULL)
        return NULL;
    pthread_mutex_lock(&served_by->lock);
    const struct place *place = find_place(served_by, buffer_bytes(&made->params));
    if (place == NULL) {
        made->next = served_by->places;
        served_by->places = made;
        place = made;
    }
    pthread_mutex_unlock(&served_by->lock);
    if (place != made)
        free_place(made);
    return place->metadata;
}

/* --- looking it up --- */

/* The id of the cluster that the profile routes to, in the arena; NULL: none in particular. */
static const char *routed_to(struct served_by *served_by, const char *instance, const char *profile,
                             struct arena *arena)
{
    bool is_named = profile != NULL && profile[0] != '\0';
    char *name = name_join(arena, instance, "appProfiles", is_named ? profile : "default");
    struct resource *resource;
    ProtobufCMessage *message;
    if (name == NULL)
        return NULL;
    status s = control_find(served_by->control, RESOURCE_APP_PROFILE, name, &resource);
    if (!status_is_ok(s)) {
        status_ignore(s); /* any profile may be named */
        return NULL;
    }
    s = resource_decode(resource, arena, &message);
    resource_release(resource);
    const BtAdmin__AppProfile *found = (const void *)message;
    const char *id = status_is_ok(s) && found->single_cluster_routing != NULL
                         ? found->single_cluster_routing->cluster_id
                         : NULL;
    status_ignore(s);
    return id;
}

static bool take_first(void *context, struct resource *resource)
{
    struct resource **first = context;
    resource_retain(resource);
    *first = resource;
    return false;
}

static struct resource *find_cluster(struct served_by *served_by, const char *instance,
                                     const char *profile, struct arena *arena)
{
    struct resource *cluster = NULL;
    const char *id = routed_to(served_by, instance, profile, arena);
    char *name = id == NULL ? NULL : name_join(arena, instance, "clusters", id);
    if (name != NULL)
        status_ignore(control_find(served_by->control, RESOURCE_CLUSTER, name, &cluster));
    if (cluster == NULL)
        status_ignore(
            control_list(served_by->control, RESOURCE_CLUSTER, instance, "", take_first, &cluster));
    return cluster;
}

/* NULL: no cluster, or no memory. */
static const struct metadata *look_up(struct served_by *served_by, bytes instance,
                                      const char *profile, struct arena *arena)
{
    const char *name = arena_string(arena, instance);
    struct resource *cluster = name == NULL ? NULL : find_cluster(served_by, name, profile, arena);
    ProtobufCMessage *message;
    struct buffer params = {0};
    if (cluster == NULL)
        return NULL;
    status s = resource_decode(cluster, arena, &message);
    if (status_is_ok(s)) {
        const char *location = ((const BtAdmin__Cluster *)(const void *)message)->location;
        encode_params(location[0] == '\0' ? BIGTABLE_ZONE_ID : name_id(location),
                      name_id(cluster->name), &params);
    }
    bool is_known = status_is_ok(s);
    status_ignore(s);
    resource_release(cluster);
    return is_known ? keep_place(served_by, &params) : NULL;
}

static const struct metadata *look_up_anew(struct served_by *served_by, bytes instance,
                                           const char *profile)
{
    struct arena *arena = arena_create(ARENA_BYTES);
    const struct metadata *found =
        arena == NULL ? NULL : look_up(served_by, instance, profile, arena);
    arena_destroy(arena);
    return found == NULL ? served_by->nowhere : found;
}

/* --- remembering it --- */

/* FNV-1a. */
static uint32_t hash(uint32_t seed, bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        seed = (seed ^ text.data[i]) * 16777619u;
    return seed;
}

static bool is_about(const struct answer *answer, bytes instance, bytes profile)
{
    bytes asked = buffer_bytes(&answer->asked);
    return asked.size == instance.size + 1 + profile.size && bytes_start_with(asked, instance) &&
           bytes_equal(bytes_from(asked, instance.size + 1), profile);
}

static const struct metadata *recall(struct served_by *served_by, struct answer *answer,
                                     uint64_t changes, bytes instance, bytes profile)
{
    pthread_mutex_lock(&served_by->lock);
    bool is_known = answer->changes == changes && is_about(answer, instance, profile);
    const struct metadata *metadata = is_known ? answer->metadata : NULL;
    pthread_mutex_unlock(&served_by->lock);
    return metadata;
}

static void remember(struct served_by *served_by, struct answer *answer, uint64_t changes,
                     bytes instance, bytes profile, const struct metadata *metadata)
{
    pthread_mutex_lock(&served_by->lock);
    buffer_clear(&answer->asked);
    buffer_append_bytes(&answer->asked, instance);
    buffer_append_byte(&answer->asked, 0);
    buffer_append_bytes(&answer->asked, profile);
    if (answer->asked.failed)
        buffer_free(&answer->asked);
    answer->changes = changes;
    answer->metadata = metadata;
    pthread_mutex_unlock(&served_by->lock);
}

const struct metadata *served_by_params(struct served_by *served_by, bytes instance,
                                        const char *profile)
{
    bytes asked = bytes_of(profile == NULL ? "" : profile);
    uint32_t place = hash(hash(2166136261u, instance), asked) % ANSWERS;
    struct answer *answer = &served_by->answers[place];
    uint64_t changes = atomic_load(&served_by->changes);
    const struct metadata *metadata = recall(served_by, answer, changes, instance, asked);
    if (metadata != NULL)
        return metadata;
    metadata = look_up_anew(served_by, instance, profile);
    remember(served_by, answer, changes, instance, asked, metadata);
    return metadata;
}

/* --- life --- */

static void note_change(void *context, const char *name, const struct resource *resource)
{
    struct served_by *served_by = context;
    (void)name;
    (void)resource;
    atomic_fetch_add(&served_by->changes, 1);
}

status served_by_create(struct control *control, struct served_by **out)
{
    struct served_by *served_by = *out = calloc(1, sizeof *served_by);
    struct buffer params = {0};
    if (served_by == NULL)
        return status_out_of_memory();
    pthread_mutex_init(&served_by->lock, NULL);
    served_by->control = control;
    encode_params(BIGTABLE_ZONE_ID, BIGTABLE_CLUSTER_ID, &params);
    served_by->nowhere = keep_place(served_by, &params);
    served_by->clusters = (struct control_watcher){
        .kind = RESOURCE_CLUSTER, .context = served_by, .changed = note_change};
    served_by->profiles = (struct control_watcher){
        .kind = RESOURCE_APP_PROFILE, .context = served_by, .changed = note_change};
    control_watch(control, &served_by->clusters);
    control_watch(control, &served_by->profiles);
    return served_by->nowhere == NULL ? status_out_of_memory() : status_ok();
}

void served_by_destroy(struct served_by *served_by)
{
    if (served_by == NULL)
        return;
    struct place *place;
    while ((place = served_by->places) != NULL) {
        served_by->places = place->next;
        free_place(place);
    }
    for (size_t i = 0; i < ANSWERS; i++)
        buffer_free(&served_by->answers[i].asked);
    pthread_mutex_destroy(&served_by->lock);
    free(served_by);
}
