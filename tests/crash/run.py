#!/usr/bin/env python3
"""Kills the server at random moments and counts what is lost. `./dev crash --help`.

A cycle: start the server, compare every row with what was acknowledged, let several clients write
at random, end the server from outside. Thresholds are so small that tablets split and merge, rows
spill and memtables are flushed all the time, so that kills fall into these, too. A kill is SIGKILL;
with --mode powercut the next start finds the files as a power cut would have left them (README.md).

With TRESTLE_DEBUG_SHARDS=2 the table lies in two stores.

The work follows from the seed, as far as threads and a kill's moment can: a failure prints the line
that runs the same again, and keeps the data directory as it was found, and what the server said.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests")]

import model  # noqa: E402
from harness.moved_server import DAY_SECONDS, set_clock  # noqa: E402
from harness.rpc import ALL_FEATURES, Rpc  # noqa: E402
from harness.server import SHARDS, SHARDS_TYPED, UNDAMAGED, Server, binary  # noqa: E402
from writer import GROUP_FAMILIES, Ledger, Writer, create_table  # noqa: E402

SETTINGS = {
    "--cache": "8MB",
    "--write-buffer": "4MB",
    "--split-size": "256KB",
    "--merge-after": "1s",
    "--gc-interval": "2s",
    "--disk-reserve": "0",
}
CLOCKS = [0, 0, -DAY_SECONDS, -3600, 3600, DAY_SECONDS]  # seconds that the wall clock is ahead
CUTS = ["lose", "tear", "holes"]
DOCTOR_SECONDS = 300


class Plan:
    """What a cycle does, from the seed alone."""

    def __init__(self, options, cycle):
        dice = random.Random(f"{options.seed}/{cycle}")
        self.seconds = dice.uniform(0.05, options.seconds)
        self.is_stopped = dice.random() < 0.1  # by SIGTERM
        self.false_start_seconds = dice.uniform(0, 0.3) if dice.random() < 0.2 else None
        self.has_doctor = dice.random() < 0.2
        self.is_reverse = dice.random() < 0.3
        self.environment = self.library(options, dice)
        self.clocks = self.choose_clocks(options, random.Random(f"clocks {options.seed}/{cycle}"))

    def choose_clocks(self, options, dice):
        """When in the cycle the clock is set to what, from the start of its work on."""
        if not options.clock_steps:
            return []
        times = sorted(dice.uniform(0, self.seconds) for _ in range(dice.randint(0, 4)))
        return [(time, dice.choice(CLOCKS)) for time in times]

    def library(self, options, dice):
        """The variables of the power cut that comes before this cycle's start, and of its clock."""
        variables = {}
        mode, seed, clock = dice.choice(CUTS), dice.getrandbits(31), dice.random() < 0.25
        if options.mode == "powercut":
            variables = {
                "POWERCUT_ROOT": str(options.directory / "data"),
                "POWERCUT_JOURNAL": str(options.directory / "journal"),
                "POWERCUT_MODE": mode,
                "POWERCUT_SEED": str(seed),
                "POWERCUT_NO_SYNC": "1",
            }
        if options.clock_back and clock:
            variables["POWERCUT_CLOCK"] = str(-DAY_SECONDS)
        if options.clock_steps:
            variables["POWERCUT_CLOCK_FILE"] = str(options.directory / "clock")
        if variables:
            variables["LD_PRELOAD"] = str(options.library)
        return variables


class Failure(Exception):
    def __init__(self, problems):
        super().__init__("\n".join(problems))
        self.lost = len(problems)


class Crash:
    def __init__(self, options):
        self.options = options
        options.directory.mkdir(parents=True)
        set_clock(options.directory, 0)
        self.server = Server(options.directory, self.arguments())
        self.ledger = Ledger()
        self.table = None
        self.cycles = 0
        self.doubts = [0, 0]  # resolved as never done, as done
        self.most_tablets = 0
        self.longest_start = 0.0

    @staticmethod
    def add_options(add):
        """What a kind of run has of its own."""

    @staticmethod
    def own_options(options):
        """The same, to be typed again."""
        return ""

    def arguments(self):
        settings = {**SETTINGS, "--overflow-threshold": self.options.overflow_threshold}
        return [word for setting in settings.items() for word in setting]

    def run(self):
        try:
            for cycle in range(self.options.cycles + 1):
                self.run_cycle(cycle)
        finally:
            if self.server.process is not None:
                self.server.kill()

    def run_cycle(self, cycle):
        """The one after the last only verifies."""
        plan = Plan(self.options, cycle)
        self.server.env = plan.environment
        if cycle > 0:
            self.between(plan)
        self.start()
        if self.table is None:
            self.table = create_table(self.server.host, "crash")
        self.verify(plan)
        if cycle < self.options.cycles:
            self.work(cycle, plan)
            self.cycles += 1
        else:
            self.server.stop()
            self.doctor()
        self.server.check_log()

    def between(self, plan):
        """The server is down: start it and kill it while it recovers; look at what it left."""
        if self.options.mode == "powercut":  # the power fails once, not while it fails
            subprocess.run(["true"], env=self.environment(), stderr=subprocess.DEVNULL, check=True)
        if plan.false_start_seconds is not None:
            self.false_start(plan.false_start_seconds)
        if plan.has_doctor:
            self.doctor()

    def environment(self):
        return {**os.environ, **self.server.env}

    def false_start(self, seconds):
        with open(self.server.stderr_path, "ab") as stderr:
            process = subprocess.Popen(
                self.server.command(0), env=self.environment(), stdout=stderr, stderr=stderr
            )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        else:
            raise Failure([f"a start ended by itself: exit {code}"])

    def doctor(self):
        if SHARDS > 1:
            return  # it looks at one store
        done = subprocess.run(
            [binary(), "doctor", str(self.server.data)],
            env=self.environment(), capture_output=True, text=True, timeout=DOCTOR_SECONDS,
        )  # fmt: skip
        if done.returncode not in UNDAMAGED:
            lines = (done.stdout + done.stderr).splitlines()
            raise Failure([f"doctor: exit {done.returncode}", *lines[-20:]])

    def start(self):
        began = time.monotonic()
        self.server.start()
        self.longest_start = max(self.longest_start, time.monotonic() - began)

    def work(self, cycle, plan):
        dying = threading.Event()
        writers = [
            Writer(i, self.options.seed, cycle, self.server.host, self.table, self.ledger, dying)
            for i in range(self.options.writers)
        ]
        for writer in writers:
            writer.start()
        self.let_work(writers[0], plan)
        dying.set()
        if plan.is_stopped:
            self.server.stop()
        else:
            self.server.kill()
        for writer in writers:
            writer.join()
        failures = [f"{w.name}: {w.failure}" for w in writers if w.failure is not None]
        if failures:
            raise Failure(failures)

    def let_work(self, writer, plan):
        """Until its time is over; it ends before that only if something is wrong. What the clock
        is set to last stays, also while nobody is at work."""
        gone = 0
        for at, ahead in plan.clocks:
            writer.join(at - gone)
            set_clock(self.options.directory, ahead)
            gone = at
        writer.join(plan.seconds - gone)

    # --- after a start: is everything there? ---

    def verify(self, plan):
        rpc = Rpc(self.server.host)
        try:
            rows = self.read_all(rpc, False)
            if plan.is_reverse and self.read_all(rpc, True) != rows:
                raise Failure(["a reverse scan reads other rows than a scan"])
            problems = self.compare(rows)
            problems += self.compare_columns(rpc, plan)
            self.most_tablets = max(self.most_tablets, len(rpc.sample_row_keys(self.table)))
        finally:
            rpc.close()
        if problems:
            raise Failure(problems)

    def read_all(self, rpc, is_reverse):
        rows = rpc.read(self.table, metadata=ALL_FEATURES, reversed=is_reverse)
        return {key: model.observed(cells) for key, cells in rows}

    def compare(self, rows):
        ledger = self.ledger
        problems = []
        for key in sorted({*rows, *ledger.rows, *ledger.groups, *ledger.group_doubts}):
            row = rows.get(key, {})
            if key in ledger.counters:
                problem = self.compare_counter(key, row)
            elif key in ledger.groups or key in ledger.group_doubts:
                problem = self.compare_group(key, row)
            else:
                problem = self.compare_row(key, row)
            if problem is not None:
                problems.append(f"{key.decode()}: {problem}")
            ledger.rows[key] = row
        ledger.rows = {key: row for key, row in ledger.rows.items() if row}
        for settled in (ledger.doubts, ledger.groups, ledger.group_doubts):
            settled.clear()
        return problems

    def compare_row(self, key, row):
        """Exactly what was acknowledged; what was in doubt wholly there or wholly absent."""
        candidates = self.ledger.doubts.get(key)
        if candidates is None:
            expected = self.ledger.row(key)
            if not model.matches(expected, row):
                return "; ".join(model.differences(expected, row))
            return None
        for number, candidate in enumerate(candidates):
            if model.matches(candidate, row):
                self.doubts[number] += 1
                return None
        return "neither as before: {}; nor as after the last write: {}".format(
            *("; ".join(model.differences(candidate, row)) for candidate in candidates)
        )

    def compare_counter(self, key, row):
        least = self.ledger.counters[key]
        most = least + self.ledger.counter_doubts[key]
        value = int.from_bytes(model.newest(row, "c", b"n") or b"", "big", signed=True)
        self.ledger.counters[key] = value
        self.ledger.counter_doubts[key] = 0
        if not least <= value <= most:
            return f"the counter is {value}, acknowledged {least}, at most {most}"
        return None

    def compare_group(self, key, row):
        """Shared rows: every token in all three families, every acknowledged one there."""
        due = self.ledger.groups.get(key, {})
        possible = {**due, **self.ledger.group_doubts.get(key, {})}
        versions = [row.get((family, b"x"), {}) for family in GROUP_FAMILIES]
        if versions[0] != versions[1] or versions[0] != versions[2]:
            return "the row is not whole: its families differ"
        missing = due.items() - versions[0].items()
        strange = versions[0].items() - possible.items()
        if missing or strange:
            return f"lost {sorted(missing)[:5]}, never written {sorted(strange)[:5]}"
        return None

    def compare_columns(self, rpc, plan):
        """Single columns of some rows, read by a filter."""
        dice = random.Random(plan.seconds)
        problems = []
        keys = sorted(key for key in self.ledger.rows if key.startswith(b"w"))
        for key in dice.sample(keys, min(5, len(keys))):
            family, qualifier = column = dice.choice(sorted(self.ledger.rows[key]))
            conditions = [
                {"family_name_regex_filter": family},
                {"column_qualifier_regex_filter": qualifier.replace(b".", rb"\.")},
            ]
            cells = rpc.read_row(self.table, key, filter={"chain": {"filters": conditions}})
            expected, row = {column: self.ledger.rows[key][column]}, model.observed(cells)
            if not model.matches(expected, row):
                problems.append(f"{key}: by filter: {model.differences(expected, row)}")
        return problems

    def summary(self, lost):
        return (
            f"{self.cycles} cycles, {self.ledger.acknowledged} acknowledged writes, {lost} lost\n"
            f"in doubt: {self.doubts[0]} were not done, {self.doubts[1]} were; at most "
            f"{self.most_tablets} tablets; slowest start {self.longest_start:.1f} s"
        )


def arguments(program, description, run_of):
    parser = argparse.ArgumentParser(prog=program, description=description)
    add = parser.add_argument
    add("--cycles", type=int, default=200, metavar="N", help="default 200; about 2 s each")
    add("--seed", type=int, metavar="N", help="default: chosen, and printed")
    add("--mode", choices=["kill", "powercut"], default="kill", help="default kill")
    add("--clock-back", action="store_true", help="every fourth start is with a clock a day back")
    add("--clock-steps", action="store_true",
        help="the clock is set ahead and back while the server runs")  # fmt: skip
    add("--writers", type=int, default=8, metavar="N", help="clients; default 8")
    add("--seconds", type=float, default=1.2, metavar="S", help="longest life; default 1.2")
    add("--overflow-threshold", default="2KB", metavar="SIZE", help="default 2KB")
    add("--directory", type=Path, metavar="DIR", help="default build/crash/MODE-SEED; made anew")
    add(
        "--library", type=Path, metavar="FILE",
        help="libpowercut.so; default: where it lies beside the server that is tested",
    )  # fmt: skip
    run_of.add_options(add)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().getrandbits(31)
    beside = Path(binary()).resolve().parent
    if options.directory is None:
        options.directory = beside / "crash" / f"{options.mode}-{options.seed}"
    options.directory = options.directory.resolve()
    if options.library is None:
        options.library = beside / "tests/crash/powercut/libpowercut.so"
    needs_library = options.mode == "powercut" or options.clock_back or options.clock_steps
    if needs_library and not options.library.exists():
        parser.error(f"{options.library} is missing: build it with ninja")
    return options


def again(program, options, run_of):
    line = f"{SHARDS_TYPED}{program} --cycles {options.cycles} --seed {options.seed}"
    line += f" --mode {options.mode}"
    line += f" --writers {options.writers} --seconds {options.seconds}"
    line += f" --overflow-threshold {options.overflow_threshold}{run_of.own_options(options)}"
    line += " --clock-back" * options.clock_back
    return line + " --clock-steps" * options.clock_steps


def main(program, description, run_of=Crash):
    options = arguments(program, description, run_of)
    if options.directory.exists():
        shutil.rmtree(options.directory)
    crash = run_of(options)
    lost = 0
    try:
        crash.run()
    except (Failure, AssertionError, RuntimeError) as failure:
        lost = getattr(failure, "lost", 1)
        print(f"cycle {crash.cycles}:\n{failure}", file=sys.stderr)
        print(f"kept: {options.directory}", file=sys.stderr)
        print(f"again: {again(program, options, run_of)}", file=sys.stderr)
    print(f"seed {options.seed}, mode {options.mode}")
    print(crash.summary(lost))
    if lost:
        return 1
    shutil.rmtree(options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(
        main("./dev crash", "Kills the server at random moments and counts what is lost.")
    )
