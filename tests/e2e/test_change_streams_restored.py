"""Change streams over restores: a token of after the moment restored to is told so, and all others
go on; a table that is restored from a backup has no stream."""

import datetime
import time

import pytest
from google.cloud.bigtable_v2 import types
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode
from harness.backups import from_now
from harness.change_streams import (
    Reader,
    one_token,
    partition,
    stream_config,
)
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with, set_cell
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
RESTORED = "The server was restored to 20"


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def put(rpc, name, *keys):
    for key in keys:
        rpc.mutate(name, key, set_cell("f", b"q", b"v", 1000))


def token_after(rpc, name, count, start=b"", end=b"", **fields):
    """Behind so many changes from there on."""
    with Reader(rpc, name, start, end, **fields) as reader:
        return [change.token for change in reader.changes(count)][-1]


def rest(rpc, name, count, **fields):
    with Reader(rpc, name, **fields) as reader:
        return [change.key for change in reader.changes(count)]


def has_more(rpc, name, **fields):
    with Reader(rpc, name, heartbeat_duration=Duration(nanos=100_000_000), **fields) as reader:
        reader.next_of(types.ReadChangeStreamResponse.Heartbeat)
        return not reader.events.empty()


def refused(rpc, name, code, text, **fields):
    fields.setdefault("partition", partition())
    request = types.ReadChangeStreamRequest(table_name=name, **fields)
    with fails_with(code, text):
        for response in rpc.data.read_change_stream(request, timeout=PATIENCE_SECONDS):
            pytest.fail(f"got {response}")


class Origin:
    """A server with a stream, whole backups, and perhaps an archive."""

    def __init__(self, tmp_path, connect, archives):
        self.place = tmp_path / "places" / "whole"
        self.place.parent.mkdir()
        self.archive = tmp_path / "archive"
        self.archive.mkdir()
        self.tmp_path, self.connect = tmp_path, connect
        more = ["--archive", self.archive] if archives else []
        self.server = Server(
            tmp_path / "server", ["--backup-places", self.place.parent, *more]
        )
        self.server.directory.mkdir()
        self.server.start()
        wait_until(lambda: self.server.metric("clock_lead_seconds") == 0)
        self.rpc = connect(self.server.host)
        self.name = self.rpc.create_table("t", ["f"], change_stream_config=stream_config())
        self.beginning = {"start_time": self.rpc_now()}

    def rpc_now(self):
        return datetime.datetime.now(datetime.UTC)

    def back_up(self):
        done = run_trestle("backup", "create", self.place, "--endpoint", self.server.host)
        assert done.returncode == 0, done.stderr

    def restored(self, *arguments):
        """A server on what was restored, with its rpc."""
        data = self.tmp_path / f"restored{len(list(self.tmp_path.iterdir()))}" / "data"
        data.parent.mkdir()
        done = run_trestle("backup", "restore", self.place, *arguments, "--to", data)
        assert done.returncode == 0, done.stderr
        server = Server(data.parent).start()
        return server, self.connect(server.host)


@pytest.fixture
def origin(tmp_path, connect, request):
    subject = Origin(tmp_path, connect, request.param)
    yield subject
    subject.server.close()


@pytest.mark.parametrize("origin", [True], indirect=True)
def test_tokens_over_a_restore_to_a_moment(origin):
    rpc, name = origin.rpc, origin.name
    origin.back_up()
    put(rpc, name, b"a1", b"a2", b"a3")
    early = token_after(rpc, name, 2, **origin.beginning)
    last = token_after(rpc, name, 3, **origin.beginning)
    time.sleep(0.2)
    moment = datetime.datetime.now(datetime.UTC)
    time.sleep(0.2)
    put(rpc, name, b"b1", b"b2")
    late = token_after(rpc, name, 5, **origin.beginning)
    archived = "archive_newest_timestamp_seconds"
    wait_until(lambda: origin.server.metric(archived) > moment.timestamp())
    until = moment.isoformat().replace("+00:00", "Z")
    server, restored = origin.restored("--archive", origin.archive, "--until", until)
    try:
        for _ in range(2):
            told = f"The server was restored to {until[:16]}"
            refused(restored, name, StatusCode.OUT_OF_RANGE, told,
                    continuation_tokens=one_token(b"", b"", late))  # fmt: skip
            assert not has_more(restored, name, continuation_tokens=one_token(b"", b"", last))
            assert rest(restored, name, 1, continuation_tokens=one_token(b"", b"", early)) == [
                b"a3"
            ]
            server.restart()
            restored = origin.connect(server.host)
        put(restored, name, b"c1")
        told = one_token(b"", b"", early)
        assert rest(restored, name, 2, continuation_tokens=told) == [b"a3", b"c1"]
        newer = token_after(restored, name, 2, continuation_tokens=told)
        put(restored, name, b"c2")
        assert rest(restored, name, 1, continuation_tokens=one_token(b"", b"", newer)) == [b"c2"]
        # The server that was copied goes on, and is no place for what the other has told.
        put(rpc, name, b"b3")
        assert rest(rpc, name, 1, continuation_tokens=one_token(b"", b"", late)) == [b"b3"]
        refused(rpc, name, StatusCode.INVALID_ARGUMENT, "restored from a copy of this one",
                continuation_tokens=one_token(b"", b"", newer))  # fmt: skip
    finally:
        server.close()


@pytest.mark.parametrize("origin", [False], indirect=True)
def test_tokens_over_a_whole_restore(origin):
    rpc, name = origin.rpc, origin.name
    put(rpc, name, b"a1", b"a2")
    early = token_after(rpc, name, 1, **origin.beginning)
    last = token_after(rpc, name, 2, **origin.beginning)
    origin.back_up()
    put(rpc, name, b"b1")
    late = token_after(rpc, name, 3, **origin.beginning)
    server, restored = origin.restored()
    try:
        refused(restored, name, StatusCode.OUT_OF_RANGE, RESTORED,
                continuation_tokens=one_token(b"", b"", late))  # fmt: skip
        put(restored, name, b"c1")
        # Long after: places in the log of this server are behind that token's by now.
        refused(restored, name, StatusCode.OUT_OF_RANGE, RESTORED,
                continuation_tokens=one_token(b"", b"", late))  # fmt: skip
        told = one_token(b"", b"", early)
        assert rest(restored, name, 2, continuation_tokens=told) == [b"a2", b"c1"]
        assert rest(restored, name, 1, continuation_tokens=one_token(b"", b"", last)) == [b"c1"]
    finally:
        server.close()


def test_a_table_that_is_restored_from_a_backup_has_no_stream(fresh_server, connect, administer):
    server = fresh_server()
    rpc, admin = connect(server.host), administer(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    start = datetime.datetime.now(datetime.UTC)
    put(rpc, name, b"a")
    token = token_after(rpc, name, 1, start_time=start)
    instance = name.rsplit("/tables/", 1)[0]
    parent = f"{instance}/clusters/trestle"
    backup = {"source_table": name, "expire_time": from_now(days=7)}
    admin.tables.create_backup(parent=parent, backup_id="b", backup=backup).result()
    request = {"parent": instance, "table_id": "again", "backup": f"{parent}/backups/b"}
    again = admin.tables.restore_table(request=request).result().name
    assert "change_stream_config" not in rpc.get_table(again)
    refused(rpc, again, StatusCode.FAILED_PRECONDITION, "not enabled",
            continuation_tokens=one_token(b"", b"", token))  # fmt: skip

