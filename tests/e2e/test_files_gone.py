"""Files that somebody removes out of the data directory of a server that runs: they are made anew,
and nothing that was acknowledged is lost, also by a kill; or health, log and exit status say so."""

import re
import signal
import time

import grpc
import pytest
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell
from harness.server import EXTERNAL, UNDAMAGED, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
MANIFEST = "MANIFEST-" + 6 * "[0-9]"
MADE_ANEW = 'msg="files that were removed below the server are made anew"'


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def remove(server, patterns):
    paths = [path for pattern in patterns for path in server.data.glob(pattern)]
    assert len(paths) >= len(patterns)
    for path in paths:
        path.unlink()


class Writer:
    """Writes a row after the other, and knows which were acknowledged."""

    def __init__(self, rpc, name):
        self.rpc, self.name, self.keys = rpc, name, []

    def write(self):
        key = b"k%06d" % len(self.keys)
        try:
            self.rpc.mutate(self.name, key, set_cell("f", b"q", b"v"))
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
            return
        self.keys.append(key)


@pytest.mark.parametrize(
    "patterns",
    [["*.log"], ["SYNCED"], ["CURRENT"], [MANIFEST], [MANIFEST, MANIFEST + ".copy"], ["IDENTITY"],
     ["FORMAT"], ["LOCK"], ["*.log", "SYNCED", "CURRENT", MANIFEST, "IDENTITY", "LOCK"]],
    ids=["log", "synced", "current", "manifest", "manifest-and-copy", "identity", "format", "lock",
         "all"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_is_removed_is_made_anew(fresh_server, connect, patterns, end):
    server = fresh_server()
    rpc = connect(server.host)
    writer = Writer(rpc, rpc.create_table("t"))
    identity = (server.data / "IDENTITY").read_text()
    for _ in range(20):
        writer.write()
    remove(server, patterns)

    def is_over():
        writer.write()
        return MADE_ANEW in server.stderr() and server.get("/readyz") == (200, "ok\n")

    wait_until(is_over)
    for pattern in patterns:
        assert list(server.data.glob(pattern))
    for _ in range(20):
        writer.write()
    if end == "stop":
        server.stop()
    else:
        server.kill()
    assert run_trestle("doctor", server.data).returncode in UNDAMAGED
    rpc = connect(server.start().host)
    assert {key for key, _ in rpc.read(writer.name)} >= set(writer.keys)
    assert (server.data / "IDENTITY").read_text() == identity
    assert server.get("/readyz") == (200, "ok\n")


def test_what_cannot_be_made_anew_is_told(fresh_server):
    """While it is so, in the log once, and by the exit status."""
    server = fresh_server()
    obstacle = server.data / "IDENTITY.new"
    obstacle.mkdir()
    remove(server, ["IDENTITY"])
    wait_until(lambda: server.get("/readyz")[1].startswith("degraded\nfiles_gone: "))
    assert server.get("/readyz")[0] == 200
    wait_until(lambda: server.stderr().count("cannot be made anew") == 1)
    obstacle.rmdir()
    wait_until(lambda: server.get("/readyz") == (200, "ok\n"))
    obstacle.mkdir()
    remove(server, ["IDENTITY"])
    wait_until(lambda: server.stderr().count("cannot be made anew") == 2)
    assert server.get("/readyz")[1] != "ok\n"
    server.signal(signal.SIGTERM)
    assert server.wait() == 1
    server.check_log()
    log = server.stderr()
    assert re.search(r'level=error msg="the next start will miss files" cause=".*IDENTITY', log)
    assert log.count("cannot be made anew") == 2
    obstacle.rmdir()
    server.start()
    assert server.get("/readyz")[0] == 200
