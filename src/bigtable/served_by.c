/* See served_by.h. Each data call asks, on any loop's thread: what is remembered is read without a
 * lock.
 *
 * Invariants
 *  1. `places` and `choices` only grow until the end, and what is in them does not change: it may
 * be used without the lock.
 *  2. An answer is believed if nothing has changed since before it was looked up: `changes` goes up
 *     after a change is visible, and is read before the look.
 *  3. An answer is written under the lock, with `sequence` odd; what was read of it counts if
 *     `sequence` was even before, and is the same after. */
#include "bigtable/served_by.h"

#include "bigtable/names.h"
#include "bigtable/nearness.h"
#include "bigtable/replicated.h"
#include "bigtable/services.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "google/bigtable/v2/response_params.pb-c.h"
#include "wire/grpc.h"
#include "wire/proto.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ANSWERS = 256, ASKED_WORDS = 24, ARENA_BYTES = 1 << 20 };

struct place {
    struct place *next;
    struct buffer params; /* ResponseParams */
    struct buffer zone;   /* and a NUL, as of the next */
    struct buffer cluster;
    struct metadata *metadata;
    struct served_place as;
};

/* One is kept for all questions that have the same answer. */
struct choice {
    struct choice *next;
    struct served_choice as;
    const struct served_place *places[];
};

/* The instance, a zero, the profile, and zeroes up to a whole word. */
struct question {
    size_t words; /* of the text; at least one */
    uint64_t text[ASKED_WORDS];
};

struct answer {
    atomic_uint_fast64_t sequence;
    atomic_uint_fast64_t changes;
    atomic_size_t words; /* of what was asked; 0: none */
    atomic_uint_fast64_t asked[ASKED_WORDS];
    const struct served_place *_Atomic place;
    const struct served_choice *_Atomic choice;
    atomic_bool allows_transactions;
    atomic_bool is_lenient;
};

struct served_by {
    struct control *control;
    const char *zone_id; /* the server's */
    struct control_watcher clusters;
    struct control_watcher profiles;
    atomic_uint_fast64_t changes;
    const struct served_place *nowhere; /* of an instance without clusters */
    pthread_mutex_t lock;               /* of the next two, and of threads that write answers */
    struct place *places;
    struct choice *choices;
    struct answer answers[ANSWERS]; /* by a hash of what was asked; read without the lock */
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
    buffer_free(&place->zone);
    buffer_free(&place->cluster);
    grpc_headers_destroy(place->metadata);
    free(place);
}

static bool fill_place(struct place *place, const char *zone, const char *cluster)
{
    encode_params(zone, cluster, &place->params);
    buffer_append(&place->zone, zone, strlen(zone) + 1);
    buffer_append(&place->cluster, cluster, strlen(cluster) + 1);
    if (place->params.failed || place->zone.failed || place->cluster.failed)
        return false;
    const struct grpc_field field = {.name = "x-goog-ext-425905942-bin",
                                     .value = buffer_bytes(&place->params)};
    place->metadata = grpc_headers_create(&field, 1);
    place->as = (struct served_place){.params = place->metadata,
                                      .zone_id = (const char *)place->zone.data,
                                      .cluster_id = (const char *)place->cluster.data};
    return place->metadata != NULL;
}

/* NULL without memory. */
static struct place *make_place(const char *zone, const char *cluster)
{
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL || fill_place(place, zone, cluster))
        return place;
    free_place(place);
    return NULL;
}

static struct place *find_place(const struct served_by *served_by, bytes params)
{
    struct place *place = served_by->places;
    while (place != NULL && !bytes_equal(buffer_bytes(&place->params), params))
        place = place->next;
    return place;
}

/* NULL without memory. */
static const struct served_place *keep_place(struct served_by *served_by, const char *zone,
                                             const char *cluster)
{
    struct place *made = make_place(zone, cluster);
    if (made == NULL)
        return NULL;
    pthread_mutex_lock(&served_by->lock);
    struct place *place = find_place(served_by, buffer_bytes(&made->params));
    if (place == NULL) {
        made->next = served_by->places;
        served_by->places = made;
        place = made;
    }
    pthread_mutex_unlock(&served_by->lock);
    if (place != made)
        free_place(made);
    return &place->as;
}

/* --- choices --- */

static struct choice *find_choice(const struct served_by *served_by,
                                  const struct served_choice *wanted)
{
    struct choice *choice = served_by->choices;
    while (choice != NULL &&
           (choice->as.has_row_affinity != wanted->has_row_affinity ||
            choice->as.count != wanted->count ||
            memcmp(choice->places, wanted->places, wanted->count * sizeof *wanted->places) != 0))
        choice = choice->next;
    return choice;
}

/* With the lock held. NULL without memory. */
static struct choice *add_choice(struct served_by *served_by, const struct served_choice *wanted)
{
    size_t size = wanted->count * sizeof *wanted->places;
    struct choice *choice = malloc(sizeof *choice + size);
    if (choice == NULL)
        return NULL;
    *choice = (struct choice){.next = served_by->choices, .as = *wanted};
    memcpy(choice->places, wanted->places, size);
    choice->as.places = choice->places;
    served_by->choices = choice;
    return choice;
}

static const struct served_choice *keep_choice(struct served_by *served_by,
                                               const struct served_choice *wanted)
{
    pthread_mutex_lock(&served_by->lock);
    struct choice *choice = find_choice(served_by, wanted);
    if (choice == NULL)
        choice = add_choice(served_by, wanted);
    pthread_mutex_unlock(&served_by->lock);
    return choice == NULL ? NULL : &choice->as;
}

/* --- looking it up --- */

/* What a profile says of its requests. */
struct route {
    const char *cluster_id;   /* in the arena; NULL: none in particular */
    const char *const *group; /* in the arena: the ids of those that it may be */
    size_t group_count;       /* 0: any */
    bool has_row_affinity;
    bool allows_transactions;
    bool is_lenient; /* as in struct served */
};

static struct route route_of(const BtAdmin__AppProfile *profile)
{
    bool is_single = profile->routing_policy_case ==
                     BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING;
    bool is_any = profile->routing_policy_case ==
                  BT_ADMIN__APP_PROFILE__ROUTING_POLICY_MULTI_CLUSTER_ROUTING_USE_ANY;
    struct route route = {.cluster_id =
                              is_single ? profile->single_cluster_routing->cluster_id : NULL,
                          .allows_transactions = profile_allows_transactions(profile)};
    if (is_any) {
        const BtAdmin__AppProfile__MultiClusterRoutingUseAny *any =
            profile->multi_cluster_routing_use_any;
        route.group = (const char *const *)any->cluster_ids;
        route.group_count = any->n_cluster_ids;
        route.has_row_affinity = any->row_affinity != NULL;
    }
    return route;
}

/* Of a profile that is not there, as any may be named: anywhere, and all is allowed. So it is by
 * the profile `default` that routes to any cluster, with which each instance of several is made:
 * here they are one copy, and Google's own suites count on it. */
static status find_route(struct served_by *served_by, const char *instance, const char *profile,
                         struct arena *arena, struct route *out)
{
    const char *id = profile[0] == '\0' ? "default" : profile;
    char *name = name_join(arena, instance, "appProfiles", id);
    struct resource *resource;
    ProtobufCMessage *message;
    *out = (struct route){.allows_transactions = true, .is_lenient = true};
    if (name == NULL)
        return status_out_of_memory();
    status s = control_find(served_by->control, RESOURCE_APP_PROFILE, name, &resource);
    if (s.code == STATUS_NOT_FOUND) {
        status_ignore(s);
        return status_ok();
    }
    TRY(s);
    s = resource_decode(resource, arena, &message);
    resource_release(resource);
    TRY(s);
    *out = route_of((const void *)message);
    if (out->cluster_id == NULL && strcmp(id, "default") == 0)
        out->allows_transactions = out->is_lenient = true;
    return status_ok();
}

/* A cluster that it may be. In the arena. */
struct candidate {
    struct candidate *next;
    const char *id;
    const char *zone;
    enum zone_distance distance;
};

/* Those there are, the nearest first, and of equally near ones in the order of their ids. */
struct search {
    const struct served_by *served_by;
    const struct route *route;
    struct arena *arena;
    struct candidate *first;
    size_t count;
    status s;
};

static bool is_of_group(const struct route *route, const char *id)
{
    for (size_t i = 0; i < route->group_count; i++)
        if (strcmp(route->group[i], id) == 0)
            return true;
    return route->group_count == 0;
}

/* One without a location is here. */
static status zone_of(const struct search *search, const struct resource *cluster, const char **out)
{
    ProtobufCMessage *message;
    TRY(resource_decode(cluster, search->arena, &message));
    const char *location = ((const BtAdmin__Cluster *)(const void *)message)->location;
    *out = location[0] == '\0' ? search->served_by->zone_id : name_id(location);
    return status_ok();
}

static bool comes_before(const struct candidate *a, const struct candidate *b)
{
    return a->distance != b->distance ? a->distance < b->distance : strcmp(a->id, b->id) < 0;
}

static status add_candidate(struct search *search, const struct resource *cluster)
{
    struct candidate *candidate = arena_zalloc(search->arena, sizeof *candidate);
    struct candidate **at = &search->first;
    if (candidate == NULL)
        return status_out_of_memory();
    candidate->id = arena_string(search->arena, bytes_of(name_id(cluster->name)));
    if (candidate->id == NULL)
        return status_out_of_memory();
    TRY(zone_of(search, cluster, &candidate->zone));
    candidate->distance = zone_distance(search->served_by->zone_id, candidate->zone);
    while (*at != NULL && comes_before(*at, candidate))
        at = &(*at)->next;
    candidate->next = *at;
    *at = candidate;
    search->count++;
    return status_ok();
}

static bool consider(void *context, struct resource *cluster)
{
    struct search *search = context;
    if (is_of_group(search->route, name_id(cluster->name)))
        search->s = add_candidate(search, cluster);
    return status_is_ok(search->s);
}

/* The one of that id; NOT_FOUND: it has just been deleted. */
static status find_named(struct search *search, const char *instance)
{
    struct resource *cluster;
    char *name = name_join(search->arena, instance, "clusters", search->route->cluster_id);
    if (name == NULL)
        return status_out_of_memory();
    TRY(control_find(search->served_by->control, RESOURCE_CLUSTER, name, &cluster));
    status s = add_candidate(search, cluster);
    resource_release(cluster);
    return s;
}

/* None: the instance has none that will do. */
static status find_clusters(struct search *search, const char *instance)
{
    if (search->route->cluster_id != NULL) {
        status s = find_named(search, instance);
        if (s.code != STATUS_NOT_FOUND)
            return s;
        status_ignore(s);
    }
    status s =
        control_list(search->served_by->control, RESOURCE_CLUSTER, instance, "", consider, search);
    if (status_is_ok(s))
        return search->s;
    status_free(search->s);
    return s;
}

/* What is remembered of an answer. */
struct found {
    const struct served_place *place;
    const struct served_choice *choice;
    bool allows_transactions;
    bool is_lenient;
};

static status keep_found(struct served_by *served_by, const struct search *search,
                         struct found *out)
{
    const struct served_place **places = arena_alloc(search->arena, search->count * sizeof *places);
    const struct served_choice choice = {.has_row_affinity = search->route->has_row_affinity,
                                         .count = search->count,
                                         .places = places};
    size_t count = 0;
    if (places == NULL)
        return status_out_of_memory();
    for (const struct candidate *each = search->first; each != NULL; each = each->next)
        if ((places[count++] = keep_place(served_by, each->zone, each->id)) == NULL)
            return status_out_of_memory();
    if (search->route->cluster_id == NULL &&
        (out->choice = keep_choice(served_by, &choice)) == NULL)
        return status_out_of_memory();
    out->place = places[0];
    return status_ok();
}

/* Where it is; nowhere if the instance has none. */
static status find_place_of(struct served_by *served_by, const char *instance,
                            const struct route *route, struct arena *arena, struct found *out)
{
    struct search search = {
        .served_by = served_by, .route = route, .arena = arena, .s = status_ok()};
    TRY(find_clusters(&search, instance));
    return search.count == 0 ? status_ok() : keep_found(served_by, &search, out);
}

static status look_up(struct served_by *served_by, bytes instance, const char *profile,
                      struct arena *arena, struct found *out)
{
    struct route route;
    const char *name = arena == NULL ? NULL : arena_string(arena, instance);
    if (name == NULL)
        return status_out_of_memory();
    TRY(find_route(served_by, name, profile, arena, &route));
    out->allows_transactions = route.allows_transactions;
    out->is_lenient = route.is_lenient;
    return find_place_of(served_by, name, &route, arena, out);
}

static status look_up_anew(struct served_by *served_by, bytes instance, const char *profile,
                           struct found *out)
{
    struct arena *arena = arena_create(ARENA_BYTES);
    *out = (struct found){.place = served_by->nowhere};
    status s = look_up(served_by, instance, profile, arena, out);
    arena_destroy(arena);
    return s;
}

/* --- remembering it --- */

/* False: it is longer than what is remembered. */
static bool ask(bytes instance, bytes profile, struct question *out)
{
    size_t size = instance.size + 1 + profile.size;
    out->words = (size + sizeof *out->text - 1) / sizeof *out->text;
    if (out->words > ASKED_WORDS)
        return false;
    uint8_t *to = (uint8_t *)out->text;
    out->text[out->words - 1] = 0;
    memcpy(to, instance.data, instance.size);
    to[instance.size] = 0;
    memcpy(to + instance.size + 1, profile.data, profile.size);
    return true;
}

static struct answer *place_of(struct served_by *served_by, const struct question *question)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < question->words; i++) {
        hash = (hash ^ question->text[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return &served_by->answers[hash % ANSWERS];
}

static bool is_about(const struct answer *answer, const struct question *question)
{
    if (atomic_load(&answer->words) != question->words)
        return false;
    for (size_t i = 0; i < question->words; i++)
        if (atomic_load(&answer->asked[i]) != question->text[i])
            return false;
    return true;
}

/* False: it is not known, or is being written. */
static bool recall(const struct answer *answer, uint64_t changes, const struct question *question,
                   struct found *out)
{
    uint64_t sequence = atomic_load(&answer->sequence);
    if (sequence % 2 != 0 || atomic_load(&answer->changes) != changes ||
        !is_about(answer, question))
        return false;
    out->place = atomic_load(&answer->place);
    out->choice = atomic_load(&answer->choice);
    out->allows_transactions = atomic_load(&answer->allows_transactions);
    out->is_lenient = atomic_load(&answer->is_lenient);
    return atomic_load(&answer->sequence) == sequence;
}

static void remember(struct served_by *served_by, struct answer *answer, uint64_t changes,
                     const struct question *question, const struct found *found)
{
    pthread_mutex_lock(&served_by->lock);
    atomic_fetch_add(&answer->sequence, 1);
    atomic_store(&answer->changes, changes);
    atomic_store(&answer->words, question->words);
    for (size_t i = 0; i < question->words; i++)
        atomic_store(&answer->asked[i], question->text[i]);
    atomic_store(&answer->place, found->place);
    atomic_store(&answer->choice, found->choice);
    atomic_store(&answer->allows_transactions, found->allows_transactions);
    atomic_store(&answer->is_lenient, found->is_lenient);
    atomic_fetch_add(&answer->sequence, 1);
    pthread_mutex_unlock(&served_by->lock);
}

static status find(struct served_by *served_by, bytes instance, const char *profile,
                   struct found *out)
{
    struct question question;
    uint64_t changes = atomic_load(&served_by->changes);
    bool is_short = ask(instance, bytes_of(profile), &question);
    struct answer *answer = is_short ? place_of(served_by, &question) : NULL;
    if (is_short && recall(answer, changes, &question, out))
        return status_ok();
    TRY(look_up_anew(served_by, instance, profile, out));
    if (is_short)
        remember(served_by, answer, changes, &question, out);
    return status_ok();
}

status served_by_find(struct served_by *served_by, bytes instance, const char *profile,
                      struct served *out)
{
    struct found found;
    status s = find(served_by, instance, profile == NULL ? "" : profile, &found);
    *out = (struct served){.params = found.place->params,
                           .zone_id = found.place->zone_id,
                           .has_cluster = found.place != served_by->nowhere,
                           .choice = found.choice,
                           .allows_transactions = found.allows_transactions,
                           .is_lenient = found.is_lenient};
    return s;
}

/* --- life --- */

static void note_change(void *context, const char *name, const struct resource *resource)
{
    struct served_by *served_by = context;
    (void)name;
    (void)resource;
    atomic_fetch_add(&served_by->changes, 1);
}

status served_by_create(struct control *control, const char *zone_id, struct served_by **out)
{
    struct served_by *served_by = *out = calloc(1, sizeof *served_by);
    if (served_by == NULL)
        return status_out_of_memory();
    pthread_mutex_init(&served_by->lock, NULL);
    served_by->control = control;
    served_by->zone_id = zone_id;
    served_by->nowhere = keep_place(served_by, zone_id, BIGTABLE_CLUSTER_ID);
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
    struct choice *choice;
    while ((choice = served_by->choices) != NULL) {
        served_by->choices = choice->next;
        free(choice);
    }
    pthread_mutex_destroy(&served_by->lock);
    free(served_by);
}
