/* See peers.h: who the peers are, and how that is kept. */
#include "replica/peers_private.h"

#include "base/check.h"
#include "cluster/checkpoint.h"
#include "cluster/shared_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/* --- what there is --- */

unsigned peers_own_number(const struct peers *peers)
{
    return atomic_load(&peers->own_number);
}

unsigned peers_leader(const struct peers *peers)
{
    return atomic_load(&peers->leader);
}

bool peers_pack(const struct peers *peers)
{
    return peers->options.packs;
}

bool peers_has_left(const struct peers *peers)
{
    return atomic_load(&peers->has_left);
}

bool peers_was_removed(const void *context)
{
    const struct peers *peers = context;
    return peers_has_left(peers) || atomic_load(&peers->is_leaving);
}

bool peers_is_gone(const struct peers *peers, unsigned number)
{
    return (atomic_load(&peers->gone) & peer_bit(number)) != 0;
}

void peers_note_seen(struct peers *peers, peer_set seen, peer_set gone)
{
    atomic_fetch_or(&peers->seen, seen);
    atomic_fetch_or(&peers->gone, gone);
}

uint64_t peers_generation(const struct peers *peers)
{
    return atomic_load(&peers->generation);
}

status peers_list(struct peers *peers, struct arena *arena, const Replica__PeerList **out)
{
    *out = NULL;
    pthread_mutex_lock(&peers->lock);
    status s = peers->list == NULL ? status_ok() : peer_list_copy(peers->list, arena, out);
    pthread_mutex_unlock(&peers->lock);
    return s;
}

/* --- changing it --- */

/* Makes a copy of it the list that is told from now on. */
static status show_list(struct peers *peers, const Replica__PeerList *list, unsigned own_number)
{
    const Replica__PeerList *copy;
    struct arena *arena = arena_create(PEER_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : peer_list_copy(list, arena, &copy);
    if (!status_is_ok(s)) {
        arena_destroy(arena);
        return s;
    }
    pthread_mutex_lock(&peers->lock);
    struct arena *former = peers->arena;
    peers->arena = arena;
    peers->list = copy;
    atomic_store(&peers->own_number, own_number);
    atomic_store(&peers->leader, copy->leader);
    atomic_fetch_add(&peers->generation, 1);
    pthread_mutex_unlock(&peers->lock);
    arena_destroy(former);
    return status_ok();
}

/* With `change` held. A peer that is not asked for want of a thread is asked after the next start,
 * or the next change. */
static void start_links(struct peers *peers)
{
    for (size_t i = 0; peers->list != NULL && i < peers->list->n_peers; i++) {
        unsigned number = peers->list->peers[i]->number;
        if (number == peers_own_number(peers))
            continue;
        status s = peer_link_start(&peers->links[number]);
        if (!status_is_ok(s))
            log_error(peers->options.log, "a peer cannot be asked", LOG_INT("peer", number),
                      LOG_STR("cause", status_message(s)));
        status_free(s);
    }
}

/* With `change` held. */
static status write_record(struct peers *peers, const Replica__PeerList *list, unsigned own_number)
{
    const struct peer_record record = {.list = list,
                                       .own_number = own_number,
                                       .promised = peers->promised,
                                       .led_epoch = peers->led_epoch,
                                       .seen = atomic_load(&peers->seen),
                                       .gone = atomic_load(&peers->gone)};
    DCHECK(check_is_held(&peers->change));
    return peer_record_write(peers->options.cluster, &record);
}

status peers_write_promise(struct peers *peers, struct peer_ballot promised)
{
    const struct peer_ballot former = peers->promised;
    peers->promised = promised;
    status s = write_record(peers, peers->list, peers_own_number(peers));
    if (!status_is_ok(s))
        peers->promised = former;
    return s;
}

/* Whether that number of the list is this server's. */
static bool is_own(const struct peers *peers, const Replica__Peer *peer)
{
    return peer != NULL && strcmp(peer->identity, peers->identity) == 0;
}

/* One that is in the list no more asks nobody, and is asked for nothing. */
static status show_own(struct peers *peers, const Replica__PeerList *list, unsigned own_number)
{
    uint32_t from, end;
    bool is_peer = peer_list_find(list, own_number) != NULL;
    shared_family_ids(list->epoch, list->leader, &from, &end);
    cluster_set_family_ids(peers->options.cluster, from, end);
    TRY(show_list(peers, list, is_peer ? own_number : 0));
    atomic_store(&peers->has_left, !is_peer);
    if (!is_peer)
        log_warn(peers->options.log,
                 "this server was removed from its peers: it serves no data any more",
                 LOG_INT("number", own_number));
    return status_ok();
}

status peers_change_list(struct peers *peers, const Replica__PeerList *list, unsigned own_number)
{
    const uint64_t led_epoch = peers->led_epoch;
    DCHECK(check_is_held(&peers->change));
    if (list->leader == own_number)
        peers->led_epoch = 0;
    status s = write_record(peers, list, own_number);
    if (!status_is_ok(s)) {
        peers->led_epoch = led_epoch;
        return s;
    }
    cluster_set_number(peers->options.cluster, own_number);
    peers_note_seen(peers, peer_list_numbers(list) | peer_list_gone(list), peer_list_gone(list));
    TRY(show_own(peers, list, own_number));
    if (peers->has_begun && !peers->is_stopping)
        start_links(peers);
    log_info(peers->options.log, "the peers are others", LOG_INT("own_number", own_number),
             LOG_INT("leader", list->leader), LOG_INT("peers", list->n_peers),
             LOG_INT("epoch", list->epoch), LOG_INT("revision", list->revision));
    return status_ok();
}

static bool is_same_list(const Replica__PeerList *a, const Replica__PeerList *b)
{
    return !peer_list_is_newer(a, b) && !peer_list_is_newer(b, a);
}

status peers_replace_list(struct peers *peers, const Replica__PeerList *former,
                          const Replica__PeerList *list, unsigned own_number)
{
    pthread_mutex_lock(&peers->change);
    status s = is_same_list(former, peers->list)
                   ? peers_change_list(peers, list, own_number)
                   : status_make(STATUS_ABORTED, "the peers are others now: ask again");
    pthread_mutex_unlock(&peers->change);
    return s;
}

/* Whether this server leads until the list is that one: what it has administered is to be compared
 * with what the other one has. */
static bool ends_leading(const struct peers *peers, const Replica__PeerList *list)
{
    unsigned own_number = peers_own_number(peers);
    return peers->list->leader == own_number && list->leader != own_number;
}

/* With `change` held: so nobody else changes it. A list of before what was promised is left alone.
 */
static status adopt(struct peers *peers, const Replica__PeerList *list, bool is_handed_over)
{
    unsigned own_number = peers_own_number(peers);
    const uint64_t led_epoch = peers->led_epoch;
    if (!peer_list_is_newer(list, peers->list) ||
        peer_ballot_compare(peer_list_ballot(list), peers->promised) < 0)
        return status_ok();
    TRY(peer_list_check(list));
    if (!is_own(peers, peer_list_find(list, own_number)) &&
        !is_own(peers, peer_list_former(list, own_number)))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "a newer list of the peers has another server as number %u", own_number);
    if (ends_leading(peers, list) && !is_handed_over)
        peers->led_epoch = peers->list->epoch;
    status s = peers_change_list(peers, list, own_number);
    if (!status_is_ok(s))
        peers->led_epoch = led_epoch;
    return s;
}

status peers_adopt(struct peers *peers, const Replica__PeerList *list, bool is_handed_over)
{
    pthread_mutex_lock(&peers->change);
    status s = list == NULL || peers_own_number(peers) == 0 ? status_ok()
                                                            : adopt(peers, list, is_handed_over);
    pthread_mutex_unlock(&peers->change);
    return s;
}

uint64_t peers_led_epoch(struct peers *peers)
{
    pthread_mutex_lock(&peers->change);
    uint64_t epoch = peers->led_epoch;
    pthread_mutex_unlock(&peers->change);
    return epoch;
}

status peers_led_compared(struct peers *peers)
{
    status s = status_ok();
    pthread_mutex_lock(&peers->change);
    const uint64_t led_epoch = peers->led_epoch;
    peers->led_epoch = 0;
    if (led_epoch != 0 && peers->list != NULL)
        s = write_record(peers, peers->list, peers_own_number(peers));
    if (!status_is_ok(s))
        peers->led_epoch = led_epoch;
    pthread_mutex_unlock(&peers->change);
    return s;
}

void peers_set_schema(struct peers *peers, const struct peers_schema *schema)
{
    const struct peers_schema none = {0};
    if (peers == NULL)
        return;
    pthread_rwlock_wrlock(&peers->schema_lock);
    peers->schema = schema == NULL ? none : *schema;
    pthread_rwlock_unlock(&peers->schema_lock);
}

/* --- sessions --- */

/* A string like that one that is there until the end; NULL without memory. */
static const char *keep_address(struct peers *peers, const char *address)
{
    size_t size = strlen(address) + 1;
    pthread_mutex_lock(&peers->lock);
    struct peer_address *kept = peers->addresses;
    while (kept != NULL && strcmp(kept->text, address) != 0)
        kept = kept->next;
    if (kept == NULL && (kept = malloc(sizeof *kept + size)) != NULL) {
        memcpy(kept->text, address, size);
        kept->next = peers->addresses;
        peers->addresses = kept;
    }
    pthread_mutex_unlock(&peers->lock);
    return kept == NULL ? NULL : kept->text;
}

/* Without TLS nobody off this machine is spoken to: neither side would know the other. */
static status check_loopback(const char *address, const struct address *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!address_is_loopback(&addresses[i]))
            return status_make(STATUS_FAILED_PRECONDITION,
                               "%s is not on this machine: peers need TLS (tls-cert, tls-key, "
                               "peer-ca) to know each other",
                               address);
    return status_ok();
}

static status check_reach(const struct peers *peers, const char *address,
                          const struct client_session *session)
{
    const struct endpoint *endpoint = client_session_endpoint(session);
    if (peers->options.speaks_tls)
        return status_ok();
    return check_loopback(address, endpoint->addresses, endpoint->address_count);
}

status peers_check_address(const struct peers *peers, const char *address)
{
    struct address found[ENDPOINT_ADDRESSES_MOST];
    size_t count;
    TRY(address_parse_all(address, found, ENDPOINT_ADDRESSES_MOST, &count));
    return peers->options.speaks_tls ? status_ok() : check_loopback(address, found, count);
}

status peers_connect(struct peers *peers, const char *address, struct client_session **out)
{
    const struct peers_options *options = &peers->options;
    *out = NULL;
    if (options->speaks_tls && options->ca == NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "peer-ca is not set: with TLS it says whose certificates are peers'");
    const char *kept = keep_address(peers, address);
    if (kept == NULL)
        return status_out_of_memory();
    const struct client_session_options session = {
        .target = {.server = {.address = kept,
                              .tls = options->speaks_tls,
                              .ca = options->ca,
                              .certificate = options->speaks_tls ? options->certificate : NULL,
                              .key = options->key},
                   .project = "-",
                   .instance = "-",
                   .app_profile = ""}};
    TRY(client_session_create(&session, out));
    status s = check_reach(peers, address, *out);
    if (!status_is_ok(s)) {
        client_session_destroy(*out);
        *out = NULL;
    }
    return s;
}

status peers_session(struct peers *peers, unsigned number, struct client_session **out)
{
    char address[PEER_TEXT_MOST + 1] = "";
    *out = NULL;
    pthread_mutex_lock(&peers->lock);
    const Replica__Peer *peer = peer_list_find(peers->list, number);
    if (peer != NULL && number != peers_own_number(peers))
        memcpy(address, peer->address, strlen(peer->address) + 1);
    pthread_mutex_unlock(&peers->lock);
    if (address[0] == '\0')
        return status_make(STATUS_NOT_FOUND, "no other peer has the number %u", number);
    return peers_connect(peers, address, out);
}

void peers_set_progress(struct peers *peers,
                        void (*tell)(void *context, struct arena *arena, Replica__PeerState *state),
                        void *context)
{
    DCHECK(!peers->has_begun);
    peers->tell_progress = tell;
    peers->progress_context = context;
}

/* --- metrics --- */

struct measuring {
    struct metric_series heard[PEERS_MOST];
    struct metric_series ahead[PEERS_MOST];
    size_t count;
    size_t ahead_count; /* of those that have been heard */

    struct metric_series delay[PEERS_MOST];
    struct metric_series changes[PEERS_MOST];
    struct metric_series bytes[PEERS_MOST];
    struct metric_series parked[PEERS_MOST];
    size_t progress_count;
    size_t delay_count; /* of which something is known */
};

static void gather(struct peers *peers, const Replica__PeerList *list, struct measuring *out)
{
    pthread_mutex_lock(&peers->lock);
    for (size_t i = 0; i < list->n_peers; i++) {
        const Replica__Peer *peer = list->peers[i];
        const struct peer_link *link = &peers->links[peer->number];
        if (peer->number == peers_own_number(peers))
            continue;
        out->heard[out->count++] =
            (struct metric_series){.labels = {peer->location}, .value = link->heard_us / 1000000};
        if (link->heard_us != 0)
            out->ahead[out->ahead_count++] =
                (struct metric_series){.labels = {peer->location}, .value = link->clock_ahead_us};
    }
    pthread_mutex_unlock(&peers->lock);
}

static struct metric_series series_of(const Replica__Peer *peer, int64_t value)
{
    return (struct metric_series){.labels = {peer->location}, .value = value};
}

static void note_progress(const struct peers *peers, const Replica__Peer *peer,
                          const Replica__PeerState *state, struct measuring *out)
{
    size_t at = out->progress_count++;
    int64_t delay_us = cluster_version_us(peers->options.cluster) - state->applied_until_us;
    if (state->applied_until_us != 0)
        out->delay[out->delay_count++] = series_of(peer, delay_us > 0 ? delay_us : 0);
    out->changes[at] = series_of(peer, (int64_t)state->applied_changes);
    out->bytes[at] = series_of(peer, (int64_t)state->applied_bytes);
    out->parked[at] = series_of(peer, state->parked[0] != '\0');
}

static void gather_progress(struct peers *peers, const Replica__PeerList *list, struct arena *arena,
                            struct measuring *out)
{
    for (size_t i = 0; peers->tell_progress != NULL && i < list->n_peers; i++) {
        Replica__PeerState state = REPLICA__PEER_STATE__INIT;
        state.number = list->peers[i]->number;
        if (state.number == peers_own_number(peers))
            continue;
        peers->tell_progress(peers->progress_context, arena, &state);
        note_progress(peers, list->peers[i], &state, out);
    }
}

static void measure_progress(struct metrics *metrics, const struct measuring *measuring)
{
    size_t count = measuring->progress_count;
    status_ignore(metrics_replace(metrics, METRIC_BY_replication_delay_seconds, measuring->delay,
                                  measuring->delay_count));
    status_ignore(
        metrics_replace(metrics, METRIC_BY_replication_changes_total, measuring->changes, count));
    status_ignore(
        metrics_replace(metrics, METRIC_BY_replication_bytes_total, measuring->bytes, count));
    status_ignore(metrics_replace(metrics, METRIC_BY_replication_parked, measuring->parked, count));
}

static void measure_list(struct peers *peers, const Replica__PeerList *list, struct arena *arena)
{
    struct metrics *metrics = peers->options.metrics;
    struct measuring measuring = {.count = 0};
    gather(peers, list, &measuring);
    gather_progress(peers, list, arena, &measuring);
    measure_progress(metrics, &measuring);
    status_ignore(metrics_replace(metrics, METRIC_BY_peer_heard_timestamp_seconds, measuring.heard,
                                  measuring.count));
    status_ignore(metrics_replace(metrics, METRIC_BY_peer_clock_ahead_seconds, measuring.ahead,
                                  measuring.ahead_count));
}

void peers_measure(struct peers *peers)
{
    const Replica__PeerList *list = NULL;
    if (peers == NULL || peers->options.metrics == NULL || peers_own_number(peers) == 0)
        return;
    struct arena *arena = arena_create(PEER_MEMORY);
    if (arena != NULL)
        status_ignore(peers_list(peers, arena, &list));
    if (list != NULL)
        measure_list(peers, list, arena);
    arena_destroy(arena);
}

/* --- making and ending --- */

/* A server whose data directory is another's, restored, has another identity: it is not that peer,
 * and must not give versions in its name. */
static status take_record(struct peers *peers, const struct peer_record *record)
{
    const Replica__Peer *own = peer_list_find(record->list, record->own_number);
    if (record->list == NULL)
        return status_ok();
    if (own == NULL)
        own = peer_list_former(record->list, record->own_number);
    if (!is_own(peers, own)) {
        log_warn(peers->options.log,
                 "the data is that of a peer, and this server is another: it has no peers",
                 LOG_INT("number", record->own_number), LOG_STR("identity", peers->identity));
        return status_ok();
    }
    if (strcmp(own->location, peers->options.location) != 0)
        log_warn(peers->options.log, "the setting location is not what the peers know",
                 LOG_STR("location", peers->options.location), LOG_STR("known", own->location));
    peers->promised = record->promised;
    peers->led_epoch = record->led_epoch;
    peers_note_seen(peers, record->seen | peer_list_numbers(record->list), record->gone);
    cluster_set_number(peers->options.cluster, record->own_number);
    return show_own(peers, record->list, record->own_number);
}

static status read_record(struct peers *peers)
{
    struct peer_record record;
    struct arena *arena = arena_create(PEER_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = peer_record_read(peers->options.cluster, arena, &record);
    if (status_is_ok(s))
        s = take_record(peers, &record);
    arena_destroy(arena);
    return s;
}

static status know_oneself(struct peers *peers)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return status_from_errno(errno, "cannot get random bytes");
    peers->incarnation = random | 1;
    return cluster_identity(peers->options.cluster, peers->identity);
}

status peers_open(const struct peers_options *options, struct peers **out)
{
    struct peers *peers = *out = calloc(1, sizeof *peers);
    if (peers == NULL)
        return status_out_of_memory();
    peers->options = *options;
    pthread_mutex_init(&peers->change, NULL);
    pthread_mutex_init(&peers->lock, NULL);
    peer_gate_init(&peers->gate);
    pthread_rwlock_init(&peers->schema_lock, NULL);
    for (unsigned i = 0; i <= PEERS_MOST; i++) {
        peers->links[i].peers = peers;
        peers->links[i].number = i;
        thread_stop_init(&peers->links[i].stop);
    }
    status s = know_oneself(peers);
    if (status_is_ok(s))
        s = read_record(peers);
    if (!status_is_ok(s)) {
        peers_close(peers);
        *out = NULL;
    }
    return s;
}

/* An address that means all of the machine's is none by which others reach it. */
static bool means_all(const struct address *address)
{
    const struct sockaddr *any = (const void *)&address->storage;
    const struct sockaddr_in *v4 = (const void *)any;
    const struct sockaddr_in6 *v6 = (const void *)any;
    if (any->sa_family == AF_INET)
        return v4->sin_addr.s_addr == htonl(INADDR_ANY);
    return any->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

status peers_begin(struct peers *peers, const struct address *listen)
{
    char text[ADDRESS_TEXT_SIZE];
    address_format(listen, text);
    pthread_mutex_lock(&peers->change);
    buffer_clear(&peers->address);
    if (!means_all(listen))
        buffer_append(&peers->address, text, strlen(text) + 1);
    bool has_memory = !peers->address.failed;
    peers->has_begun = has_memory;
    if (has_memory)
        start_links(peers);
    pthread_mutex_unlock(&peers->change);
    return has_memory ? status_ok() : status_out_of_memory();
}

void peers_stop(struct peers *peers)
{
    if (peers == NULL)
        return;
    pthread_mutex_lock(&peers->change);
    pthread_mutex_lock(&peers->lock);
    peers->is_stopping = true;
    for (unsigned i = 1; i <= PEERS_MOST; i++)
        if (peers->links[i].session != NULL)
            client_session_cancel(peers->links[i].session);
    pthread_mutex_unlock(&peers->lock);
    pthread_mutex_unlock(&peers->change);
    for (unsigned i = 1; i <= PEERS_MOST; i++)
        thread_stop_now(&peers->links[i].stop);
    for (unsigned i = 1; i <= PEERS_MOST; i++)
        peer_link_stop(&peers->links[i]);
}

void peers_close(struct peers *peers)
{
    if (peers == NULL)
        return;
    for (unsigned i = 0; i <= PEERS_MOST; i++) {
        DCHECK(!peers->links[i].is_running);
        thread_stop_destroy(&peers->links[i].stop);
        free(peers->links[i].failure);
    }
    while (peers->addresses != NULL) {
        struct peer_address *next = peers->addresses->next;
        free(peers->addresses);
        peers->addresses = next;
    }
    arena_destroy(peers->arena);
    buffer_free(&peers->address);
    peer_gate_destroy(&peers->gate);
    pthread_rwlock_destroy(&peers->schema_lock);
    pthread_mutex_destroy(&peers->change);
    pthread_mutex_destroy(&peers->lock);
    free(peers);
}
