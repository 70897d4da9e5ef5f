"""Change streams over kills (check 7 of the reference): what was acknowledged is told once, in each
row's order, whatever becomes of the server and of the tablets meanwhile; and what was told, done
again, comes to what the table has."""

import random
import threading
import time

import grpc
import pytest
from google.cloud.bigtable_v2 import types
from harness.change_streams import (
    Change,
    Reader,
    one_token,
    partitions_of,
    stream_config,
    tokens_of,
)
from harness.rpc import Rpc, delete_row, set_cell
from harness.server import EXTERNAL

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
WRITERS = 4
ROWS = 12  # of each writer
SPLITS = (b"w1", b"w2/5")


def family_deletion():
    return types.Mutation(delete_from_family={"family_name": "g"})


def column_deletion():
    return types.Mutation(delete_from_column={"family_name": "f", "column_qualifier": b"other"})


class Writer(threading.Thread):
    """Writes to rows of its own, each request with a number of its own: `asked` by row, in order,
    of each the number and whether it was acknowledged."""

    def __init__(self, server, name, number, seed):
        super().__init__(daemon=True)
        self.server, self.name, self.number = server, name, number
        self.random = random.Random(seed)
        self.asked = {}
        self.count = 0
        self.ends = threading.Event()

    def mutations(self, number):
        mutations = [set_cell("f", b"q", b"%d" % number, 1000)]
        what = self.random.randrange(6)
        if what == 0:
            mutations.insert(0, delete_row())
        elif what == 1:
            mutations.insert(0, family_deletion())
        elif what == 2:
            when = 1000 * self.random.randrange(1, 9)
            mutations.append(set_cell("g", b"q", b"%d" % number, when))
        elif what == 3:
            mutations += [set_cell("f", b"other", b"x"), column_deletion()]
        return mutations

    def run(self):
        rpc = Rpc(self.server.host)
        while not self.ends.is_set():
            self.count += 1
            number = self.count * WRITERS + self.number
            key = b"w%d/%d" % (self.number, self.random.randrange(ROWS))
            try:
                rpc.mutate(self.name, key, *self.mutations(number))
                self.asked.setdefault(key, []).append((number, True))
            except grpc.RpcError:
                self.asked.setdefault(key, []).append((number, False))
                rpc.close()
                time.sleep(0.05)
                rpc = Rpc(self.server.host)  # it may have another port by now
        rpc.close()


def number_of(change):
    (number,) = [
        int(mutation.set_cell.value)
        for mutation in change.mutations
        if mutation.set_cell.family_name == "f" and mutation.set_cell.column_qualifier == b"q"
    ]
    return number


class Follower:
    """A partition and where it stands, as a client keeps it: it reads for a while, and may be
    broken off anywhere."""

    def __init__(self, name, start, end):
        self.name, self.start, self.end = name, start, end
        self.token = None
        self.changes = []

    def read(self, rpc, seconds, micros):
        """Until nothing has come for a while; False if the server has gone."""
        fields = {"start_time": {"seconds": micros // 1_000_000}}
        if self.token is not None:
            fields = {"continuation_tokens": one_token(self.start, self.end, self.token)}
        until = time.monotonic() + seconds
        with Reader(rpc, self.name, self.start, self.end, **fields) as reader:
            try:
                while time.monotonic() < until:
                    self.take(reader.next())
            except grpc.RpcError:
                return False
        return True

    def take(self, event):
        if isinstance(event, Change):
            self.changes.append(event)
            self.token = event.token
        elif isinstance(event, types.ReadChangeStreamResponse.Heartbeat):
            self.token = event.continuation_token.token
        else:
            raise AssertionError(f"the stream has ended: {event}")


def read_all(rpc, followers, micros):
    """Up to a heartbeat of each that stands behind all that was committed when this began."""
    for follower in followers:
        fields = {"start_time": {"seconds": micros // 1_000_000}}
        if follower.token is not None:
            token = (follower.start, follower.end, follower.token)
            fields = {"continuation_tokens": tokens_of(token)}
        began = time.time_ns() // 1000
        with Reader(rpc, follower.name, follower.start, follower.end, **fields) as reader:
            while True:
                event = reader.next()
                follower.take(event)
                if not isinstance(event, types.ReadChangeStreamResponse.Heartbeat):
                    continue
                raw = types.ReadChangeStreamResponse.Heartbeat.pb(event).estimated_low_watermark
                if raw.seconds * 1_000_000 + raw.nanos // 1000 >= began:
                    break


def expect_each_once(writers, changes):
    """By row: what was acknowledged, in its order; of what was not, at most once, in its place."""
    told = {}
    for change in changes:
        told.setdefault(change.key, []).append(number_of(change))
    for writer in writers:
        for key, asked in writer.asked.items():
            numbers = told.pop(key, [])
            assert len(set(numbers)) == len(numbers), key
            known = {number for number, _ in asked}
            assert set(numbers) <= known, key
            assert set(numbers) >= {number for number, is_acknowledged in asked if is_acknowledged}
            assert numbers == sorted(numbers), key
    assert told == {}


def apply(row, mutation):
    kind = types.Mutation.pb(mutation).WhichOneof("mutation")
    if kind == "set_cell":
        cell = mutation.set_cell
        row[cell.family_name, cell.column_qualifier, cell.timestamp_micros] = cell.value
    elif kind == "delete_from_family":
        family = mutation.delete_from_family.family_name
        for place in [place for place in row if place[0] == family]:
            del row[place]
    else:
        assert kind == "delete_from_column"
        column = mutation.delete_from_column
        for place in [p for p in row if p[:2] == (column.family_name, column.column_qualifier)]:
            del row[place]


def expect_table(rpc, name, changes):
    rows = {}
    for change in changes:
        for mutation in change.mutations:
            apply(rows.setdefault(change.key, {}), mutation)
    there = {
        key: {(cell.family, cell.qualifier, cell.timestamp): cell.value for cell in cells}
        for key, cells in rpc.read(name)
    }
    assert there == {key: row for key, row in rows.items() if row}


def follow_for_a_while(server, followers, seconds, micros):
    """Each in a thread; the server is killed under them."""
    rpc = Rpc(server.host)
    threads = [
        threading.Thread(target=follower.read, args=(rpc, seconds + 5, micros), daemon=True)
        for follower in followers
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    for thread in threads:
        thread.join()
    rpc.close()
    server.start()


def run(server, kills, seed):
    rpc = Rpc(server.host)
    config = stream_config()
    name = rpc.create_table("t", ("f", "g"), splits=SPLITS, change_stream_config=config)
    micros = time.time_ns() // 1000
    followers = [Follower(name, start, end) for start, end in partitions_of(rpc, name)]
    writers = [Writer(server, name, number, seed + number) for number in range(WRITERS)]
    rng = random.Random(seed)
    micros += 1_000_000 - micros % 1_000_000  # start times are of whole seconds here
    time.sleep(1.1)
    for writer in writers:
        writer.start()
    for _ in range(kills):
        follow_for_a_while(server, followers, rng.uniform(0.3, 1.5), micros)
    for writer in writers:
        writer.ends.set()
    for writer in writers:
        writer.join()
    rpc.close()
    rpc = Rpc(server.host)
    read_all(rpc, followers, micros)
    changes = [change for follower in followers for change in follower.changes]
    print(f"{kills} kills, {len(changes)} changes")
    expect_each_once(writers, changes)
    expect_table(rpc, name, changes)
    rpc.close()


def test_what_was_acknowledged_is_told_once(fresh_server):
    run(fresh_server("--balance=false"), 4, 20261129)


@pytest.mark.long
def test_what_was_acknowledged_is_told_once_over_many_kills(fresh_server):
    run(fresh_server("--balance=false"), 40, 20261130)
