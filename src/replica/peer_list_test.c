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

static const Replica__PeerList *list_of(struct lists *l, unsigned count)
{
    const Replica__PeerList *list;
    Replica__Peer first = peer_of(l, 1);
    unsigned number;
    assert_ok(peer_list_begin(&first, l->arena, &list));
    for (unsigned i = 2; i <= count; i++) {
        Replica__Peer peer = peer_of(l, i);
        assert_ok(peer_list_admit(list, &peer, l->arena, &list, &number));
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
    assert_ok(peer_list_admit(list, &peer, ((struct lists *)*state)->arena, &again, &number));
    assert_int_equal(number, 2);
    assert_ptr_equal(again, list);
}

static void assert_refused(struct lists *l, const Replica__Peer *peer, enum status_code code,
                           const char *words)
{
    const Replica__PeerList *list = list_of(l, 3), *longer;
    unsigned number;
    status s = peer_list_admit(list, peer, l->arena, &longer, &number);
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
    status s = peer_list_admit(list, &peer, l->arena, &list, &number);
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
    record = (struct peer_record){.list = list_of(l, 3), .own_number = 2};
    assert_ok(peer_record_write(l->f->cluster, &record));
    reopen_test_cluster(l->f);
    assert_ok(peer_record_read(l->f->cluster, l->arena, &record));
    assert_int_equal(record.own_number, 2);
    assert_int_equal(record.list->n_peers, 3);
    assert_string_equal(record.list->peers[2]->address, "127.0.0.1:8003");
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
        cmocka_unit_test_setup_teardown(unsound_lists_are_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(record_is_there_after_a_start, setup_cluster, teardown),
        cmocka_unit_test_setup_teardown(damaged_record_is_told, setup_cluster, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
