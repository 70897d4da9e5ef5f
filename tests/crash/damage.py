#!/usr/bin/env python3
"""Damages table files at random, at rest and under load, and looks at every row: `./dev crash
damage`.

A data directory is made once, with tables whose rows were written, overwritten and deleted again
and again, some in pieces of their own, over files of several levels. Each round takes a copy and
damages one to three of its table files: bytes flipped, a page of zeros, the file cut off, emptied
or removed; while the server is down, or while it serves and compacts. Then

- the server starts, serves and takes writes;
- every row is what it was, or it fails with DATA_LOSS, and then it lies in a range that the server
  says is out of service: never a wrong answer;
- the ranges are those of the files that were hit, and of one block each where only a block was:
  never more than what was hit;
- a repair, of the running server or of the stopped one, brings back all else: no row in a range
  that is given up is there, every other one is as it was, also after a restart, and health is well.

With --seed the rounds are the same again.
"""

import argparse
import base64
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import grpc  # noqa: E402
from harness.damage import cut, flip, tables  # noqa: E402
from harness.patience import PATIENCE_SECONDS  # noqa: E402
from harness.rest import Rest  # noqa: E402
from harness.rpc import Rpc, delete_row, set_cell  # noqa: E402
from harness.server import Server, binary  # noqa: E402

INSTANCE = "projects/p/instances/i"
NAMES = [f"{INSTANCE}/tables/{name}" for name in ("one", "two", "three")]
SMALL = ["--write-buffer", "4MB", "--cache", "8MB", "--disk-reserve", "0"]
SMALL += ["--spill-threshold", "4KB"]
LARGE = ["--write-buffer", "64MB", *SMALL[2:]]
ROUNDS_OF_WRITES = 3
LARGE_VALUE = 6000  # a record of its own
AT_ONCE = 50
ROWS_OF_A_BLOCK = 40  # more than a block of 16 KiB can have, and its neighbour
DAMAGES = ["flip", "flip", "flip", "zeros", "cut", "empty", "remove"]
DATA_LOSS = grpc.StatusCode.DATA_LOSS.value[0]


class Failure(Exception):
    pass


def check(is_so, *words):
    if not is_so:
        raise Failure(" ".join(map(str, words)))


def key(number):
    return b"k%05d" % number


# --- what there is ---


class Model:
    """{table: {key: value}}, and the writing of it."""

    def __init__(self, dice, keys, tables=None):
        self.random = dice
        self.keys = keys  # that each table may have
        self.tables = tables or {name: {} for name in NAMES}

    def copy(self, dice):
        tables = {name: dict(rows) for name, rows in self.tables.items()}
        return Model(dice, self.keys, tables)

    def value(self):
        return self.random.randbytes(LARGE_VALUE if self.random.random() < 0.02 else 900)

    def write(self, rpc, name, keys, may_fail=False):
        for at in range(0, len(keys), AT_ONCE):
            some = {k: self.new_value() for k in keys[at : at + AT_ONCE]}
            changes = [(k, self.change(value)) for k, value in some.items()]
            codes = rpc.mutate_rows(name, changes)
            for (each, value), code in zip(some.items(), codes, strict=True):
                check(code == 0 or (may_fail and code == DATA_LOSS), name, each, "refused:", code)
                if code == 0:
                    self.tables[name].pop(each, None)
                    self.tables[name] |= {each: value} if value else {}

    def new_value(self):
        """None: the row goes."""
        return None if self.random.random() < 0.1 else self.value()

    @staticmethod
    def change(value):
        """Without the deletion of the row it is refused where that is out of service."""
        return [delete_row()] if value is None else [set_cell("f", b"q", value, 1000)]


def make(directory, dice, count):
    """A server's directory at rest, and what is in it."""
    model = Model(dice, [key(n) for n in range(count)])
    server = Server(directory, LARGE)
    for round_ in range(ROUNDS_OF_WRITES):
        server.arguments = LARGE
        rpc = Rpc(server.start().host)
        for name in NAMES:
            if round_ == 0:
                rpc.create_table(name.rsplit("/")[-1])
            some = [k for k in model.keys if round_ == 0 or dice.random() < 0.3]
            model.write(rpc, name, some)
        if round_ > 0:
            prefix = b"k00%d" % round_
            rpc.drop_row_range(NAMES[0], prefix)
            for each in [k for k in model.tables[NAMES[0]] if k.startswith(prefix)]:
                del model.tables[NAMES[0]][each]
        rpc.close()
        server.stop()
        server.arguments = SMALL  # what is in the log is flushed
        server.start()
        server.stop()
    return server.data, model


# --- damage ---


def damage(path, dice):
    """What was done: a word, and where."""
    how = dice.choice(DAMAGES)
    size = path.stat().st_size
    at = dice.randrange(size)
    if how == "flip":
        flip(path, at, dice.choice([1, 8, 64]))
    elif how == "zeros":
        with open(path, "r+b") as file:
            file.seek(at // 4096 * 4096)
            file.write(bytes(min(4096, size - at // 4096 * 4096)))
    elif how == "cut":
        cut(path, dice.random())
    elif how == "empty":
        cut(path, 0)
    else:
        path.unlink()
    return f"{path.name}: {how} at {at} of {size}"


def damage_some(data, dice):
    files = [path for path in tables(data) if path.stat().st_size > 0]
    hit = dice.sample(files, min(dice.choice([1, 1, 2, 3]), len(files)))
    return {path.name for path in hit}, [damage(path, dice) for path in hit]


# --- a round ---


class Round:
    def __init__(self, place, sound, model, seed):
        self.random = random.Random(seed)
        self.model = model.copy(self.random)
        self.server = Server(place, SMALL)
        shutil.copytree(sound, self.server.data)
        self.said = []

    def start(self):
        self.server.start()
        self.rpc = Rpc(self.server.host)

    def stop(self):
        self.rpc.close()
        self.server.stop()

    def ranges(self):
        path = "/v1/servers/self/damagedRanges"
        return Rest(self.server.host).call("GET", path).get("ranges", [])

    def read(self, name, keys):
        try:
            return {k: cells[0].value for k, cells in self.rpc.read(name, rows={"row_keys": keys})}
        except grpc.RpcError as error:
            check(error.code() == grpc.StatusCode.DATA_LOSS, name, "answered", error)
            return None

    def lost(self):
        """{table: keys that are out of service}; all others are right."""
        lost = {name: set() for name in NAMES}
        for name in NAMES:
            for at in range(0, len(self.model.keys), AT_ONCE):
                keys = self.model.keys[at : at + AT_ONCE]
                found = self.read(name, keys)
                for ask in [keys] if found is not None else [[k] for k in keys]:
                    found = self.read(name, ask)
                    if found is None:
                        lost[name] |= set(ask)
                    else:
                        self.check_rows(name, ask, found)
        return lost

    def check_rows(self, name, keys, found):
        right = {k: self.model.tables[name][k] for k in keys if k in self.model.tables[name]}
        for each in keys:
            check(found.get(each) == right.get(each), name, each, "is not what was written")

    def check_ranges(self, hit):
        ranges = self.ranges()
        for each in ranges:
            check(each["file"] in hit, each["text"], "but only", hit, "was hit")
        for each in ranges:
            # Between rows that have large cells in a block any number may have none.
            if "the block at byte" in each["text"] and not each.get("largeCells"):
                name = each["table"]
                count = sum(covers(each, name, k) for k in self.model.keys)
                check(count <= ROWS_OF_A_BLOCK, each["text"], "has", count, "rows")

    def write_some(self, lost):
        for name in NAMES:
            keys = [k for k in self.model.keys if k not in lost[name]]
            self.model.write(self.rpc, name, self.random.sample(keys, min(len(keys), 200)))

    def settled(self):
        """What is out of service once all that was met is known. Who reads the row before a damaged
        block meets it, too, until it is; and what was read before a whole file was closed may be
        refused from then on."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            lost, ranges = self.lost(), self.ranges()
            differing = [self.differing(ranges, name, lost[name]) for name in NAMES]
            if not any(differing):
                return lost
            check(time.monotonic() < end, differing, "refused in no range, or read in one")

    def differing(self, ranges, name, lost):
        """Of rows whose large cells are out of service only those that have some are refused."""
        rows = [each for each in ranges if not each.get("largeCells")]
        return (self.closed(rows, name) - lost) | (lost - self.closed(ranges, name))

    def closed(self, ranges, name):
        return {k for k in self.model.keys if any(covers(each, name, k) for each in ranges)}

    def check_all(self, hit):
        lost = self.settled()
        self.check_ranges(hit)
        ranges = self.ranges()
        self.write_some({name: lost[name] | self.closed(ranges, name) for name in NAMES})
        check(self.server.get("/readyz")[0] == 200, "it takes no writes")
        return lost

    def repair(self, is_online):
        file = self.server.directory / "lost"
        how = ["--in-place", "--lost", str(file)]
        if is_online:
            where = ["--endpoint", self.server.host]
        else:
            self.stop()
            where = [str(self.server.data)]
        done = subprocess.run([binary(), "repair", *where, *how], capture_output=True, text=True)
        self.said.append(done.stdout)
        if not is_online:
            self.start()
        elif done.returncode != 0 and "still in use" in done.stderr + done.stdout:
            self.stop()  # RocksDB had the file open when it was cut
            self.start()
            return self.repair(False)
        check(done.returncode == 0, "repair:", done.stdout, done.stderr)
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split("\t") for line in lines]

    def check_repaired(self, lines):
        """Rows that were given up are not there; what is left is right."""
        for name in NAMES:
            found = dict(self.rpc.read(name))
            for each in self.model.keys:
                value = found[each][0].value if each in found else None
                right = self.model.tables[name].get(each)
                is_lost = any(given_up(line, name, each) for line in lines)
                check(value == right or (is_lost and value is None), name, each, "after the repair")
                if is_lost and value is None:
                    self.model.tables[name].pop(each, None)
        check(self.ranges() == [], "something is out of service after the repair")
        check("damaged_range" not in self.server.get("/readyz")[1], "health is not well")

    def run(self):
        at_rest = self.random.random() < 0.7
        if at_rest:
            hit, self.done = damage_some(self.server.data, self.random)
            self.start()
        else:
            self.start()
            hit, self.done = damage_some(self.server.data, self.random)
            for name in NAMES:  # flushes and compactions meet it
                self.model.write(self.rpc, name, self.model.keys, may_fail=True)
        self.check_all(hit)
        if self.random.random() < 0.3:
            self.stop()
            self.start()
            self.check_all(hit)
        self.check_repaired(self.repair(self.random.random() < 0.5))
        self.write_some({name: set() for name in NAMES})
        self.stop()
        self.start()
        self.check_repaired([])
        self.stop()


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def decoded(text):
    return base64.b64decode(text)


def covers(each, name, row):
    """Whether a range of the server's list has the row."""
    if each["table"] != name:
        return False
    start, end = decoded(each.get("startKey", "")), decoded(each.get("endKey", ""))
    if each.get("largeCells"):
        return start <= row and (not end or row <= end)
    return start <= row and (not end or row < end)


def given_up(line, name, row):
    table, start, end, words = line
    start, end = unescape(start), unescape(end)
    is_last = words.startswith("large cells")
    return table == name and start <= row and (not end or row < end or (is_last and row == end))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--keys", type=int, default=3000, help="of each table")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--directory", type=Path, default=Path("/tmp/trestle-damage"))
    options = parser.parse_args()
    shutil.rmtree(options.directory, ignore_errors=True)
    (options.directory / "sound").mkdir(parents=True)
    sound, model = make(options.directory / "sound", random.Random(options.seed), options.keys)
    print(f"seed {options.seed}, {len(tables(sound))} table files", flush=True)
    hits = 0
    for number in range(options.first, options.first + options.rounds):
        place = options.directory / "round"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        one = Round(place, sound, model, f"{options.seed}/{number}")
        one.done = []
        try:
            one.run()
        except (Failure, RuntimeError, AssertionError, grpc.RpcError) as error:
            print(f"round {number}: {one.done}: {error}", *one.said, file=sys.stderr)
            one.server.process and one.server.kill()
            return 1
        hits += len(one.done)
    print(f"{options.rounds} rounds, {hits} damages, 0 wrong answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
