"""Google's clients while a cluster is killed and comes back, and their calls about clusters, at two
servers that are peers."""

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
import threading

import grpc
import pytest
from google.cloud.bigtable.data import BigtableDataClient, SetCell
from harness.admin import mask
from harness.clients import BUILT, build_bigtable_go, java_classpath, java_program
from harness.gcloud import PROGRAM, Gcloud
from harness.patience import PATIENCE_SECONDS
from harness.peers import cluster_of, cluster_of_write, spread_instance, wait_for_table
from harness.rpc import set_cell
from harness.server import ROOT
from harness.views import comes_to as comes_to_within

# A client's deadline. They may be as short as a second: what takes longer here is this machine.
SECONDS = 10
PROGRAMS = ROOT / "tests/clients/bigtable"


def becomes(condition):
    comes_to_within(lambda: bool(condition()), True, PATIENCE_SECONDS)


class Two:
    """Two servers, the first leads; a table t with the family f at both; profiles c1 and c2 to one
    cluster, `default` to any, and `sticky` to any by row."""

    def __init__(self, servers, connect, administer):
        self.servers = servers
        self.rpcs = [connect(server.host) for server in servers]
        self.admins = [administer(server.host) for server in servers]
        self.instance = spread_instance(self.admins[1], "spread", 2)
        self.admins[1].instances.create_app_profile(
            parent=self.instance, app_profile_id="sticky",
            app_profile={"multi_cluster_routing_use_any": {"row_affinity": {}}},
        )  # fmt: skip
        self.table = self.admins[1].create_table(self.instance, "t", ("f",))
        for number, rpc in enumerate(self.rpcs, 1):
            wait_for_table(rpc, self.table, f"c{number}")

    def keys_at(self, number):
        """None while there are none to be had."""
        with contextlib.suppress(grpc.RpcError):
            rpc = self.rpcs[number]
            return {key for key, _ in rpc.read(self.table, app_profile_id=f"c{number + 1}")}

    def hosts(self, first):
        return ",".join(self.servers[number].host for number in (first, 1 - first))

    def kill_each(self, acknowledged):
        """The second, and then the first; between these steps the writers go on."""

        def wait_for_more():
            before = len(acknowledged)
            becomes(lambda: len(acknowledged) > before + 500)

        wait_for_more()
        for server in reversed(self.servers):
            server.kill()
            wait_for_more()
            server.start()
            wait_for_more()

    def have_all(self, acknowledged):
        becomes(lambda: all((self.keys_at(number) or set()) >= acknowledged for number in (0, 1)))


@pytest.fixture
def two(peers_of, connect, administer):
    return Two(peers_of(2), connect, administer)


# --- writers ---


class Writers:
    """64 threads of Google's client for Python, with its own retries."""

    def __init__(self, two, monkeypatch):
        self.acknowledged, self.errors = set(), []
        self.is_over = threading.Event()
        self.clients, self.threads = [], []
        for name in ("grpc_proxy", "https_proxy", "http_proxy"):
            monkeypatch.delenv(name, raising=False)  # which a list of addresses would go to
        for first, profile in itertools.product((0, 1), ("default", "sticky")):
            monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", "ipv4:" + two.hosts(first))
            self.clients.append(BigtableDataClient(project="p"))
            table = self.clients[-1].get_table("spread", "t", app_profile_id=profile)
            for _ in range(16):
                number = len(self.threads)
                thread = threading.Thread(target=self.write, args=(table, number))
                self.threads.append(thread)
                thread.start()

    def write(self, table, number):
        for i in itertools.count():
            if self.is_over.is_set():
                return
            key = b"py-%02d-%06d" % (number, i)
            try:
                table.mutate_row(key, SetCell("f", b"q", b"v"), operation_timeout=SECONDS)
                self.acknowledged.add(key)
            except Exception as error:  # noqa: BLE001: whatever it is, there must be none
                self.errors.append(error)
                return

    def close(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        for client in self.clients:
            client.close()


def test_writers_in_python_see_no_failover(two, monkeypatch):
    writers = Writers(two, monkeypatch)
    try:
        two.kill_each(writers.acknowledged)
    finally:
        writers.close()
    assert not writers.errors
    two.have_all(writers.acknowledged)


def note_lines(output, acknowledged, failed):
    for line in output:
        (failed if line.startswith("failed") else acknowledged).add(line.strip().encode())


@contextlib.contextmanager
def writing(program, two, first, profile, acknowledged, failed):
    """64 goroutines of Google's client for Go."""
    process = subprocess.Popen(
        [program, "failover", two.hosts(first), "t", profile],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "BIGTABLE_EMULATOR_HOST": two.servers[first].host},
    )  # fmt: skip
    reader = threading.Thread(target=note_lines, args=(process.stdout, acknowledged, failed))
    reader.start()
    try:
        yield
    finally:
        process.stdin.close()
        code = process.wait(PATIENCE_SECONDS)
        reader.join()
        process.stdout.close()
    assert code == 0


@pytest.mark.parametrize("first, profile", [(1, "default"), (0, "sticky")])
def test_writers_in_go_see_no_failover(two, first, profile):
    program = build_bigtable_go()
    acknowledged, failed = set(), set()
    with writing(program, two, first, profile, acknowledged, failed):
        two.kill_each(acknowledged)
    assert not failed
    two.have_all(acknowledged)


# --- a profile that moves ---


def test_a_profile_that_moves_is_followed_by_new_calls(two):
    """Check 12 of replication: those that had begun end where they began."""
    rpc = two.rpcs[0]
    routing = {"cluster_id": "c1", "allow_transactional_writes": True}
    profile = two.admins[1].instances.create_app_profile(
        parent=two.instance, app_profile_id="moves",
        app_profile={"single_cluster_routing": routing},
    )  # fmt: skip
    value = b"v" * 100_000
    for number in range(300):
        rpc.mutate(two.table, b"k%03d" % number, set_cell("f", b"q", value, 1000))
    becomes(lambda: len(two.keys_at(1) or ()) == 300)
    served = [cluster_of_write(rpc, two.table, "moves") for rpc in two.rpcs]
    assert served == ["c1", "c1"]
    scans = [rpc.read_stream(two.table, app_profile_id="moves") for rpc in two.rpcs]
    for scan in scans:
        next(scan)
    for to in ("c2", "c1", "c2"):
        routed = {"name": profile.name, "single_cluster_routing": {**routing, "cluster_id": to}}
        request = {"app_profile": routed, "update_mask": mask("single_cluster_routing")}
        two.admins[1].instances.update_app_profile(request=request).result()
        for rpc in two.rpcs:
            becomes(lambda rpc=rpc, to=to: cluster_of_write(rpc, two.table, "moves") == to)
    for scan in scans:
        rows = sum(chunk.commit_row for message in scan for chunk in message.chunks)
        assert rows > 0 and cluster_of(scan) == "c1"


# --- what is asked about clusters ---


def write_everywhere(two):
    for rpc, profile in zip(two.rpcs, ("c1", "c2"), strict=True):
        assert cluster_of_write(rpc, two.table, profile, profile.encode()) == profile
    return {b"c1", b"c2"}


def test_go_waits_for_replication_at_a_follower(two):
    program = build_bigtable_go()
    keys = write_everywhere(two)
    command = [program, "await", two.servers[1].host, "t"]
    subprocess.run(command, check=True, timeout=PATIENCE_SECONDS)
    assert two.keys_at(0) == two.keys_at(1) == keys


def test_java_waits_for_replication_at_a_follower(two):
    classpath = java_classpath(PROGRAMS / "java", BUILT / "bigtable/java/classpath")
    program = java_program(classpath, PROGRAMS / "java/Replication.java")
    keys = write_everywhere(two)
    done = subprocess.run(
        [*map(str, program), two.servers[1].host], capture_output=True, text=True,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["c1", "c2", "c1", "c2", "default", "sticky"]
    assert two.keys_at(0) == two.keys_at(1) == keys


@pytest.mark.skipif(shutil.which("cbt") is None, reason="there is no cbt here")
def test_cbt_at_a_follower(two, tmp_path):
    (tmp_path / ".cbtrc").write_text("creds = /dev/null\nproject = p\ninstance = spread\n")

    where = {"BIGTABLE_EMULATOR_HOST": two.servers[1].host, "HOME": str(tmp_path)}

    def cbt(line):
        done = subprocess.run(
            ["cbt", *shlex.split(line)], cwd=tmp_path, env={**os.environ, **where},
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"cbt {line}\n{done.stdout}{done.stderr}"
        return done.stdout

    keys = write_everywhere(two)
    cbt("waitforreplication t")
    assert two.keys_at(0) == two.keys_at(1) == keys
    assert [each in cbt("listclusters") for each in ("c1", "c2", "zone-1", "zone-2")] == [True] * 4
    cbt("createappprofile spread p1 'To one' route-to=c2 transactional-writes=true")
    assert "To one" in cbt("listappprofile spread")
    assert cluster_of_write(two.rpcs[0], two.table, "p1") == "c2"
    cbt("updateappprofile spread p1 'To any' route-any force=true")
    assert cluster_of_write(two.rpcs[0], two.table, "p1") == "c1"
    cbt("deleteappprofile spread p1")
    cbt("createtable made families=g")
    assert "made" in cbt("ls")
    cbt("set made r g:q=v app-profile=c1")
    becomes(lambda: '"v"' in cbt("read made app-profile=c2"))


@pytest.mark.skipif(PROGRAM is None, reason="there is no gcloud here")
def test_gcloud_at_a_follower(two, tmp_path):
    gcloud = Gcloud(tmp_path, f"http://{two.servers[1].host}", "p")
    clusters = gcloud("clusters list --instances=spread")
    assert [each["name"].rsplit("/", 1)[1] for each in clusters] == ["c1", "c2"]
    assert clusters[1] == gcloud("clusters describe c2 --instance=spread")
    gcloud("app-profiles create p1 --instance=spread --route-to=c2 --transactional-writes")
    assert cluster_of_write(two.rpcs[0], two.table, "p1") == "c2"
    assert "allowTransactionalWrites" in str(gcloud("app-profiles describe p1 --instance=spread"))
    gcloud("app-profiles update p1 --instance=spread --route-any --row-affinity --force")
    assert "rowAffinity" in str(gcloud("app-profiles describe p1 --instance=spread"))
    served = {cluster_of_write(two.rpcs[1], two.table, "p1", b"k%d" % i) for i in range(40)}
    assert served == {"c1", "c2"}
    gcloud("app-profiles delete p1 --instance=spread --force")
    listed = gcloud("app-profiles list --instance=spread")
    assert {each["name"].rsplit("/", 1)[1] for each in listed} == {"c1", "c2", "default", "sticky"}
