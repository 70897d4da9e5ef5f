/* Tests of what `trestle cluster list` shows. */
#include "cmd/replica/cluster_report.h"

#include "base/testing/testing.h"

#define NOW_US INT64_C(1790000000000000)

static Replica__Peer peer_of(uint32_t number, const char *location, const char *address)
{
    Replica__Peer peer = REPLICA__PEER__INIT;
    peer.number = number;
    peer.location = location;
    peer.address = address;
    return peer;
}

static void assert_text(const Replica__ListPeersResponse *peers, const char *expected)
{
    struct buffer out = {0};
    cluster_write_text(peers, "127.0.0.1:8086", &out);
    buffer_append_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void server_without_peers_says_so(void **state)
{
    (void)state;
    const Replica__ListPeersResponse peers = REPLICA__LIST_PEERS_RESPONSE__INIT;
    assert_text(&peers, "127.0.0.1:8086 has no peers\n");
}

static void each_peer_has_a_row_and_each_failure_a_line(void **state)
{
    (void)state;
    Replica__Peer rows[] = {
        peer_of(1, "zone-1", "127.0.0.1:8001"), peer_of(2, "zone-2", "127.0.0.1:8002"),
        peer_of(3, "zone-3", "127.0.0.1:8003"), peer_of(4, "zone-4", "127.0.0.1:8004")};
    Replica__Peer *listed[] = {&rows[0], &rows[1], &rows[2], &rows[3]};
    Replica__PeerList list = REPLICA__PEER_LIST__INIT;
    list.leader = 2;
    list.n_peers = 4;
    list.peers = listed;
    Replica__PeerState answers = REPLICA__PEER_STATE__INIT, silent = REPLICA__PEER_STATE__INIT,
                       unheard = REPLICA__PEER_STATE__INIT;
    answers.number = 1;
    answers.heard_us = NOW_US - 100000;
    answers.clock_ahead_us = -1500;
    answers.applied_until_us = NOW_US - 204000;
    answers.parked = "being copied";
    answers.queue_bytes = 999;
    silent.queue_bytes = 3000000000;
    unheard.doubled = true;
    silent.number = 3;
    silent.heard_us = NOW_US - 12000000;
    silent.failure = "Connection refused";
    unheard.number = 4;
    Replica__PeerState *states[] = {&answers, &silent, &unheard};
    Replica__ListPeersResponse peers = REPLICA__LIST_PEERS_RESPONSE__INIT;
    peers.list = &list;
    peers.own_number = 2;
    peers.n_states = 3;
    peers.states = states;
    peers.now_us = NOW_US;
    Replica__TableCopy one = REPLICA__TABLE_COPY__INIT, other = REPLICA__TABLE_COPY__INIT;
    Replica__TableCopy *copies[] = {&one, &other};
    Replica__PlacedInstance copied = REPLICA__PLACED_INSTANCE__INIT;
    one.copied_bytes = 1234567;
    one.size_bytes = 4000000;
    other.size_bytes = 1000000;
    copied.name = "projects/p/instances/i";
    copied.tables = copies;
    copied.n_tables = 2;
    peers.copied = &copied;
    assert_text(
        &peers,
        " number | location | address        | leads | state               | lag     | not sent | "
        "clock\n"
        "--------+----------+----------------+-------+---------------------+---------+----------+-"
        "---------\n"
        "      1 | zone-1   | 127.0.0.1:8001 |       | being copied        | 0.204 s |    999 B | "
        "-0.002 s\n"
        "      2 | zone-2   | 127.0.0.1:8002 | leads | itself              |       - |        - | "
        "       -\n"
        "      3 | zone-3   | 127.0.0.1:8003 |       | silent for 12.000 s |       - |   3.0 GB | "
        "+0.000 s\n"
        "      4 | zone-4   | 127.0.0.1:8004 |       | not heard yet       |       - |      0 B | "
        "       -\n"
        "3 does not answer: Connection refused\n"
        "4: two servers have its identity\n"
        "copies projects/p/instances/i: 1.2 MB of about 5.0 MB\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_without_peers_says_so),
        cmocka_unit_test(each_peer_has_a_row_and_each_failure_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
