"""An instance's rows are where it has clusters: they come when one is added, under writes and over
kills, and go when one is deleted; calls are served where they are, from wherever they come."""

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
from harness.backups import from_now
from harness.patience import PATIENCE_SECONDS
from harness.peers import ask, join, peer_server, wait_for_table
from harness.rpc import delete_row, set_cell
from harness.views import comes_to as comes_to_within

SUM = admin_types.Type(
    aggregate_type={"input_type": {"int64_type": {"encoding": {"big_endian_bytes": {}}}}, "sum": {}}
)
NOT, WANTED, COPYING, HERE, LEAVING = range(5)


def comes_to(look, expected):
    comes_to_within(look, expected, PATIENCE_SECONDS)


def add(qualifier, number):
    return types.Mutation(
        add_to_cell=types.Mutation.AddToCell(
            family_name="sum",
            column_qualifier={"raw_value": qualifier},
            timestamp={"raw_timestamp_micros": 0},
            input={"int_value": number},
        )
    )


class Placed:
    """Servers that are peers, and an instance `i` with clusters at some of them, a table, and a
    profile for each of its clusters."""

    def __init__(self, servers, connect, administer, at=(1,)):
        self.servers = servers
        self.rpcs = [connect(server.host) for server in servers]
        self.admins = [administer(server.host) for server in servers]
        self.instances = self.admins[0].instances
        self.instance = self.instances.create_instance(
            parent="projects/p", instance_id="i", instance={"display_name": "i"},
            clusters={f"c{number}": self.cluster(number) for number in at},
        ).result().name  # fmt: skip
        self.table = self.make_table("t")
        for number in at:
            self.make_profile(number)
        for rpc in self.rpcs:
            wait_for_table(rpc, self.table, f"c{at[0]}")

    @staticmethod
    def cluster(number):
        return {"location": f"projects/p/locations/zone-{number}", "serve_nodes": 1}

    def make_table(self, table_id):
        families = {"f": {}, "sum": {"value_type": SUM}}
        return self.admins[0].tables.create_table(
            parent=self.instance, table_id=table_id, table={"column_families": families}
        ).name

    def make_profile(self, number):
        routing = {"cluster_id": f"c{number}", "allow_transactional_writes": True}
        profile = {"description": "one", "single_cluster_routing": routing}
        self.instances.create_app_profile(
            request={"parent": self.instance, "app_profile_id": f"c{number}",
                     "app_profile": profile, "ignore_warnings": True}
        )  # fmt: skip

    def create_cluster(self, number):
        return self.instances.create_cluster(
            parent=self.instance, cluster_id=f"c{number}", cluster=self.cluster(number)
        )

    def route_default(self, number):
        """The profile of calls that name none."""
        routing = {"cluster_id": f"c{number}", "allow_transactional_writes": True}
        profile = {"name": f"{self.instance}/appProfiles/default",
                   "single_cluster_routing": routing}  # fmt: skip
        self.instances.update_app_profile(
            request={"app_profile": profile, "ignore_warnings": True,
                     "update_mask": {"paths": ["single_cluster_routing"]}}
        ).result(timeout=PATIENCE_SECONDS)  # fmt: skip

    def delete_cluster(self, number):
        name = f"{self.instance}/appProfiles/c{number}"
        self.instances.delete_app_profile(request={"name": name, "ignore_warnings": True})
        self.instances.delete_cluster(name=f"{self.instance}/clusters/c{number}")

    def state_at(self, number):
        fields = {"from": 2, "instances": [self.instance]}
        (answer,) = ask(self.servers[number - 1].host, "TellProgress", fields)
        return answer.placed[0].state

    def states(self):
        return [self.state_at(number) for number in range(1, len(self.servers) + 1)]

    def rows(self, profile, through=1):
        request = types.ReadRowsRequest(table_name=self.table, app_profile_id=profile)
        return self.rpcs[through - 1].read(self.table, app_profile_id=request.app_profile_id)

    def fill(self, rows=2000, size=500):
        items = [(b"row-%06d" % i, [set_cell("f", b"q", b"v" * size, 1000)]) for i in range(rows)]
        assert set(self.rpcs[0].mutate_rows(self.table, items)) == {0}
        for _ in range(20):
            self.rpcs[0].mutate(self.table, b"sum", add(b"s", 1))
        self.rpcs[0].mutate(self.table, b"large", set_cell("f", b"q", b"x" * 3_000_000, 1000))
        self.rpcs[0].drop_row_range(self.table, prefix=b"row-0001")

    def are_alike(self, profiles):
        def look():
            try:
                seen = [self.rows(profile) for profile in profiles]
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.UNAVAILABLE
                return False
            return all(rows == seen[0] for rows in seen)

        comes_to(look, True)


@pytest.fixture
def placed_at(peers_of, connect, administer):
    return lambda at, servers=2, *arguments: Placed(
        peers_of(servers, *arguments), connect, administer, at
    )


def write_at_random(rpc, table, seed, is_over):
    """Adds to `hot` as long as that is not over: how much in all."""
    draw, total = random.Random(seed), 0
    while not is_over.is_set():
        number = draw.randrange(1, 100)
        rpc.mutate(table, b"hot", add(b"s", number))
        total += number
        key = b"row-%06d" % draw.randrange(3000)
        change = delete_row() if draw.randrange(3) == 0 else set_cell("f", b"q", b"w", 2000)
        rpc.mutate(table, key, change)
    return total


class Writer(threading.Thread):
    def __init__(self, rpc, table, seed):
        super().__init__()
        self.arguments, self.is_over, self.total = (rpc, table, seed), threading.Event(), None
        self.start()

    def run(self):
        self.total = write_at_random(*self.arguments, self.is_over)

    def end(self):
        self.is_over.set()
        self.join()
        assert self.total
        return self.total


def state_of(admin, cluster):
    """None while the server does not know it."""
    try:
        return admin.instances.get_cluster(name=cluster).state
    except exceptions.NotFound:
        return None


def hot_sum(rows):
    return struct.unpack(">q", dict(rows)[b"hot"][0].value)[0]


def test_rows_are_where_the_clusters_are(placed_at):
    placed = placed_at((2,), 3)
    comes_to(placed.states, [NOT, HERE, NOT])
    placed.rpcs[0].mutate(placed.table, b"k", set_cell("f", b"q", b"v", 1000))
    for rpc in placed.rpcs:
        assert [key for key, _ in rpc.read(placed.table)] == [b"k"]
    placed.rpcs[2].drop_row_range(placed.table, prefix=b"k")
    for rpc in placed.rpcs:
        assert rpc.read(placed.table) == []


def test_what_is_nowhere_is_not_found(placed_at):
    """It was UNAVAILABLE at who does not lead, as if a copy were being made."""
    placed = placed_at((1,))
    for rpc in placed.rpcs:
        for name in ("projects/p/instances/none/tables/t", f"{placed.instance}/tables/none"):
            with pytest.raises(grpc.RpcError) as refused:
                rpc.read(name)
            assert refused.value.code() == grpc.StatusCode.NOT_FOUND


def test_cluster_is_added_under_writes(placed_at):
    placed = placed_at((1,))
    placed.fill()
    writer = Writer(placed.rpcs[0], placed.table, 1)
    operation = placed.create_cluster(2)
    assert operation.result(timeout=PATIENCE_SECONDS).state == admin_types.Cluster.State.READY
    placed.make_profile(2)
    assert placed.states() == [HERE, HERE]
    progress = operation.metadata
    assert progress.original_request.cluster_id == "c2" and progress.finish_time
    total = writer.end()
    placed.are_alike(["c1", "c2"])
    assert hot_sum(placed.rows("c2", through=2)) == total
    placed.rpcs[1].mutate(placed.table, b"hot", add(b"s", 7), app_profile_id="c2")
    comes_to(lambda: hot_sum(placed.rows("c1")), total + 7)


def test_cluster_is_not_ready_before_its_rows_are_there(placed_at):
    placed = placed_at((2,), 3)
    placed.fill()
    source = placed.servers[1].process
    source.send_signal(signal.SIGSTOP)
    operation = placed.create_cluster(3)
    name = f"{placed.instance}/clusters/c3"
    view = admin_types.Table.View.REPLICATION_VIEW
    creating, initializing = admin_types.Cluster.State.CREATING, 1
    for admin in placed.admins:
        if admin is placed.admins[1]:
            continue
        comes_to(lambda admin=admin: state_of(admin, name), creating)
        table = admin.tables.get_table(request={"name": placed.table, "view": view})
        assert table.cluster_states["c3"].replication_state == initializing
    placed.make_profile(3)
    with pytest.raises(grpc.RpcError) as refused:
        placed.rows("c3", through=3)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "is being copied" in refused.value.details()
    backup = {"source_table": placed.table, "expire_time": from_now(days=7)}
    with pytest.raises(exceptions.ServiceUnavailable):
        placed.admins[2].tables.create_backup(
            request={"parent": name, "backup_id": "early", "backup": backup}, retry=None
        )
    assert not operation.done()
    source.send_signal(signal.SIGCONT)
    operation.result(timeout=PATIENCE_SECONDS)
    placed.are_alike(["c2", "c3"])
    table = placed.admins[0].tables.get_table(request={"name": placed.table, "view": view})
    assert {state.replication_state for state in table.cluster_states.values()} == {4}


@pytest.mark.parametrize("killed", [1, 2, 3])
def test_copy_goes_on_over_kills(placed_at, killed):
    """The leader's, the source's, or that of the server it is for."""
    placed = placed_at((2,), 3)
    placed.fill(4000, 2000)
    placed.create_cluster(3)
    placed.make_profile(3)
    server = placed.servers[killed - 1]
    server.kill()
    time.sleep(0.3)
    server.start()
    placed.are_alike(["c2", "c3"])
    comes_to(placed.states, [NOT, HERE, HERE])
    name = f"{placed.instance}/clusters/c3"
    ready = admin_types.Cluster.State.READY
    comes_to(lambda: state_of(placed.admins[0], name), ready)


def test_cluster_that_leads_is_added_and_deleted(placed_at):
    placed = placed_at((2,))
    placed.fill()
    placed.create_cluster(1).result(timeout=PATIENCE_SECONDS)
    placed.make_profile(1)
    placed.are_alike(["c1", "c2"])
    placed.route_default(1)
    placed.delete_cluster(2)
    comes_to(placed.states, [HERE, NOT])
    assert len(placed.rows("c1", through=2)) > 1000
    writer = Writer(placed.rpcs[1], placed.table, 2)
    placed.create_cluster(2).result(timeout=PATIENCE_SECONDS)
    placed.make_profile(2)
    total = writer.end()
    placed.are_alike(["c1", "c2"])
    assert hot_sum(placed.rows("c2")) == total


def test_deleted_cluster_gives_its_room_back(placed_at):
    """What it had taken and the others had not pulled yet is theirs all the same."""
    placed = placed_at((1, 2))
    placed.fill()
    placed.are_alike(["c1", "c2"])
    placed.servers[0].process.send_signal(signal.SIGSTOP)
    placed.rpcs[1].mutate(placed.table, b"late", set_cell("f", b"q", b"v", 0), app_profile_id="c2")
    placed.servers[0].process.send_signal(signal.SIGCONT)
    placed.delete_cluster(2)
    comes_to(placed.states, [HERE, NOT])
    comes_to(lambda: b"late" in dict(placed.rows("c1")), True)
    placed.servers[1].restart()
    assert placed.states() == [HERE, NOT]


def test_creation_that_is_cancelled_leaves_nothing(placed_at):
    placed = placed_at((1,))
    placed.fill()
    placed.servers[1].process.send_signal(signal.SIGSTOP)
    operation = placed.create_cluster(2)
    operation.cancel()
    with pytest.raises(exceptions.GoogleAPICallError):
        operation.result(timeout=PATIENCE_SECONDS)
    placed.servers[1].process.send_signal(signal.SIGCONT)
    comes_to(placed.states, [HERE, NOT])
    with pytest.raises(exceptions.NotFound):
        placed.instances.get_cluster(name=f"{placed.instance}/clusters/c2")


def test_location_of_before_there_were_peers_is_the_leaders(
    tmp_path, own_servers, connect, administer
):
    """A cluster of then may be at a location that nobody serves, or that a peer serves later."""
    first = peer_server(tmp_path / "peer-1", 1)
    own_servers.append(first)
    placed = Placed([first], connect, administer, at=(2, 9))
    placed.fill()
    second = peer_server(tmp_path / "peer-2", 2)
    own_servers.append(second)
    join(second, first)
    placed.servers.append(second)
    placed.rpcs.append(connect(second.host))
    placed.admins.append(administer(second.host))
    comes_to(placed.states, [HERE, HERE])
    placed.are_alike(["c2", "c9"])
    assert placed.rows("c9", through=2) == placed.rows("c2", through=1)


def test_backups_are_where_their_cluster_is(placed_at):
    """Made, read and deleted through any server; and so is the operation that makes one."""
    placed = placed_at((2,), 3)
    placed.fill(100)
    parent = f"{placed.instance}/clusters/c2"
    tables = placed.admins[0].tables
    expiry = {"source_table": placed.table, "expire_time": from_now(days=7)}
    operation = tables.create_backup(parent=parent, backup_id="b", backup=expiry)
    backup = operation.result(timeout=PATIENCE_SECONDS)
    assert backup.state == admin_types.Backup.State.READY and backup.size_bytes > 10_000
    for admin in placed.admins:
        assert admin.tables.get_backup(name=backup.name) == backup
        assert [each.name for each in admin.tables.list_backups(parent=parent)] == [backup.name]
    placed.admins[2].tables.delete_backup(name=backup.name)
    with pytest.raises(exceptions.NotFound):
        placed.admins[1].tables.get_backup(name=backup.name)
