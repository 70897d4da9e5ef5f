/* Tests of the list of peers: who is let in with which number, which list counts, and that the
 * record is there again after a start. */
#include "replica/peer_list.h"

#include "cluster/catalog_txn.h"
#include "cluster/testing/testing.h"

struct lists {
    struct arena *arena;
    struct cluster_fixture *f; /* NULL: not wanted */
};

static int setup(void **state)
{
    struct lists *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->arena = arena_create(1 << 20);
    assert_non_null(l->arena);
    *state = l;
    return 0;
}

static int setup_cluster(void **state)
{
    setup(state);
    ((struct lists *)*state)->f = cluster_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    struct lists *l = *state;
    if (l->f != NULL)
        cluster_fixture_destroy(l->f);
    arena_destroy(l->arena);
    free(l);
    return 0;
}

/* "c7" of the number 7: what a peer has of each. */
static char *text_of(struct arena *arena, const char *what, unsigned number)
{
    char text[64];
    snprintf(text, sizeof text, "%s%u", what, number);
    char *kept = arena_string(arena, bytes_of(text));
    assert_non_null(kept);
    return kept;
}

static Replica__Peer peer_of(struct lists *l, unsigned number)
{
    Replica__Peer peer = REPLICA__PEER__INIT;
    peer.location = text_of(l->arena, "zone-", number);
    peer.address = text_of(l->arena, "127.0.0.1:", 8000 + number);
    peer.identity = text_of(l->arena, "identity-", number);
    return peer;
}

/* All of them have the list, and have seen nothing else. */
static struct peer_support support_of(const Replica__PeerList *list)
{
    return (struct peer_support){.have = peer_list_numbers(list)};
}

static status admit(struct lists *l, const Replica__PeerList *list, const Replica__Peer *peer,
                    const Replica__PeerList **out, unsigned *number)
{
    const struct peer_support support = support_of(list);
    return peer_list_admit(list, peer, &support, l->arena, out, number);
}

static const Replica__PeerList *list_of(struct lists *l, unsigned count)
{
    const Replica__PeerList *list;
    Replica__Peer first = peer_of(l, 1);
    unsigned number;
    assert_ok(peer_list_begin(&first, l->arena, &list));
    for (unsigned i = 2; i <= count; i++) {
        Replica__Peer peer = peer_of(l, i);
        assert_ok(admit(l, list, &peer, &list, &number));
        assert_int_equal(number, i);
    }
    assert_ok(peer_list_check(list));
    return list;
}

static void first_leads_and_others_get_the_next_numbers(void **state)
{
    const Replica__PeerList *list = list_of(*state, 3);
    assert_int_equal(list->leader, 1);
    assert_int_equal(list->epoch, 1);
    assert_int_equal(list->revision, 3);
    assert_int_equal(list->n_peers, 3);
    assert_string_equal(peer_list_find(list, 2)->location, "zone-2");
    assert_int_equal(peer_list_of_identity(list, "identity-3")->number, 3);
    assert_null(peer_list_find(list, 4));
    assert_null(peer_list_find(NULL, 1));
    assert_null(peer_list_of_identity(list, "identity-4"));
}

static void one_that_asks_again_gets_the_same_number(void **state)
{
    const Replica__PeerList *list = list_of(*state, 3), *again;
    Replica__Peer peer = peer_of(*state, 2);
    unsigned number;
    assert_ok(admit(*state, list, &peer, &again, &number));
    assert_int_equal(number, 2);
    assert_ptr_equal(again, list);
}

static void assert_refused(struct lists *l, const Replica__Peer *peer, enum status_code code,
                           const char *words)
{
    const Replica__PeerList *list = list_of(l, 3), *longer;
    unsigned number;
    status s = admit(l, list, peer, &longer, &number);
    assert_int_equal(s.code, code);
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
}

static void nobody_is_let_in_who_shares_something(void **state)
{
    Replica__Peer peer = peer_of(*state, 4);
    peer.identity = (char *)(uintptr_t) "identity-2";
    assert_refused(*state, &peer, STATUS_ALREADY_EXISTS, "identity");
    peer = peer_of(*state, 4);
    peer.location = (char *)(uintptr_t) "zone-2";
    assert_refused(*state, &peer, STATUS_FAILED_PRECONDITION, "a location has one");
    peer = peer_of(*state, 4);
    peer.address = (char *)(uintptr_t) "127.0.0.1:8002";
    assert_refused(*state, &peer, STATUS_ALREADY_EXISTS, "that of peer 2");
    peer = peer_of(*state, 4);
    peer.location = (char *)(uintptr_t) "";
    assert_refused(*state, &peer, STATUS_INVALID_ARGUMENT, "location");
}

static void peer_gets_another_address(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 3), *moved;
    assert_ok(peer_list_move(list, 2, "127.0.0.1:9000", l->arena, &moved));
    assert_ok(peer_list_check(moved));
    assert_true(peer_list_is_newer(moved, list));
    assert_string_equal(peer_list_find(moved, 2)->address, "127.0.0.1:9000");
    assert_string_equal(peer_list_find(moved, 2)->identity, "identity-2");
    assert_string_equal(peer_list_find(list, 2)->address, "127.0.0.1:8002");
    assert_status(peer_list_move(list, 2, "127.0.0.1:8003", l->arena, &moved),
                  STATUS_ALREADY_EXISTS);
    assert_status(peer_list_move(list, 2, "", l->arena, &moved), STATUS_INVALID_ARGUMENT);
}

static void there_are_31_at_most(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, PEERS_MOST);
    Replica__Peer peer = peer_of(l, PEERS_MOST + 1);
    unsigned number;
    status s = admit(l, list, &peer, &list, &number);
    assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void greater_epoch_is_newer_and_then_the_revision(void **state)
{
    (void)state;
    Replica__PeerList a = REPLICA__PEER_LIST__INIT, b = REPLICA__PEER_LIST__INIT;
    a.epoch = 2, a.revision = 1;
    b.epoch = 1, b.revision = 9;
    assert_true(peer_list_is_newer(&a, &b));
    assert_false(peer_list_is_newer(&b, &a));
    b.epoch = 2;
    assert_true(peer_list_is_newer(&b, &a));
    a.revision = 9;
    assert_false(peer_list_is_newer(&a, &b) || peer_list_is_newer(&b, &a));
    assert_true(peer_list_is_newer(&a, NULL));
    assert_false(peer_list_is_newer(NULL, &a) || peer_list_is_newer(NULL, NULL));
}

static void of_one_epoch_the_greater_leader_counts(void **state)
{
    (void)state;
    Replica__PeerList a = REPLICA__PEER_LIST__INIT, b = REPLICA__PEER_LIST__INIT;
    a.epoch = b.epoch = 2;
    a.leader = 3, a.revision = 1;
    b.leader = 2, b.revision = 9;
    assert_true(peer_list_is_newer(&a, &b));
    assert_false(peer_list_is_newer(&b, &a));
}

/* --- majorities --- */

static peer_set set_of(const unsigned *numbers, size_t count)
{
    peer_set set = 0;
    for (size_t i = 0; i < count; i++)
        set |= peer_bit(numbers[i]);
    return set;
}
#define SET(...)                                                                                   \
    set_of((const unsigned[]){__VA_ARGS__},                                                        \
           sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

static unsigned next_number(struct lists *l, const Replica__PeerList *list, peer_set have,
                            peer_set seen)
{
    const struct peer_support support = {have, seen};
    const Replica__PeerList *longer;
    Replica__Peer peer = peer_of(l, 99);
    unsigned number;
    assert_ok(peer_list_admit(list, &peer, &support, l->arena, &longer, &number));
    assert_ok(peer_list_check(longer));
    assert_non_null(peer_list_find(longer, number));
    return number;
}

static void assert_no_number(struct lists *l, const Replica__PeerList *list, peer_set have,
                             peer_set seen, enum status_code code)
{
    const struct peer_support support = {have, seen};
    const Replica__PeerList *longer;
    Replica__Peer peer = peer_of(l, 99);
    unsigned number;
    assert_status(peer_list_admit(list, &peer, &support, l->arena, &longer, &number), code);
}

static void a_number_that_was_seen_is_not_given_again(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 3);
    assert_int_equal(next_number(l, list, SET(1, 2), 0), 4);
    assert_int_equal(next_number(l, list, SET(1, 2), SET(4, 5, 17)), 6);
}

static void without_a_majority_a_leader_gives_one(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 3), *other;
    const struct peer_support alone = {.have = SET(2)};
    assert_int_equal(next_number(l, list, SET(1), 0), 17);
    assert_no_number(l, list, SET(1), SET(17), STATUS_FAILED_PRECONDITION);
    assert_ok(peer_list_promote(list, (struct peer_ballot){2, 2}, &alone, l->arena, &other));
    assert_int_equal(next_number(l, other, SET(2), 0), 18);
}

/* What one peer may give alone nobody gives without having asked it. */
static void above_16_all_peers_are_asked(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 16), *less;
    const struct peer_support all = {.have = peer_list_numbers(list)};
    assert_int_equal(next_number(l, list, all.have, 0), 17);
    assert_int_equal(next_number(l, list, all.have, SET(17, 18)), 19);
    assert_no_number(l, list, all.have & ~SET(16), 0, STATUS_RESOURCE_EXHAUSTED);
    assert_ok(peer_list_dismiss(list, 2, &all, l->arena, &less));
    assert_int_equal(next_number(l, less, all.have, SET(17)), 19);
}

static void who_leaves_keeps_its_number(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 4), *less;
    const struct peer_support all = {.have = peer_list_numbers(list)};
    assert_ok(peer_list_dismiss(list, 3, &all, l->arena, &less));
    assert_ok(peer_list_check(less));
    assert_true(peer_list_is_newer(less, list));
    assert_null(peer_list_find(less, 3));
    assert_string_equal(peer_list_former(less, 3)->identity, "identity-3");
    assert_int_equal(peer_list_gone(less), SET(3));
    assert_int_equal(next_number(l, less, all.have, 0), 5);
    assert_ok(peer_list_dismiss(less, 2, &all, l->arena, &less));
    assert_ok(peer_list_check(less));
    Replica__Peer again = peer_of(l, 3);
    unsigned number;
    assert_status(admit(l, less, &again, &less, &number), STATUS_FAILED_PRECONDITION);
    again.identity = (char *)(uintptr_t) "another"; /* the location and the address are free */
    assert_ok(admit(l, less, &again, &less, &number));
    assert_int_equal(number, 5);
}

static void one_is_made_to_lead(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 3), *next;
    const struct peer_support two = {.have = SET(2, 3)};
    assert_ok(peer_list_promote(list, (struct peer_ballot){2, 3}, &two, l->arena, &next));
    assert_ok(peer_list_check(next));
    assert_int_equal(next->leader, 3);
    assert_int_equal(next->epoch, 2);
    assert_int_equal(next->n_voters, 0);
    assert_true(peer_list_is_newer(next, list));
}

/* A list that was changed without a majority takes one of those as well for whom it was changed. */
static void what_was_forced_waits_for_the_others(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 3), *next;
    struct peer_support support = {.have = SET(2)};
    assert_ok(peer_list_promote(list, (struct peer_ballot){2, 2}, &support, l->arena, &next));
    assert_ok(peer_list_dismiss(next, 1, &support, l->arena, &next));
    assert_ok(peer_list_dismiss(next, 3, &support, l->arena, &next));
    assert_ok(peer_list_check(next));
    assert_int_equal(next->n_peers, 1);
    assert_int_equal(next->n_voters, 3);
    assert_false(peer_list_has_majority(next, SET(2)));
    assert_true(peer_list_has_majority(next, SET(2, 3)));
    assert_int_equal(next_number(l, next, SET(2), 0), 18);
    support.have = SET(2, 3);
    assert_ok(peer_list_promote(next, (struct peer_ballot){3, 2}, &support, l->arena, &next));
    assert_int_equal(next->n_voters, 0);
    assert_true(peer_list_has_majority(next, SET(2)));
}

static void a_group_of_its_own_begins_with_a_new_number(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 4), *found;
    const struct peer_support all = {.have = peer_list_numbers(list)};
    Replica__Peer restored = peer_of(l, 2);
    restored.identity = (char *)(uintptr_t) "restored";
    assert_ok(peer_list_dismiss(list, 3, &all, l->arena, &list));
    assert_ok(peer_list_found(list, &restored, SET(5), l->arena, &found));
    assert_ok(peer_list_check(found));
    assert_int_equal(found->leader, 6);
    assert_int_equal(found->epoch, 2);
    assert_int_equal(found->n_peers, 1);
    assert_int_equal(peer_list_gone(found), SET(1, 2, 3, 4));
    assert_int_equal(next_number(l, found, SET(6), SET(5)), 7);
    assert_status(peer_list_found(list, &restored, UINT32_MAX, l->arena, &found),
                  STATUS_RESOURCE_EXHAUSTED);
}

static void one_that_is_let_in_is_not_asked(void **state)
{
    const Replica__PeerList *list = list_of(*state, 3);
    assert_false(peer_list_has_majority_but(list, SET(1, 3), 3));
    assert_true(peer_list_has_majority_but(list, SET(1, 2), 3));
    assert_true(peer_list_has_majority_but(list_of(*state, 2), SET(1), 2));
    assert_false(peer_list_has_majority(list_of(*state, 2), SET(1)));
}

static void assert_unsound(const Replica__PeerList *list)
{
    status s = peer_list_check(list);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    status_free(s);
}

static void unsound_lists_are_seen(void **state)
{
    Replica__PeerList list = *list_of(*state, 3);
    Replica__Peer *second = list.peers[1];
    list.leader = 4;
    assert_unsound(&list);
    list.leader = 3;
    assert_ok(peer_list_check(&list));
    second->number = 1;
    assert_unsound(&list);
    second->number = 3;
    assert_unsound(&list);
    second->number = 2;
    list.peers[2]->number = PEERS_MOST + 1;
    assert_unsound(&list);
    list.peers[2]->number = 3;
    uint32_t voters[] = {2, 1};
    list.voters = voters;
    list.n_voters = 2;
    assert_unsound(&list);
    list.n_voters = 1;
    assert_ok(peer_list_check(&list));
    Replica__Peer gone = peer_of(*state, 4), *former[] = {&gone};
    gone.number = 2;
    list.former = former;
    list.n_former = 1;
    assert_unsound(&list);
    gone.number = 4;
    assert_ok(peer_list_check(&list));
    list.epoch = 0;
    assert_unsound(&list);
    list.epoch = 1;
    second->identity = list.peers[0]->identity;
    assert_unsound(&list);
}

static void record_is_there_after_a_start(void **state)
{
    struct lists *l = *state;
    struct peer_record record;
    assert_ok(peer_record_read(l->f->cluster, l->arena, &record));
    assert_null(record.list);
    assert_int_equal(record.own_number, 0);
    record = (struct peer_record){.list = list_of(l, 3),
                                  .own_number = 2,
                                  .promised = {7, 3},
                                  .led_epoch = 5,
                                  .seen = SET(9),
                                  .gone = SET(8)};
    assert_ok(peer_record_write(l->f->cluster, &record));
    reopen_test_cluster(l->f);
    assert_ok(peer_record_read(l->f->cluster, l->arena, &record));
    assert_int_equal(record.own_number, 2);
    assert_int_equal(record.list->n_peers, 3);
    assert_string_equal(record.list->peers[2]->address, "127.0.0.1:8003");
    assert_int_equal(record.promised.epoch, 7);
    assert_int_equal(record.promised.leader, 3);
    assert_int_equal(record.led_epoch, 5);
    assert_int_equal(record.seen, SET(1, 2, 3, 9));
    assert_int_equal(record.gone, SET(8));
}

/* With arenas that are full at each place in turn. */
static void memory_may_run_out(void **state)
{
    struct lists *l = *state;
    const Replica__PeerList *list = list_of(l, 3);
    for (size_t limit = 0; limit < 4000; limit += 8) {
        struct lists small = {.arena = arena_create(1 << 20)};
        assert_non_null(small.arena);
        (void)list_of(&small, 3);
        arena_set_limit(small.arena, limit);
        const struct peer_support two = {.have = SET(1)};
        const Replica__PeerList *next;
        unsigned number;
        Replica__Peer peer = peer_of(l, 4);
        status s = peer_list_promote(list, (struct peer_ballot){2, 2}, &two, small.arena, &next);
        if (status_is_ok(s))
            s = peer_list_admit(next, &peer, &two, small.arena, &next, &number);
        if (status_is_ok(s))
            s = peer_list_dismiss(next, 3, &two, small.arena, &next);
        if (status_is_ok(s))
            s = peer_list_found(next, &peer, 0, small.arena, &next);
        assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
        arena_destroy(small.arena);
    }
}

static void damaged_record_is_told(void **state)
{
    struct lists *l = *state;
    struct peer_record record;
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(l->f->cluster));
    catalog_txn_put(txn, bytes_of("peers"), bytes_of("\xff"));
    assert_ok(cluster_write_catalog(l->f->cluster, txn));
    catalog_txn_destroy(txn);
    status s = peer_record_read(l->f->cluster, l->arena, &record);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    status_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_leads_and_others_get_the_next_numbers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_asks_again_gets_the_same_number, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_is_let_in_who_shares_something, setup, teardown),
        cmocka_unit_test_setup_teardown(peer_gets_another_address, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_31_at_most, setup, teardown),
        cmocka_unit_test(greater_epoch_is_newer_and_then_the_revision),
        cmocka_unit_test(of_one_epoch_the_greater_leader_counts),
        cmocka_unit_test_setup_teardown(a_number_that_was_seen_is_not_given_again, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_majority_a_leader_gives_one, setup, teardown),
        cmocka_unit_test_setup_teardown(above_16_all_peers_are_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(who_leaves_keeps_its_number, setup, teardown),
        cmocka_unit_test_setup_teardown(one_is_made_to_lead, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_forced_waits_for_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_let_in_is_not_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(a_group_of_its_own_begins_with_a_new_number, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(memory_may_run_out, setup, teardown),
        cmocka_unit_test_setup_teardown(unsound_lists_are_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(record_is_there_after_a_start, setup_cluster, teardown),
        cmocka_unit_test_setup_teardown(damaged_record_is_told, setup_cluster, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
