"""A data directory whose list of tables is gone, with its copy: it is served from its table files
and logs when that is asked for, for reading alone, and says so everywhere; what there was stays as
it was, until `trestle repair --accept-old-data --in-place` takes the rest for true."""

import shutil

import grpc
import pytest
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc, fails_with, set_cell, target
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
WORDS = "may show deleted data"
NOBODY_KNOWS = "nobody knows which tables count"


DROPPED = b"row00"


def rows_of(rpc, name):
    """But for what was dropped. While the drop is remembered that is not there; once its space has
    been given back it is not remembered, and the log, which is replayed from its beginning when it
    is not known what of it is in table files, brings it back: it is shown as deleted data."""
    rows = {key: cells[0].value for key, cells in rpc.read(name)}
    return {key: value for key, value in rows.items() if not key.startswith(DROPPED)}


@pytest.fixture(scope="module")
def lost(tmp_path_factory):
    """A directory with rows in table files and in the log, without a list; what was in it."""
    place = tmp_path_factory.mktemp("lost")
    server = Server(place, ["--write-buffer", "4MB"]).start()
    rpc = Rpc(server.host)
    large, small, empty = (rpc.create_table(name) for name in ("large", "small", "empty"))
    expected = {}
    for i in range(200):
        for key in (b"row%03d" % i, b"hot"):
            expected[key] = b"%03d" % i + bytes(60_000)
            rpc.mutate(large, key, set_cell("f", b"q", expected[key], 0))
        if server.metric("store_flushes_total") >= 3:
            break
    rpc.drop_row_range(large, prefix=DROPPED)
    expected = {key: value for key, value in expected.items() if not key.startswith(DROPPED)}
    rpc.mutate(small, b"k", set_cell("f", b"q", b"v", 0))
    entity = {"key": {"path": [{"kind": "Task", "name": "one"}]},
              "properties": {"done": {"booleanValue": True}}}  # fmt: skip
    body = {"mode": "NON_TRANSACTIONAL", "mutations": [{"insert": entity}]}
    Rest(server.host).call("POST", "/v1/projects/p:commit", body)
    rpc.close()
    server.stop()
    for path in server.data.glob("MANIFEST*"):
        path.unlink()
    return place, {large: expected, small: {b"k": b"v"}, empty: {}}


@pytest.fixture
def copied(lost, tmp_path):
    place, tables = lost
    shutil.copytree(place / "data", tmp_path / "data")
    return tmp_path, {name: dict(rows) for name, rows in tables.items()}


def files_in(data):
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns)
            for path in data.iterdir() if path.is_file() and path.name != "LOCK"}  # fmt: skip


def expect_rows(host, tables):
    rpc = Rpc(host)
    for name, expected in tables.items():
        assert rows_of(rpc, name) == expected, name
    rpc.close()
    query = {"gqlQuery": {"queryString": "SELECT * FROM Task WHERE done = TRUE",
                          "allowLiterals": True}}  # fmt: skip
    answer = Rest(host).call("POST", "/v1/projects/p:runQuery", query)
    assert len(answer["batch"]["entityResults"]) == 1


def expect_no_writes(host, name):
    rpc = Rpc(host)
    code = grpc.StatusCode.FAILED_PRECONDITION
    with fails_with(code, WORDS):
        rpc.mutate(name, b"k", set_cell("f", b"q", b"v"))
    with fails_with(code, WORDS):
        rpc.create_table("another")
    with fails_with(code, WORDS):
        rpc.delete_table(name)
    with fails_with(code, WORDS):
        rpc.drop_row_range(name, prefix=b"k")
    rpc.close()
    body = {"instanceId": "j", "instance": {"displayName": "jjjj"}, "clusters": {
        "c": {"location": "projects/p/locations/z", "serveNodes": 1}}}  # fmt: skip
    status, text = Rest(host).ask("POST", "/v2/projects/p/instances", body)
    assert (status, WORDS in text) == (400, True), text


def expect_marks(server, name):
    """By gRPC in good answers and bad, by REST, and of pages that are no API's."""
    rpc = Rpc(server.host)
    request = {**target(name), "rows": {"row_keys": [b"k"]}}
    stream = rpc.data.read_rows(request, timeout=PATIENCE_SECONDS)
    assert ("trestle-old-data", WORDS) in stream.initial_metadata()
    with fails_with(grpc.StatusCode.FAILED_PRECONDITION) as failure:
        rpc.mutate(name, b"k", set_cell("f", b"q", b"v"))
    told = [*failure.error.initial_metadata(), *failure.error.trailing_metadata()]
    assert ("trestle-old-data", WORDS) in told
    rpc.close()
    for path in (f"/v2/{name}", "/v2/projects/p/instances/none", "/console/", "/livez", "/metrics"):
        for way in ("HTTP/1.1", "HTTP/2"):
            _, fields, _ = Rest(server.host, way).ask_for_all("GET", path)
            assert dict(fields).get("trestle-old-data") == WORDS, (path, way)


def expect_health(server):
    status, text = server.get("/readyz")
    assert (status, text.splitlines()[0]) == (503, "no_writes")
    assert WORDS in text
    assert server.get("/livez")[0] == 200
    assert server.metric("store_healthy") == 0
    assert server.metric('health{reason="old_data"}') == 1
    told = run_trestle("status", "--endpoint", server.host, "--interval", "100ms")
    assert (told.returncode, WORDS in told.stdout) == (1, True), told.stdout
    banner = Rest(server.host).ask("GET", "/console/health", headers={"x-trestle-console": "1"})
    assert WORDS in banner[1]  # what each of its pages shows


def test_it_is_served_for_reading_alone(copied):
    place, tables = copied
    large, small, _ = tables
    before = files_in(place / "data")
    seen = run_trestle("doctor", place / "data")
    assert (seen.returncode, NOBODY_KNOWS in seen.stderr) == (1, True), seen.stderr
    with pytest.raises(RuntimeError, match=NOBODY_KNOWS):
        Server(place).start()
    for end in (Server.stop, Server.kill):
        server = Server(place, ["--salvage"]).start()
        try:
            expect_rows(server.host, tables)
            expect_no_writes(server.host, small)
            expect_marks(server, small)
            expect_health(server)
            expect_rows(server.host, tables)
            end(server)
        finally:
            server.close()
    assert files_in(place / "data") == before
    with pytest.raises(RuntimeError, match=NOBODY_KNOWS):
        Server(place).start()


def test_without_a_catalog_it_is_not_served(copied):
    """It would be a server that knows no tables, and none who may not read them."""
    place, _ = copied
    for pattern in ("*.sst", "*.log"):
        for path in (place / "data").glob(pattern):
            path.unlink()
    words = "nothing of the catalog is left"
    with pytest.raises(RuntimeError, match=words):
        Server(place, ["--salvage"]).start()
    seen = run_trestle("repair", place / "data", "--accept-old-data", "--in-place")
    assert (seen.returncode, words in seen.stderr) == (1, True), seen.stderr


def test_it_is_accepted(copied):
    place, tables = copied
    data = place / "data"
    _, small, _ = tables
    seen = run_trestle("repair", data)
    assert (seen.returncode, NOBODY_KNOWS in seen.stderr) == (1, True), seen.stderr
    before = files_in(data)
    seen = run_trestle("repair", data, "--accept-old-data")
    assert (seen.returncode, "would take for true" in seen.stdout) == (1, True), seen.stdout
    assert "nothing was changed" in seen.stdout
    assert files_in(data) == before
    seen = run_trestle("repair", data, "--accept-old-data", "--in-place")
    assert (seen.returncode, "is taken for true" in seen.stdout) == (0, True), seen.stderr
    kept = files_in(data / "replaced")
    assert {name: kept[name] for name in before} == before
    assert run_trestle("doctor", data).returncode == 0
    for _ in range(2):
        server = Server(place).start()
        try:
            expect_rows(server.host, tables)
            assert server.get("/readyz") == (200, "ok\n")
            rpc = Rpc(server.host)
            rpc.mutate(small, b"k", set_cell("f", b"q", b"new", 0))
            tables[small][b"k"] = b"new"
            _, fields, _ = Rest(server.host).ask_for_all("GET", f"/v2/{small}")
            assert "trestle-old-data" not in dict(fields)
            rpc.close()
        finally:
            server.kill()
    seen = run_trestle("repair", data, "--accept-old-data", "--in-place")
    assert (seen.returncode, "nothing to repair" in seen.stdout) == (0, True), seen.stdout
