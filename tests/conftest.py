"""Fixtures of all end-to-end tests. A server is shared by the tests of one pytest process; a test
that kills, restarts or configures one asks for `fresh_server`.

TRESTLE_BINARY     the program under test; default build-test/trestle
TRESTLE_LONG       "all": the tests marked `long` run, too, and not only today's share of them
TRESTLE_SHARE      "K/N": of N shares of the files the Kth alone, each with about as much to do
TRESTLE_DEBUG_SHARDS  "N": servers' tables lie in so many stores, and tables that tests make have
                   tablets in all of them; e2e/test_two_shards.py names the files that are for it
TRESTLE_E2E_HOST   an address to test instead, e.g. of Google's emulator; tests that need a
                   server of their own are skipped then
"""

import collections
import contextlib
import datetime
import faulthandler
import gc
import itertools
import os
from pathlib import Path

import grpc
import pytest
from google.cloud.bigtable import Client
from google.cloud.bigtable.data import BigtableDataClient
from harness.admin import Admin
from harness.cpu_time import CpuTime
from harness.patience import PATIENCE_SECONDS
from harness.peers import join, know_each_other, peer_server
from harness.rpc import Rpc
from harness.secured import Secured
from harness.server import EXTERNAL, ExternalServer, Server
from harness.views import Views

TABLE_NUMBERS = itertools.count(1)

# Few tests that take a minute or more together, the longest first.
SLOW_FILES = (
    "test_limits_memory.py",
    "test_differential.py",
    "test_debian_packages.py",
    "test_examples_dynamodb.py",
    "test_readme.py",
    "test_crash_short.py",
    "test_index_crashes.py",
    "test_transaction_crashes.py",
    "test_disk_full.py",
)


HUNG = Path(__file__).parents[1] / f"build-test/hung-{os.getpid()}.txt"
LONG_SHARES = 7  # a test marked `long` runs every so many days


def not_for_today(items):
    """Neighbours take turns, so that of many cases of one test some run each day."""
    long_ones = sorted((i for i in items if i.get_closest_marker("long")), key=lambda i: i.nodeid)
    today = datetime.date.today().toordinal() % LONG_SHARES
    return {item for index, item in enumerate(long_ones) if index % LONG_SHARES != today}


def pytest_collection_finish():
    """Modules and thousands of tests stay to the end, and nearly all that a test makes goes without
    the collector: it took 4 of 55 CPU seconds to look through all of it again and again."""
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_collection_modifyitems(config, items):
    if os.environ.get("TRESTLE_LONG") != "all":
        left_out = not_for_today(items)
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    put_in_order(items)
    if share := os.environ.get("TRESTLE_SHARE"):
        keep_share(config, items, *map(int, share.split("/")))


def keep_share(config, items, number, count):
    """Files take turns in the order of their length, so that the long ones are not in one share."""
    assert 1 <= number <= count, f"TRESTLE_SHARE: {number}/{count}"
    files = list(dict.fromkeys(item.path for item in items))
    kept = set(files[number - 1 :: count])
    config.hook.pytest_deselected(items=[item for item in items if item.path not in kept])
    items[:] = [item for item in items if item.path in kept]


def put_in_order(items):
    """The order in which files are given out to pytest's processes (-n): one that takes long and
    begins last would keep the other processors waiting. Behind the slow ones, many tests first."""
    counts = collections.Counter(item.path for item in items)

    def rank(item):
        slow = item.path.name in SLOW_FILES
        return (SLOW_FILES.index(item.path.name) if slow else len(SLOW_FILES), -counts[item.path])

    items.sort(key=rank)


# Behind pytest.ini's limit, whose exception a test may sit out: in a C library, or in the end of a
# `with` that waits for a thread.
GRACE_SECONDS = 300


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test that its own limit does not end takes its process with it. pytest names it then, and
    hung-PID.txt beside the program under test says where each thread stood."""
    marker = item.get_closest_marker("timeout")
    seconds = marker.args[0] if marker else float(item.config.getini("timeout"))
    HUNG.parent.mkdir(exist_ok=True)
    with HUNG.open("w") as hung:
        hung.write(f"{item.nodeid}\n")
        hung.flush()
        faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True, file=hung)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()
            HUNG.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _has_not_hung(request):
    """pytest gives a test whose process has ended to the next one, again and again."""
    for other in HUNG.parent.glob("hung-*.txt"):
        with contextlib.suppress(FileNotFoundError):  # another one's test has ended
            said = other.read_text()
            has_hung = "Timeout" in said and said.split("\n")[0] == request.node.nodeid
            assert not has_hung, said


@pytest.fixture(scope="session")
def cpu_time():
    return CpuTime()


@pytest.fixture(autouse=True)
def _cpu_seconds(cpu_time, record_property):
    """Puts what each test took into the JUnit file: tools/test_times.py sums it up."""
    yield
    for kind, seconds in cpu_time.take().items():
        record_property(f"cpu_{kind}", seconds)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if EXTERNAL:
        running = ExternalServer(EXTERNAL)
    else:
        running = Server(tmp_path_factory.mktemp("server")).start()
    yield running
    running.close()


@pytest.fixture
def own_servers():
    """Those that the test starts. A fixture that has clients of theirs asks for this one: then they
    end before the servers do, whichever of the two a test names first."""
    servers = []
    yield servers
    for each in servers:
        each.close()


@pytest.fixture
def fresh_server(tmp_path, own_servers):
    """A function that starts a server of the test's own: fresh_server("--flag", "value")."""
    if EXTERNAL:
        pytest.skip("needs a server of its own")

    def start(*arguments, env=None):
        directory = tmp_path / f"server-{len(own_servers)}"
        directory.mkdir()
        own_servers.append(Server(directory, arguments, env))
        return own_servers[-1].start()

    return start


@pytest.fixture
def peers_of(tmp_path, own_servers):
    """A function that starts so many servers and has them join: peers_of(3, "--flag", "v") gives
    them, the first of them leads. See harness/peers.py."""
    if EXTERNAL:
        pytest.skip("needs servers of its own")

    def start(count, *arguments):
        servers = []
        for number in range(1, count + 1):
            servers.append(peer_server(tmp_path / f"peer-{number}", number, *arguments))
            own_servers.append(servers[-1])
            if number > 1:
                join(servers[-1], servers[0])
        know_each_other(servers)
        return servers

    return start


@pytest.fixture
def secure(tmp_path, fresh_server):
    """A function that starts a server with access control: see harness/secured.py."""
    started = []

    def start(*arguments, **options):
        started.append(Secured(tmp_path, fresh_server, *arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="session")
def rpc(server):
    """Raw RPCs to the shared server."""
    stubs = Rpc(server.host)
    yield stubs
    stubs.close()


@pytest.fixture
def connect():
    """A function that opens raw RPCs to any host: connect(server.host)."""
    opened = []

    def open_rpc(host, credentials=None):
        opened.append(Rpc(host, credentials))
        return opened[-1]

    yield open_rpc
    for each in opened:
        each.close()


@pytest.fixture(scope="session")
def admin(server):
    """Google's admin clients on the shared server."""
    clients = Admin(server.host)
    yield clients
    clients.close()


@pytest.fixture
def administer():
    """A function that opens admin clients on any host: administer(server.host)."""
    opened = []

    def open_admin(host):
        opened.append(Admin(host))
        return opened[-1]

    yield open_admin
    for each in opened:
        each.close()


@pytest.fixture
def new_instance(admin, new_table_id):
    """A function that makes an instance that no other test uses: gives its name."""
    return lambda *clusters, **fields: admin.create_instance(
        f"i{new_table_id()}", clusters or ("c",), **fields
    )


@pytest.fixture(scope="session")
def emulator_host(server):
    """Google's clients look for this variable, some of them as late as at their first request."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIGTABLE_EMULATOR_HOST", server.host)
        yield server.host


@pytest.fixture(scope="session")
def client(emulator_host):
    """Google's data client."""
    with BigtableDataClient(project="p") as data_client:
        yield data_client


@pytest.fixture(scope="session")
def instance(emulator_host):
    """An instance of Google's classic client, which has the admin calls."""
    classic = Client(project="p", admin=True)
    yield classic.instance("i")
    classic.close()


@pytest.fixture
def new_table_id():
    """A function that gives names that no other test uses."""
    return lambda: f"t{os.getpid()}-{next(TABLE_NUMBERS)}"


@pytest.fixture
def make_table(rpc, new_table_id):
    """A function that makes a table: make_table(families, splits) gives its full name."""
    names = []

    def make(families=("f", "g"), splits=(), **fields):
        names.append(rpc.create_table(new_table_id(), families, splits, **fields))
        return names[-1]

    yield make
    for name in names:
        with contextlib.suppress(grpc.RpcError):  # the test may have deleted or protected it
            rpc.delete_table(name)


@pytest.fixture
def views(admin, rpc, new_table_id, make_table):
    """Materialized views of the instance `i`, which go before the tables that they read."""
    made = Views(admin, rpc, new_table_id)
    yield made
    made.close()


@pytest.fixture
def fresh_views(fresh_server, administer, connect, new_table_id):
    """A function that starts a server of the test's own: gives it, its views, raw RPCs to it."""

    def start(*arguments):
        server = fresh_server(*arguments)
        rpc = connect(server.host)
        return server, Views(administer(server.host), rpc, new_table_id), rpc

    return start


@pytest.fixture
def table_name(make_table):
    return make_table()


@pytest.fixture
def table(client, table_name):
    """A table of Google's data client with the families f and g."""
    opened = client.get_table(
        "i", table_name.rsplit("/", 1)[-1],
        default_operation_timeout=PATIENCE_SECONDS,
        default_read_rows_operation_timeout=PATIENCE_SECONDS,
        default_mutate_rows_operation_timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    yield opened
    opened.close()
