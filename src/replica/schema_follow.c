/* See schema_follow.h.
 *
 * A call lasts half a second at most, in which the leader answers as soon as there is something
 * new; so much later than that it is known, in any case, that there was nothing. Who wants to know
 * it before has the call that waits ended, and one made that does not wait.
 *
 * What is here may become another by itself, as while this server did not follow, or by a change
 * that was under way as it began to: then all is asked for again. */
#include "replica/schema_follow.h"

#include "base/check.h"
#include "client/endpoint.h"
#include "os/thread.h"
#include "replica/edits_file.h"
#include "replica/location_use.h"
#include "replica/schema_state.h"
#include "wire/proto.h"

#include <stdlib.h>

enum {
    CALL_US = 450 * 1000,
    FULL_CALL_US = 60 * 1000 * 1000, /* of one that brings all of it, as the first does */
    IDLE_US = 200 * 1000,            /* until it is looked again who leads */
    ENDED_US = 1000,                 /* after a call that was ended for the next one */
    CATCH_UP_US = 15 * 1000 * 1000,
    LIST_MEMORY = 1 << 20,
    PIECE_MEMORY = 1 << 30,
};

struct schema_follow {
    struct schema_follow_options options;
    struct clock *clock;
    pthread_t thread;
    struct thread_stop stop;

    /* The thread's. */
    struct buffer digest; /* of what was mirrored; empty: nothing is known to be */
    unsigned leader;      /* whose it is */
    struct buffer own;    /* the digest of what was here then, */
    uint64_t edits;       /* and after so many edits, still */
    int64_t wait_us;      /* after the last failure; 0: there was none */

    _Atomic int64_t known_us;       /* all from before is mirrored; by the steady clock */
    _Atomic int64_t known_wall_us;  /* the same by the wall's; 0: nothing is known */
    pthread_mutex_t lock;           /* of the next ones */
    int64_t wanted_us;              /* somebody waits until so much is known */
    bool is_idle;                   /* the call under way waits for something new */
    struct client_session *session; /* of the call under way, or NULL */
    bool is_stopping;
};

/* --- who leads --- */

static bool has_leader(struct peers *peers, unsigned *leader)
{
    unsigned own = peers_own_number(peers);
    *leader = peers_leader(peers);
    return own != 0 && *leader != 0 && *leader != own;
}

static status find_epoch(struct peers *peers, uint64_t *epoch)
{
    const Replica__PeerList *list = NULL;
    struct arena *arena = arena_create(LIST_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : peers_list(peers, arena, &list);
    *epoch = list == NULL ? 0 : list->epoch;
    arena_destroy(arena);
    return s;
}

static void append_address(const Replica__PeerList *list, struct buffer *out)
{
    for (size_t i = 0; list != NULL && i < list->n_peers; i++)
        if (list->peers[i]->number == list->leader)
            buffer_append_bytes(out, bytes_of(list->peers[i]->address));
}

bool schema_follows(void *peers, struct buffer *leader_address)
{
    unsigned leader;
    const Replica__PeerList *list = NULL;
    if (!has_leader(peers, &leader))
        return false;
    struct arena *arena = arena_create(LIST_MEMORY);
    if (arena != NULL)
        status_ignore(peers_list(peers, arena, &list));
    append_address(list, leader_address);
    arena_destroy(arena);
    return true;
}

/* A call that brings something is left alone: it would have to bring it again. */
static void want(struct schema_follow *follow, int64_t since_us)
{
    pthread_mutex_lock(&follow->lock);
    bool is_news = since_us > follow->wanted_us;
    if (is_news)
        follow->wanted_us = since_us;
    if (is_news && follow->is_idle && follow->session != NULL)
        client_session_end_call(follow->session);
    pthread_mutex_unlock(&follow->lock);
}

bool schema_follow_knows_since(void *context, int64_t since_us)
{
    struct schema_follow *follow = context;
    unsigned leader;
    bool knows =
        !has_leader(follow->options.peers, &leader) || atomic_load(&follow->known_us) >= since_us;
    if (!knows)
        want(follow, since_us);
    return knows;
}

/* Whether the next call is to wait; without any of what the leader has none does. */
static bool begin_call(struct schema_follow *follow)
{
    pthread_mutex_lock(&follow->lock);
    bool is_wanted = follow->wanted_us > atomic_load(&follow->known_us);
    follow->is_idle = !is_wanted && follow->digest.size > 0;
    bool is_idle = follow->is_idle;
    pthread_mutex_unlock(&follow->lock);
    return is_idle;
}

static void end_idleness(struct schema_follow *follow)
{
    pthread_mutex_lock(&follow->lock);
    follow->is_idle = false;
    pthread_mutex_unlock(&follow->lock);
}

/* --- a call --- */

struct pull {
    struct schema_follow *follow;
    uint64_t least_epoch;             /* that an answer may have */
    struct schema_snapshot *received; /* NULL: nothing has come */
    bool is_whole;
    uint64_t epoch; /* of what has come, and of when it is */
    uint64_t as_of_us;
};

static status add_piece(struct pull *pull, bytes wire, struct arena *arena)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&replica__pull_schema_response__descriptor, wire, arena, &message));
    const Replica__PullSchemaResponse *piece = (const void *)message;
    if (piece->epoch < pull->least_epoch)
        return status_make(STATUS_FAILED_PRECONDITION, "the peer that was asked leads no more");
    if (pull->received == NULL)
        TRY(schema_snapshot_create(&pull->received));
    pull->epoch = piece->epoch;
    pull->as_of_us = piece->as_of_us;
    return schema_snapshot_add(pull->received, piece, &pull->is_whole);
}

static status take_piece(void *context, bytes wire)
{
    struct pull *pull = context;
    end_idleness(pull->follow);
    struct arena *arena = arena_create(PIECE_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : add_piece(context, wire, arena);
    arena_destroy(arena);
    return s;
}

static status keep_digest(const struct schema_snapshot *snapshot, struct buffer *out)
{
    buffer_clear(out);
    buffer_append_bytes(out, schema_snapshot_digest(snapshot));
    if (!out->failed)
        return status_ok();
    buffer_free(out);
    return status_out_of_memory();
}

/* What is here now, and the edits that it has at least. */
static status look_here(struct schema_follow *follow, struct schema_snapshot **out)
{
    struct control *control = follow->options.mirror.control;
    follow->edits = control_edit_count(control);
    return schema_snapshot_take(control, out);
}

static status note_own(struct schema_follow *follow)
{
    struct schema_snapshot *here;
    TRY(look_here(follow, &here));
    status s = keep_digest(here, &follow->own);
    schema_snapshot_release(here);
    return s;
}

/* --- what has come is made what is here --- */

/* Before anything of it is changed: what was administered here while this server led. */
static status keep_edits(struct schema_follow *follow, uint64_t led_epoch,
                         const struct schema_snapshot *here, const struct schema_snapshot *there)
{
    size_t count;
    const struct edits_file file = {.directory = follow->options.data_directory,
                                    .epoch = led_epoch,
                                    .follows = peers_leader(follow->options.peers)};
    TRY(edits_file_write(&file, here, there, &count));
    if (count > 0)
        log_warn(follow->options.log,
                 "what was administered here while this server led differs from what the one that "
                 "leads has: it is kept in a file edits-of-epoch-….json, and changed to that",
                 LOG_INT("epoch", led_epoch), LOG_INT("differences", count),
                 LOG_STR("directory", file.directory), LOG_INT("follows", file.follows));
    return status_ok();
}

/* What is here is on its way to another picture. */
static status record_partial(struct schema_follow *follow)
{
    const Replica__MirrorRecord *former;
    struct cluster *cluster = control_cluster(follow->options.mirror.control);
    struct arena *arena = arena_create(LIST_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = mirror_record_read(cluster, arena, &former);
    if (status_is_ok(s) && !former->is_partial) {
        Replica__MirrorRecord record = *former;
        record.is_partial = true;
        s = mirror_record_write(cluster, &record);
    }
    arena_destroy(arena);
    return s;
}

static status record_whole(struct schema_follow *follow, const struct pull *pull)
{
    Replica__MirrorRecord record = REPLICA__MIRROR_RECORD__INIT;
    record.epoch = pull->epoch;
    record.as_of_us = pull->as_of_us;
    record.digest = proto_data(schema_snapshot_digest(pull->received));
    return mirror_record_write(control_cluster(follow->options.mirror.control), &record);
}

static status prepare(struct schema_follow *follow, const struct pull *pull, uint64_t led_epoch)
{
    struct schema_snapshot *here;
    TRY(schema_snapshot_take(follow->options.mirror.control, &here));
    bool is_same =
        bytes_equal(schema_snapshot_digest(here), schema_snapshot_digest(pull->received));
    status s = led_epoch == 0 ? status_ok() : keep_edits(follow, led_epoch, here, pull->received);
    schema_snapshot_release(here);
    TRY(s);
    return is_same ? status_ok() : record_partial(follow);
}

/* With the right to (peers_mirror_begin). */
static status make_it(struct schema_follow *follow, const struct pull *pull)
{
    struct schema_mirror_options options = follow->options.mirror;
    uint64_t led_epoch = peers_led_epoch(follow->options.peers);
    options.keeps_tables = led_epoch != 0;
    TRY(prepare(follow, pull, led_epoch));
    TRY(schema_mirror(&options, pull->received));
    TRY(record_whole(follow, pull));
    return led_epoch == 0 ? status_ok() : peers_led_compared(follow->options.peers);
}

/* As a whole, or not at all: the next call brings it again. Twice, if what is here then is
 * something else: it was changed meanwhile, or the leader has what this program does not know. */
static status mirror(struct schema_follow *follow, const struct pull *pull)
{
    bool is_so = false;
    buffer_clear(&follow->digest);
    for (unsigned i = 0; i < 2 && !is_so; i++) {
        TRY(make_it(follow, pull));
        TRY(note_own(follow));
        is_so = bytes_equal(buffer_bytes(&follow->own), schema_snapshot_digest(pull->received));
    }
    return keep_digest(pull->received, &follow->digest);
}

/* Forgets what was mirrored, if that is here no more. */
static status check_own(struct schema_follow *follow)
{
    struct schema_snapshot *here;
    if (follow->digest.size == 0 ||
        control_edit_count(follow->options.mirror.control) == follow->edits)
        return status_ok();
    TRY(look_here(follow, &here));
    if (!bytes_equal(schema_snapshot_digest(here), buffer_bytes(&follow->own)))
        buffer_clear(&follow->digest);
    schema_snapshot_release(here);
    return status_ok();
}

static status ask(struct schema_follow *follow, struct client_session *session, struct pull *pull)
{
    Replica__PullSchemaRequest request = REPLICA__PULL_SCHEMA_REQUEST__INIT;
    request.from = peers_own_number(follow->options.peers);
    request.digest = proto_data(buffer_bytes(&follow->digest));
    request.at_once = !begin_call(follow);
    const struct session_call call = {.path = "/trestle.replica.v1.Replication/PullSchema",
                                      .request = &request.base,
                                      .timeout_us =
                                          follow->digest.size > 0 ? CALL_US : FULL_CALL_US,
                                      .on_message = take_piece,
                                      .context = pull};
    return client_session_stream(session, &call, NULL);
}

static bool is_stopping(struct schema_follow *follow)
{
    pthread_mutex_lock(&follow->lock);
    bool is_so = follow->is_stopping;
    pthread_mutex_unlock(&follow->lock);
    return is_so;
}

static status end_pull(struct schema_follow *follow, const struct pull *pull)
{
    if (pull->received == NULL)
        return status_ok();
    if (!pull->is_whole)
        return status_make(STATUS_UNAVAILABLE, "a part of the schema is missing");
    if (!peers_mirror_begin(follow->options.peers, follow->leader))
        return status_make(STATUS_UNAVAILABLE, "another peer leads by now");
    status s = mirror(follow, pull);
    peers_mirror_end(follow->options.peers);
    return s;
}

/* One call, and what comes of it. What the leader had when it was asked is known then. */
static status pull_once(struct schema_follow *follow, struct client_session *session)
{
    struct pull pull = {.follow = follow};
    int64_t asked_us = clock_steady_us(follow->clock), asked_wall_us = clock_wall_us(follow->clock);
    TRY(find_epoch(follow->options.peers, &pull.least_epoch));
    TRY(check_own(follow));
    status s = ask(follow, session, &pull);
    end_idleness(follow);
    if (s.code == STATUS_CANCELLED && !is_stopping(follow)) {
        status_free(s); /* by who wants to know more, if not by a peer that is out of order */
        schema_snapshot_release(pull.received);
        (void)thread_rest(&follow->stop, ENDED_US);
        return status_ok();
    }
    if (status_is_ok(s))
        s = end_pull(follow, &pull);
    schema_snapshot_release(pull.received);
    TRY(s);
    atomic_store(&follow->known_us, asked_us);
    atomic_store(&follow->known_wall_us, asked_wall_us);
    return status_ok();
}

/* --- before this server leads --- */

status schema_follow_tell(void *context, struct arena *arena, Replica__SchemaState *out)
{
    struct schema_follow *follow = context;
    TRY(schema_state_tell(follow->options.mirror.control, follow->options.peers, arena, out));
    out->known_until_us = atomic_load(&follow->known_wall_us);
    return status_ok();
}

static status pull_from(struct schema_follow *follow, unsigned from, struct pull *pull)
{
    struct client_session *session;
    Replica__PullSchemaRequest request = REPLICA__PULL_SCHEMA_REQUEST__INIT;
    const struct session_call call = {.path = "/trestle.replica.v1.Replication/PullSchema",
                                      .request = &request.base,
                                      .timeout_us = CATCH_UP_US,
                                      .on_message = take_piece,
                                      .context = pull};
    request.from = peers_own_number(follow->options.peers);
    request.is_to_lead = true;
    TRY(peers_session(follow->options.peers, from, &session));
    status s = client_session_stream(session, &call, NULL);
    client_session_destroy(session);
    if (status_is_ok(s) && !pull->is_whole)
        return status_make(STATUS_UNAVAILABLE, "a part of the schema is missing");
    return s;
}

status schema_follow_catch_up(void *context, unsigned from)
{
    struct schema_follow *follow = context;
    struct pull pull = {.follow = follow};
    status s = pull_from(follow, from, &pull);
    if (status_is_ok(s)) {
        bool may = peers_mirror_begin(follow->options.peers, peers_leader(follow->options.peers));
        s = may ? make_it(follow, &pull)
                : status_make(STATUS_ABORTED, "the peers are others now: ask again");
        if (may)
            peers_mirror_end(follow->options.peers);
    }
    schema_snapshot_release(pull.received);
    return s;
}

status schema_follow_check_unused(void *context, const char *location)
{
    struct schema_follow *follow = context;
    return location_check_unused(follow->options.mirror.control, location);
}

/* --- the thread --- */

/* False: it is to end. */
static bool hold_session(struct schema_follow *follow, struct client_session *session)
{
    pthread_mutex_lock(&follow->lock);
    bool goes_on = !follow->is_stopping;
    follow->session = goes_on ? session : NULL;
    pthread_mutex_unlock(&follow->lock);
    return goes_on;
}

/* Until it fails, or another one leads. */
static status follow_with(struct schema_follow *follow, struct client_session *session)
{
    unsigned leader;
    status s = status_ok();
    while (status_is_ok(s) && has_leader(follow->options.peers, &leader) &&
           leader == follow->leader && hold_session(follow, session)) {
        s = pull_once(follow, session);
        if (status_is_ok(s))
            follow->wait_us = 0;
    }
    (void)hold_session(follow, NULL);
    return s;
}

static status follow_leader(struct schema_follow *follow, unsigned leader)
{
    struct client_session *session;
    if (leader != follow->leader)
        buffer_clear(&follow->digest);
    follow->leader = leader;
    TRY(peers_session(follow->options.peers, leader, &session));
    status s = follow_with(follow, session);
    client_session_destroy(session);
    return s;
}

/* Once for all failures that follow each other. */
static void tell(const struct schema_follow *follow, status s)
{
    if (!status_is_ok(s) && s.code != STATUS_CANCELLED && follow->wait_us == 0)
        log_warn(follow->options.log, "the leader's schema cannot be pulled",
                 LOG_INT("peer", follow->leader), LOG_STR("cause", status_message(s)));
}

/* How long it is to be rested then. */
static int64_t take_turn(struct schema_follow *follow)
{
    unsigned leader;
    if (!has_leader(follow->options.peers, &leader))
        return IDLE_US;
    status s = follow_leader(follow, leader);
    bool has_failed = !status_is_ok(s);
    tell(follow, s);
    status_free(s);
    follow->wait_us = has_failed ? endpoint_next_wait(follow->wait_us) : 0;
    return has_failed ? follow->wait_us : 0;
}

static void *run(void *argument)
{
    struct schema_follow *follow = argument;
    while (thread_rest(&follow->stop, take_turn(follow)))
        ;
    return NULL;
}

/* --- life --- */

static void free_follow(struct schema_follow *follow)
{
    thread_stop_destroy(&follow->stop);
    pthread_mutex_destroy(&follow->lock);
    buffer_free(&follow->digest);
    buffer_free(&follow->own);
    free(follow);
}

status schema_follow_start(const struct schema_follow_options *options, struct schema_follow **out)
{
    struct schema_follow *follow = *out = calloc(1, sizeof *follow);
    if (follow == NULL)
        return status_out_of_memory();
    follow->options = *options;
    follow->clock = cluster_clock(control_cluster(options->mirror.control));
    thread_stop_init(&follow->stop);
    pthread_mutex_init(&follow->lock, NULL);
    status s = thread_start(&follow->thread, "schema", run, follow);
    if (!status_is_ok(s)) {
        free_follow(follow);
        *out = NULL;
    }
    return s;
}

void schema_follow_stop(struct schema_follow *follow)
{
    if (follow == NULL)
        return;
    pthread_mutex_lock(&follow->lock);
    follow->is_stopping = true;
    if (follow->session != NULL)
        client_session_cancel(follow->session);
    pthread_mutex_unlock(&follow->lock);
    thread_stop_now(&follow->stop);
    pthread_join(follow->thread, NULL);
    free_follow(follow);
}
