"""Change streams and time: retention, clocks that go back, what garbage collection deletes. Tests
are numbered as the checks of the reference that the feature was built by."""

import pytest
from google.cloud.bigtable_v2 import types
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode
from harness.change_streams import (
    Change,
    Reader,
    USER,
    micros_of,
    now_micros,
    one_token,
    stream_config,
    timestamp,
    update_stream,
)
from harness.moved_server import DAY_SECONDS, MovedServer
from harness.rpc import Rpc, delete_row, fails_with, set_cell
from harness.server import EXTERNAL

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

HOUR_SECONDS = 3600
HOUR = HOUR_SECONDS * 1_000_000
OLDEST = "the oldest time that can be read is "
DATA_CHANGE = types.ReadChangeStreamResponse.DataChange
COLLECTION = DATA_CHANGE.Type.GARBAGE_COLLECTION


@pytest.fixture
def moved(tmp_path):
    """(a server whose clock can be moved, its stubs, a table with a stream)."""
    server = MovedServer(tmp_path)
    rpc = Rpc(server.start().host)
    yield server, rpc, rpc.create_table("t", change_stream_config=stream_config())
    rpc.close()
    server.close()


def put(rpc, name, key, value=b"v"):
    rpc.mutate(name, key, set_cell("f", b"q", value, 1000))


def keys_of(changes):
    return [change.key for change in changes]


def refused(rpc, name, code, words, **fields):
    """With which words it was."""
    with Reader(rpc, name, **fields) as reader, fails_with(code, words) as failure:
        reader.next()
    return failure.error.details()


def rfc3339(micros):
    """As the server words a time: up to the second."""
    stamp = timestamp(micros)
    return stamp.ToDatetime().strftime("%Y-%m-%dT%H:%M:%S")


def test_check_13_what_is_older_than_the_retention_is_refused(moved):
    server, rpc, name = moved
    begun = now_micros()
    put(rpc, name, b"old")
    with Reader(rpc, name, start_time=timestamp(begun)) as reader:
        (old,) = reader.changes(1)
    server.move(20 * HOUR_SECONDS)
    put(rpc, name, b"young")
    tokens = one_token(b"", b"", old.token)
    with Reader(rpc, name, continuation_tokens=tokens) as reader:
        (young,) = reader.changes(1)
    server.move(25 * HOUR_SECONDS)
    since = now_micros()
    told = [
        refused(rpc, name, StatusCode.OUT_OF_RANGE, OLDEST, continuation_tokens=tokens),
        refused(rpc, name, StatusCode.INVALID_ARGUMENT, OLDEST, start_time=timestamp(begun)),
    ]
    for words in told:
        oldest = words.partition(OLDEST)[2][: len("2026-11-29T13:39")]
        # The versions' clock, by which the server judges, may be a second ahead of the wall's.
        latest = now_micros() + HOUR + 1_000_000
        assert rfc3339(since + HOUR)[:-3] <= oldest <= rfc3339(latest)[:-3]
    put(rpc, name, b"new")
    with Reader(rpc, name, continuation_tokens=one_token(b"", b"", young.token)) as reader:
        assert keys_of(reader.changes(1)) == [b"new"]


def test_check_13_a_longer_retention_brings_nothing_back(moved):
    server, rpc, name = moved
    update_stream(rpc, name, stream_config(7))
    begun = now_micros()
    put(rpc, name, b"old")
    server.move(2 * DAY_SECONDS)
    put(rpc, name, b"young")
    with Reader(rpc, name, start_time=timestamp(begun)) as reader:
        old, _ = reader.changes(2)
    update_stream(rpc, name, stream_config(1))
    tokens = one_token(b"", b"", old.token)
    for days in (1, 7):
        update_stream(rpc, name, stream_config(days))
        refused(rpc, name, StatusCode.OUT_OF_RANGE, "", continuation_tokens=tokens)
        refused(rpc, name, StatusCode.INVALID_ARGUMENT, "", start_time=timestamp(begun))
    young = timestamp(now_micros() + (2 * DAY_SECONDS - HOUR_SECONDS) * 1_000_000)
    with Reader(rpc, name, start_time=young) as reader:
        assert keys_of(reader.changes(1)) == [b"young"]


def last_watermark(reader):
    beat = types.ReadChangeStreamResponse.Heartbeat
    return micros_of(beat.pb(reader.next_of(beat)).estimated_low_watermark)


def test_check_21_a_clock_that_is_set_back(moved):
    server, rpc, name = moved
    begun = now_micros()
    put(rpc, name, b"k", b"0")
    before = now_micros()
    put(rpc, name, b"k", b"1")
    with Reader(rpc, name, start_time=timestamp(begun)) as reader:
        changes = reader.changes(2)
        watermarks = [last_watermark(reader)]
        server.move(-600)
        for i in range(2, 5):
            put(rpc, name, b"k", b"%d" % i)
        changes += reader.changes(3)
        watermarks.append(last_watermark(reader))
    rpc.close()
    server.stop()
    rpc = Rpc(server.start().host)
    put(rpc, name, b"k", b"5")
    with Reader(rpc, name, start_time=timestamp(before)) as reader:
        after = reader.changes(5)
        watermarks.append(last_watermark(reader))
    rpc.close()
    assert [change.micros for change in after[:4]] == [change.micros for change in changes[1:]]
    times = [change.micros for change in changes + after[4:]]
    assert times == sorted(set(times))
    assert watermarks == sorted(watermarks)
    values = [change.mutations[0].set_cell.value for change in changes + after[4:]]
    assert values == [b"%d" % i for i in range(6)]


# --- garbage collection ---


@pytest.fixture
def collecting(fresh_server, connect):
    """(stubs, a table whose stream tells of what two rules condemn, collected each second)."""
    rpc = connect(fresh_server("--gc-interval", "1s").host)
    families = {"v": {"max_num_versions": 1}, "a": {"max_age": Duration(seconds=1)}, "f": {}}
    return rpc, rpc.create_table("t", families, change_stream_config=stream_config())


def ranges_of(change):
    """[(family, qualifier, first time, time at which it ends)] of a collection."""
    assert change.cluster == ""
    found = []
    for mutation in change.mutations:
        column = mutation.delete_from_column
        assert types.Mutation.pb(mutation).WhichOneof("mutation") == "delete_from_column"
        times = column.time_range
        found.append((column.family_name, column.column_qualifier,
                      times.start_timestamp_micros, times.end_timestamp_micros))  # fmt: skip
    return found


def of_type(kind, reader):
    """The next such change, and those before it."""
    before = []
    while (change := reader.next_of(Change)).type != kind:
        before.append(change)
    return change, before


def test_check_18_what_versions_condemn_is_told_once(collecting):
    rpc, name = collecting
    with Reader(rpc, name).begun() as reader:
        rpc.mutate(name, b"k", set_cell("v", b"q", b"old", 1000))
        rpc.mutate(name, b"k", set_cell("v", b"q", b"new", 5000))
        collection, before = of_type(COLLECTION, reader)
        assert [change.type for change in before] == [USER, USER]
        ((family, qualifier, start, end),) = ranges_of(collection)
        assert (family, qualifier) == ("v", b"q")
        assert start <= 1000 < end <= 5000
        assert collection.key == b"k" and collection.micros > before[-1].micros
        rpc.mutate(name, b"k", set_cell("v", b"q", b"newest", 9000))
        collection, _ = of_type(COLLECTION, reader)
        ((_, _, start, end),) = ranges_of(collection)
        assert start <= 5000 < end <= 9000
    assert [cell.value for cell in rpc.read(name)[0][1]] == [b"newest"]


def test_check_18_what_age_condemns_is_told(collecting):
    rpc, name = collecting
    with Reader(rpc, name).begun() as reader:
        written = now_micros() // 1000 * 1000
        rpc.mutate(name, b"k", set_cell("a", b"q", b"v", written))
        collection, before = of_type(COLLECTION, reader)
        ((family, qualifier, start, end),) = ranges_of(collection)
        assert (family, qualifier, start <= written < (end or written + 1)) == ("a", b"q", True)
        assert [change.type for change in before] == [USER]
    assert rpc.read(name) == []


def test_check_18_what_a_user_deleted_is_not_collected(collecting):
    rpc, name = collecting
    with Reader(rpc, name).begun() as reader:
        rpc.mutate(name, b"k", set_cell("a", b"q", b"v", now_micros() // 1000 * 1000))
        rpc.mutate(name, b"k", delete_row())
        rpc.mutate(name, b"z", set_cell("a", b"q", b"v", 1000))  # too old from the first
        collection, before = of_type(COLLECTION, reader)
        assert collection.key == b"z"
        assert keys_of(before) == [b"k", b"k", b"z"]
