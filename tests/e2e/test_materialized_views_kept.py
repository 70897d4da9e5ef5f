"""What becomes of views where data is kept, restored, salvaged and brought up from a former format:
by definition alone they come back, and are populated anew."""

import os
import time

import pytest
from grpc import StatusCode
from harness.rpc import INSTANCE
from harness.server import Server, run_trestle
from harness.views import Views, becomes, is_refused, put

COUNTED = "SELECT _key, COUNT(*) AS n FROM t GROUP BY _key"
KEYS = [b"r%03d" % i for i in range(100)]


@pytest.fixture
def origin(tmp_path, connect, administer, new_table_id):
    """A server with an archive, a table t and its view v."""
    (tmp_path / "place").mkdir()
    server = Server(
        tmp_path, ["--archive", tmp_path / "place", "--backup-places", tmp_path / "whole"]
    ).start()
    rpc = connect(server.host)
    views = Views(administer(server.host), rpc, new_table_id)
    table = rpc.create_table("t")
    view = views.create(COUNTED, "v")
    for key in KEYS:
        put(rpc, table, key, v="1")
    views.keys_come_to(view, KEYS)
    yield server, views, rpc, table
    server.close()


def assert_kept(host, connect, administer, keys):
    """The view has a row of each key, and follows its table."""
    rpc = connect(host)
    views = Views(administer(host), rpc, None)
    name = views.name("v")
    becomes(lambda: not is_refused(lambda: list(rpc.read(name)), StatusCode.FAILED_PRECONDITION))
    views.keys_come_to(name, keys)
    views.equals(name, COUNTED)
    put(rpc, f"{INSTANCE}/tables/t", b"zzz", v="1")
    views.keys_come_to(name, [*keys, b"zzz"])


def test_the_doctor_knows_what_views_have(origin):
    server = origin[0]
    server.stop()
    seen = run_trestle("doctor", server.data)
    assert seen.returncode == 0, seen.stdout + seen.stderr


@pytest.mark.parametrize("archived", [False, True])
def test_a_restore_brings_definitions_back(origin, tmp_path, connect, administer, archived):
    server, _, rpc, table = origin
    made = run_trestle("backup", "create", tmp_path / "whole", "--endpoint", server.host)
    assert made.returncode == 0, made.stderr
    put(rpc, table, b"s", v="2")
    now = time.time()
    put(rpc, table, b"s", v="3")
    if archived:
        becomes(lambda: server.metric("archive_newest_timestamp_seconds") > now)
    server.stop()
    arguments = ["--archive", tmp_path / "place"] if archived else []
    (tmp_path / "other").mkdir()
    done = run_trestle(
        "backup", "restore", tmp_path / "whole", *arguments, "--to", tmp_path / "other/data"
    )
    assert done.returncode == 0, done.stderr
    restored = Server(tmp_path / "other").start()
    try:
        assert_kept(restored.host, connect, administer, [*KEYS, b"s"] if archived else KEYS)
    finally:
        restored.close()


def test_after_a_salvage_views_are_made_anew(origin, connect, administer):
    server = origin[0]
    server.restart()  # what was written is in tables, or in a log that is looked for
    server.kill()
    for log in server.data.glob("*.log"):
        os.truncate(log, os.path.getsize(log) // 2)
    with pytest.raises(RuntimeError):
        server.start()
    server.arguments.append("--salvage")
    server.start()
    rpc = connect(server.host)
    keys = [key for key, _ in rpc.read(f"{INSTANCE}/tables/t")]
    assert_kept(server.host, connect, administer, keys)
