#!/usr/bin/env python3
"""Kills the server while a change stream is read. `./dev crash streams --help`.

Cycles are those of run.py: start, compare, work, a kill or a power cut. Meanwhile

- clients change rows of their own by every kind of request, each with a number of its own;
- rows are dropped by their prefixes, and all of them;
- one reader follows all partitions through splits and merges, as Google's connectors do, and goes
  on after each start from the tokens that he had.

After each start he reads until every partition's watermark is behind what was committed, and then

- of each row he was told every number that was acknowledged, once, in the row's order; of those in
  doubt once or never, in their place; and nothing else;
- no change was of a time before a watermark that he had been given;
- what he was told, done again from the beginning, comes to what the table has, cell by cell.

With TRESTLE_DEBUG_SHARDS=2 the table lies in two stores.
"""

import contextlib
import queue
import random
import struct
import sys
import threading
import time

import grpc

import run  # first: it says where the harness is

from google.protobuf.duration_pb2 import Duration
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from harness.change_streams import (
    Change,
    Reader,
    bounds,
    now_micros,
    partitions_of,
    stream_config,
    timestamp,
    tokens_of,
)
from harness.rpc import ALL_FEATURES, Rpc, delete_row, set_cell
from harness.server import SHARDS

ROWS = 30  # of each writer
DROPPED = 10  # those of them that a prefix drops alone
REQUEST_SECONDS = 60
CATCH_UP_SECONDS = 120
END_SECONDS = 10
VERSIONS = 2  # that family g keeps
BALLAST, BALLAST_BATCH = 2000, 500  # rows that a drop takes some time to tell
SETTINGS = {"--split-size": "64KB", "--split-load": "150"}  # beside those of run.py
NEITHER = "A DropRowRange operation is already ongoing"
INT64 = struct.Struct(">q")


# --- changes ---


def delete_column(family, qualifier, start=0, end=0):
    span = {"start_timestamp_micros": start, "end_timestamp_micros": end}
    column = {"family_name": family, "column_qualifier": qualifier, "time_range": span}
    return types.Mutation(delete_from_column=column)


def delete_family(family):
    return types.Mutation(delete_from_family={"family_name": family})


def add_to_sum(number):
    return types.Mutation(
        add_to_cell={
            "family_name": "s",
            "column_qualifier": {"raw_value": b"n"},
            "timestamp": {"raw_timestamp_micros": 0},
            "input": {"int_value": number},
        }
    )


class Writer(threading.Thread):
    """Works until the server is gone. `asked`, by row, has its requests in order, as numbers, and
    `acknowledged` those numbers of which it is known that they were done."""

    def __init__(self, number, seed, cycle, host, table, book, dying):
        super().__init__(name=f"writer-{number}", daemon=True)
        self.random = random.Random(f"{seed}/{cycle}/{number}")
        self.number, self.table, self.book, self.dying = number, table, book, dying
        self.rpc = Rpc(host)
        self.failure = None

    def run(self):
        try:
            while not self.dying.is_set():
                self.random.choice(WORK)(self)
        except grpc.RpcError as error:
            if not self.dying.is_set():
                self.failure = f"{error.code()}: {error.details()}"
        except AssertionError as error:
            self.failure = repr(error)
        finally:
            self.rpc.close()

    def key(self):
        row = self.random.randrange(ROWS)
        return b"w%02d/%s%02d" % (self.number, b"d/" if row < DROPPED else b"", row)

    def numbered(self, key):
        """A number that is asked of the row from now on, and the cell that has it."""
        number = self.book.ask(key)
        return number, set_cell("f", b"n", b"%d" % number, 1000)

    def some_mutations(self, cell):
        """With the number in it, behind a deletion that would take it, or before others."""
        when = 1000 * self.random.randrange(1, 6)
        return self.random.choice(
            [
                [cell],
                [delete_row(), cell],
                [delete_family("f"), cell],
                [delete_family("g"), delete_family("s"), cell],
                [cell, set_cell("g", b"q", b"%d" % when, when)],
                [cell, set_cell("g", b"r", b"x" * self.random.choice([1, 100, 3000]))],
                [set_cell("f", b"x", b"1", when), cell, delete_column("f", b"x", 2000, 4000)],
                [cell, add_to_sum(self.random.randrange(-9, 10))],
                [set_cell("g", b"q", b"gone"), delete_column("g", b"q"), cell],
            ]
        )

    def mutate(self):
        key = self.key()
        number, cell = self.numbered(key)
        self.rpc.mutate(self.table, key, *self.some_mutations(cell))
        self.book.acknowledge(number)

    def mutate_rows(self):
        keys = {self.key() for _ in range(self.random.randrange(1, 12))}
        numbers, rows = [], []
        for key in keys:
            number, cell = self.numbered(key)
            numbers.append(number)
            rows.append((key, self.some_mutations(cell)))
        codes = self.rpc.mutate_rows(self.table, rows)
        for number, code in zip(numbers, codes, strict=True):
            assert code == 0 or self.dying.is_set(), f"status {code}"
            if code == 0:
                self.book.acknowledge(number)

    def check_and_mutate(self):
        """One branch or the other has the number."""
        key = self.key()
        number, cell = self.numbered(key)
        true, false = [delete_family("g"), cell], [cell, set_cell("g", b"q", b"f")]
        predicate = {"family_name_regex_filter": self.random.choice(["g", "s"])}
        self.rpc.check_and_mutate(self.table, key, predicate, true, false)
        self.book.acknowledge(number)

    def read_modify_write(self):
        """The number is the end of what a string becomes."""
        key = self.key()
        number = self.book.ask(key)
        rules = [
            {"family_name": "f", "column_qualifier": b"log", "append_value": b" %d" % number},
            {"family_name": "f", "column_qualifier": b"count", "increment_amount": 1},
        ]
        self.rpc.read_modify_write(self.table, key, *rules)
        self.book.acknowledge(number)

    def delete(self):
        """Without a number: what it does is seen in what the rows come to."""
        self.rpc.mutate(self.table, self.key(), delete_row())


WORK = [
    *[Writer.mutate] * 6,
    *[Writer.mutate_rows] * 2,
    *[Writer.check_and_mutate] * 2,
    *[Writer.read_modify_write] * 2,
    Writer.delete,
]


class Dropper(threading.Thread):
    """Drops rows until the server is gone."""

    def __init__(self, seed, cycle, host, table, writers, dying):
        super().__init__(name="dropper", daemon=True)
        self.random = random.Random(f"{seed}/{cycle}/dropper")
        self.table, self.writers, self.dying = table, writers, dying
        self.rpc = Rpc(host)
        self.drops = self.refused = 0
        self.failure = None

    def run(self):
        try:
            while not self.dying.wait(self.random.uniform(0, 0.2)):
                self.step()
        except grpc.RpcError as error:
            if not self.dying.is_set():
                self.failure = f"{error.code()}: {error.details()}"
        except AssertionError as error:
            self.failure = repr(error)
        finally:
            self.rpc.close()

    def fill(self, prefix):
        """Rows that nobody else writes to, without numbers."""
        for start in range(0, BALLAST, BALLAST_BATCH):
            cell = set_cell("f", b"b", b"%d" % start, 1000)
            keys = [prefix + b"e/%04d" % (start + place) for place in range(BALLAST_BATCH)]
            codes = self.rpc.mutate_rows(self.table, [(key, [cell]) for key in keys])
            assert codes == [0] * BALLAST_BATCH or self.dying.is_set(), codes

    def step(self):
        prefix = b"w%02d/" % self.random.randrange(self.writers)
        if self.random.random() < 0.5:
            self.fill(prefix)
        what = self.random.choice([{"prefix": prefix}, {"prefix": prefix + b"d/"}, {}])
        try:
            self.rpc.drop_row_range(self.table, **(what or {"everything": True}))
            self.drops += 1
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE or error.details() != NEITHER:
                raise
            self.refused += 1


def end_thread(thread):
    """Its server is gone: a call that does not see that ends with its channel."""
    thread.join(END_SECONDS)
    if thread.is_alive():
        thread.rpc.close()
        thread.join()


class Book:
    """What was asked of each row, in order, and what of that was acknowledged. A row belongs to one
    writer, who asks one thing of it at a time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0
        self.asked = {}
        self.acknowledged = set()

    def ask(self, key):
        with self.lock:
            self.count += 1
            self.asked.setdefault(key, []).append(self.count)
            return self.count

    def acknowledge(self, number):
        with self.lock:
            self.acknowledged.add(number)


# --- the reader ---


def is_inside(part, partition):
    return partition[0] <= part[0] and (
        partition[1] == b"" or (part[1] != b"" and part[1] <= partition[1])
    )


def tile(parts, start, end):
    return (
        bool(parts)
        and (parts[0][0], parts[-1][1]) == (start, end)
        and all(a[1] == b[0] for a, b in zip(parts, parts[1:], strict=False))
    )


class Follower:
    """Follows all partitions. `tokens`: of each that is open the tokens to go on from, as (start,
    end, token); of one that has none yet, nothing."""

    def __init__(self, table, start_micros, take):
        self.table, self.start_micros, self.take = table, start_micros, take
        self.tokens = None  # before the first start
        self.waiting = []  # tokens of partitions that are gone
        self.wanted = set()  # partitions that were heard of, and whose tokens are not all there
        self.readers = {}
        self.watermarks = {}
        self.closes = 0
        self.rpc = None  # while the server is down

    def open(self, rpc):
        self.rpc = rpc
        if self.tokens is None:
            self.tokens = {partition: [] for partition in partitions_of(rpc, self.table)}
        for partition in self.tokens:
            self.open_one(partition)

    def open_one(self, partition):
        if self.rpc is None:
            return  # its tokens are kept for the next start
        fields = {"heartbeat_duration": Duration(nanos=100_000_000)}
        tokens = self.tokens[partition]
        if tokens:
            fields["continuation_tokens"] = tokens_of(*tokens)
        else:
            fields["start_time"] = timestamp(self.start_micros)
        self.readers[partition] = Reader(self.rpc, self.table, *partition, **fields)

    def leave(self):
        """The server is gone, or the client: tokens stay."""
        self.rpc = None
        for reader in self.readers.values():
            reader.__exit__()
        for partition, reader in list(self.readers.items()):
            self.drain(partition, reader, is_leaving=True)
        self.readers = {}

    def step(self):
        """What has come; False if nothing has."""
        return sum(self.drain(*each) for each in list(self.readers.items())) > 0

    def drain(self, partition, reader, is_leaving=False):
        count = 0
        with contextlib.suppress(queue.Empty):
            while self.readers.get(partition) is reader:
                self.handle(partition, reader.events.get_nowait(), is_leaving)
                count += 1
        return count

    def handle(self, partition, event, is_leaving):
        if isinstance(event, Change):
            self.take_change(partition, event)
        elif isinstance(event, types.ReadChangeStreamResponse.Heartbeat):
            raw = types.ReadChangeStreamResponse.Heartbeat.pb(event).estimated_low_watermark
            micros = raw.seconds * 1_000_000 + raw.nanos // 1000
            self.keep(partition, event.continuation_token.token, micros)
        elif isinstance(event, types.ReadChangeStreamResponse.CloseStream):
            self.closed(partition, event)
        elif isinstance(event, grpc.RpcError):
            self.broken(partition, event, is_leaving)
        else:
            raise run.Failure([f"{partition}: the stream ends with {event!r}"])

    def take_change(self, partition, change):
        watermark = self.watermarks.get(partition, 0)
        if change.micros < watermark:
            raise run.Failure([f"{change.key}: of {change.micros}, watermark {watermark}"])
        self.keep(partition, change.token, change.watermark)
        self.take(change)

    def keep(self, partition, token, micros):
        if micros < self.watermarks.get(partition, 0):
            raise run.Failure([f"{partition}: a watermark goes back"])
        self.watermarks[partition] = micros
        self.tokens[partition] = [(*partition, token)]

    def broken(self, partition, error, is_leaving):
        """A server that goes says so, or nothing. Another error is none of a good server."""
        del self.readers[partition]
        codes = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        if error.code() not in codes and not (
            is_leaving and error.code() == grpc.StatusCode.INTERNAL
        ):
            raise run.Failure([f"{partition}: {error.code()}: {error.details()}"])

    def closed(self, partition, close):
        del self.readers[partition], self.tokens[partition]
        watermark = self.watermarks.pop(partition, 0)
        if close.status.code != 11:
            raise run.Failure([f"{partition}: closed with {close.status}"])
        self.closes += 1
        if not close.continuation_tokens:  # it had none: it begins anew
            self.wanted.update(bounds(new) for new in close.new_partitions)
        for token in close.continuation_tokens:
            self.waiting.append((*bounds(token.partition), token.token, watermark))
        self.wanted.update(bounds(new) for new in close.new_partitions)
        for wanted in list(self.wanted):
            self.open_if_whole(wanted)

    def open_if_whole(self, partition):
        parts = sorted(part for part in self.waiting if is_inside(part, partition))
        if not tile(parts, *partition):
            return
        self.wanted.remove(partition)
        self.waiting = [part for part in self.waiting if part not in parts]
        self.tokens[partition] = [part[:3] for part in parts]
        self.watermarks[partition] = min(part[3] for part in parts)
        self.open_one(partition)

    def is_behind(self, micros):
        """Whether all rows' watermarks are."""
        parts = sorted(part for part in self.readers if self.watermarks.get(part, 0) > micros)
        return tile(parts, b"", b"")


# --- what was told ---


class Replay:
    """Rows as the stream has them: (family, qualifier, timestamp): value; sums are numbers."""

    def __init__(self):
        self.rows = {}
        self.told = {}  # of each row its numbers, in order
        self.count = 0

    def take(self, change):
        row = self.rows.setdefault(change.key, {})
        self.count += 1
        for mutation in change.mutations:
            kind = types.Mutation.pb(mutation).WhichOneof("mutation")
            getattr(self, kind)(change.key, row, getattr(mutation, kind))

    def set_cell(self, key, row, cell):
        row[cell.family_name, cell.column_qualifier, cell.timestamp_micros] = cell.value
        if cell.column_qualifier in (b"n", b"log"):
            number = int(cell.value.split()[-1])
            self.told.setdefault(key, []).append(number)

    def add_to_cell(self, key, row, add):
        place = (add.family_name, add.column_qualifier.raw_value, 0)
        row[place] = row.get(place, 0) + add.input.int_value

    def delete_from_column(self, key, row, column):
        span = column.time_range
        end = span.end_timestamp_micros or float("inf")
        for place in [p for p in row if p[:2] == (column.family_name, column.column_qualifier)]:
            if span.start_timestamp_micros <= place[2] < end:
                del row[place]

    def delete_from_family(self, key, row, family):
        for place in [place for place in row if place[0] == family.family_name]:
            del row[place]

    def table(self):
        """By the rule of g, which readers of the table go by before its deletions are told."""
        return {key: newest(row) for key, row in self.rows.items() if row}


def newest(row):
    by_column = {}
    for family, qualifier, time_us in row:
        by_column.setdefault((family, qualifier), []).append(time_us)
    return {
        place: value
        for place, value in row.items()
        if place[0] != "g" or place[2] in sorted(by_column[place[:2]])[-VERSIONS:]
    }


def value_of(cell):
    return INT64.unpack(cell.value)[0] if cell.family == "s" else cell.value


# --- the run ---


def sum_type():
    number = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
    return {"aggregate_type": {"input_type": number, "sum": {}}}


class StreamCrash(run.Crash):
    def __init__(self, options):
        if options.clock_back or options.clock_steps:
            raise SystemExit("the reader waits for watermarks by this machine's clock")
        super().__init__(options)
        self.table = ""  # made by the first verification
        self.book, self.replay, self.follower = Book(), Replay(), None
        self.drops = self.refused = 0

    def arguments(self):
        settings = {
            **run.SETTINGS, **SETTINGS, "--overflow-threshold": self.options.overflow_threshold
        }  # fmt: skip
        return [word for setting in settings.items() for word in setting]

    def make_table(self, rpc):
        families = {
            "f": admin_types.ColumnFamily(),
            "g": admin_types.ColumnFamily(gc_rule={"max_num_versions": VERSIONS}),
            "s": admin_types.ColumnFamily(value_type=sum_type()),
        }
        request = admin_types.CreateTableRequest(
            parent="projects/p/instances/i",
            table_id="streams",
            table={"column_families": families, "change_stream_config": stream_config()},
            initial_splits=[{"key": b"w03"}, {"key": b"w06"}] if SHARDS > 1 else [],
        )
        self.table = rpc.admin.create_table(request, timeout=REQUEST_SECONDS).name
        self.follower = Follower(self.table, now_micros(), self.replay.take)

    def work(self, cycle, plan):
        dying = threading.Event()
        seed, host = self.options.seed, self.server.host
        writers = [
            Writer(i, seed, cycle, host, self.table, self.book, dying)
            for i in range(self.options.writers)
        ]
        dropper = Dropper(seed, cycle, host, self.table, self.options.writers, dying)
        for thread in (*writers, dropper):
            thread.start()
        self.follow_for(plan.seconds)
        dying.set()
        if plan.is_stopped:
            self.server.stop()
        else:
            self.server.kill()
        self.follower.leave()
        self.rpc.close()
        for thread in (*writers, dropper):
            end_thread(thread)
        self.drops += dropper.drops
        self.refused += dropper.refused
        failures = [f"{t.name}: {t.failure}" for t in (*writers, dropper) if t.failure is not None]
        if failures:
            raise run.Failure(failures)

    def follow_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self.follower.step():
                time.sleep(0.005)

    def verify(self, plan):
        self.rpc = Rpc(self.server.host)
        if self.follower is None:
            self.make_table(self.rpc)
        self.follower.open(self.rpc)
        self.catch_up()
        problems = self.compare_numbers() + self.compare_rows()
        self.most_tablets = max(self.most_tablets, len(self.follower.readers))
        self.ledger.acknowledged = len(self.book.acknowledged)
        if problems:
            raise run.Failure(problems)
        if self.cycles == self.options.cycles:
            self.follower.leave()
            self.rpc.close()

    def now(self):
        """By the versions' clock, which may be seconds ahead of ours after starts: behind all that
        has been committed."""
        self.rpc.mutate(self.table, b"now", set_cell("f", b"m", b""))
        (cell, *_) = self.rpc.read_row(self.table, b"now")
        return cell.timestamp + 1000

    def catch_up(self):
        begun, until = self.now(), time.monotonic() + CATCH_UP_SECONDS
        while not self.follower.is_behind(begun):
            if time.monotonic() > until:
                follower = self.follower
                state = (follower.watermarks, follower.waiting, follower.wanted)
                raise run.Failure([f"the reader does not catch up: {state}"])
            if not self.follower.step():
                time.sleep(0.005)

    def compare_numbers(self):
        problems = []
        for key in sorted({*self.book.asked, *self.replay.told}):
            problem = self.compare_row_numbers(key)
            if problem is not None:
                problems.append(f"{key.decode()}: {problem}")
        return problems

    def compare_row_numbers(self, key):
        """All that was asked is settled: what was in doubt and was not told is not done."""
        asked, told = self.book.asked.get(key, []), self.replay.told.get(key, [])
        due = [number for number in asked if number in self.book.acknowledged]
        self.doubts[1] += len(set(told) - set(due))
        self.doubts[0] += len(set(asked) - set(due) - set(told))
        self.book.asked[key] = []
        self.replay.told[key] = []
        if told != sorted(set(told)):
            return f"told twice, or out of order: {told}"
        missing, strange = set(due) - set(told), set(told) - set(asked)
        if missing or strange:
            return f"never told: {sorted(missing)[:5]}; never asked: {sorted(strange)[:5]}"
        return None

    def compare_rows(self):
        there = {
            key: {(c.family, c.qualifier, c.timestamp): value_of(c) for c in cells}
            for key, cells in self.rpc.read(self.table, metadata=ALL_FEATURES)
        }
        told = self.replay.table()
        return [
            f"{key.decode()}: the stream comes to {told.get(key)}, the table has {there.get(key)}"
            for key in sorted({*there, *told})
            if there.get(key) != told.get(key)
        ]

    def summary(self, lost):
        closes = 0 if self.follower is None else self.follower.closes
        return (
            f"{self.cycles} cycles, {self.ledger.acknowledged} acknowledged changes, {lost} wrong; "
            f"{self.replay.count} were told, {self.drops} drops, {self.refused} refused; "
            f"{closes} partitions closed, at most {self.most_tablets} at a time\n"
            f"in doubt: {self.doubts[0]} were not done, {self.doubts[1]} were; slowest start "
            f"{self.longest_start:.1f} s"
        )


if __name__ == "__main__":
    about = "Kills the server while its change stream is read."
    sys.exit(run.main("./dev crash streams", about, StreamCrash))
