"""Change streams, by raw stubs. Tests are numbered as the checks of the reference that the feature
was built by."""

import contextlib
import queue
import random
import re
import signal
import threading
import time

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import StatusCode
from harness.change_streams import (
    Change,
    DAY,
    MIB,
    MISALIGNED,
    Reader,
    USER,
    Writers,
    bounds,
    micros_of,
    now_micros,
    one_token,
    partition,
    partitions_of,
    stream_config,
    timestamp,
    tokens_of,
    update_stream,
)
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest, b64
from harness.rpc import CHANNEL_OPTIONS, delete_row, fails_with, set_cell
from harness.server import run_trestle
from harness.tail import wait_for

@pytest.fixture
def make_streamed(rpc, make_table):
    names = []

    def make(*arguments, **fields):
        names.append(make_table(*arguments, change_stream_config=stream_config(), **fields))
        return names[-1]

    yield make
    for name in names:
        with contextlib.suppress(grpc.RpcError):
            update_stream(rpc, name, None)


def put(rpc, name, key, value=b"v"):
    rpc.mutate(name, key, set_cell("f", b"q", value, 1000))


def keys_of(changes):
    return [change.key for change in changes]


# --- partitions ---


def test_check_1_the_initial_partitions_are_the_tablets(rpc, make_streamed):
    name = make_streamed(splits=[b"b", b"q"])
    assert partitions_of(rpc, name) == [(b"", b"b"), (b"b", b"q"), (b"q", b"")]


# --- what is told ---


def test_check_2_a_request_is_one_change_in_its_order(rpc, make_streamed):
    name = make_streamed()
    with Reader(rpc, name, start_time=timestamp(now_micros())) as reader:
        before = now_micros()
        rpc.mutate(
            name, b"k",
            set_cell("f", b"q", b"now"), set_cell("f", b"q", b"then", 1000),
            types.Mutation(delete_from_column={
                "family_name": "f", "column_qualifier": b"d",
                "time_range": {"end_timestamp_micros": 5000},
            }),
            types.Mutation(delete_from_family={"family_name": "g"}),
        )  # fmt: skip
        after = now_micros()
        change = reader.next_of(Change)
    now, then, column, family = change.mutations
    assert (change.type, change.key, change.cluster) == (USER, b"k", "trestle")
    assert before - 1000 <= change.micros <= after + 1000
    assert (now.set_cell.value, now.set_cell.timestamp_micros % 1000) == (b"now", 0)
    assert before - 1000 <= now.set_cell.timestamp_micros <= after + 1000
    assert (then.set_cell.value, then.set_cell.timestamp_micros) == (b"then", 1000)
    assert column.delete_from_column.column_qualifier == b"d"
    assert column.delete_from_column.time_range.start_timestamp_micros == 0
    assert column.delete_from_column.time_range.end_timestamp_micros == 5000
    assert family.delete_from_family.family_name == "g"
    assert change.token
    assert change.watermark >= change.micros


def test_a_row_twice_in_a_request_is_told_in_order(rpc, make_streamed):
    """Its changes have one commit time; a reader that knows a change by row, time and tiebreaker,
    and puts them in order by these, lost some."""
    name = make_streamed()
    with Reader(rpc, name).begun() as reader:
        entries = [(b"k", [set_cell("f", b"q", b"%d" % n, 1000)]) for n in range(5)]
        assert set(rpc.mutate_rows(name, entries)) == {0}
        changes = reader.changes(5)
    assert [c.mutations[0].set_cell.value for c in changes] == [b"%d" % n for n in range(5)]
    places = [(c.micros, c.tiebreaker) for c in changes]
    assert places == sorted(set(places))


def test_check_3_a_deletion_of_a_row_names_the_families_that_it_has(rpc, make_streamed):
    name = make_streamed(families=("f", "g", "h"))
    with Reader(rpc, name).begun() as reader:
        rpc.mutate(name, b"k", set_cell("f", b"q", b"v"), set_cell("h", b"q", b"v"))
        rpc.mutate(name, b"absent", delete_row())
        rpc.mutate(name, b"k", delete_row())
        put(rpc, name, b"next")
        written, deleted, after = reader.changes(3)
    assert written.key == deleted.key == b"k"
    assert sorted(m.delete_from_family.family_name for m in deleted.mutations) == ["f", "h"]
    assert after.key == b"next"


def test_check_4_conditions_increments_and_aggregates(rpc, make_streamed):
    kinds = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
    name = make_streamed(column_families={
        "f": {}, "s": {"value_type": {"aggregate_type": {"input_type": kinds, "sum": {}}}},
    }, families=())  # fmt: skip
    everything = types.RowFilter(pass_all_filter=True)

    def check(key, yes, no):
        rpc.data.check_and_mutate_row(types.CheckAndMutateRowRequest(
            table_name=name, row_key=key, predicate_filter=everything,
            true_mutations=yes, false_mutations=no,
        ), timeout=PATIENCE_SECONDS)  # fmt: skip

    def add(value, mutation="add_to_cell"):
        fields = {
            "family_name": "s", "column_qualifier": {"raw_value": b"n"},
            "timestamp": {"raw_timestamp_micros": 1000},
        }  # fmt: skip
        if value is not None:
            fields["input"] = value
        rpc.mutate(name, b"sum", types.Mutation({mutation: fields}))

    with Reader(rpc, name).begun() as reader:
        check(b"c", [], [set_cell("f", b"q", b"no", 1000)])
        check(b"c", [set_cell("f", b"q", b"yes", 1000)], [])
        check(b"c", [], [set_cell("f", b"q", b"never", 1000)])
        rpc.data.read_modify_write_row(types.ReadModifyWriteRowRequest(
            table_name=name, row_key=b"r", rules=[
                {"family_name": "f", "column_qualifier": b"a", "append_value": b"xyz"},
                {"family_name": "f", "column_qualifier": b"i", "increment_amount": 7},
            ],
        ), timeout=PATIENCE_SECONDS)  # fmt: skip
        add({"int_value": 5})
        add(None)
        add({"bytes_value": (7).to_bytes(8, "big")}, "merge_to_cell")
        changes = reader.changes(6)
    assert [c.mutations[0].set_cell.value for c in changes[:2]] == [b"no", b"yes"]
    assert changes[2].key == b"r"
    cells = {m.set_cell.column_qualifier: m.set_cell for m in changes[2].mutations}
    assert (cells[b"a"].value, cells[b"i"].value) == (b"xyz", (7).to_bytes(8, "big"))
    total = 0
    for change in changes[3:]:
        (mutation,) = change.mutations
        raw = types.Mutation.pb(mutation)
        told = getattr(raw, raw.WhichOneof("mutation"))
        assert told.column_qualifier.WhichOneof("kind") == "raw_value"
        assert told.timestamp.WhichOneof("kind") == "raw_timestamp_micros"
        if raw.WhichOneof("mutation") == "add_to_cell":
            assert told.input.WhichOneof("kind") == "int_value"
            total += told.input.int_value
        else:
            assert told.input.WhichOneof("kind") == "raw_value"
            total += int.from_bytes(told.input.raw_value, "big")
    assert total == 5 + 7


@pytest.mark.parametrize("sizes", [(100,), (30, 30, 30)])
def test_check_5_large_values_come_in_pieces(rpc, make_streamed, sizes):
    name = make_streamed()
    values = [bytes([65 + i]) * (size * MIB - i) for i, size in enumerate(sizes)]
    with Reader(rpc, name).begun() as reader:
        rpc.mutate(
            name, b"k",
            *(set_cell("f", b"q%d" % i, value, 1000) for i, value in enumerate(values)),
            types.Mutation(delete_from_family={"family_name": "g"}),
        )  # fmt: skip
        put(rpc, name, b"next")
        change, following = reader.changes(2)
    assert [m.set_cell.value for m in change.mutations[:-1]] == values
    assert change.mutations[-1].delete_from_family.family_name == "g"
    assert change.pieces >= sum(sizes)
    assert following.key == b"next"


def read_by_many(host, request, connections, each):
    """Readers that ask, and read nothing: on connections that they share."""
    options = [*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(host, options) for _ in range(connections)]
    methods = [
        channel.unary_stream(
            "/google.bigtable.v2.Bigtable/ReadChangeStream",
            types.ReadChangeStreamRequest.serialize,
            types.ReadChangeStreamResponse.deserialize,
        )
        for channel in channels
    ]
    calls = [method(request, timeout=PATIENCE_SECONDS) for method in methods for _ in range(each)]
    return channels, calls


def test_check_5_readers_that_do_not_read_hold_little(fresh_server, connect):
    """A thousand readers of large values take less than 100 MB, without --memory."""
    server = fresh_server("--cache", "8MB", "--write-buffer", "8MB")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    start = timestamp(now_micros())
    put(rpc, name, b"k", b"x" * MIB)
    put(rpc, name, b"l", b"x" * (30 * MIB))
    before = resident(server)
    request = types.ReadChangeStreamRequest(
        table_name=name, partition=partition(), start_time=start
    )
    channels, calls = read_by_many(server.host, request, 10, 100)
    wait_for(lambda: metric(server, "change_streams") == 1000, "all readers")
    wait_for(lambda: metric(server, "change_stream_bytes_total") > 1000 * 32_000, "their answers")
    grown = resident(server) - before
    for call in calls:
        call.cancel()
    for channel in channels:
        channel.close()
    assert grown < 100_000_000


def metric(server, name):
    _, page = server.get("/metrics")
    return float(re.search(rf"^trestle_{name} (\S+)$", page, re.MULTILINE)[1])


def resident(server):
    with open(f"/proc/{server.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


# --- going on ---


def test_check_8_any_token_goes_on_behind_its_change(rpc, make_streamed):
    name = make_streamed(splits=[b"m"])
    chosen = random.Random(8)
    token = a_token(rpc, name, b"", b"m")
    written = []
    for i in range(60):
        key = chosen.choice([b"a", b"b", b"x", b"y"])
        value = b"%d" % i if i % 20 else b"%d " % i * MIB
        put(rpc, name, key, value)
        if key < b"m":
            written.append(value)
    all_of = one_token(b"", b"m", token)
    with Reader(rpc, name, b"", b"m", continuation_tokens=all_of) as reader:
        changes = reader.changes(len(written))
    assert [c.mutations[0].set_cell.value for c in changes] == written
    for place in chosen.sample(range(len(changes) - 1), 12):
        tokens = one_token(b"", b"m", changes[place].token)
        with Reader(rpc, name, b"", b"m", continuation_tokens=tokens) as reader:
            rest = reader.changes(len(changes) - place - 1)
        assert [c.token for c in rest] == [c.token for c in changes[place + 1 :]]


# --- splits and merges ---


def is_inside(part, partition):
    return part[0] >= partition[0] and (
        partition[1] == b"" or (part[1] != b"" and part[1] <= partition[1])
    )


class Follower:
    """Follows all partitions of a table through splits and merges, as Google's connectors do. Who
    is not there when a partition merges hears of a later one, when he comes: so tokens wait for
    whatever partition they come to tile with others."""

    def __init__(self, rpc, name, start_time):
        self.rpc, self.name = rpc, name
        self.got = {}
        self.wanted = set()  # partitions that were heard of
        self.waiting = []  # start, end, token
        self.closes = []
        self.open = {}
        for start, end in partitions_of(rpc, name):
            self.open[start, end] = Reader(rpc, name, start, end, start_time=start_time)

    def take(self, change):
        value = int(change.mutations[0].set_cell.value)
        assert value == self.got.get(change.key, -1) + 1, "lost, or twice, or out of order"
        self.got[change.key] = value

    def closed(self, partition, close):
        assert (close.status.code, close.status.message) == (11, MISALIGNED)
        newer = [bounds(p) for p in close.new_partitions]
        parts = [bounds(t.partition) for t in close.continuation_tokens]
        assert (parts[0][0], parts[-1][1]) == partition
        assert all(a[1] == b[0] for a, b in zip(parts, parts[1:], strict=False))
        self.closes.append((partition, newer))
        for (start, end), token in zip(parts, close.continuation_tokens, strict=True):
            self.waiting.append((start, end, token.token))
        self.wanted.update(newer)
        for wanted in list(self.wanted):
            self.open_if_whole(wanted)

    def open_if_whole(self, partition):
        parts = sorted(part for part in self.waiting if is_inside(part, partition))
        tiles = (
            parts
            and (parts[0][0], parts[-1][1]) == partition
            and all(a[1] == b[0] for a, b in zip(parts, parts[1:], strict=False))
        )
        if not tiles:
            return
        self.wanted.remove(partition)
        self.waiting = [part for part in self.waiting if part not in parts]
        tokens = tokens_of(*reversed(parts))
        self.open[partition] = Reader(
            self.rpc, self.name, *partition, continuation_tokens=tokens
        )

    def step(self):
        for partition, reader in list(self.open.items()):
            with contextlib.suppress(queue.Empty):
                while True:
                    event = reader.events.get(timeout=0.01)
                    if isinstance(event, Exception):
                        raise event
                    if isinstance(event, Change):
                        self.take(event)
                    elif isinstance(event, types.ReadChangeStreamResponse.CloseStream):
                        assert reader.events.get(timeout=PATIENCE_SECONDS) is None
                        del self.open[partition]
                        self.closed(partition, event)
                        break

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, (self.open.keys(), self.waiting, self.closes)
            self.step()

    def close(self):
        for reader in self.open.values():
            reader.__exit__()


@pytest.mark.long
def test_checks_9_and_10_partitions_split_and_merge(fresh_server, connect):
    """Under writes that split the tablets, and then none, so that they merge again."""
    server = fresh_server("--split-load", "100", "--merge-after", "1s")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    keys = [b"%02d" % i for i in range(100)]
    follower = Follower(rpc, name, timestamp(now_micros()))
    try:
        with Writers(rpc, name, keys) as writers:
            follower.until(lambda: len(follower.open) >= 3)
        last = {key: count - 1 for key, count in writers.written.items()}
        follower.until(lambda: follower.got == last)
        splits = [close for close in follower.closes if len(close[1]) > 1]
        assert splits
        follower.until(lambda: list(follower.open) == [(b"", b"")])
        merges = [close for close in follower.closes if len(close[1]) == 1]
        assert len(merges) >= 3
        assert follower.got == last
        put(rpc, name, b"00", b"%d" % (last[b"00"] + 1))
        follower.until(lambda: follower.got[b"00"] == last[b"00"] + 1)
    finally:
        follower.close()


def test_check_10_a_merged_stream_goes_on_after_a_restart(fresh_server, connect):
    """Three readers stand at different places when their partitions merge."""
    server = fresh_server("--merge-after", "1s")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], [b"h", b"p"], change_stream_config=stream_config())
    ranges = [(b"", b"h"), (b"h", b"p"), (b"p", b"")]
    start = timestamp(now_micros())
    for i in range(9):
        for key in (b"a", b"k", b"z"):
            put(rpc, name, key, b"%d" % i)
    tokens, expected = [], {}
    for place, (key, part) in enumerate(zip((b"a", b"k", b"z"), ranges, strict=True)):
        with Reader(rpc, name, *part, start_time=start) as reader:
            changes = reader.changes(9)
        tokens.append((*part, changes[3 * place].token))
        expected[key] = [b"%d" % i for i in range(3 * place + 1, 9)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while partitions_of(rpc, name) != [(b"", b"")]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    merged = []
    for part in tokens:
        with Reader(rpc, name, *part[:2], continuation_tokens=one_token(*part)) as reader:
            _, close = reader.rest()
        assert [bounds(p) for p in close.new_partitions] == [(b"", b"")]
        (token,) = close.continuation_tokens
        assert bounds(token.partition) == part[:2]
        merged.append((*part[:2], token.token))
    random.Random(10).shuffle(merged)
    count = sum(map(len, expected.values()))
    with Reader(rpc, name, continuation_tokens=tokens_of(*merged)) as reader:
        changes = reader.changes(count)
    for key, values in expected.items():
        told = [c.mutations[0].set_cell.value for c in changes if c.key == key]
        assert told == values
    server.kill()
    server.start()
    rpc = connect(server.host)
    after_first = one_token(b"", b"", changes[0].token)
    with Reader(rpc, name, continuation_tokens=after_first) as reader:
        again = reader.changes(count - 1)
    assert [(c.key, c.token) for c in again] == [(c.key, c.token) for c in changes[1:]]


# --- what is refused ---


def refused(rpc, name, code, text="", **fields):
    fields.setdefault("partition", partition())
    request = types.ReadChangeStreamRequest(table_name=name, **fields)
    with fails_with(code, text):
        for response in rpc.data.read_change_stream(request, timeout=PATIENCE_SECONDS):
            pytest.fail(f"got {response}")


def a_token(rpc, name, start=b"", end=b""):
    with Reader(rpc, name, start, end, heartbeat_duration=Duration(nanos=100_000_000)) as reader:
        beat = reader.next_of(types.ReadChangeStreamResponse.Heartbeat)
    assert bounds(beat.continuation_token.partition) == (start, end)
    return beat.continuation_token.token


def test_check_11_tokens_must_tile_the_partition(rpc, make_streamed):
    name = make_streamed(splits=[b"c", b"m"])
    invalid = StatusCode.INVALID_ARGUMENT
    a, b = a_token(rpc, name, b"", b"c"), a_token(rpc, name, b"c", b"m")
    whole = partition(b"", b"m")
    for parts in (
        [(b"", b"c", a)],
        [(b"", b"c", a), (b"c", b"m", b), (b"c", b"m", b)],
        [(b"c", b"m", b)],
    ):
        refused(rpc, name, invalid, partition=whole, continuation_tokens=tokens_of(*parts))
    refused(rpc, name, invalid, partition=partition(b"", b"c\0"),
            continuation_tokens=one_token(b"", b"c", a))  # fmt: skip
    refused(rpc, name, invalid, partition=partition(b"", b"c\0"),
            continuation_tokens=one_token(b"", b"c\0", a))  # fmt: skip
    refused(rpc, name, invalid, partition=whole, continuation_tokens={"tokens": []})
    both = tokens_of((b"c", b"m", b), (b"", b"c", a))
    with Reader(rpc, name, b"", b"m", continuation_tokens=both) as reader:
        changes, close = reader.rest()
    assert changes == []
    assert (close.status.code, close.status.message) == (11, MISALIGNED)
    assert [bounds(p) for p in close.new_partitions] == [(b"", b"c"), (b"c", b"m")]
    assert [bounds(t.partition) for t in close.continuation_tokens] == [
        (b"", b"c"), (b"c", b"m"),
    ]  # fmt: skip


def test_check_12_tokens_of_others_are_refused(rpc, make_streamed):
    name, other = make_streamed(), make_streamed()
    token = a_token(rpc, name)
    flipped = token[:9] + ("A" if token[9] != "A" else "B") + token[10:]
    update_stream(rpc, other, None)
    update_stream(rpc, other, stream_config())
    for wrong in (flipped, "", "A" * MIB, "no token", token + "A", token[:-1]):
        refused(rpc, name, StatusCode.INVALID_ARGUMENT,
                continuation_tokens=one_token(b"", b"", wrong))  # fmt: skip
    refused(rpc, other, StatusCode.INVALID_ARGUMENT,
            continuation_tokens=one_token(b"", b"", token))  # fmt: skip
    update_stream(rpc, name, None)
    update_stream(rpc, name, stream_config())
    refused(rpc, name, StatusCode.INVALID_ARGUMENT,
            continuation_tokens=one_token(b"", b"", token))  # fmt: skip


def test_a_config_of_nothing_is_a_mistake_and_not_off(rpc, make_streamed):
    """It gave up all that the stream had kept, where somebody had forgotten a field."""
    with fails_with(StatusCode.INVALID_ARGUMENT, "retention_period must be 1 to 7 days"):
        rpc.create_table("none", ["f"], change_stream_config=admin_types.ChangeStreamConfig())
    name = make_streamed()
    put(rpc, name, b"k")
    token = a_token(rpc, name)
    for path in ("change_stream_config", "change_stream_config.retention_period"):
        with fails_with(StatusCode.INVALID_ARGUMENT, "retention_period must be 1 to 7 days"):
            update_stream(rpc, name, admin_types.ChangeStreamConfig(), path)
    with Reader(rpc, name, continuation_tokens=one_token(b"", b"", token)):
        pass
    assert "change_stream_config" in rpc.get_table(name)


def test_check_13_retention_is_one_to_seven_days(rpc, make_table):
    name = make_table()
    for seconds in (DAY - 60, 7 * DAY + 1):
        with fails_with(StatusCode.INVALID_ARGUMENT, "retention_period must be 1 to 7 days"):
            update_stream(rpc, name, stream_config(0, seconds))
    path = "change_stream_config.retention_period"
    for seconds in (DAY, 70 * 3600, 7 * DAY):
        update_stream(rpc, name, stream_config(0, seconds), path)
        told = rpc.get_table(name).change_stream_config.retention_period
        assert told.total_seconds() == seconds
    update_stream(rpc, name, None)
    assert "change_stream_config" not in rpc.get_table(name)


def test_check_14_both_times_are_inclusive(rpc, make_streamed):
    name = make_streamed()
    start = now_micros()
    for i in range(6):
        put(rpc, name, b"k%d" % i)
    with Reader(rpc, name, start_time=timestamp(start)) as reader:
        changes = reader.changes(6)
    times = [change.micros for change in changes]
    assert times == sorted(set(times))
    for first, last in ((1, 4), (2, 2), (0, 5)):
        with Reader(
            rpc, name, start_time=timestamp(times[first]), end_time=timestamp(times[last])
        ) as reader:
            told, close = reader.rest()
        assert [c.micros for c in told] == times[first : last + 1]
        assert (close.status.code, list(close.continuation_tokens)) == (0, [])
        assert list(close.new_partitions) == []
    with Reader(
        rpc, name, start_time=timestamp(times[3]), end_time=timestamp(times[3] - 1)
    ) as reader:
        told, close = reader.rest()
    assert (told, close.status.code) == ([], 0)
    with Reader(rpc, name, end_time=timestamp(now_micros() + 1_500_000)) as reader:
        put(rpc, name, b"last")
        told, close = reader.rest()
    assert (keys_of(told), close.status.code) == ([b"last"], 0)


def test_check_15_clocks_that_are_ahead(rpc, make_streamed):
    name = make_streamed()
    with Reader(rpc, name, start_time=timestamp(now_micros() + 2_000_000)) as reader:
        time.sleep(0.1)
        put(rpc, name, b"k")
        assert reader.changes(1)[0].key == b"k"
    refused(rpc, name, StatusCode.INVALID_ARGUMENT, "future",
            start_time=timestamp(now_micros() + 3600 * 1_000_000))  # fmt: skip
    refused(rpc, name, StatusCode.INVALID_ARGUMENT, "oldest time",
            start_time=timestamp(now_micros() - 60 * 1_000_000))  # fmt: skip


def test_check_16_other_forms_and_tables_are_refused(rpc, make_streamed, make_table):
    name = make_streamed()
    form = "partition.row_range must be the form of [start_key, end_key)"
    invalid = StatusCode.INVALID_ARGUMENT
    for row_range in (
        {}, {"start_key_closed": b""}, {"end_key_open": b""},
        {"start_key_open": b"", "end_key_open": b""},
        {"start_key_closed": b"", "end_key_closed": b""},
    ):  # fmt: skip
        refused(rpc, name, invalid, form, partition={"row_range": row_range})
    refused(rpc, name, invalid, form, partition={})
    refused(rpc, name, invalid, partition=partition(b"b", b"a"))
    refused(rpc, name, invalid, heartbeat_duration=Duration())
    refused(rpc, name, invalid, heartbeat_duration=Duration(seconds=-1))
    refused(rpc, make_table(), StatusCode.FAILED_PRECONDITION, "not enabled")
    refused(rpc, name + "absent", StatusCode.NOT_FOUND, name + "absent")
    refused(rpc, name, StatusCode.NOT_FOUND, app_profile_id="absent")
    with fails_with(StatusCode.FAILED_PRECONDITION):
        partitions_of(rpc, make_table())
    with fails_with(StatusCode.NOT_FOUND):
        partitions_of(rpc, name, app_profile_id="absent")


def test_check_17_heartbeats_of_an_idle_partition(rpc, make_streamed):
    name = make_streamed(splits=[b"m"])
    beats = []
    with Reader(rpc, name, b"m", b"") as reader:
        for i in range(4):
            put(rpc, name, b"busy%d" % i)
            beat = reader.next_of(types.ReadChangeStreamResponse.Heartbeat)
            raw = types.ReadChangeStreamResponse.Heartbeat.pb(beat)
            beats.append((beat.continuation_token.token, micros_of(raw.estimated_low_watermark)))
    watermarks = [watermark for _, watermark in beats]
    assert watermarks == sorted(watermarks)
    assert now_micros() - watermarks[-1] < 30 * 1_000_000
    assert len({token for token, _ in beats}) == len(beats)
    put(rpc, name, b"z")
    tokens = one_token(b"m", b"", beats[-1][0])
    with Reader(rpc, name, b"m", b"", continuation_tokens=tokens) as reader:
        assert reader.changes(1)[0].key == b"z"


def test_check_20_a_stream_that_is_switched_off_ends_its_readers(rpc, make_streamed):
    name = make_streamed()
    start = timestamp(now_micros())
    put(rpc, name, b"old")
    token = a_token(rpc, name)
    with fails_with(StatusCode.FAILED_PRECONDITION, "change stream"):
        rpc.delete_table(name)
    with contextlib.ExitStack() as stack:
        readers = [
            stack.enter_context(Reader(rpc, name, heartbeat_duration=Duration(seconds=600)))
            for _ in range(3)
        ]
        time.sleep(0.2)
        update_stream(rpc, name, None)
        for reader in readers:
            with fails_with(StatusCode.FAILED_PRECONDITION):
                reader.next()
    assert "change_stream_config" not in rpc.get_table(name)
    update_stream(rpc, name, stream_config())
    refused(rpc, name, StatusCode.INVALID_ARGUMENT,
            continuation_tokens=one_token(b"", b"", token))  # fmt: skip
    refused(rpc, name, StatusCode.INVALID_ARGUMENT, start_time=start)
    with Reader(rpc, name).begun() as reader:
        put(rpc, name, b"new")
        assert keys_of(reader.changes(1)) == [b"new"]
    update_stream(rpc, name, None)
    rpc.delete_table(name)


def test_check_20_an_instance_with_a_stream_is_not_deleted(rpc, admin, new_instance):
    """As a table with one: DeleteInstance is for good, and its readers would not know."""
    instance = new_instance("c")
    name = rpc.create_table("t", ["f"], instance=instance, change_stream_config=stream_config())
    put(rpc, name, b"k")
    with pytest.raises(exceptions.FailedPrecondition, match="has a change stream"):
        admin.instances.delete_instance(name=instance)
    assert rpc.get_table(name).name == name
    update_stream(rpc, name, None)


# --- beside the streams ---


def test_check_16_app_profiles_name_one_cluster(rpc, admin, new_instance):
    instance = new_instance("ca", "cb")
    name = rpc.create_table("t", ["f"], instance=instance, change_stream_config=stream_config())

    def profile(profile_id, **fields):
        request = {
            "parent": instance, "app_profile_id": profile_id, "app_profile": fields,
            "ignore_warnings": True,
        }  # fmt: skip
        admin.instances.create_app_profile(request)
        return profile_id

    routing = {"single_cluster_routing": {"cluster_id": "cb"}}
    boost = profile("boost", **routing, data_boost_isolation_read_only={
        "compute_billing_owner": "HOST_PAYS"
    })  # fmt: skip
    single = profile("single", **routing)
    anywhere = profile("any", multi_cluster_routing_use_any={})
    for refused_id in ("", "default", boost, anywhere):
        refused(rpc, name, StatusCode.FAILED_PRECONDITION, app_profile_id=refused_id)
        with fails_with(StatusCode.FAILED_PRECONDITION):
            partitions_of(rpc, name, app_profile_id=refused_id)
    assert partitions_of(rpc, name, app_profile_id=single) == [(b"", b"")]
    with Reader(rpc, name, app_profile_id=single, start_time=timestamp(now_micros())) as reader:
        put(rpc, name, b"k")
        assert reader.changes(1)[0].cluster == "cb"
    update_stream(rpc, name, None)


@pytest.mark.parametrize("way", ["HTTP/1.1", "HTTP/2"])
def test_by_rest(server, rpc, make_streamed, way):
    name = make_streamed(splits=[b"m"])
    rest = Rest(server.host, way)
    path = f"/v2/{name}"
    parts = rest.call("POST", f"{path}:generateInitialChangeStreamPartitions", {})
    assert [part["partition"]["rowRange"] for part in parts] == [
        {"startKeyClosed": "", "endKeyOpen": b64(b"m")},
        {"startKeyClosed": b64(b"m"), "endKeyOpen": ""},
    ]
    start = timestamp(now_micros())
    put(rpc, name, b"k", b"value")
    request = {
        **parts[0], "startTime": start.ToJsonString(),
        "endTime": timestamp(now_micros() + 500_000).ToJsonString(),
    }  # fmt: skip
    change, close = rest.call("POST", f"{path}:readChangeStream", request)
    assert change["dataChange"]["rowKey"] == b64(b"k")
    (chunk,) = change["dataChange"]["chunks"]
    assert chunk["mutation"]["setCell"]["value"] == b64(b"value")
    assert close == {"closeStream": {"status": {}}}


def test_a_reader_is_counted_and_listed_and_not_slow(fresh_server, connect):
    server = fresh_server("--slow-request", "1s")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    with Reader(rpc, name, start_time=timestamp(now_micros())) as reader:
        put(rpc, name, b"k")
        reader.changes(1)
        reader.next_of(types.ReadChangeStreamResponse.Heartbeat)
        reader.next_of(types.ReadChangeStreamResponse.Heartbeat)
        assert server.metric("change_streams") == 1
        assert server.metric("change_stream_records_total") == 1
        assert server.metric("change_stream_bytes_total") > 0
        listed = run_trestle("status", "--endpoint", server.host, "--running")
        assert "ReadChangeStream" in listed.stdout
        assert "wait_for_changes" in listed.stdout
    deadline = time.monotonic() + PATIENCE_SECONDS
    while server.metric("change_streams") > 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert server.metric("slow_requests_total") == 0


def test_a_server_that_stops_ends_its_readers(fresh_server, connect):
    server = fresh_server("--drain-timeout", "1d")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    start, hour = timestamp(now_micros()), Duration(seconds=3600)
    with Reader(rpc, name, start_time=start, heartbeat_duration=hour) as reader:
        put(rpc, name, b"k")
        reader.changes(1)
        server.signal(signal.SIGTERM)
        with fails_with(StatusCode.UNAVAILABLE):
            reader.next()
    rpc.close()
    assert server.wait() == 0
