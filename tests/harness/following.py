"""A table that is written to, and `trestle copy --follow` behind it: writers of every kind of
mutation, servers that keep their address when they are killed, a copier that is killed, too."""

import json
import random
import signal
import subprocess
import threading
import time

import grpc
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types

from harness.change_streams import stream_config
from harness.patience import PATIENCE_SECONDS
from harness.rpc import ADMIN_SECONDS, INSTANCE, Rpc, delete_row, set_cell
from harness.server import Server, binary

MS = 1000
LOTS = 100  # that a writer draws from
POSITIONS = f"{INSTANCE}/tables/trestle-follow"


class StayingServer(Server):
    """Gets a port once, and has it again after each start."""

    def command(self, ready_fd):
        command = super().command(ready_fd)
        if self.host is not None:
            command[command.index("127.0.0.1:0")] = self.host
        return command


# --- the source ---


def create_followed(rpc, table_id="t", splits=(), instance=INSTANCE, **fields):
    """Plain families, one with a rule that keeps two versions, sums, and counts of strings."""
    text = {"string_type": {"encoding": {"utf8_bytes": {}}}}
    kinds = {
        "sum": {"sum": {}},
        "max": {"max": {}},
        "count": {"hllpp_unique_count": {}, "input_type": text},
    }
    families = {
        name: admin_types.ColumnFamily(value_type={"aggregate_type": kind})
        for name, kind in kinds.items()
    }
    families |= {name: admin_types.ColumnFamily() for name in ("f", "g")}
    families["v"] = admin_types.ColumnFamily(gc_rule={"max_num_versions": 2})
    fields.setdefault("change_stream_config", stream_config())
    request = admin_types.CreateTableRequest(
        parent=instance, table_id=table_id, table={"column_families": families, **fields},
        initial_splits=[{"key": key} for key in splits],
    )  # fmt: skip
    return rpc.admin.create_table(request, timeout=ADMIN_SECONDS).name


def add_to(family, qualifier, value, when):
    kind = "string_value" if isinstance(value, str) else "int_value"
    return types.Mutation(
        add_to_cell={
            "family_name": family, "column_qualifier": {"raw_value": qualifier},
            "timestamp": {"raw_timestamp_micros": when}, "input": {kind: value},
        }
    )  # fmt: skip


def merge_to(family, qualifier, state, when):
    return types.Mutation(
        merge_to_cell={
            "family_name": family, "column_qualifier": {"raw_value": qualifier},
            "timestamp": {"raw_timestamp_micros": when}, "input": {"bytes_value": state},
        }
    )  # fmt: skip


def delete_column(family, qualifier, start=0, end=0):
    return types.Mutation(
        delete_from_column={
            "family_name": family, "column_qualifier": qualifier,
            "time_range": {"start_timestamp_micros": start, "end_timestamp_micros": end},
        }
    )  # fmt: skip


def delete_family(family):
    return types.Mutation(delete_from_family={"family_name": family})


class Changes:
    """Mutations at random. A few rows are hot, so that the order of their changes counts."""

    def __init__(self, seed, rows):
        self.random, self.rows = random.Random(seed), rows

    def key(self):
        number = self.random.randrange(self.rows if self.random.random() < 0.8 else 5)
        return b"%c%06d" % (97 + number % 26, number)

    def when(self):
        return self.random.randrange(1, 5) * MS

    def value(self):
        size = 100 if self.random.random() < 0.999 else 300_000
        return self.random.randbytes(self.random.randrange(size))

    def mutation(self):
        chance = self.random
        qualifier = b"q%d" % chance.randrange(3)
        kind = chance.randrange(20)
        if kind < 8:
            when = -1 if chance.random() < 0.1 else self.when()
            return set_cell(chance.choice("fg"), qualifier, self.value(), when)
        if kind < 9:
            return set_cell("v", qualifier, self.value())
        if kind < 13:
            family = chance.choice(["sum", "max"])
            return add_to(family, qualifier, chance.randrange(99), self.when())
        if kind < 14:
            return add_to("count", qualifier, f"s{chance.randrange(99)}", self.when())
        if kind < 15:
            state = chance.randrange(99).to_bytes(8, "big")
            return merge_to("sum", qualifier, state, self.when())
        if kind < 17:
            family = chance.choice(["f", "g", "sum", "count"])
            return delete_column(family, qualifier, self.when(), chance.choice([0, 5 * MS]))
        if kind < 18:
            return delete_family(chance.choice(["f", "g", "sum", "max"]))
        return set_cell("f", b"only-written", self.value(), self.when())

    def mutations(self):
        if self.random.random() < 0.02:
            return [delete_row()]
        return [self.mutation() for _ in range(self.random.randrange(1, 4))]

    def rows_of(self, count):
        return [(self.key(), self.mutations()) for _ in range(count)]


class Writer(threading.Thread):
    """Writes until it ends, at most so many rows a second, through kills of its server."""

    def __init__(self, host, name, seed, rows, rate, lot):
        super().__init__(daemon=True)
        self.host, self.name, self.rate, self.lot = host, name, rate, lot
        self.changes = Changes(seed, rows)
        self.lots = [self.make_lot() for _ in range(LOTS)]
        self.ends = threading.Event()
        self.written = 0

    def make_lot(self):
        """A request as it is sent: to make it costs Python more than the server."""
        rows = self.changes.rows_of(self.lot)
        entries = [{"row_key": key, "mutations": mutations} for key, mutations in rows]
        request = types.MutateRowsRequest(table_name=self.name, entries=entries)
        return types.MutateRowsRequest.serialize(request)

    def write_lot(self, rpc):
        call = rpc.channel.unary_stream("/google.bigtable.v2.Bigtable/MutateRows")
        for _ in call(self.changes.random.choice(self.lots), timeout=PATIENCE_SECONDS):
            pass
        self.written += self.lot

    def write(self, rpc):
        chance = self.changes.random.random()
        key = self.changes.key()
        if chance < 0.8:
            self.write_lot(rpc)
            return
        if chance < 0.9:
            rpc.mutate(self.name, key, *self.changes.mutations())
        elif chance < 0.95:
            lists = self.changes.mutations(), self.changes.mutations()
            rpc.check_and_mutate(self.name, key, {"family_name_regex_filter": "f"}, *lists)
        else:
            rule = {"family_name": "g", "column_qualifier": b"n", "append_value": b"."}
            rpc.read_modify_write(self.name, key, rule)
        self.written += 1

    def run(self):
        rpc = Rpc(self.host)
        began = time.monotonic()
        while not self.ends.is_set():
            try:
                self.write(rpc)
            except grpc.RpcError:
                rpc.close()
                self.ends.wait(0.1)
                rpc = Rpc(self.host)
            self.ends.wait(max(0, began + self.written / self.rate - time.monotonic()))
        rpc.close()


class Writers:
    """Several of them."""

    def __init__(self, host, name, count=2, rows=500, rate=300, lot=20, seed=1):
        self.all = [
            Writer(host, name, seed * 100 + number, rows, rate / count, lot)
            for number in range(count)
        ]

    def __enter__(self):
        for each in self.all:
            each.start()
        return self

    def __exit__(self, *failure):
        for each in self.all:
            each.ends.set()
        for each in self.all:
            each.join()

    def written(self):
        return sum(each.written for each in self.all)


# --- the copier ---


class Follow:
    """`trestle copy TABLE --follow`, in a directory of its own."""

    def __init__(self, source, target, directory, *options, table_id="t"):
        self.source, self.target = source, target
        self.directory, self.options, self.table_id = directory, options, table_id
        self.log = directory / "follow.log"
        self.process = None

    def command(self, *options):
        return [
            binary(), "copy", self.table_id, "--follow", "--from-endpoint", self.source,
            "--endpoint", self.target, *map(str, self.options), *map(str, options),
        ]  # fmt: skip

    def start(self, *options):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(*options), cwd=self.directory, stdout=log, stderr=log
            )
        return self

    def signal(self, number):
        """Sends the signal; returns the exit status."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        self.process = None
        return code

    def kill(self):
        assert self.process.poll() is None, self.said()
        self.signal(signal.SIGKILL)

    def stop(self):
        assert self.signal(signal.SIGTERM) == 0, self.said()

    def run(self, *options):
        return subprocess.run(
            self.command(*options), cwd=self.directory, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    def catch_up(self, *options):
        """Returns what it says on stdout."""
        done = self.run("--until-caught-up", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "; caught up: " in done.stdout
        return done.stdout

    def said(self):
        return self.log.read_text()

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE_SECONDS)


def position(rpc, table_id="t"):
    """What is stored in the target; None if nothing is."""
    try:
        cells = rpc.read_row(POSITIONS, table_id.encode())
    except grpc.RpcError:
        return None
    return json.loads(cells[0].value) if cells else None


def wait_for_changes(follow, rpc, count):
    """Until so many are replayed, and it says so in the target."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (position(rpc, follow.table_id) or {"changes": -1})["changes"] < count:
        assert follow.process.poll() is None, follow.said()
        assert time.monotonic() < deadline, follow.said()
        time.sleep(0.1)


def expect_same(source, target, name="projects/p/instances/i/tables/t"):
    """Row by row, cell by cell, with their timestamps. Returns how many rows there are."""
    there, here = dict(source.read(name)), dict(target.read(name))
    for key in sorted(there.keys() | here.keys()):
        assert here.get(key) == there.get(key), key
    return len(there)
