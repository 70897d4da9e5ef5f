"""A disk without space: writes are refused, reads go on, nothing is lost, and it recovers.

The disk is a tmpfs of 96 MB, which takes root to mount. Where that is not allowed, the tests are
skipped and say so.
"""

import os
import re
import subprocess
import time

import grpc
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with, set_cell
from harness.server import EXTERNAL, Server

DISK_MB = 96
RESERVE_MB = 24
VALUE = os.urandom(100_000)  # does not compress
MOST_WRITES = 100 * DISK_MB  # many times what the disk holds
MOST_ATTEMPTS = 100_000


@pytest.fixture
def small_disk(tmp_path):
    """A directory with a small disk mounted on it."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "trestle-test", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine does not let us mount a disk: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def server(small_disk, tmp_path):
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    # The reserve is for what is in memory and must be flushed, after a kill also before a start.
    settings = ["--disk-reserve", f"{RESERVE_MB}MB", "--write-buffer", "4MB", "--cache", "8MB"]
    running = Server(tmp_path, settings)
    running.data = small_disk / "data"
    yield running.start()
    running.close()


def write(rpc, name, written):
    """One row more: OK, and noted in `written`, or the code of its refusal."""
    key = b"%06d" % len(written)
    try:
        rpc.mutate(name, key, set_cell("f", b"q", key + VALUE, 1000))
    except grpc.RpcError as error:
        return error.code()
    written.append(key)
    return StatusCode.OK


def fill(rpc, name, written):
    """Writes until it is refused, and how."""
    codes = (write(rpc, name, written) for _ in range(MOST_WRITES))
    return next(code for code in codes if code != StatusCode.OK)


def recovers(rpc, name, written):
    """Whether writes get through again; until then they are refused as before."""
    for _ in range(MOST_ATTEMPTS):
        code = write(rpc, name, written)
        assert code in (StatusCode.OK, StatusCode.RESOURCE_EXHAUSTED)
        if code == StatusCode.OK:
            return True
    return False


def check(rpc, name, written):
    rows = rpc.read(name)
    assert [key for key, _ in rows] == written
    assert all(cells[0].value == key + VALUE for key, cells in rows)


def check_healthy(server):
    assert server.get("/readyz") == (200, "ok\n")
    assert server.metric("store_healthy") == 1


def refuses_for(server, reason):
    """Whether it says everywhere that it takes no writes, and why."""
    status, text = server.get("/readyz")
    if status == 200 or server.metric("store_healthy") == 1:
        return False
    assert status == 503 and text.startswith("no_writes\n")
    assert re.search(rf"^{reason}: writes are refused: ", text, re.MULTILINE)
    return True


def fill_until_told(server, rpc, name, written, reason):
    """What is flushed gives back space: what was full is not a moment later, until it is again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        assert fill(rpc, name, written) == StatusCode.RESOURCE_EXHAUSTED
        if refuses_for(server, reason):
            return
        assert time.monotonic() < deadline


def test_full_disk_without_a_reserve(server, small_disk, connect):
    """There is space again: /readyz says so, though nobody writes who would ask it first."""
    server.stop()
    server.arguments[1] = "0"
    rpc = connect(server.start().host)
    name = rpc.create_table("t")
    written = []
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(DISK_MB << 19))
    fill_until_told(server, rpc, name, written, "disk_full")
    check(rpc, name, written)
    ballast.unlink()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while server.get("/readyz")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    check_healthy(server)
    assert recovers(rpc, name, written)


def test_full_disk(server, small_disk, connect):
    rpc = connect(server.host)
    name = rpc.create_table("t")
    written = []
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(DISK_MB << 19))  # half the disk
    assert fill(rpc, name, written) == StatusCode.RESOURCE_EXHAUSTED
    assert len(written) > 50
    check(rpc, name, written)
    fill_until_told(server, rpc, name, written, "disk_reserve")
    check(rpc, name, written)
    ballast.unlink()
    before = len(written)
    assert recovers(rpc, name, written)
    check_healthy(server)
    assert "no longer so" in server.stderr()
    assert fill(rpc, name, written) == StatusCode.RESOURCE_EXHAUSTED
    assert len(written) > before + 20
    check(rpc, name, written)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_server_starts_again_on_a_full_disk(server, small_disk, connect, how):
    rpc = connect(server.host)
    name = rpc.create_table("t")
    written = []
    assert fill(rpc, name, written) == StatusCode.RESOURCE_EXHAUSTED
    getattr(server, how)()
    server.start()
    rpc = connect(server.host)
    check(rpc, name, written)
    rpc.drop_row_range(name, everything=True)
    assert rpc.read(name) == []


def free_mb(directory):
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize / (1 << 20)


def test_deleted_tables_make_room(server, small_disk, connect):
    """The oldest first, and no more than it takes."""
    rpc = connect(server.host)
    written = {}
    for number in range(4):
        name = rpc.create_table(f"deleted-{number}")
        written[name] = []
        for _ in range(60):
            assert write(rpc, name, written[name]) == StatusCode.OK
        rpc.delete_table(name)
    attempts = 0
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while server.metric("deleted_tables_dropped_early_total") == 0:
            surplus = free_mb(small_disk) - RESERVE_MB - 4  # logs go, and files that were compacted
            ballast.write(bytes(max(int(surplus * (1 << 20)), 0)))
            attempts += 1
            assert attempts < MOST_ATTEMPTS
    oldest, *_, newest = written
    with fails_with(StatusCode.NOT_FOUND):
        rpc.admin.undelete_table(admin_types.UndeleteTableRequest(name=oldest))
    assert rpc.admin.undelete_table(admin_types.UndeleteTableRequest(name=newest)).done
    assert recovers(rpc, newest, written[newest])
    check(rpc, newest, written[newest])


def test_disk_that_others_fill(server, small_disk, connect):
    """To the last byte, below what the server keeps in reserve."""
    rpc = connect(server.host)
    name = rpc.create_table("t")
    written = []
    for _ in range(100):
        assert write(rpc, name, written) == StatusCode.OK
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            pass
    assert fill(rpc, name, written) == StatusCode.RESOURCE_EXHAUSTED
    check(rpc, name, written)
    ballast.unlink()
    assert recovers(rpc, name, written)
    check(rpc, name, written)
    server.kill()
    server.start()
    check(connect(server.host), name, written)
