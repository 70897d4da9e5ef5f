/* Tests of what peers' troubles make of a server's health: when each begins, what it says, and that
 * it ends. */
#include "replica/peer_watch.h"

#include "base/testing/testing_clock.h"
#include "base/testing/testing_log.h"

#define SECOND_US INT64_C(1000000)

struct fixture {
    struct hands_clock clock;
    struct log log;
    struct condition *condition;
    struct peer_troubles troubles;
    int64_t now_us;
    Replica__Peer peers[3];
    Replica__Peer *list_peers[3];
    Replica__PeerList list;
    Replica__PeerState states[2];
    Replica__PeerState *list_states[2];
    Replica__ListPeersResponse told;
};

static void name_peer(struct fixture *f, unsigned at, const char *location)
{
    f->peers[at] = (Replica__Peer)REPLICA__PEER__INIT;
    f->peers[at].number = at + 1;
    f->peers[at].location = location;
    f->list_peers[at] = &f->peers[at];
}

/* Number 1 of three, which hears both others. */
static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->clock = (struct hands_clock){.clock = HANDS_CLOCK, .wall_us = 1000, .steady_us = 7000};
    f->log = testing_log();
    f->now_us = SECOND_US;
    assert_ok(condition_create(&f->log, &f->clock.clock, NULL, &f->condition));
    name_peer(f, 0, "here");
    name_peer(f, 1, "east");
    name_peer(f, 2, "west");
    f->list = (Replica__PeerList)REPLICA__PEER_LIST__INIT;
    f->list.peers = f->list_peers;
    f->list.n_peers = 3;
    f->told = (Replica__ListPeersResponse)REPLICA__LIST_PEERS_RESPONSE__INIT;
    f->told.list = &f->list;
    f->told.own_number = 1;
    f->told.states = f->list_states;
    f->told.n_states = 2;
    for (unsigned i = 0; i < 2; i++) {
        f->states[i] = (Replica__PeerState)REPLICA__PEER_STATE__INIT;
        f->states[i].number = i + 2;
        f->states[i].heard_us = 1;
        f->list_states[i] = &f->states[i];
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    condition_destroy(f->condition);
    close(f->log.fd);
    free(f);
    return 0;
}

/* So long after the last look. */
static void look_after(struct fixture *f, int64_t seconds)
{
    f->now_us += seconds * SECOND_US;
    peer_troubles_judge(&f->troubles, &f->told, f->now_us, f->condition);
}

/* There is that reason alone, in these words; NULL: there is none. */
static void assert_reason(struct fixture *f, enum reason reason, const char *text)
{
    struct condition_view view;
    condition_look(f->condition, &view);
    assert_int_equal(view.count, text != NULL);
    if (text == NULL)
        return;
    assert_int_equal(view.reasons[0].reason, reason);
    assert_int_equal(view.reasons[0].level, HEALTH_DEGRADED);
    assert_string_equal(view.reasons[0].text, text);
}

static void one_that_is_silent_is_told_after_a_minute(void **state)
{
    struct fixture *f = *state;
    f->states[0].failure = "refused";
    look_after(f, 0);
    look_after(f, 59);
    assert_reason(f, REASON_peer_silent, NULL);
    look_after(f, 1);
    assert_reason(f, REASON_peer_silent, "east does not answer: refused");
    f->states[1].heard_us = 0;
    look_after(f, 1);
    look_after(f, 60);
    assert_reason(f, REASON_peer_silent, "east does not answer: refused; west does not answer: ");
    f->states[0].failure = "";
    f->states[1].heard_us = 5;
    look_after(f, 1);
    assert_reason(f, REASON_peer_silent, NULL);
}

static void a_minute_is_counted_anew_for_each_time(void **state)
{
    struct fixture *f = *state;
    f->states[0].failure = "refused";
    look_after(f, 0);
    f->states[0].failure = "";
    look_after(f, 30);
    f->states[0].failure = "refused";
    look_after(f, 1);
    look_after(f, 59);
    assert_reason(f, REASON_peer_silent, NULL);
    look_after(f, 1);
    assert_reason(f, REASON_peer_silent, "east does not answer: refused");
}

static void changes_that_wait_are_told_after_a_minute(void **state)
{
    struct fixture *f = *state;
    f->states[1].parked = park_words(PARK_CLOCK_AHEAD);
    look_after(f, 0);
    look_after(f, 30);
    assert_reason(f, REASON_peer_parked, NULL);
    f->states[1].parked = park_words(PARK_TABLE_UNKNOWN); /* they wait all the same */
    look_after(f, 30);
    assert_reason(f, REASON_peer_parked, "changes of west wait here: table unknown");
    f->states[1].parked = "";
    look_after(f, 1);
    assert_reason(f, REASON_peer_parked, NULL);
}

static void a_copy_that_is_made_is_no_trouble(void **state)
{
    struct fixture *f = *state;
    f->states[0].parked = "being copied";
    f->states[1].parked = park_words(PARK_LOST); /* so one will be */
    look_after(f, 0);
    look_after(f, 3600);
    assert_reason(f, REASON_peer_parked, NULL);
}

static void two_with_one_identity_are_told_at_once(void **state)
{
    struct fixture *f = *state;
    f->states[1].doubled = true;
    look_after(f, 0);
    assert_reason(f, REASON_peer_doubled, "two servers have the identity of west");
}

static void who_has_no_peers_any_more_has_no_trouble(void **state)
{
    struct fixture *f = *state;
    f->states[1].doubled = true;
    look_after(f, 0);
    f->told.list = NULL;
    f->told.n_states = 0;
    look_after(f, 1);
    assert_reason(f, REASON_peer_doubled, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_is_silent_is_told_after_a_minute),
        TEST(a_minute_is_counted_anew_for_each_time),
        TEST(changes_that_wait_are_told_after_a_minute),
        TEST(a_copy_that_is_made_is_no_trouble),
        TEST(two_with_one_identity_are_told_at_once),
        TEST(who_has_no_peers_any_more_has_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
