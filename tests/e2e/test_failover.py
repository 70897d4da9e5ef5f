"""Which cluster serves a call, and what becomes of it when that one is away, hangs, answers wrongly
or is a copy in the making: by app profiles, at two or three servers that are peers."""

import contextlib
import signal
import struct
import time

import grpc
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from harness.patience import PATIENCE_SECONDS
from harness.peers import (
    cluster_of,
    cluster_of_write,
    join,
    know_each_other,
    list_peers,
    peer_server,
    spread_instance,
    wait_for_table,
)
from harness.rpc import decode_rows, fails_with, set_cell
from harness.views import comes_to as comes_to_within

SUM = admin_types.Type(
    aggregate_type={"input_type": {"int64_type": {"encoding": {"big_endian_bytes": {}}}}, "sum": {}}
)


def becomes(condition):
    comes_to_within(lambda: bool(condition()), True, PATIENCE_SECONDS)


class Peers:
    """Servers, a client of each, and a table that all of them have, with the families f and sum.
    The instance has the profiles c1 and on, each to one cluster, and `default` to any."""

    def __init__(self, servers, connect, administer, copies=None):
        self.servers = servers
        self.rpcs = [connect(server.host) for server in servers]
        self.admin = administer(servers[0].host)
        self.instance = spread_instance(self.admin, "spread", copies or len(servers))
        self.table = self.admin.tables.create_table(
            parent=self.instance, table_id="t",
            table={"column_families": {"f": {}, "sum": {"value_type": SUM}}},
        ).name  # fmt: skip
        for number, rpc in enumerate(self.rpcs):
            wait_for_table(rpc, self.table, f"c{number + 1}")

    def profile(self, profile_id, **any_routing):
        """One that routes to any, or to the clusters that are said."""
        self.admin.instances.create_app_profile(
            parent=self.instance, app_profile_id=profile_id,
            app_profile={"description": profile_id, "multi_cluster_routing_use_any": any_routing},
        )  # fmt: skip
        for rpc in self.rpcs[1:]:
            name = f"{self.instance}/appProfiles/{profile_id}"
            becomes(lambda rpc=rpc, name=name: self.knows_profile(rpc, name))

    def knows_profile(self, rpc, name):
        call = rpc.channel.unary_unary(
            "/google.bigtable.admin.v2.BigtableInstanceAdmin/GetAppProfile",
            request_serializer=admin_types.GetAppProfileRequest.serialize,
        )
        with contextlib.suppress(grpc.RpcError):
            return call(admin_types.GetAppProfileRequest(name=name), timeout=PATIENCE_SECONDS)

    def read_call(self, number, profile="", timeout=PATIENCE_SECONDS, **query):
        request = types.ReadRowsRequest(
            table_name=self.table, app_profile_id=profile, **query
        )
        return self.rpcs[number].data.read_rows(request, timeout=timeout)

    def read(self, number, profile="", timeout=PATIENCE_SECONDS, **query):
        """The cluster that served it, and the rows' keys."""
        call = self.read_call(number, profile, timeout, **query)
        keys = [key for key, _ in decode_rows(call)]
        return cluster_of(call), keys

    def write(self, number, key, *mutations, profile="", timeout=PATIENCE_SECONDS):
        """The cluster that served it."""
        rpc = self.rpcs[number]
        return cluster_of_write(rpc, self.table, profile, key, *mutations, timeout=timeout)

    def sum_at(self, number, key):
        only = {"family_name_regex_filter": "sum"}
        cells = self.rpcs[number].read_row(self.table, key, filter=only)
        return struct.unpack(">q", cells[0].value)[0] if cells else 0


CELL = set_cell("f", b"q", b"v", 1000)
SERVER_TIME = set_cell("f", b"q", b"v", -1)
ADD = types.Mutation(
    add_to_cell=types.Mutation.AddToCell(
        family_name="sum", column_qualifier={"raw_value": b"s"},
        timestamp={"raw_timestamp_micros": 0}, input={"int_value": 1},
    )
)  # fmt: skip


@pytest.fixture
def peers(peers_of, connect, administer):
    """A function that starts so many."""
    return lambda count: Peers(peers_of(count), connect, administer)


@pytest.fixture
def unlike_peers(tmp_path, own_servers, connect, administer):
    """A function that starts one for each list of further arguments."""

    def start(*arguments):
        servers = []
        for number, each in enumerate(arguments, 1):
            servers.append(peer_server(tmp_path / f"peer-{number}", number, *each))
            own_servers.append(servers[-1])
            if number > 1:
                join(servers[-1], servers[0])
        know_each_other(servers)
        return Peers(servers, connect, administer)

    return start


# --- which one ---


def test_any_is_served_here_and_a_group_at_the_nearest(peers):
    three = peers(3)
    three.profile("others", cluster_ids=["c3", "c2"])
    for number in range(3):
        assert three.write(number, b"k", CELL) == f"c{number + 1}"
        assert three.read(number)[0] == f"c{number + 1}"
    for number, expected in enumerate(["c2", "c2", "c3"]):
        assert three.write(number, b"k", CELL, profile="others") == expected
        assert three.read(number, "others")[0] == expected


# --- away ---


def test_a_server_that_is_away_is_passed_over(peers):
    three = peers(3)
    three.profile("others", cluster_ids=["c2", "c3"])
    three.servers[1].kill()
    for number in range(20):  # from before its peers have noticed
        assert three.write(0, b"k%02d" % number, CELL, profile="others") == "c3"
    assert three.write(0, b"sum", ADD, profile="others") == "c3"
    assert three.read(0, "others", rows_limit=1) == ("c3", [b"k00"])
    with fails_with(grpc.StatusCode.UNAVAILABLE, three.servers[1].listen):
        three.write(0, b"k", CELL, profile="c2")
    becomes(lambda: any(state.get("failure") for state in list_peers(three.servers[0])["states"]))
    assert three.write(0, b"sum", ADD, profile="others") == "c3"
    three.servers[1].start()
    becomes(lambda: three.write(0, b"k", CELL, profile="others") == "c2")
    becomes(lambda: three.sum_at(1, b"sum") == 2)
    assert len(three.read(0, "c2")[1]) == 22


def test_a_call_comes_back_to_where_it_came_in(peers):
    """Of a group that has this one as well, when all others are away."""
    two = peers(2)
    two.profile("sticky", row_affinity={})
    keys = [b"k%02d" % number for number in range(32)]
    served = {key: two.write(0, key, CELL, profile="sticky") for key in keys}
    assert set(served.values()) == {"c1", "c2"}
    two.servers[1].kill()
    for key in keys:
        assert two.write(0, key, CELL, ADD, profile="sticky") == "c1"
        assert two.read(0, "sticky", rows={"row_keys": [key]}) == ("c1", [key])
    two.servers[1].start()
    becomes(lambda: {key: two.write(0, key, CELL, profile="sticky") for key in keys} == served)
    becomes(lambda: all(two.sum_at(1, key) == 1 for key in keys))


# --- hanging ---


@contextlib.contextmanager
def stopped(server):
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


def test_a_server_that_hangs_is_passed_over_as_the_deadline_nears(peers):
    """For calls that may be made twice; others are not."""
    three = peers(3)
    three.profile("others", cluster_ids=["c2", "c3"])
    assert three.write(0, b"k", CELL, profile="others") == "c2"
    with stopped(three.servers[1]):
        assert three.write(0, b"k", CELL, profile="others", timeout=4) == "c3"
        assert three.read(0, "others", timeout=4) == ("c3", [b"k"])
        becomes(lambda: any(s.get("failure") for s in list_peers(three.servers[0])["states"]))
        assert three.write(0, b"known", ADD, profile="others") == "c3"
    becomes(lambda: three.write(0, b"k", CELL, profile="others") == "c2")
    with stopped(three.servers[1]):
        for mutation in (ADD, SERVER_TIME):
            try:  # the server has at least two seconds before it counts as one that is away
                assert three.write(0, b"once", mutation, profile="others", timeout=0.2) == "c3"
            except grpc.RpcError as failure:
                assert failure.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    three.write(0, b"after", CELL, profile="c2")  # behind them, on their way
    becomes(lambda: all(rpc.read_row(three.table, b"after") for rpc in three.rpcs))
    becomes(lambda: [three.sum_at(number, b"known") for number in range(3)] == [1] * 3)
    assert all(three.sum_at(number, b"once") <= 1 for number in range(3))
    assert all(len(rpc.read_row(three.table, b"once")) <= 2 for rpc in three.rpcs)


# --- wrong ---


def test_an_answer_that_is_wrong_for_a_moment_is_asked_for_elsewhere(unlike_peers):
    three = unlike_peers(
        [], ["--inject", "MutateRow: error=UNAVAILABLE; ReadRows: error=UNAVAILABLE"], []
    )
    three.profile("others", cluster_ids=["c2", "c3"])
    assert three.write(0, b"k", CELL, profile="others") == "c3"
    assert three.read(0, "others") == ("c3", [b"k"])
    for mutation in (ADD, SERVER_TIME):  # it may have been done there
        with fails_with(grpc.StatusCode.UNAVAILABLE):
            three.write(0, b"once", mutation, profile="others")
    with fails_with(grpc.StatusCode.UNAVAILABLE):
        three.write(0, b"k", CELL, profile="c2")
    three.rpcs[0].channel.close()
    assert three.servers[0].metric("forwarded_again_total") == 2


def test_what_cannot_be_served_here_is_asked_for_elsewhere(peers):
    """A server whose data directory was moved away takes no writes."""
    two = peers(2)
    two.profile("sticky", row_affinity={})
    keys = [b"k%02d" % number for number in range(20)]
    data = two.servers[0].data
    data.rename(data.with_name("elsewhere"))
    try:
        becomes(lambda: refuses(lambda: two.write(0, b"k", CELL, profile="c1")))
        for key in keys:
            assert two.write(0, key, CELL) == "c2"
            assert two.write(0, key, CELL, profile="sticky") == "c2"
        for mutation in (ADD, SERVER_TIME):  # it may have been done here
            with fails_with(grpc.StatusCode.UNAVAILABLE, "data directory"):
                two.write(0, b"once", mutation)
    finally:
        data.with_name("elsewhere").rename(data)
    becomes(lambda: two.write(0, b"k", CELL) == "c1")
    assert two.read(1, "c2")[1] == [b"k", *keys]


def refuses(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code() == grpc.StatusCode.UNAVAILABLE


def test_a_stream_that_has_begun_is_not_begun_again(unlike_peers):
    three = unlike_peers([], ["--inject", "ReadRows: error=UNAVAILABLE, after=1"], [])
    three.profile("others", cluster_ids=["c2", "c3"])
    value = b"v" * 100_000
    for number in range(50):
        three.write(0, b"k%02d" % number, set_cell("f", b"q", value, 1000), profile="others")
    call = three.read_call(0, "others")
    next(call)
    with pytest.raises(grpc.RpcError) as failure:
        list(call)
    assert failure.value.code() == grpc.StatusCode.UNAVAILABLE
    assert cluster_of(call) == "c2"


# --- a copy in the making ---


def test_a_server_that_is_being_copied_has_its_calls_served_elsewhere(
    tmp_path, own_servers, connect, administer
):
    """It has the tables soon, the rows later: nobody sees the time between."""
    first = peer_server(tmp_path / "peer-1", 1)
    own_servers.append(first)
    two = Peers([first], connect, administer, copies=2)
    two.profile("sticky", row_affinity={})
    for batch in range(40):
        rows = [(b"k%06d" % (1000 * batch + i), [set_cell("f", b"q", b"v" * 300, 1000)])
                for i in range(1000)]  # fmt: skip
        assert set(two.rpcs[0].mutate_rows(two.table, rows)) == {0}
    second = peer_server(tmp_path / "peer-2", 2)
    own_servers.append(second)
    two.rpcs.append(connect(second.host))
    join(second, first)
    becomes(lambda: knows_table(two.rpcs[1], two.table))
    served = []
    while "c2" not in served:
        cluster, keys = two.read(1, rows={"row_keys": [b"k000000", b"k039999"]})
        assert keys == [b"k000000", b"k039999"]
        served.append(cluster)
        assert two.write(1, b"w%06d" % len(served), CELL) in ("c1", "c2")
        # Refused there it has not been done there, and may be done here.
        assert two.write(0, b"s%06d" % len(served), ADD, profile="sticky") in ("c1", "c2")
    becomes(lambda: two.read(1, "c2")[1] == two.read(0, "c1")[1])
    assert len(two.read(1)[1]) == 40_000 + 2 * len(served)
    assert {two.sum_at(1, b"s%06d" % number) for number in range(1, len(served) + 1)} == {1}


# --- affinity ---


def test_rows_stick_to_clusters(peers):
    """Of requests about one row, whichever server they come to; others go to the nearest."""
    three = peers(3)
    three.profile("sticky", row_affinity={})
    three.profile("group", row_affinity={}, cluster_ids=["c1", "c2"])
    keys = [b"k%02d" % number for number in range(60)]
    served = {key: three.write(0, key, CELL, profile="sticky") for key in keys}
    assert set(served.values()) == {"c1", "c2", "c3"}
    for number in (1, 2):
        for key in keys:
            assert three.write(number, key, CELL, profile="sticky") == served[key]
            one = {"row_keys": [key]}
            assert three.read(number, "sticky", rows=one)[0] == served[key]
        assert three.read(number, "sticky", rows={"row_keys": keys})[0] == f"c{number + 1}"
        assert three.read(number, "sticky")[0] == f"c{number + 1}"
    within = {key: three.write(2, key, CELL, profile="group") for key in keys}
    moved = {key for key in keys if within[key] != served[key]}
    assert moved == {key for key in keys if served[key] == "c3"}


# --- clusters that are nowhere ---


def test_a_cluster_that_no_server_serves_is_at_the_leader(
    tmp_path, own_servers, connect, administer
):
    """As from before there were peers; and the instance that nobody made has none."""
    servers = [peer_server(tmp_path / f"peer-{number}", number) for number in (1, 2)]
    own_servers += servers
    first, second = (connect(server.host) for server in servers)
    admin = administer(servers[0].host)
    made = admin.instances.create_instance(
        parent="projects/p", instance_id="old", instance={"display_name": "old"},
        clusters={"c": {"location": "projects/p/locations/us-east1-b", "serve_nodes": 1}},
    ).result().name  # fmt: skip
    tables = [admin.create_table(name, "t", ("f",)) for name in (made, "projects/p/instances/i")]
    join(servers[1], servers[0])
    know_each_other(servers)
    for table in tables:
        becomes(lambda table=table: knows_table(second, table))
        for rpc in (first, second):
            rpc.mutate(table, b"k", CELL)
            assert [key for key, _ in rpc.read(table)] == [b"k"]
    servers[0].kill()
    for table in tables:
        with fails_with(grpc.StatusCode.UNAVAILABLE, servers[0].listen):
            second.read(table)
    servers[0].start()


def knows_table(rpc, table):
    with contextlib.suppress(grpc.RpcError):
        return rpc.get_table(table)
