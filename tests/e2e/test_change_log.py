"""The log of change streams: how large it gets, and what readers, health and metrics say when the
oldest changes go before their time."""

import os
import re
import time

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode
from harness.change_streams import (
    MIB,
    Reader,
    now_micros,
    one_token,
    partition,
    stream_config,
    timestamp,
    update_stream,
)
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with, set_cell
from harness.server import EXTERNAL
from google.cloud.bigtable_v2 import types

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def put(rpc, name, key, size=MIB // 2):
    rpc.mutate(name, key, set_cell("f", b"q", os.urandom(size), 1000))


def refused(rpc, name, code, text, **fields):
    request = types.ReadChangeStreamRequest(table_name=name, partition=partition(), **fields)
    with fails_with(code, text):
        for response in rpc.data.read_change_stream(request, timeout=PATIENCE_SECONDS):
            pytest.fail(f"got {response}")


def token_now(rpc, name):
    with Reader(rpc, name, heartbeat_duration=Duration(nanos=100_000_000)) as reader:
        beat = reader.next_of(types.ReadChangeStreamResponse.Heartbeat)
    return one_token(b"", b"", beat.continuation_token.token)


def reasons(server):
    _, body = server.get("/readyz")
    return dict(line.split(": ", 1) for line in body.splitlines()[1:])


def fill(server, rpc, name, first, until):
    """Half a megabyte of changes at a time, each of them taken."""
    count = first
    while not until():
        put(rpc, name, b"k%05d" % count)
        count += 1
        assert count - first < 2000
    return count


def test_the_oldest_changes_go_and_nobody_jumps(fresh_server, connect):
    server = fresh_server("--change-log-bytes", "8MB")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    start, early = now_micros(), token_now(rpc, name)
    put(rpc, name, b"first")
    with Reader(rpc, name, continuation_tokens=early) as reader:
        assert reader.changes(1)[0].key == b"first"
    count = fill(
        server, rpc, name, 0, lambda: server.metric("change_log_evicted_segments_total") > 2
    )
    assert server.metric("change_log_written_bytes_total") > count * MIB // 2
    oldest = "oldest time that can be read is 20"
    wait_until(lambda: "change_log_short" in reasons(server))
    assert name in reasons(server)["change_log_short"]
    assert "they may take 8 MB (--change-log-bytes)" in reasons(server)["change_log_short"]
    for _ in range(2):
        refused(rpc, name, StatusCode.OUT_OF_RANGE, oldest, continuation_tokens=early)
        refused(rpc, name, StatusCode.INVALID_ARGUMENT, oldest, start_time=timestamp(start))
        wait_until(lambda: server.metric("change_log_bytes") <= 8 * MIB)
        assert server.metric("change_log_quota_bytes") == 8 * MIB
        server.restart()
        rpc = connect(server.host)
        assert "change_log_short" not in reasons(server)
    # What is left can be read from the time that is named on.
    for i in range(count, count + 4):
        put(rpc, name, b"k%05d" % i)
    count += 4
    words = re.search(oldest + r"\S+", server_words(rpc, name, early)).group()
    left = timestamp_of(words.split()[-1])
    with Reader(rpc, name, start_time=left, end_time=timestamp(now_micros())) as reader:
        changes, close = reader.rest()
    assert close.status.code == 0
    keys = [change.key for change in changes]
    assert keys == [b"k%05d" % i for i in range(count - len(keys), count)]
    assert 4 <= len(keys) <= 20


def test_views_that_have_lost_changes_are_named(fresh_views, tmp_path):
    """And held against their source: at the end they have all of it."""
    hold = tmp_path / "hold"
    server, views, rpc = fresh_views("--change-log-bytes", "4MB", "--debug-hold-views", str(hold))
    name = rpc.create_table("t", ["f"])
    view = views.create("SELECT _key, COUNT(*) AS n FROM t GROUP BY _key", "v")
    hold.touch()
    wait_until(lambda: put(rpc, name, b"0") or server.metric("views_lag_seconds") > 0)
    evicted = "change_log_evicted_segments_total"
    for number in range(200):
        if server.metric(evicted) > 2:
            break
        # the log has no values for views, so long keys are what fills it
        keys = [b"%04d%04d" % (number, n) + b"k" * 3000 for n in range(100)]
        cell = set_cell("f", b"q", b"v", 1000)
        assert set(rpc.mutate_rows(name, [(key, [cell]) for key in keys])) == {0}
    wait_until(lambda: server.metric(evicted) > 2)
    lost = "change streams and materialized views have lost their oldest changes early"
    wait_until(lambda: lost in server.stderr())
    assert server.metric("views_lag_seconds") > 0  # it was 0: nothing was found of what was lost
    hold.unlink()
    views.equals(view, "SELECT _key, COUNT(*) AS n FROM t GROUP BY _key")


def server_words(rpc, name, token):
    request = types.ReadChangeStreamRequest(
        table_name=name, partition=partition(), continuation_tokens=token
    )
    with pytest.raises(Exception) as raised:
        list(rpc.data.read_change_stream(request, timeout=PATIENCE_SECONDS))
    return raised.value.details()


def timestamp_of(text):
    stamp = timestamp(0)
    stamp.FromJsonString(text)
    return stamp


def test_a_reader_that_is_overtaken_is_told(fresh_server, connect):
    """One that does not read, amid a call."""
    server = fresh_server("--change-log-bytes", "4MB")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    start = timestamp(now_micros())
    for i in range(8):
        put(rpc, name, b"a%d" % i)
    request = types.ReadChangeStreamRequest(
        table_name=name, partition=partition(), start_time=start
    )
    call = iter(rpc.data.read_change_stream(request, timeout=PATIENCE_SECONDS))
    first = next(call)
    assert first.data_change.row_key == b"a0"
    fill(server, rpc, name, 0, lambda: server.metric("change_log_evicted_segments_total") > 10)
    seen = []
    with fails_with(StatusCode.OUT_OF_RANGE, "oldest time that can be read is"):
        for response in call:
            seen.append(response.data_change.row_key)
    # What came meanwhile came without a gap.
    keys = [key for key in seen if key]
    written = [b"a%d" % i for i in range(1, 8)] + [b"k%05d" % i for i in range(len(keys))]
    assert keys == written[: len(keys)]


def test_the_shortage_ends_with_the_promise(fresh_server, connect):
    server = fresh_server("--change-log-bytes", "4MB")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    fill(server, rpc, name, 0, lambda: "change_log_short" in reasons(server))
    update_stream(rpc, name, None)
    wait_until(lambda: "change_log_short" not in reasons(server))
    assert 'msg="no longer so" reason=change_log_short' in server.stderr()


def test_without_a_bound_all_stays(fresh_server, connect):
    server = fresh_server("--change-log-bytes", "0")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    early = token_now(rpc, name)
    for i in range(40):
        put(rpc, name, b"k%d" % i)
    time.sleep(2.5)  # rounds of maintenance
    assert server.metric("change_log_evicted_segments_total") == 0
    with Reader(rpc, name, continuation_tokens=early) as reader:
        assert [c.key for c in reader.changes(40)] == [b"k%d" % i for i in range(40)]


# --- who reads ---


def of_table(server, family, table):
    """The table's series of a family; None: there is none."""
    _, page = server.get("/metrics")
    found = re.search(rf'^trestle_{family}{{table="{table}"}} (\d+)$', page, re.MULTILINE)
    return None if found is None else int(found[1])


def test_readers_are_told_of_with_how_far_they_are_behind(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    name, other = (
        rpc.create_table(table, ["f"], change_stream_config=stream_config(days=2))
        for table in ("t", "other")
    )
    start = timestamp(now_micros())
    assert of_table(server, "table_change_stream_readers", name) is None
    hour = Duration(seconds=3600)
    with Reader(rpc, name, heartbeat_duration=hour), Reader(rpc, other, heartbeat_duration=hour):
        wait_until(lambda: server.metric("change_streams") == 2)
        time.sleep(1.2)  # who waits for changes is not behind, however long ago the last one was
        assert server.metric("change_stream_lag_seconds") < 1
        assert of_table(server, "table_change_stream_readers", name) == 1
        assert of_table(server, "table_change_stream_lag_seconds", name) == 0
        assert of_table(server, "table_change_stream_left_seconds", name) == 2 * 24 * 3600
        for i in range(40):
            put(rpc, name, b"k%d" % i)
        # One that reads one message, and no further.
        request = types.ReadChangeStreamRequest(
            table_name=name, partition=partition(), start_time=start
        )
        call = rpc.data.read_change_stream(request, timeout=PATIENCE_SECONDS)
        next(iter(call))
        wait_until(lambda: of_table(server, "table_change_stream_lag_seconds", name) >= 2)
        assert of_table(server, "table_change_stream_readers", name) == 2
        assert of_table(server, "table_change_stream_left_seconds", name) < 2 * 24 * 3600
        assert of_table(server, "table_change_stream_lag_seconds", other) == 0
        assert server.metric("change_stream_lag_seconds") >= 2
        call.cancel()
        wait_until(lambda: of_table(server, "table_change_stream_lag_seconds", name) == 0)
    wait_until(lambda: of_table(server, "table_change_stream_readers", name) is None)
    assert server.metric("change_streams") == 0
    assert of_table(server, "table_change_log_bytes", name) is not None
