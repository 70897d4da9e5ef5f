#!/usr/bin/env python3
"""Sends random requests to a server and to the model, and compares what they answer.

    tests/model/compare.py --ops 100000 --evaluations 1000000 --seed 1

An evaluation is one filter on one row. The work goes in rounds, each with a table of its own, which
follow from the seed alone: `--round N` runs one of them again. Prints the first difference, made
small, and ends with status 1. README.md says more.
"""

import argparse
import collections
import contextlib
import copy
import multiprocessing
import os
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests")]

import generate  # noqa: E402
from emulator import Emulator, KnownDifferences, NoDifferences  # noqa: E402
from filters import Filter  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from harness.server import SHARDS, Server  # noqa: E402
from shrink import shrink  # noqa: E402
from table import Family, Refused, Table, cells_of  # noqa: E402
from view import View, Viewed  # noqa: E402
from wire import Failed, Wire  # noqa: E402

OPS_A_ROUND = 1000
EVALUATIONS_A_ROUND = 20000
LOADS = 250  # MutateRow requests before the filters
CALLS_IN_FLIGHT = 8
VIEWS = 3
FILTER_COUNTS = ["evaluations", "filters", "refused filters"]
# So small that rows are packed and spilled, and tablets split and merge, all the time.
SERVER_OPTIONS = ["--overflow-threshold", "2KB", "--split-size", "64KB", "--merge-after", "1s",
                  "--disk-reserve", "0", "--log-level", "warn"]  # fmt: skip
PLAIN_FAMILIES = ["a", "a-b.c_1", "b"]
RULED_FAMILIES = ["c1", "c2"]
AGGREGATES = {"max": "max", "min": "min", "sum": "sum"}


class Difference(Exception):
    """The server's answer is not the model's."""

    def __init__(self, request, expected, answered, row=None):
        super().__init__(request)
        self.request = request
        self.expected = expected
        self.answered = answered
        self.row = row

    def note(self, case):
        """A smaller one: shrink.Case."""
        self.request, self.row = case.request(), {case.key: case.cells}
        self.expected, self.answered = case.expected(), case.answered()

    def __str__(self):
        parts = {
            "request": text_format.MessageToString(self.request, as_one_line=True),
            "row before": self.row,
            "expected": self.expected,
            "answered": self.answered,
        }
        return "\n".join(f"{name}: {part}" for name, part in parts.items() if part is not None)


# --- one round ---


class Round:
    """A table with views, here and on the server, and random requests for it."""

    def __init__(self, wire, seed, number, known):
        self.dice = random.Random(f"{seed}/{number}")
        self.wire = wire
        self.known = known
        self.counts = collections.Counter()
        self.returned = set()  # (key, family) with cells that a rule had condemned
        now = wire.clock.now_us() // 1000 * 1000
        families = {name: Family() for name in PLAIN_FAMILIES}
        families |= {name: Family(gc=self.rule()) for name in RULED_FAMILIES}
        families |= {name: Family(aggregate=kind) for name, kind in AGGREGATES.items()}
        step = 1 if self.dice.random() < 0.2 and known.has_microseconds else 1000
        self.table = Table(f"{wire.instance}/tables/m{os.getpid()}-{number}", families, step)
        self.generator = generate.Generator(self.dice, self.table, now)
        tablets = [3] if SHARDS > 1 else [0, 0, 3]
        splits = self.dice.sample(generate.KEYS, self.dice.choice(tablets))
        wire.create_table(self.table, sorted(splits))
        self.views = {}
        for index in range(VIEWS if known.has_views else 0):
            name = f"{self.table.name}/authorizedViews/v{index}"
            view = View(name, *self.generator.view_subset())
            self.views[view.name] = view
            wire.create_view(view)

    def close(self):
        self.wire.delete_table(self.table)

    def rule(self):
        return self.dice.choice(generate.RULES) if self.known.has_gc_on_read else None

    def harmless(self, make):
        """A request that the other side survives; Trestle survives all."""
        while self.known.is_harmful(request := make()):
            pass
        return request

    # --- views ---

    def aim(self, request):
        """Sends some requests through a view."""
        if self.views and self.generator.chance(0.3):
            request.table_name = ""
            request.authorized_view_name = self.dice.choice(sorted(self.views))
        return request

    def target(self, table, request):
        """The table as the request sees it."""
        view = self.views.get(request.authorized_view_name)
        return table if view is None else Viewed(table, view)

    def change_view(self):
        if self.views:
            name = self.dice.choice(sorted(self.views))
            self.views[name] = View(name, *self.generator.view_subset())
            self.wire.update_view(self.views[name])

    # --- operations ---

    def run_operations(self, count):
        for _ in range(count):
            self.run_operation()

    def run_operation(self):
        kind = self.generator.pick({
            "mutate_row": 35, "mutate_rows": 8, "check_and_mutate_row": 15,
            "read_modify_write_row": 12, "read_rows": 28, "drop_row_range": 0.4,
            "change_rule": 0.4, "drop_family": 0.2, "missing_table": 0.5, "change_view": 2,
        })  # fmt: skip
        self.counts[kind] += 1
        if hasattr(self, kind):
            getattr(self, kind)()
        else:
            self.write(kind, self.aim(self.harmless(getattr(self.generator, kind))))

    def write(self, kind, request):
        keys = [entry.row_key for entry in getattr(request, "entries", [request])]
        first = self.wire.clock.now_us()
        answer = self.wire.call(kind, request)
        first, last = min(first, self.wire.clock.now_us()), self.wire.clock.latest_us()
        observed = self.wire.rows_of(self.table, keys)
        differences = []
        for now in self.moments(observed, answer, first, last):
            try:
                self.table.rows = self.rows_after(kind, request, now, answer, observed)
                self.bury_returned()
                return
            except Difference as difference:
                differences.append(difference)
        self.differ(differences[0], keys)

    def moments(self, observed, answer, first, last):
        """Times that the server may have had: what it wrote says it, if it wrote any."""
        cells = [cell for row in observed.values() for cell in row]
        cells += answer if isinstance(answer, list) else []
        times = {getattr(cell, "timestamp", 0) for cell in cells}
        step = self.table.step
        return [time for time in sorted(times) if first - first % step <= time <= last] or [first]

    def rows_after(self, kind, request, now, answer, observed):
        """The model's rows, if the request was served at that time and both sides agree."""
        trial = copy.copy(self.table)
        trial.rows = dict(self.table.rows)
        expected = outcome(getattr(self.target(trial, request), kind), request, now)
        if not fits(expected, answer):
            raise Difference(request, expected, answer, self.model_rows(observed))
        for key, cells in observed.items():
            if not self.settle(trial, key, cells):
                seen = trial.cells(key, self.generator.now)
                raise Difference(request, {key: seen}, {key: cells}, self.model_rows([key]))
        return trial.rows

    def model_rows(self, keys):
        return {key: cells_of(self.table.rows.get(key, {})) for key in keys}

    def settle(self, trial, key, observed):
        """Whether the row of the trial can be what was observed. A cell that a rule had condemned
        may have been collected or not, or only the last of the values that it had; it matters
        once newer cells are gone."""
        now = self.generator.now
        row = self.table.rows.get(key, {})
        hidden = set(cells_of(row)) - set(cells_of(self.table.visible(row, now)))
        places = set(map(place, hidden))
        while True:
            seen = trial.cells(key, now)
            collected = (set(seen) - set(observed)) & hidden
            if not collected:
                stale = {cell for cell in set(observed) - set(seen) if place(cell) in places}
                self.returned |= {(key, cell.family) for cell in stale | (hidden & set(seen))}
                return seen == [cell for cell in observed if cell not in stale]
            row = {column: dict(cells) for column, cells in trial.rows[key].items()}
            for cell in collected:
                del row[cell.family, cell.qualifier][cell.timestamp]
            trial.rows[key] = row

    def bury_returned(self):
        """Deletes, on both sides, where condemned cells have come back: a collection that runs may
        still take them away."""
        for key, family in self.returned:
            self.wire.delete_family(self.table, key, family)
            self.table.rows[key] = {
                column: cells
                for column, cells in self.table.rows[key].items()
                if column[0] != family
            }
        self.returned.clear()

    def differ(self, difference, keys=()):
        """Raises a difference. If it is known: both sides forget the rows instead."""
        if not self.known.explain(difference):
            raise difference
        for key in keys:
            self.wire.delete_row(self.table, key)
            self.table.rows.pop(key, None)

    def read_rows(self):
        request = self.aim(self.harmless(self.generator.read_rows))
        target = self.target(self.table, request)
        expected = outcome(target.read_rows, request, self.generator.now)
        self.compare_read(request, expected, self.wire.read(request))

    def compare_read(self, request, expected, answer):
        if isinstance(expected, Refused) or isinstance(answer, Failed):
            if not fits(expected, answer):
                self.differ(Difference(request, expected, answer))
            return
        wanted = {key: outcomes for key, outcomes in expected}
        rows, stats = answer
        for key in {**wanted, **rows}:
            if rows.get(key, []) not in wanted.get(key, [[]]):
                row = self.target(self.table, request).cells(key, self.generator.now)
                found = Difference(request, wanted.get(key), rows.get(key), {key: row})
                through_view = request.authorized_view_name
                self.differ(found if through_view else shrink(found, self.wire, self.table))
        if request.request_stats_view == request.REQUEST_STATS_FULL:
            counts = len(rows), sum(map(len, rows.values()))
            if stats is None or stats[:2] != counts or stats[2] < counts[0] or stats[3] < counts[1]:
                self.differ(Difference(request, counts, stats))

    def drop_row_range(self):
        prefix = self.dice.choice(generate.KEYS)[: self.dice.randrange(1, 3)]
        if self.generator.chance(0.1):
            prefix = b""
        self.wire.drop_row_range(self.table, prefix)
        self.table.drop_row_range(prefix)
        self.check_everything(self.table)

    def change_rule(self):
        trial = copy.deepcopy(self.table)
        name = self.dice.choice(RULED_FAMILIES)
        trial.families[name] = Family(gc=self.rule())
        self.wire.set_rule(self.table, name, trial.families[name].gc)
        self.check_everything(trial)

    def drop_family(self):
        every_family = [*PLAIN_FAMILIES, *RULED_FAMILIES, *AGGREGATES]
        name = self.dice.choice(self.known.droppable_families or every_family)
        family = self.table.families[name]
        self.wire.drop_family(self.table, name)
        self.table.drop_family(name)
        self.wire.create_family(self.table, name, family)
        self.table.families[name] = family
        self.check_everything(self.table)

    def check_everything(self, trial):
        rows = self.wire.rows_of(trial, None)
        for key in {**trial.rows, **rows}:
            if not self.settle(trial, key, rows.get(key, [])):
                expected = trial.cells(key, self.generator.now)
                request = self.wire.read_request(trial, [key])
                self.differ(Difference(request, expected, rows.get(key)), [key])
        self.table.families, self.table.rows = trial.families, trial.rows
        self.bury_returned()

    def missing_table(self):
        request = getattr(self.generator, self.dice.choice(["mutate_row", "read_rows"]))()
        request.table_name += "-missing"
        kind = "mutate_row" if hasattr(request, "mutations") else "read_rows"
        answer = self.wire.call(kind, request)
        expected = Refused([(5, f"Not found: {request.table_name}"), (3, "")])
        if not fits(expected, answer):
            self.differ(Difference(request, expected, answer))

    # --- filters ---

    def run_evaluations(self, count):
        for _ in range(LOADS):
            self.write("mutate_row", self.harmless(self.generator.mutate_row))
        rows = {"": self.all_rows(self.table)}
        for view in self.views.values():
            rows[view.name] = self.all_rows(Viewed(self.table, view).part())
        calls = collections.deque()
        while self.counts["evaluations"] < count or calls:
            if self.counts["evaluations"] < count and len(calls) < CALLS_IN_FLIGHT:
                request = self.aim(self.harmless(self.read_everything))
                calls.append((request, self.wire.start_read(request)))
                seen = len(rows[request.authorized_view_name])
                is_fine = not any(self.target(self.table, request).read_reasons(request))
                self.counts["evaluations"] += seen if is_fine else 0
            else:
                request, call = calls.popleft()
                self.check_filter(rows[request.authorized_view_name], request, call)

    def all_rows(self, table):
        """[(key, cells)] of the rows that have any."""
        rows = [(key, table.cells(key, self.generator.now)) for key in sorted(table.rows)]
        return [(key, cells) for key, cells in rows if cells]

    def read_everything(self):
        request = self.wire.read_request(self.table)
        request.filter.CopyFrom(self.generator.filter())
        return request

    def check_filter(self, rows, request, call):
        reasons = list(self.target(self.table, request).read_reasons(request))
        if reasons:
            self.counts["refused filters"] += 1
            expected = Refused(reasons)
        else:
            self.counts["filters"] += 1
            row_filter = Filter(request.filter)
            expected = [(key, row_filter.outcomes(key, cells)) for key, cells in rows]
        self.compare_read(request, expected, self.wire.read(request, call))


def place(cell):
    return cell.family, cell.qualifier, cell.timestamp


def outcome(method, request, now):
    """What the model answers; a refusal is an answer."""
    try:
        return method(request, now)
    except Refused as refused:
        return refused


def fits(expected, answer):
    """Whether an answer is what the model expects: a Refused names the reasons that may be given,
    MutateRows expects a set of codes for each entry."""
    if isinstance(answer, Failed):
        reasons = expected.reasons if isinstance(expected, Refused) else []
        return any(answer.code == code and text in answer.text for code, text in reasons)
    if isinstance(expected, Refused):
        return False
    if isinstance(expected, list) and expected and isinstance(expected[0], set):
        return all(code in codes for code, codes in zip(answer, expected, strict=True))
    return expected == answer


# --- all rounds ---


def run_round(options, address, job):
    """(counts, known differences), or an unknown one as text."""
    number, operations, evaluations = job
    known = KnownDifferences() if options.emulator else NoDifferences()
    with Wire(address) as wire:
        this = Round(wire, options.seed, number, known)
        try:
            this.run_operations(operations)
            this.run_evaluations(evaluations)
        except Difference as difference:
            return f"{difference}\nagain: --seed {options.seed} --round {number}"
        this.close()
    return this.counts, known.counts


def jobs(options):
    """(number, operations, evaluations) of each round."""
    rounds = max(-(-options.ops // OPS_A_ROUND), -(-options.evaluations // EVALUATIONS_A_ROUND), 1)
    shares = [
        (number, share(options.ops, rounds, number), share(options.evaluations, rounds, number))
        for number in range(rounds)
    ]
    return shares if options.round is None else [shares[options.round]]


def share(total, parts, number):
    return total * (number + 1) // parts - total * number // parts


def run(options, address):
    started = time.monotonic()
    counts, known = collections.Counter(), collections.Counter()
    work = [(options, address, job) for job in jobs(options)]
    with contextlib.ExitStack() as stack:
        results = map(run_job, work)
        if options.jobs > 1:
            pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(options.jobs))
            results = pool.imap_unordered(run_job, work)
        for result in results:
            if isinstance(result, str):
                print(result, file=sys.stderr)
                return 1
            counts += result[0]
            known += result[1]
    report(options, counts, known, time.monotonic() - started)
    return 0


def run_job(arguments):
    return run_round(*arguments)


def report(options, counts, known, seconds):
    evaluations, filters, refused = (counts.pop(name, 0) for name in FILTER_COUNTS)
    print(
        f"seed {options.seed}: {counts.total()} operations, {evaluations} evaluations of {filters} "
        f"filters, {refused} filters refused: as the model has it"
        f"{' but for what is known' if known else ''}; {seconds:.0f} s"
    )
    for name, count in sorted(known.items()):
        print(f"{count} times: {name}")


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ops", type=int, default=10000)
    parser.add_argument("--evaluations", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--round", type=int, help="only this one")
    parser.add_argument("--jobs", type=int, default=2, help="rounds at a time")
    parser.add_argument("--address", help="of a server that runs; else one is started")
    parser.add_argument("--emulator", action="store_true", help="Google's is the other side")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    print(f"seed {options.seed}", flush=True)
    if options.address:
        return run(options, options.address)
    with tempfile.TemporaryDirectory() as directory:
        server = Emulator() if options.emulator else Server(directory, SERVER_OPTIONS)
        server.start()
        try:
            return run(options, server.host)
        finally:
            server.close()


if __name__ == "__main__":
    sys.exit(main())
