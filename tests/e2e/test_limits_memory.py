"""What the server takes: memory, descriptors, time to start. On the release build."""

import concurrent.futures
import subprocess
import time
from pathlib import Path

import pytest
from google.cloud.bigtable_v2 import types
from harness.release import memory, release_binary  # noqa: F401 (a fixture)
from harness.rpc import set_cell
from harness.server import EXTERNAL, Server

MB = 1 << 20
TABLES = 1000
DESCRIPTORS = 1024
CACHE_MB = 16
ROW_MB = 200
CELL_MB = 2


@pytest.fixture
def release_server(tmp_path, monkeypatch, release_binary):  # noqa: F811
    """A function that starts a server of the release build."""
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    monkeypatch.setenv("TRESTLE_BINARY", release_binary)
    servers = []

    def start(*arguments):
        servers.append(Server(tmp_path, arguments).start())
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


def test_row_of_200_mb(release_server, connect):
    """Its values are got one by one while it is sent: 2 MB at a time, beside those in the cache."""
    server = release_server("--cache", f"{CACHE_MB}MB")
    rpc = connect(server.host)
    name = rpc.create_table("large")
    value = b"x" * (CELL_MB * MB)
    for i in range(ROW_MB // CELL_MB):
        rpc.mutate(name, b"row", set_cell("f", b"%04d" % i, value, 1000))
    server.restart()
    rpc = connect(server.host)
    rpc.mutate(name, b"small", set_cell("f", b"q", b"v", 1000))
    assert len(rpc.read(name, rows={"row_keys": [b"small"]})) == 1
    idle = memory(server)
    forget_peak(server)
    (message,) = map(types.ReadRowsResponse.pb, rpc.read_stream(name, rows={"row_keys": [b"row"]}))
    assert sum(len(chunk.value) for chunk in message.chunks) == ROW_MB * MB
    used = memory(server, "VmHWM")
    print(f"a row of {ROW_MB} MB read: {used / MB:.0f} MB at most, {idle / MB:.0f} before")
    assert used - idle < (50 + CACHE_MB) * MB
