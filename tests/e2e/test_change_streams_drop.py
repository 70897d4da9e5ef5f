"""DropRowRange in a table with a change stream (check 19 of the reference): the rows are gone when
the call returns; the stream is told of each that was there, with the families that it had, in front
of whatever is written to it later."""

import threading
import time

import grpc
import pytest
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.change_streams import Change, Reader, now_micros, one_token, stream_config, timestamp
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell
from harness.server import EXTERNAL

BATCH = 1000
ONGOING = "A DropRowRange operation is already ongoing"


def key_of(number):
    return b"drop/%06d" % number


def families_of(number):
    return {0: ["f"], 1: ["g"], 2: ["f", "g"]}[number % 3]


def fill(rpc, name, count):
    """Rows of one family, of the other, of both."""
    for start in range(0, count, BATCH):
        rows = [
            (key_of(number), [set_cell(family, b"q", b"0", 1000) for family in families_of(number)])
            for number in range(start, min(start + BATCH, count))
        ]
        assert all(code == 0 for code in rpc.mutate_rows(name, rows))


class Writers(threading.Thread):
    """Writes to rows under the prefix, one after the other, each value once."""

    def __init__(self, rpc, name, rows):
        super().__init__(daemon=True)
        self.rpc, self.name, self.rows = rpc, name, rows
        self.written = 0
        self.ends = threading.Event()

    def run(self):
        while not self.ends.is_set():
            self.written += 1
            key = key_of(self.written * 7919 % self.rows)
            self.rpc.mutate(self.name, key, set_cell("f", b"q", b"%d" % self.written, 1000))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self.ends.set()
        self.join()


def is_deletion(change):
    kinds = {types.Mutation.pb(mutation).WhichOneof("mutation") for mutation in change.mutations}
    assert kinds in ({"set_cell"}, {"delete_from_family"})
    return kinds == {"delete_from_family"}


class Replay:
    """Rows as the stream has them: families, each with its value."""

    def __init__(self, count):
        self.rows = {key_of(n): dict.fromkeys(families_of(n), b"0") for n in range(count)}
        self.rows[b"other"] = {"f": b"0"}
        self.deletions = []
        self.values = []
        self.watermark = 0

    def take(self, change):
        assert change.micros >= self.watermark, "a watermark was wrong"
        self.watermark = max(self.watermark, change.watermark)
        row = self.rows.setdefault(change.key, {})
        if is_deletion(change):
            families = [mutation.delete_from_family.family_name for mutation in change.mutations]
            assert families == sorted(row), change.key
            row.clear()
            self.deletions.append(change)
            return
        (mutation,) = change.mutations
        row["f"] = mutation.set_cell.value
        self.values.append(int(mutation.set_cell.value))


def read_until_caught_up(rpc, name, start_micros, replay, watermark):
    """Up to a heartbeat behind `watermark`; broken off now and then, to go on from a token."""
    token = None
    while True:
        fields = {"start_time": timestamp(start_micros)}
        if token is not None:
            fields = {"continuation_tokens": one_token(b"", b"", token)}
        with Reader(rpc, name, **fields) as reader:
            for _ in range(20000):
                event = reader.next()
                if isinstance(event, Change):
                    replay.take(event)
                    token = event.token
                    continue
                token = event.continuation_token.token
                raw = types.ReadChangeStreamResponse.Heartbeat.pb(event).estimated_low_watermark
                micros = raw.seconds * 1_000_000 + raw.nanos // 1000
                replay.watermark = max(replay.watermark, micros)
                if micros > watermark:
                    return


def expect_table(rpc, name, replay):
    there = {
        key: {cell.family: cell.value for cell in cells} for key, cells in rpc.read(name)
    }
    assert there == {key: row for key, row in replay.rows.items() if row}


def drop_beside_writers(rpc, name, count, **what):
    rpc.mutate(name, b"other", set_cell("f", b"q", b"0", 1000))
    fill(rpc, name, count)
    time.sleep(0.002)  # the stream is read from here on, by microseconds
    start = now_micros()
    with Writers(rpc, name, count) as writers:
        while writers.written < 20:
            time.sleep(0.001)
        rpc.drop_row_range(name, **what)
        dropped = writers.written
        while writers.written < dropped + 50:
            time.sleep(0.001)
    return start, writers.written


def check_19(rpc, name, count, **what):
    start, written = drop_beside_writers(rpc, name, count, **what)
    replay = Replay(count)
    read_until_caught_up(rpc, name, start, replay, now_micros())
    assert replay.values == list(range(1, written + 1))
    assert len({change.micros for change in replay.deletions}) == 1
    told = [change.key for change in replay.deletions]
    assert len(told) == len(set(told))
    assert {key_of(number) for number in range(count)} <= set(told)
    assert (b"other" in told) == ("everything" in what)
    expect_table(rpc, name, replay)


@pytest.fixture
def name(rpc, make_table):
    return make_table(["f", "g"], change_stream_config=stream_config())


def test_check_19_rows_of_a_prefix(rpc, name):
    check_19(rpc, name, 3000, prefix=b"drop/")


def test_check_19_all_rows(rpc, name):
    check_19(rpc, name, 3000, everything=True)


@pytest.mark.long
def test_check_19_a_hundred_thousand_rows(rpc, name):
    check_19(rpc, name, 100_000, prefix=b"drop/")


def test_rows_are_gone_at_once_and_another_drop_is_refused(rpc, name):
    fill(rpc, name, 3000)
    rpc.mutate(name, b"other", set_cell("f", b"q", b"0", 1000))
    rpc.drop_row_range(name, prefix=b"drop/")
    assert [key for key, _ in rpc.read(name)] == [b"other"]
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:  # as a client does that is told UNAVAILABLE
        try:
            rpc.drop_row_range(name, prefix=b"other")
            break
        except grpc.RpcError as error:
            assert error.code() == StatusCode.UNAVAILABLE
            assert error.details() == ONGOING
    assert rpc.read(name) == []


@pytest.mark.skipif(bool(EXTERNAL), reason="needs a server of its own")
def test_a_reader_that_begins_after_the_drop_is_not_told(fresh_server, connect):
    """Nor once he goes on from his token."""
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f", "g"], change_stream_config=stream_config())
    fill(rpc, name, 6000)
    rpc.drop_row_range(name, prefix=b"drop/")
    server.kill()
    server.start()
    rpc = connect(server.host)
    with Reader(rpc, name).begun() as reader:
        rpc.mutate(name, b"new", set_cell("f", b"q", b"1", 1000))
        first = reader.next_of(Change)
    assert first.key == b"new"
    with Reader(rpc, name, continuation_tokens=one_token(b"", b"", first.token)) as reader:
        rpc.mutate(name, b"new", set_cell("f", b"q", b"2", 1000))
        assert reader.next_of(Change).key == b"new"


def test_a_refusal_names_what_is_under_way(rpc, name):
    """Two at the same time: one of them at least is done, and whoever is not is told why."""
    fill(rpc, name, 20_000)
    answers = []

    def drop(prefix):
        try:
            rpc.drop_row_range(name, prefix=prefix)
            answers.append(None)
        except grpc.RpcError as error:
            answers.append((error.code(), error.details()))

    threads = [threading.Thread(target=drop, args=(b"drop/0%d" % n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None in answers
    assert set(answers) <= {None, (StatusCode.UNAVAILABLE, ONGOING)}
