/* Tests of schema_follow.h. Peers and sessions are the test's own: a call brings at once what the
 * leader has, or waits until the test lets it end. */
#include "replica/schema_follow.h"

#include "base/check.h"
#include "os/thread.h"
#include "replica/testing/schema_testing.h"

struct peers {
    atomic_uint own;
    atomic_uint leader;
    atomic_ulong epoch; /* of the follower's list */
};

struct client_session {
    atomic_bool is_cancelled;
    atomic_bool has_call_to_end;
};

static struct fixture {
    struct schema_peer leader;
    struct schema_peer follower;
    struct peers peers;
    struct schema_follow *follow;
    atomic_uint made;
    /* What calls come to. */
    atomic_bool fails;
    atomic_bool is_cut; /* the last piece does not come */
    atomic_ulong answers_epoch;
    atomic_uint calls;
    atomic_uint empty_calls; /* of those that had all, and waited */
    atomic_llong waits_us;   /* such a one, if nobody ends it */
    atomic_uint sessions;    /* open */
} * fixture;

/* --- the test's peers --- */

unsigned peers_own_number(const struct peers *peers)
{
    return atomic_load(&peers->own);
}

unsigned peers_leader(const struct peers *peers)
{
    return atomic_load(&peers->leader);
}

status peers_list(struct peers *peers, struct arena *arena, const Replica__PeerList **out)
{
    static char address[] = "127.0.0.1:1";
    Replica__PeerList *list;
    *out = NULL;
    if (peers_own_number(peers) == 0)
        return status_ok();
    PROTO_NEW(arena, list, REPLICA__PEER_LIST__INIT);
    list->peers = arena_alloc(arena, sizeof *list->peers);
    if (list->peers == NULL)
        return status_out_of_memory();
    PROTO_NEW(arena, list->peers[0], REPLICA__PEER__INIT);
    list->n_peers = 1;
    list->peers[0]->number = list->leader = peers_leader(peers);
    list->peers[0]->address = address;
    list->epoch = atomic_load(&peers->epoch);
    *out = list;
    return status_ok();
}

status peers_session(struct peers *peers, unsigned number, struct client_session **out)
{
    assert_int_equal(number, peers_leader(peers));
    *out = calloc(1, sizeof **out);
    assert_non_null(*out);
    atomic_fetch_add(&fixture->sessions, 1);
    return status_ok();
}

/* Nobody administers here, and this server has not led. */
bool peers_mirror_begin(struct peers *peers, unsigned leader)
{
    return peers_leader(peers) == leader;
}

void peers_mirror_end(struct peers *peers)
{
    (void)peers;
}

uint64_t peers_led_epoch(struct peers *peers)
{
    (void)peers;
    return 0;
}

status peers_led_compared(struct peers *peers)
{
    (void)peers;
    return status_ok();
}

void client_session_destroy(struct client_session *session)
{
    atomic_fetch_sub(&fixture->sessions, 1);
    free(session);
}

void client_session_cancel(struct client_session *session)
{
    atomic_store(&session->is_cancelled, true);
}

void client_session_end_call(struct client_session *session)
{
    atomic_store(&session->has_call_to_end, true);
}

/* Of the answer to that call. */
struct answer {
    const struct session_call *call;
    bool is_cut;
};

static status hand_over(void *context, const Replica__PullSchemaResponse *piece)
{
    struct answer *answer = context;
    struct arena *arena = arena_create(16 << 20);
    Replica__PullSchemaResponse changed = *piece;
    assert_non_null(arena);
    if (answer->is_cut)
        changed.digest = proto_data(bytes_make(NULL, 0));
    bytes wire = proto_encode_in(arena, &changed.base);
    status s = answer->call->on_message(answer->call->context, wire);
    arena_destroy(arena);
    return s;
}

static bool is_over(void *context)
{
    const struct client_session *session = context;
    return atomic_load(&session->is_cancelled) || atomic_load(&session->has_call_to_end) ||
           atomic_load(&fixture->fails);
}

status client_session_stream(struct client_session *session, const struct session_call *call,
                             bool *is_expired)
{
    const Replica__PullSchemaRequest *request = (const void *)call->request;
    struct answer answer = {.call = call, .is_cut = atomic_load(&fixture->is_cut)};
    status s = status_ok();
    assert_null(is_expired);
    assert_int_equal(request->from, 2);
    atomic_fetch_add(&fixture->calls, 1);
    if (atomic_load(&fixture->fails))
        return status_make(STATUS_UNAVAILABLE, "nobody is there");
    struct schema_snapshot *snapshot = picture(&fixture->leader);
    if (!bytes_equal(proto_bytes(request->digest), schema_snapshot_digest(snapshot))) {
        s = schema_snapshot_send(snapshot, atomic_load(&fixture->answers_epoch), hand_over,
                                 &answer);
    } else if (!request->at_once) {
        thread_wait_for(is_over, session, atomic_load(&fixture->waits_us));
        atomic_fetch_add(&fixture->empty_calls, 1);
    }
    schema_snapshot_release(snapshot);
    bool is_ended = atomic_exchange(&session->has_call_to_end, false);
    if (atomic_load(&session->is_cancelled) || is_ended) {
        status_free(s);
        return status_make(STATUS_CANCELLED, "the session is ended");
    }
    return s;
}

/* --- fixture --- */

static void note_made(void *context, struct table *table)
{
    (void)context, (void)table;
    atomic_fetch_add(&fixture->made, 1);
}

static void start(struct fixture *f)
{
    const struct schema_follow_options options = {
        .peers = &f->peers,
        .mirror = {.control = f->follower.control, .made = note_made},
        .log = &f->follower.base->log};
    assert_ok(schema_follow_start(&options, &f->follow));
}

static int setup(void **state)
{
    struct fixture *f = fixture = calloc(1, sizeof *f);
    assert_non_null(f);
    make_peer(&f->leader, 1);
    make_peer(&f->follower, 2);
    atomic_store(&f->peers.own, 2);
    atomic_store(&f->peers.leader, 1);
    atomic_store(&f->waits_us, 20000);
    start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    schema_follow_stop(f->follow);
    assert_int_equal(atomic_load(&f->sessions), 0);
    end_peer(&f->leader);
    end_peer(&f->follower);
    free(f);
    return 0;
}

/* --- waiting --- */

static void wait_until(bool (*is_so)(void *context), void *context)
{
    assert_true(thread_wait_for(is_so, context, INT64_C(60) * 1000000));
}

static bool are_alike(void *context)
{
    struct fixture *f = context;
    struct schema_snapshot *leader = picture(&f->leader), *follower = picture(&f->follower);
    bool is_so = bytes_equal(schema_snapshot_digest(leader), schema_snapshot_digest(follower));
    schema_snapshot_release(leader);
    schema_snapshot_release(follower);
    return is_so;
}

static int64_t now_us(struct fixture *f)
{
    return clock_steady_us(cluster_clock(f->follower.base->cluster));
}

struct moment {
    struct fixture *f;
    int64_t us;
    unsigned calls;
};

static bool is_known(void *context)
{
    const struct moment *moment = context;
    return schema_follow_knows_since(moment->f->follow, moment->us);
}

static bool has_called(void *context)
{
    const struct moment *moment = context;
    return atomic_load(&moment->f->calls) >= moment->calls;
}

static void wait_for_calls(struct fixture *f, unsigned more)
{
    struct moment moment = {.f = f, .calls = atomic_load(&f->calls) + more};
    wait_until(has_called, &moment);
}

/* --- tests --- */

static void what_the_leader_has_is_followed(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, TABLE_T "%u", i);
        make_table(&f->leader, name);
        wait_until(are_alike, f);
        assert_true(has_table(&f->follower, name));
    }
    assert_int_equal(atomic_load(&f->made), 3);
}

/* Known is what the leader had when it was asked, also if there was nothing new. */
static void it_says_up_to_when_all_is_known(void **state)
{
    struct fixture *f = *state;
    struct moment moment = {.f = f};
    make_table(&f->leader, TABLE_T);
    moment.us = now_us(f);
    wait_until(is_known, &moment);
    assert_true(has_table(&f->follower, TABLE_T));
    moment.us = now_us(f);
    assert_false(is_known(&moment));
    wait_until(is_known, &moment);
    atomic_store(&f->fails, true);
    wait_for_calls(f, 3);
    moment.us = now_us(f);
    wait_for_calls(f, 2);
    assert_false(is_known(&moment));
    atomic_store(&f->peers.leader, 2);
    assert_true(is_known(&moment));
}

/* Calls would wait for an hour: whoever wants to know more has none that does. */
static void who_wants_to_know_waits_for_no_call(void **state)
{
    struct fixture *f = *state;
    struct moment moment = {.f = f};
    atomic_store(&f->waits_us, INT64_C(3600) * 1000000);
    for (unsigned i = 0; i < 50; i++) {
        if (i % 3 == 0)
            make_table(&f->leader, TABLE_T);
        else if (i % 3 == 1)
            delete_table_at(&f->leader, TABLE_T);
        moment.us = now_us(f);
        wait_until(is_known, &moment);
        assert_true(are_alike(f));
    }
}

static void what_fails_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    wait_until(are_alike, f);
    atomic_store(&f->fails, true);
    make_table(&f->leader, TABLE_T);
    wait_for_calls(f, 3);
    assert_false(has_table(&f->follower, TABLE_T));
    atomic_store(&f->fails, false);
    wait_until(are_alike, f);
}

static void what_is_not_whole_is_not_mirrored(void **state)
{
    struct fixture *f = *state;
    wait_until(are_alike, f);
    atomic_store(&f->is_cut, true);
    make_table(&f->leader, TABLE_T);
    wait_for_calls(f, 3);
    assert_false(has_table(&f->follower, TABLE_T));
    atomic_store(&f->is_cut, false);
    wait_until(are_alike, f);
}

static void who_led_before_is_not_followed(void **state)
{
    struct fixture *f = *state;
    wait_until(are_alike, f);
    atomic_store(&f->peers.epoch, 2);
    atomic_store(&f->answers_epoch, 1);
    make_table(&f->leader, TABLE_T);
    wait_for_calls(f, 3);
    assert_false(has_table(&f->follower, TABLE_T));
    atomic_store(&f->answers_epoch, 2);
    wait_until(are_alike, f);
}

static bool has_no_session(void *context)
{
    const struct fixture *f = context;
    return atomic_load(&f->sessions) == 0;
}

static void who_leads_follows_nobody(void **state)
{
    struct fixture *f = *state;
    struct buffer address = {0};
    wait_until(are_alike, f);
    assert_true(schema_follows(&f->peers, &address));
    assert_true(bytes_equal(buffer_bytes(&address), bytes_of("127.0.0.1:1")));
    buffer_free(&address);
    for (unsigned own = 0; own < 2; own++) {
        atomic_store(&f->peers.own, own);
        assert_false(schema_follows(&f->peers, &address));
        assert_int_equal(address.size, 0);
        wait_until(has_no_session, f);
        make_table(&f->follower, own == 0 ? TABLE_T : TABLE_T "2");
    }
    assert_true(has_table(&f->follower, TABLE_T));
    atomic_store(&f->peers.own, 2);
    wait_until(are_alike, f);
    assert_false(has_table(&f->follower, TABLE_T));
}

/* As of a change that was under way when this server began to follow. */
static void what_is_made_here_alone_goes(void **state)
{
    struct fixture *f = *state;
    struct moment moment = {.f = f};
    make_table(&f->leader, TABLE_T);
    moment.us = now_us(f);
    wait_until(is_known, &moment);
    make_table(&f->follower, TABLE_T "2");
    delete_table_at(&f->follower, TABLE_T);
    wait_until(are_alike, f);
    put(&f->follower, RESOURCE_POLICY, INSTANCE "/clusters/c/backups/b"); /* its own */
    wait_for_calls(f, 2);
    assert_true(has(&f->follower, RESOURCE_POLICY, INSTANCE "/clusters/c/backups/b"));
}

/* The teardown stops it: in a call that waits, and in one that fails. */
static void it_can_be_stopped_at_any_time(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 20; i++) {
        schema_follow_stop(f->follow);
        atomic_store(&f->fails, i % 3 == 0);
        if (i % 2 == 0)
            make_table(&f->leader, i % 4 == 0 ? TABLE_T : TABLE_T "2");
        else
            delete_table_at(&f->leader, i % 4 == 1 ? TABLE_T : TABLE_T "2");
        start(f);
        if (i % 5 == 0)
            wait_for_calls(f, 1);
    }
    atomic_store(&f->fails, false);
    wait_until(are_alike, f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        CASE(what_the_leader_has_is_followed),     CASE(it_says_up_to_when_all_is_known),
        CASE(what_fails_is_asked_for_again),       CASE(what_is_not_whole_is_not_mirrored),
        CASE(who_led_before_is_not_followed),      CASE(who_leads_follows_nobody),
        CASE(what_is_made_here_alone_goes),        CASE(it_can_be_stopped_at_any_time),
        CASE(who_wants_to_know_waits_for_no_call),
    };
    return cmocka_run_group_tests_name("schema_follow", tests, NULL, NULL);
}
