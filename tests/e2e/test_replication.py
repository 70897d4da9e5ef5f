"""What clients write at one cluster can be read at all others: whatever it is, in whatever order it
comes, over kills, and at one that joins when there is data already. Each test waits for what comes
by itself, and for nothing else."""

import itertools
import random
import signal
import struct
import threading
import time

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from harness.change_streams import Change, Reader, stream_config
from harness.patience import PATIENCE_SECONDS
from harness.peers import (
    join,
    know_each_other,
    list_peers,
    peer_server,
    spread_instance,
    wait_for_table,
)
from harness.rpc import decode_rows, delete_row, fails_with, set_cell
from harness.views import comes_to as comes_to_within

SUM = admin_types.Type(
    aggregate_type={"input_type": {"int64_type": {"encoding": {"big_endian_bytes": {}}}}, "sum": {}}
)


def comes_to(look, expected):
    comes_to_within(look, expected, PATIENCE_SECONDS)


def becomes(condition):
    comes_to(lambda: bool(condition()), True)


def add(qualifier, number):
    return types.Mutation(
        add_to_cell=types.Mutation.AddToCell(
            family_name="sum",
            column_qualifier={"raw_value": qualifier},
            timestamp={"raw_timestamp_micros": 0},
            input={"int_value": number},
        )
    )


def make_table(admin, instance, table_id, **fields):
    """With families f, g, and sum, which adds up."""
    families = {"f": {}, "g": {}, "sum": {"value_type": SUM}}
    return admin.tables.create_table(
        parent=instance, table_id=table_id, table={"column_families": families, **fields}
    ).name


def rows_at(rpc, table, profile):
    """All rows; None while the table is not there, or not whole."""
    try:
        return rpc.read(table, app_profile_id=profile)
    except grpc.RpcError as error:
        if error.code() in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE):
            return None
        raise


class Mesh:
    """Servers that are peers, and a client of each; the first leads."""

    def __init__(self, servers, connect, administer):
        self.servers = servers
        self.rpcs = [connect(server.host) for server in servers]
        self.admins = [administer(server.host) for server in servers]

    def table(self, **fields):
        """In an instance that has a cluster at each of them."""
        instance = spread_instance(self.admins[0], "spread", len(self.servers))
        name = make_table(self.admins[0], instance, "t", **fields)
        for number, rpc in enumerate(self.rpcs, 1):
            wait_for_table(rpc, name, f"c{number}")
        return name

    def rows(self, table):
        """Of each cluster itself."""
        return [rows_at(rpc, table, f"c{number}") for number, rpc in enumerate(self.rpcs, 1)]

    def come_to_the_same(self, table):
        def are_alike():
            seen = self.rows(table)
            return seen[0] is not None and all(rows == seen[0] for rows in seen)

        becomes(are_alike)
        return self.rpcs[0].read(table)


@pytest.fixture
def mesh_of(peers_of, connect, administer):
    return lambda count, *arguments: Mesh(peers_of(count, *arguments), connect, administer)


def cells_of(rpc, table, key):
    return [(cell.qualifier, cell.value) for cell in rpc.read_row(table, key)]


def test_each_cluster_takes_writes_and_all_have_them(mesh_of):
    mesh = mesh_of(3)
    table = mesh.table()
    for number, rpc in enumerate(mesh.rpcs):
        rpc.mutate(table, b"row-%d" % number, set_cell("f", b"q", b"v%d" % number, 1000))
    for rpc in mesh.rpcs:
        comes_to(
            lambda rpc=rpc: [key for key, _ in rpc.read(table)], [b"row-0", b"row-1", b"row-2"]
        )
    mesh.rpcs[1].mutate(table, b"row-0", delete_row())
    mesh.rpcs[2].drop_row_range(table, prefix=b"row-1")
    for rpc in mesh.rpcs:
        comes_to(lambda rpc=rpc: [key for key, _ in rpc.read(table)], [b"row-2"])


def test_later_commit_wins_wherever_it_was_made(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    first, second = mesh.rpcs
    first.mutate(table, b"k", set_cell("f", b"q", b"old", 1000))
    comes_to(lambda: cells_of(second, table, b"k"), [(b"q", b"old")])
    second.mutate(table, b"k", set_cell("f", b"q", b"new", 1000))
    comes_to(lambda: cells_of(first, table, b"k"), [(b"q", b"new")])
    first.mutate(table, b"k", delete_row())
    comes_to(lambda: cells_of(second, table, b"k"), [])
    second.mutate(table, b"k", set_cell("g", b"q", b"again", 1000))
    comes_to(lambda: cells_of(first, table, b"k"), [(b"q", b"again")])


def test_adds_of_all_clusters_count_once(mesh_of):
    mesh = mesh_of(3)
    table = mesh.table()
    for _ in range(20):
        for number, rpc in enumerate(mesh.rpcs):
            rpc.mutate(table, b"k", add(b"s", 10**number))
    for rpc in mesh.rpcs:
        comes_to(lambda rpc=rpc: cells_of(rpc, table, b"k"), [(b"s", struct.pack(">q", 2220))])


def test_large_values_and_wide_rows_arrive(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    value = random.Random(1).randbytes(3_000_000)
    mesh.rpcs[1].mutate(table, b"large", set_cell("f", b"q", value, 1000))
    wide = [set_cell("f", b"q%05d" % i, b"x" * 50, 1000) for i in range(3000)]
    mesh.rpcs[1].mutate(table, b"wide", *wide)
    rows = [(b"row-%05d" % i, [set_cell("f", b"q", b"v" * 200, 1000)]) for i in range(5000)]
    assert set(mesh.rpcs[0].mutate_rows(table, rows)) == {0}
    rows = mesh.come_to_the_same(table)
    assert len(rows) == 5002 and dict(rows)[b"large"][0].value == value


def write_at_random(rpc, table, seed, count):
    draw = random.Random(seed)
    for _ in range(count):
        key = b"k%d" % draw.randrange(8)
        choice = draw.randrange(10)
        if choice == 0:
            rpc.mutate(table, key, delete_row())
        elif choice < 4:
            rpc.mutate(table, key, add(b"s%d" % draw.randrange(3), draw.randrange(100)))
        else:
            value = draw.randbytes(draw.choice([5, 50, 3000]))
            cell = set_cell("f", b"q%d" % draw.randrange(3), value, 1000 * draw.randrange(1, 4))
            rpc.mutate(table, key, cell)


def write_everywhere(mesh, table, seed, count=150):
    writers = [
        threading.Thread(target=write_at_random, args=(rpc, table, seed + number, count))
        for number, rpc in enumerate(mesh.rpcs)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def test_all_come_to_the_same_over_kills(mesh_of):
    mesh = mesh_of(3)
    table = mesh.table()
    for turn in range(4):
        write_everywhere(mesh, table, 10 * turn)
        mesh.servers[turn % 3].kill()
        mesh.servers[turn % 3].start()
    write_everywhere(mesh, table, 1000)
    mesh.come_to_the_same(table)
    becomes(lambda: all(no_delay(server) for server in mesh.servers))


def no_delay(server):
    states = list_peers(server)["states"]
    return all(int(state.get("appliedUntilUs", 0)) > 0 for state in states)


def test_server_that_is_away_catches_up(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    mesh.servers[1].kill()
    for i in range(200):
        mesh.rpcs[0].mutate(table, b"row-%03d" % i, set_cell("f", b"q", b"v", 1000))
    mesh.servers[1].start()
    becomes(lambda: len(rows_at(mesh.rpcs[1], table, "c2") or []) == 200)


@pytest.mark.parametrize("away", [1, 0])
def test_server_that_was_away_for_too_long_is_copied_anew(mesh_of, away):
    """Also the one that leads, which for long stayed without what it had missed."""
    mesh = mesh_of(2, "--change-log-bytes", "1MB")
    table = mesh.table()
    goer, stayer = mesh.rpcs[away], mesh.rpcs[1 - away]
    for i in range(100):
        stayer.mutate(table, b"gone-%03d" % i, set_cell("f", b"q", b"v", 1000))
    for rpc in mesh.rpcs:
        for _ in range(30):
            rpc.mutate(table, b"sum", add(b"s", 1))
            time.sleep(0.02)  # some are one by then, and some are not
    sums = [(b"s", struct.pack(">q", 60))]
    for rpc in mesh.rpcs:
        comes_to(lambda rpc=rpc: cells_of(rpc, table, b"sum"), sums)
    mesh.servers[away].kill()
    stayer.drop_row_range(table, prefix=b"gone")
    for turn in range(20):
        rows = [(b"row-%02d-%03d" % (turn, i), [set_cell("f", b"q", b"v" * 1000, 1000)])
                for i in range(500)]  # fmt: skip
        assert set(stayer.mutate_rows(table, rows)) == {0}
    becomes(lambda: mesh.servers[1 - away].metric("change_log_evicted_bytes_total") > 0)
    mesh.servers[away].start()
    assert len(mesh.come_to_the_same(table)) == 10_001
    behind = f'replication_parked_total{{peer="zone-{2 - away}",reason="too_far_behind"}}'
    becomes(lambda: mesh.servers[away].metric(behind) >= 1)
    comes_to(lambda: cells_of(goer, table, b"sum"), sums)
    assert len(mesh.come_to_the_same(table)) == 10_001
    goer.mutate(table, b"again", set_cell("f", b"q", b"v", 1000))
    comes_to(lambda: cells_of(stayer, table, b"again"), [(b"q", b"v")])


def take_more_than_is_kept(mesh, table, number):
    """At a server whose peer is away, so that what came first is in its feed no more: the row that
    came first."""
    rpc, key = mesh.rpcs[number], b"first-%d" % number
    rpc.mutate(table, key, set_cell("f", b"q", b"v", 1000))
    for turn in range(20):
        rows = [(b"row-%d-%02d-%03d" % (number, turn, i), [set_cell("f", b"q", b"v" * 1000, 1000)])
                for i in range(500)]  # fmt: skip
        assert set(rpc.mutate_rows(table, rows)) == {0}
    becomes(lambda: mesh.servers[number].metric("change_log_evicted_bytes_total") > 0)
    return key


def test_two_that_were_apart_for_too_long_keep_what_they_have(mesh_of):
    """Each lacks what the other one alone was told. One was emptied and copied from the other,
    which had not what the first one's clients had been told is there."""
    mesh = mesh_of(2, "--change-log-bytes", "1MB")
    table = mesh.table()
    mesh.servers[1].kill()
    first = take_more_than_is_kept(mesh, table, 0)
    mesh.servers[0].kill()
    mesh.servers[1].start()
    second = take_more_than_is_kept(mesh, table, 1)
    mesh.servers[0].start()
    for number in (0, 1):
        lost = f'replication_parked_total{{peer="zone-{2 - number}",reason="too_far_behind"}}'
        becomes(lambda number=number, lost=lost: mesh.servers[number].metric(lost) >= 1)
    for number, key in ((0, first), (1, second)):
        becomes(lambda number=number, key=key: has_key(mesh, table, number, key))

    def comes_across():  # what is taken while the logs are still cut may go as well
        mesh.rpcs[0].mutate(table, b"again", set_cell("f", b"q", b"v", 1000))
        return has_key(mesh, table, 1, b"again")

    becomes(comes_across)
    assert has_key(mesh, table, 0, first) and has_key(mesh, table, 1, second)


def has_key(mesh, table, number, key):
    """By a profile of that cluster alone."""
    return key in dict(rows_at(mesh.rpcs[number], table, f"c{number + 1}") or [])


def test_copy_does_not_wait_for_who_leads(mesh_of):
    """Where to go on was asked of the server that leads alone, and a copy began anew for ever."""
    mesh = mesh_of(3, "--change-log-bytes", "1MB")
    table = mesh.table()
    leader, source, goer = mesh.servers
    becomes(lambda: goer.metric('replication_delay_seconds{peer="zone-1"}') < 1)
    leader.kill()
    goer.kill()
    for turn in range(20):
        rows = [(b"row-%02d-%03d" % (turn, i), [set_cell("f", b"q", b"v" * 1000, 1000)])
                for i in range(500)]  # fmt: skip
        assert set(mesh.rpcs[1].mutate_rows(table, rows)) == {0}
    becomes(lambda: source.metric("change_log_evicted_bytes_total") > 0)
    goer.start()
    becomes(lambda: len(rows_at(mesh.rpcs[2], table, "c3") or []) == 10_000)
    leader.start()
    assert len(mesh.come_to_the_same(table)) == 10_000


def test_server_that_joins_late_is_a_copy(tmp_path, own_servers, connect, administer):
    first = peer_server(tmp_path / "peer-1", 1)
    own_servers.append(first)
    rpc, admin = connect(first.host), administer(first.host)
    table = make_table(admin, spread_instance(admin, "spread", 2), "t")
    rows = [(b"row-%05d" % i, [set_cell("f", b"q", b"v" * 200, 1000)]) for i in range(3000)]
    assert set(rpc.mutate_rows(table, rows)) == {0}
    rpc.mutate(table, b"large", set_cell("f", b"q", b"x" * 2_000_000, 1000))
    for _ in range(50):
        rpc.mutate(table, b"added", add(b"s", 2))
    rpc.drop_row_range(table, prefix=b"row-00")
    second = peer_server(tmp_path / "peer-2", 2)
    own_servers.append(second)
    writer = threading.Thread(target=write_at_random, args=(rpc, table, 5, 200))
    writer.start()
    join(second, first)
    writer.join()
    know_each_other([first, second])
    mesh = Mesh([first, second], connect, administer)
    rows = dict(mesh.come_to_the_same(table))
    assert rows[b"added"][0].value == struct.pack(">q", 100)
    mesh.rpcs[1].mutate(table, b"added", add(b"s", 1))
    comes_to(lambda: cells_of(rpc, table, b"added"), [(b"s", struct.pack(">q", 101))])


def token_of(rpc, table):
    request = admin_types.GenerateConsistencyTokenRequest(name=table)
    return rpc.admin.generate_consistency_token(request, timeout=60).consistency_token


def is_consistent(rpc, table, token):
    request = admin_types.CheckConsistencyRequest(name=table, consistency_token=token)
    return rpc.admin.check_consistency(request, timeout=60).consistent


def test_tokens_say_when_all_is_everywhere(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    first, second = mesh.rpcs
    for i in range(20):
        second.mutate(table, b"k%02d" % i, set_cell("f", b"q", b"v", 1000))
        token = token_of(first, table)
        becomes(lambda token=token: is_consistent(first, table, token))
        assert cells_of(first, table, b"k%02d" % i) == [(b"q", b"v")]
    first.mutate(table, b"z", set_cell("f", b"q", b"v", 1000))
    token = token_of(first, table)
    mesh.servers[1].kill()
    assert not is_consistent(first, table, token)
    with fails_with(grpc.StatusCode.UNAVAILABLE):
        token_of(first, table)
    mesh.servers[1].start()
    becomes(lambda: is_consistent(first, table, token))
    assert cells_of(second, table, b"z") == [(b"q", b"v")]
    with fails_with(grpc.StatusCode.INVALID_ARGUMENT, "Invalid consistency token"):
        is_consistent(first, table, token[:-1])


def test_metrics_say_how_far_it_is(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    for i in range(10):
        mesh.rpcs[0].mutate(table, b"k%02d" % i, set_cell("f", b"q", b"v", 1000))
    second = mesh.servers[1]
    becomes(lambda: second.metric('replication_changes_total{peer="zone-1"}') == 10)
    assert second.metric('replication_bytes_total{peer="zone-1"}') > 0
    assert second.metric('replication_parked{peer="zone-1"}') == 0
    becomes(lambda: second.metric('replication_delay_seconds{peer="zone-1"}') < 10)
    assert 0 < second.metric("replication_max_delay_seconds")
    assert second.metric('replication_latency_seconds_count{peer="zone-1"}') == 10
    for reason in ("clock_ahead", "table_unknown", "family_unknown", "too_far_behind"):
        labels = f'{{peer="zone-1",reason="{reason}"}}'
        assert second.metric(f"replication_parked_total{labels}") >= 0


def test_metrics_say_what_a_peer_has_not_been_sent(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    first, second = mesh.servers
    queue = 'replication_queue_bytes{peer="zone-2"}'
    becomes(lambda: first.metric(queue) == 0)
    assert (first.metric("peers"), first.metric("peers_silent")) == (2, 0)
    second.kill()
    becomes(lambda: first.metric("peers_silent") == 1)
    rows = [(b"row-%03d" % i, [set_cell("f", b"q", b"v" * 1000, 1000)]) for i in range(1000)]
    assert set(mesh.rpcs[0].mutate_rows(table, rows)) == {0}
    assert 300_000 < first.metric(queue) < 3_000_000
    (state,) = list_peers(first)["states"]
    assert int(state["queueBytes"]) > 300_000
    second.start()
    becomes(lambda: first.metric(queue) == 0)
    becomes(lambda: first.metric("peers_silent") == 0)


# --- the way between ---


def write_block(rpc, table, prefix, value):
    rows = [(b"%s-%03d" % (prefix, i), [set_cell("f", b"q", value, 1000)]) for i in range(300)]
    assert set(rpc.mutate_rows(table, rows)) == {0}


def test_changes_go_no_faster_than_they_may(mesh_of):
    mesh = mesh_of(2, "--replication-rate", "200KB")
    table = mesh.table()
    first, second = mesh.rpcs
    began = time.monotonic()
    write_block(first, table, b"slow", random.Random(1).randbytes(2000))
    becomes(lambda: len(rows_at(second, table, "c2") or []) == 300)
    assert time.monotonic() - began > 2  # 600,000 bytes by 204,800 a second, but for the last tenth
    write_block(second, table, b"back", b"v")
    comes_to(lambda: len(rows_at(first, table, "c1") or []), 600)


def test_a_copy_goes_no_faster_than_it_may_and_tells_how_far_it_is(mesh_of):
    mesh = mesh_of(2, "--replication-rate", "200KB")
    (first, second), admin = mesh.rpcs, mesh.admins[0]
    instance = spread_instance(admin, "spread", 1)
    table = make_table(admin, instance, "t")
    write_block(first, table, b"row", random.Random(1).randbytes(2000))
    cluster = {"location": "projects/p/locations/zone-2", "serve_nodes": 1}
    began = time.monotonic()
    admin.instances.create_cluster(parent=instance, cluster_id="c2", cluster=cluster)

    def copied():
        tables = list_peers(mesh.servers[1]).get("copied", {}).get("tables", [])
        return sum(int(each.get("copiedBytes", 0)) for each in tables)

    becomes(lambda: 0 < copied() < 600_000)
    becomes(lambda: "copied" not in list_peers(mesh.servers[1]))
    assert time.monotonic() - began > 2
    assert len(second.read(table)) == 300


@pytest.mark.parametrize("who", ["both", "one"])
def test_changes_come_packed_where_they_are_asked_for_so(tmp_path, own_servers, connect,
                                                         administer, who):  # fmt: skip
    packed = ["--replication-compression", "gzip"]
    servers = []
    for number, arguments in ((1, packed if who == "both" else []), (2, packed)):
        servers.append(peer_server(tmp_path / f"peer-{number}", number, *arguments))
        own_servers.append(servers[-1])
    join(servers[1], servers[0])
    know_each_other(servers)
    mesh = Mesh(servers, connect, administer)
    table = mesh.table()
    before = servers[0].metric("sent_bytes_total")
    write_block(mesh.rpcs[0], table, b"text", b"the same again and again " * 100)
    becomes(lambda: len(rows_at(mesh.rpcs[1], table, "c2") or []) == 300)
    assert servers[1].metric('replication_bytes_total{peer="zone-1"}') > 700_000
    assert servers[0].metric("sent_bytes_total") - before < 200_000
    write_block(mesh.rpcs[1], table, b"back", b"v")
    comes_to(lambda: len(rows_at(mesh.rpcs[0], table, "c1") or []), 600)


# --- change streams ---


def told_by(reader, count):
    """So many changes that it is told of."""
    changes = [reader.next_of(Change) for _ in range(count)]
    return sorted(
        (each.key, each.cluster, each.micros, each.tiebreaker, str(each.mutations))
        for each in changes
    )


def test_change_streams_of_all_clusters_tell_the_same(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table(change_stream_config=stream_config())
    readers = [
        Reader(rpc, table, app_profile_id=f"c{number}").begun()
        for number, rpc in enumerate(mesh.rpcs, 1)
    ]
    for number, rpc in enumerate(mesh.rpcs):
        for i in range(5):
            cell = set_cell("f", b"q%d" % number, b"v%d" % i, 1000)
            rpc.mutate(table, b"k%d" % i, cell, add(b"s", i))
    first, second = (told_by(reader, 10) for reader in readers)
    for reader in readers:
        reader.call.cancel()
    assert [cluster for _, cluster, _, _, _ in first] == ["c1", "c2"] * 5
    assert first == second


# --- where calls go ---


def test_what_is_administered_anywhere_is_there_at_once(peers_of, administer):
    servers = peers_of(2)
    follower = administer(servers[1].host)
    instance = spread_instance(follower, "made", 2)
    table = follower.create_table(instance, "t", ("f",))
    assert follower.tables.get_table(name=table).name == table
    assert "c2" in str(follower.instances.list_app_profiles(parent=instance))
    follower.tables.delete_table(name=table)
    with pytest.raises(exceptions.NotFound):
        follower.tables.get_table(name=table)
    with pytest.raises(exceptions.NotFound):
        follower.tables.delete_table(name=table)


def increment(rpc, table, profile):
    request = types.ReadModifyWriteRowRequest(
        table_name=table, app_profile_id=profile, row_key=b"k",
        rules=[types.ReadModifyWriteRule(
            family_name="f", column_qualifier=b"n", increment_amount=1)],
    )  # fmt: skip
    return rpc.data.read_modify_write_row(request, timeout=60)


def test_profile_of_one_cluster_is_served_there_from_wherever(mesh_of):
    mesh = mesh_of(3)
    table = mesh.table()

    def work(rpc):
        for _ in range(50):
            increment(rpc, table, "c2")

    workers = [threading.Thread(target=work, args=(rpc,)) for rpc in mesh.rpcs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for rpc in mesh.rpcs:
        read = types.ReadRowsRequest(table_name=table, app_profile_id="c2")
        rows = dict(decode_rows(rpc.data.read_rows(read, timeout=60)))
        assert rows[b"k"][0].value == struct.pack(">q", 150)


def test_transactions_need_one_cluster(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    for rpc in mesh.rpcs:
        with fails_with(
            grpc.StatusCode.FAILED_PRECONDITION,
            "Single-row transactions are not allowed by this app profile",
        ):
            increment(rpc, table, "default")
    assert increment(mesh.rpcs[0], table, "c2").row.key == b"k"


def test_large_answers_and_failures_are_passed_on(mesh_of):
    mesh = mesh_of(2)
    table = mesh.table()
    value = random.Random(2).randbytes(5_000_000)
    mesh.rpcs[0].mutate(table, b"large", set_cell("f", b"q", value, 1000), app_profile_id="c2")
    for i in range(2000):
        mesh.rpcs[1].mutate(table, b"row-%04d" % i, set_cell("f", b"q", b"v" * 1000, 1000))
    rows = mesh.rpcs[0].read(table, app_profile_id="c2")
    assert len(rows) == 2001 and dict(rows)[b"large"][0].value == value
    with fails_with(grpc.StatusCode.NOT_FOUND, "column family not found"):
        mesh.rpcs[0].mutate(table, b"k", set_cell("ghost", b"q", b"v"), app_profile_id="c2")
    mesh.servers[1].kill()
    with fails_with(grpc.StatusCode.UNAVAILABLE):
        mesh.rpcs[0].mutate(table, b"k", set_cell("f", b"q", b"v"), app_profile_id="c2")
    mesh.servers[1].start()
    mesh.rpcs[0].mutate(table, b"k", set_cell("f", b"q", b"v"), app_profile_id="c2")


def test_cluster_is_where_a_peer_is(peers_of, administer):
    servers = peers_of(2)
    for server in servers:
        admin = administer(server.host)
        with pytest.raises(exceptions.InvalidArgument, match="'zone-3' is served by no cluster"):
            spread_instance(admin, "spread", 3)
    instance = spread_instance(administer(servers[1].host), "spread", 1)
    cluster = {"location": "projects/p/locations/zone-2", "serve_nodes": 1}
    admin.instances.create_cluster(parent=instance, cluster_id="c2", cluster=cluster).result()
    nowhere = {"location": "projects/p/locations/zone-9", "serve_nodes": 1}
    with pytest.raises(exceptions.InvalidArgument, match="'zone-9' is served by no cluster"):
        admin.instances.create_cluster(parent=instance, cluster_id="c9", cluster=nowhere)


# --- what is not there yet ---


def test_what_peers_would_not_have_is_refused(peers_of, administer):
    servers = peers_of(2)
    admin = administer(servers[0].host)
    instance = spread_instance(admin, "spread", 2)
    table = admin.create_table(instance, "t", ("f",))
    cluster = f"{instance}/clusters/c1"
    backup = {"source_table": table, "expire_time": {"seconds": int(time.time()) + 7 * 24 * 3600}}
    made = admin.tables.create_backup(parent=cluster, backup_id="b", backup=backup).result()
    request = {"parent": instance, "table_id": "restored", "backup": made.name}
    with pytest.raises(exceptions.MethodNotImplemented, match="to which a restored table"):
        admin.tables.restore_table(request=request)


# --- all at once ---


class Chaos:
    """Writers at all clusters, which note what was acknowledged, while servers are killed and
    stopped for a while."""

    def __init__(self, mesh, table, seed):
        self.mesh, self.table = mesh, table
        self.draw = random.Random(seed)
        self.acknowledged = set()
        self.is_over = threading.Event()

    def write(self, number):
        draw = random.Random(number)
        for i in itertools.count():
            if self.is_over.is_set():
                return
            key = b"w%d-%06d" % (number, i)
            try:
                self.mesh.rpcs[number].mutate(self.table, key, set_cell("f", b"q", b"v", 1000))
                self.acknowledged.add(key)
                write_at_random(self.mesh.rpcs[number], self.table, draw.random(), 2)
            except grpc.RpcError:
                time.sleep(0.05)

    def trouble(self):
        server = self.mesh.servers[self.draw.randrange(len(self.mesh.servers))]
        if self.draw.randrange(2) == 0:
            server.kill()
            time.sleep(self.draw.random())
            server.start()
        else:
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(2 * self.draw.random())
            server.process.send_signal(signal.SIGCONT)

    def run(self, troubles):
        writers = [
            threading.Thread(target=self.write, args=(number,))
            for number in range(len(self.mesh.rpcs))
        ]
        for writer in writers:
            writer.start()
        for _ in range(troubles):
            self.trouble()
            time.sleep(0.5)
        self.is_over.set()
        for writer in writers:
            writer.join()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_nothing_acknowledged_is_lost_and_all_end_alike(mesh_of, seed):
    mesh = mesh_of(3)
    table = mesh.table()
    chaos = Chaos(mesh, table, seed)
    chaos.run(8 * seed)
    rows = {key for key, _ in mesh.come_to_the_same(table)}
    assert chaos.acknowledged and chaos.acknowledged <= rows
