"""What the server takes: memory, descriptors, time to start. On the release build."""

import concurrent.futures
import random
import resource
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import grpc
import pytest
from google.cloud.bigtable_v2 import types
from harness.certificates import Authority
from harness.http2 import Http2
from harness.patience import PATIENCE_SECONDS
from harness.release import memory, release_binary  # noqa: F401 (a fixture)
from harness.rest import Rest
from harness.rpc import fails_with, set_cell
from harness.server import EXTERNAL, Server, run_trestle
from harness.sql import execute, prepare, values_of

MB = 1 << 20
TABLES = 1000
DESCRIPTORS = 1024
CACHE_MB = 16
ROW_MB = 200
CELL_MB = 2
CELLS = 2048
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # and empty SETTINGS
SETTINGS_TAKEN = b"\0\0\0\4\1\0\0\0\0"


@pytest.fixture
def release_server(tmp_path, monkeypatch, release_binary):  # noqa: F811
    """A function that starts a server of the release build."""
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    monkeypatch.setenv("TRESTLE_BINARY", release_binary)
    servers = []

    def start(*arguments):
        directory = tmp_path / f"server{len(servers)}"
        directory.mkdir()
        servers.append(Server(directory, arguments).start())
        return servers[-1]

    yield start
    for each in servers:
        each.close()


def limit_descriptors(server):
    command = ["prlimit", "--pid", str(server.process.pid), f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]
    subprocess.run(command, check=True)


def test_idle(release_server):
    server = release_server()
    server.get("/livez")
    used = memory(server)
    print(f"idle: {used / MB:.1f} MB")
    assert used < 60 * MB


def forget_peak(server):
    """VmHWM begins anew: reading the log at the start takes more than what is asked here."""
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


def touch(rpc, name):
    rpc.mutate(name, b"k", set_cell("f", b"q", b"v" * 100, 1000))
    assert len(rpc.read(name)) == 1


def in_parallel(work, items):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, items))


def timed_start(server, how):
    began = time.monotonic()
    server.start()
    print(f"start with {TABLES} tablets after {how}: {time.monotonic() - began:.2f} s")


@pytest.mark.timeout(900)
def test_1000_tables(release_server, connect):
    """All touched, with 1,024 descriptors; what a start takes is printed, not judged. A second
    round after each start finds every table again."""
    server = release_server("--cache", f"{CACHE_MB}MB")
    limit_descriptors(server)
    rpc = connect(server.host)
    names = in_parallel(lambda i: rpc.create_table(f"t{i}"), range(TABLES))
    for how in ("stop", "kill", None):
        in_parallel(lambda name, rpc=rpc: touch(rpc, name), names)
        used = memory(server, "VmHWM")
        print(f"{TABLES} tables touched: {used / MB:.0f} MB at most, {CACHE_MB} of it cache")
        assert used < (400 + CACHE_MB) * MB
        if how is not None:
            getattr(server, how)()
            timed_start(server, how)
            limit_descriptors(server)
            rpc = connect(server.host)


def read_row(rpc, name, row_filter=None):
    """The one message of the row."""
    (message,) = rpc.read_stream(name, rows={"row_keys": [b"row"]}, filter=row_filter)
    return types.ReadRowsResponse.pb(message)


def memory_to_read(server, rpc, name, row_filter=None):
    """The most that the server takes."""
    forget_peak(server)
    message = read_row(rpc, name, row_filter)
    assert sum(len(chunk.value) for chunk in message.chunks) == ROW_MB * MB
    return memory(server, "VmHWM")


def restart_for_reading(server, connect, name):
    server.restart()
    rpc = connect(server.host)
    rpc.mutate(name, b"small", set_cell("f", b"q", b"v", 1000))
    assert len(rpc.read(name, rows={"row_keys": [b"small"]})) == 1
    return rpc


def test_row_of_200_mb(release_server, connect):
    """Its values are got one by one while it is sent: 2 MB at a time, beside those in the cache."""
    server = release_server("--cache", f"{CACHE_MB}MB")
    rpc = connect(server.host)
    name = rpc.create_table("large")
    value = b"x" * (CELL_MB * MB)
    for i in range(ROW_MB // CELL_MB):
        rpc.mutate(name, b"row", set_cell("f", b"%04d" % i, value, 1000))
    rpc = restart_for_reading(server, connect, name)
    idle = memory(server)
    used = memory_to_read(server, rpc, name)
    print(f"a row of {ROW_MB} MB read: {used / MB:.0f} MB at most, {idle / MB:.0f} before")
    assert used - idle < (50 + CACHE_MB) * MB


def value_filters():
    """Of a row whose values begin with their number: all come through, and each is looked at."""
    matches = types.RowFilter(value_regex_filter=rb"\d{4}x*")
    even = types.RowFilter(value_regex_filter=rb"\d{3}[02468]x*")
    odd = types.RowFilter(value_regex_filter=rb"\d{3}[13579]x*")
    is_in_range = types.RowFilter(
        value_range_filter={"start_value_closed": b"0", "end_value_open": b"a"}
    )
    is_last = types.RowFilter(value_range_filter={"start_value_closed": b"%04d" % (CELLS - 1)})
    everything = types.RowFilter(pass_all_filter=True)
    return {
        "no filter": None,
        "regex": matches,
        "range": is_in_range,
        "chain": types.RowFilter(chain={"filters": [matches, is_in_range]}),
        "interleave": types.RowFilter(interleave={"filters": [even, odd]}),
        "condition": types.RowFilter(
            condition={"predicate_filter": is_last, "true_filter": everything}
        ),
    }


def test_row_of_200_mb_whose_values_are_looked_at(release_server, connect):
    """Each value is got for the filter, and once more when it is sent. What several threads of the
    pool have freed, one read after the other, stays with the allocator: hence half a row."""
    server = release_server("--cache", f"{CACHE_MB}MB")
    rpc = connect(server.host)
    name = rpc.create_table("large")
    rest = b"x" * (ROW_MB * MB // CELLS - 4)
    for i in range(CELLS):
        rpc.mutate(name, b"row", set_cell("f", b"%04d" % i, b"%04d" % i + rest, 1000))
    rpc = restart_for_reading(server, connect, name)
    idle = memory(server)
    for kind, row_filter in value_filters().items():
        used = memory_to_read(server, rpc, name, row_filter)
        print(f"read with {kind}: {used / MB:.0f} MB at most, {idle / MB:.0f} before")
        assert used - idle < ROW_MB * MB / 2


def idle_connection(server, context):
    """Of HTTP/2, on which nothing is asked."""
    address, port = server.host.rsplit(":", 1)
    opened = socket.create_connection((address, int(port)), PATIENCE_SECONDS)
    if context is not None:
        opened = context.wrap_socket(opened, server_hostname="localhost")
    opened.sendall(PREFACE)
    assert opened.recv(1 << 16)
    opened.sendall(SETTINGS_TAKEN)
    return opened


def wait_for_memory(server, most):
    """Until the server has no more than that; what it has then, or at last, and the seconds."""
    began = time.monotonic()
    while memory(server) > most and time.monotonic() < began + PATIENCE_SECONDS:
        time.sleep(0.5)
    return memory(server), time.monotonic() - began


def check_memory_returns(server, count, context=None):
    """Two rounds: what came free in the first is touched by the second."""
    before = memory(server)
    most = max(before * 1.1, before + 16 * MB)
    for _ in range(2):
        connections = [idle_connection(server, context) for _ in range(count)]
        with_them = memory(server)
        for each in connections:
            each.close()
        after, seconds = wait_for_memory(server, most)
    print(f"{count} connections: {before / MB:.0f}, {with_them / MB:.0f}, {after / MB:.0f} MB "
          f"{seconds:.1f} s later")  # fmt: skip
    assert after <= most


def allow_descriptors(count):
    """To this process and those that it starts from now on."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < count:
        pytest.skip(f"{count} descriptors are not to be had")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def secured(directory):
    """(settings of a server that speaks TLS, a context for its clients)"""
    authority = Authority(directory)
    certificate, key = authority.issue("server", "/CN=localhost")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.set_alpn_protocols(["h2"])
    return ["--tls-cert", certificate, "--tls-key", key], context


def test_memory_of_closed_connections_returns(release_server, tmp_path):
    """Fewer than an operator has."""
    allow_descriptors(3000)
    check_memory_returns(release_server(), 2500)
    settings, context = secured(tmp_path)
    check_memory_returns(release_server(*settings), 700, context)


@pytest.mark.long
@pytest.mark.timeout(1800)  # ten thousand handshakes, one after the other, beside other tests
@pytest.mark.parametrize("how", ["plain", "tls"])
def test_memory_of_ten_thousand_connections_returns(release_server, tmp_path, how):
    allow_descriptors(12000)
    settings, context = secured(tmp_path) if how == "tls" else ([], None)
    check_memory_returns(release_server(*settings), 10000, context)


class Peak:
    """The most that a server takes without what is a file's, looked at until the `with` ends."""

    def __init__(self, server):
        self.server, self.bytes = server, 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.is_over.wait(0.02):
            self.bytes = max(self.bytes, memory(self.server, "RssAnon"))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def values_of_largest_row():
    """255 MB: two of the largest cells, and smaller ones."""
    chance = random.Random(20)
    large = {b"large%d" % i: chance.randbytes(100 * MB) for i in range(2)}
    return {**large, **{b"small%02d" % i: chance.randbytes(MB) for i in range(55)}}


def read_values(rpc, name):
    return {cell.qualifier: cell.value for cell in rpc.read_row(name, b"row")}


@pytest.mark.long
def test_the_largest_row_within_a_gigabyte(release_server, connect, tmp_path):
    """Written in pieces, read whole, from memory and from the disk, by Python and `export`."""
    server = release_server("--memory", "1GB")
    rpc = connect(server.host)
    name = rpc.create_table("large")
    values = values_of_largest_row()
    with Peak(server) as peak:
        for qualifier, value in values.items():
            rpc.mutate(name, b"row", set_cell("f", qualifier, value, 1000))
        written = peak.bytes
        is_same = read_values(rpc, name) == values  # not in the assert, which would print it
        assert is_same
    print(f"written: {written / MB:.0f} MB at most, and read: {peak.bytes / MB:.0f}")
    assert peak.bytes < 1024 * MB
    rpc = connect(server.restart().host)
    with Peak(server) as peak:
        is_same = read_values(rpc, name) == values
        assert is_same
        done = run_trestle("export", "avro", "large", tmp_path / "exported",
                           "--endpoint", server.host)  # fmt: skip
        assert done.returncode == 0, done.stderr
    print(f"read from the disk: {peak.bytes / MB:.0f} MB at most")
    assert peak.bytes < 1024 * MB


def test_what_half_a_gigabyte_is_too_little_for(release_server, connect):
    """The start says it, and the call that wants more."""
    server = release_server("--memory", "512MB")
    assert f'a request has at most" max_message={512 * MB // 12}' in server.stderr()
    rpc = connect(server.host)
    name = rpc.create_table("large")
    with fails_with(grpc.StatusCode.RESOURCE_EXHAUSTED):
        rpc.mutate(name, b"row", set_cell("f", b"q", b"x" * (100 * MB), 1000))
    value = b"x" * (40 * MB)
    rpc.mutate(name, b"row", set_cell("f", b"q", value, 1000))
    is_same = read_values(rpc, name) == {b"q": value}
    assert is_same


# --- write buffers ---


def write_or_be_refused(rpc, table, value):
    """Whether it was written: flushes may take long on a busy machine."""
    try:
        rpc.mutate(table, random.randbytes(8), set_cell("f", b"q", value, 1000))
    except grpc.RpcError as error:
        assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
        return False
    return True


def test_write_buffers_keep_to_their_share(release_server, connect):
    """Twice 32 MB of 512. Writes went on while one was flushed, into two more of each table, each
    of the size of a message."""
    server = release_server("--memory", "512MB")
    rpc = connect(server.host)
    tables = [rpc.create_table(f"t{i}") for i in range(4)]
    value, most = random.Random(9).randbytes(20 * MB), 0
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        writes = [pool.submit(write_or_be_refused, rpc, tables[i % 4], value) for i in range(12)]
        while not all(each.done() for each in writes):
            most = max(most, server.metric("store_write_buffer_bytes"))
            time.sleep(0.05)
    print(f"write buffers: {most / MB:.0f} MB at most")
    assert any(each.result() for each in writes)
    assert 20 * MB < most < 65 * MB


# --- clients that stop within a large cell ---


class Stopped:
    """A client that has begun to read a row, and takes a window of it, and no more until `finish`.
    """

    def __init__(self, server, table, key):
        self.connection = Http2(server.host, reads=False)
        request = types.ReadRowsRequest(table_name=table, rows={"row_keys": [key]})
        body = types.ReadRowsRequest.serialize(request)
        path = "/google.bigtable.v2.Bigtable/ReadRows"
        headers = {"content-type": "application/grpc", "te": "trailers"}
        self.stream = self.connection.start("POST", path, headers, ends=False)
        self.connection.send(self.stream, b"\0" + len(body).to_bytes(4, "big") + body)

    def finish(self):
        """The row's value; None if the server had no more patience, which it has for a minute."""
        connection = self.connection
        connection.reads = True
        connection.h2.increment_flow_control_window(1 << 30)
        connection.h2.increment_flow_control_window(1 << 30, self.stream)
        connection.flush()
        answer = connection.wait(self.stream)
        connection.close()
        if answer.reset is not None:
            return None
        assert answer.headers["grpc-status"] == "0"
        assert int.from_bytes(answer.body[1:5], "big") == len(answer.body) - 5
        message = types.ReadRowsResponse.pb(types.ReadRowsResponse.deserialize(answer.body[5:]))
        return b"".join(chunk.value for chunk in message.chunks)


def wait_for_rest(server):
    """What compactions hold of large values is bounded by nobody: until there are none."""
    names = ("store_flushes_running", "store_compactions_running", "store_compaction_pending_bytes")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(server.metric(name) for name in names) and time.monotonic() < deadline:
        time.sleep(0.1)


def wait_for_turns(server, table):
    """Until all requests of the table wait for their clients: each has had its turn."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = Rest(server.host).call("GET", "/v1/servers/self/runningRequests?pageSize=1000")
        states = {each["state"] for each in found["requests"] if each.get("resource") == table}
        if states == {"wait_for_client"}:
            return
        time.sleep(0.1)
    pytest.fail("some have not had their turn")


@pytest.mark.parametrize(
    ("bound", "clients", "rows", "cell", "most"),
    [(512, 10, 3, 36, 300), pytest.param(1024, 14, 14, 100, 1000, marks=pytest.mark.long)],
)
def test_clients_that_stop_within_large_cells(
    release_server, connect, bound, clients, rows, cell, most
):
    """The server holds a cell of one of them, and has memory for a compaction of the rows beside.
    Whoever reads then gets his, and so do they when they go on, within values that were taken from
    them."""
    server = release_server()
    rpc = connect(server.host)
    table = rpc.create_table("large")
    chance = random.Random(7)
    values = {b"row%02d" % i: chance.randbytes(cell * MB) for i in range(rows)}
    for key, value in values.items():
        rpc.mutate(table, key, set_cell("f", b"q", value, 1000))
    wait_for_rest(server.restart())
    server.arguments += ["--memory", f"{bound}MB"]
    wait_for_rest(server.restart())
    rpc = connect(server.host)
    with Peak(server) as peak:
        keys = [b"row%02d" % (i % rows) for i in range(clients)]
        stopped = [(key, Stopped(server, table, key)) for key in keys]
        wait_for_turns(server, table)
        for key, client in (stopped[0], stopped[-1]):
            value = client.finish()
            is_same = value is None or value == values[key]
            assert is_same
        (read,) = rpc.read_row(table, stopped[1][0])
        is_same = read.value == values[stopped[1][0]]
        assert is_same
        for _, client in stopped[1:-1]:
            client.connection.close()
    print(f"{clients} clients stop within cells of {cell} MB: {peak.bytes / MB:.0f} MB at most")
    assert peak.bytes < most * MB


# --- queries of large cells ---


def lengths_of(rpc, query):
    """Of the values of its result, or the code that it failed with. Each is prepared when it is
    asked, since that lasts 40 s, and those before it may take longer on a busy machine."""
    try:
        return [len(value.bytes_value or value.string_value)
                for value in values_of(execute(rpc, prepare(rpc, query)))]  # fmt: skip
    except grpc.RpcError as error:
        return error.code()


QUERIES = [
    "SELECT TO_HEX(f['q']) AS v FROM {table}",
    "SELECT CONCAT(f['q'], f['q']) AS v FROM {table}",
    "SELECT f['q'] AS v FROM {table}",
    "SELECT TO_BASE64(f['q']) AS v FROM {table}",
]
SIZES = [lambda n: 2 * n, lambda n: 2 * n, lambda n: n, lambda n: (n + 2) // 3 * 4]  # of values


@pytest.mark.parametrize(
    ("cell", "alone"), [(20, QUERIES), pytest.param(40, QUERIES[2:3], marks=pytest.mark.long)]
)
def test_queries_of_large_cells_together(release_server, connect, cell, alone):
    """What they compute was bounded for each row of each alone, so that eight of them took 546 MB
    of 512. One by one those come to an end that have room; all at once each does, or is refused."""
    server = release_server("--memory", "512MB")
    rpc = connect(server.host)
    chance = random.Random(cell)
    name = rpc.create_table("large")
    for i in range(3):
        rpc.mutate(name, b"row%d" % i, set_cell("f", b"q", chance.randbytes(cell * MB), 1000))
    table = name.rsplit("/", 1)[1]
    wait_for_rest(server.restart())
    rpc = connect(server.host)
    queries = {query: query.format(table=f"`{table}`") for query in QUERIES}
    expected = [[each(cell * MB)] * 3 for each in SIZES]
    with Peak(server) as peak, concurrent.futures.ThreadPoolExecutor(8) as pool:
        for query, lengths in zip(QUERIES, expected, strict=True):
            if query in alone:
                assert lengths_of(rpc, queries[query]) == lengths
        found = list(pool.map(lambda each: lengths_of(rpc, each), list(queries.values()) * 2))
    print(f"queries of cells of {cell} MB: {peak.bytes / MB:.0f} MB at most, {found}")
    assert all(each == grpc.StatusCode.RESOURCE_EXHAUSTED or len(each) == 3 for each in found)
    if alone == QUERIES:  # whoever has the room has enough
        assert any(each != grpc.StatusCode.RESOURCE_EXHAUSTED for each in found)
    assert peak.bytes < 512 * MB
    assert lengths_of(rpc, queries[QUERIES[2]]) == [cell * MB] * 3  # nobody holds anything any more
