#!/usr/bin/env python3
"""Kills the server in the middle of Datastore transactions, and proves that they were serializable.
`./dev crash transactions --help`.

A run has rounds. In each, some processes of many clients work on entities of that round alone
(conflicts.py), so few that they conflict, while the server is killed and started again. After its
last start, when all clients have ended, every entity is read, and must be what the acknowledged
transactions made of it:

- lists: checked by histories.py, with all that was read of them on the way;
- the sum of all accounts is what it was; of each pair one is on duty; no group is too large;
- a counter has all its acknowledged increments, and no more than those and the ones in doubt;
- what queries find by indexes is what lookups find;
- a transaction over all of them commits at its first attempt: no lock was left behind;
- at the end of the run the doctor finds nothing.

The work follows from the seed, as far as threads and a kill's moment can.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests")]

from conflicts import (  # noqa: E402
    ACCOUNTS,
    BALANCE,
    COUNTERS,
    GROUPS,
    MOST_MEMBERS,
    PAIRS,
    PROJECT,
    SLOTS,
    WORKS,
    Ledger,
    initial_entities,
    kind,
    serve,
)
from google.cloud import datastore  # noqa: E402
from google.cloud.datastore.query import PropertyFilter  # noqa: E402
from harness.datastore import client_of  # noqa: E402
from harness.moved_server import set_clock  # noqa: E402
from harness.server import UNDAMAGED, Server, binary  # noqa: E402
from histories import SUCCEEDED, UNKNOWN, check, value_of  # noqa: E402
from run import CLOCKS  # noqa: E402

SETTINGS = {
    "--cache": "32MB",
    "--write-buffer": "16MB",
    "--split-size": "1MB",
    "--disk-reserve": "0",
}
CUTS = ["lose", "tear", "holes"]
STUCK_SECONDS = 120
DOCTOR_SECONDS = 300
POLL_SECONDS = 0.005
NAMES_A_TIME = 200  # entities in a request of ours


class Failure(Exception):
    pass


class Entities:
    """Those of a round, by Google's client."""

    def __init__(self, host, round_number):
        self.client, self.round = client_of(host, PROJECT), round_number

    def key(self, name, which):
        return self.client.key(kind(name, self.round), which)

    def make(self):
        made = []
        for of, which, properties in initial_entities(self.round):
            made.append(datastore.Entity(self.client.key(of, which)))
            made[-1].update(properties)
        self.client.put_multi(made)

    def all_of(self, name, only=None):
        """Properties by names, as a query finds them."""
        query = self.client.query(kind=kind(name, self.round))
        if only is not None:
            query.add_filter(filter=only)
        return {each.key.name: dict(each) for each in query.fetch()}

    def look_up(self, name, which):
        found = {}
        for at in range(0, len(which), NAMES_A_TIME):
            keys = [self.key(name, each) for each in which[at : at + NAMES_A_TIME]]
            found.update((each.key.name, dict(each)) for each in self.client.get_multi(keys))
        return found

    def write_all(self, state):
        """Everything as it is, in one transaction, which has read it; at the first attempt."""
        with self.client.transaction() as transaction:
            for name, entities in state.items():
                keys = [self.key(name, which) for which in list(entities)[:NAMES_A_TIME]]
                for each in self.client.get_multi(keys):
                    transaction.put(each)


class Run:
    def __init__(self, options):
        self.options = options
        options.directory.mkdir(parents=True)
        set_clock(options.directory, 0)
        words = [word for setting in SETTINGS.items() for word in setting]
        self.server = Server(options.directory, words + options.settings)
        self.dice = random.Random(options.seed)
        self.processes = multiprocessing.get_context("fork")
        self.progress = self.processes.RawArray("q", options.processes)
        self.pipes, self.workers = [], []
        self.outcomes = Counter()
        self.kills = self.rounds = self.judged = 0
        self.judging = None
        self.work_seconds = 0

    # --- the server ---

    def environment(self):
        variables = {}
        if self.options.clock_steps:
            variables = {
                "POWERCUT_CLOCK_FILE": str(self.options.directory / "clock"),
                "LD_PRELOAD": str(self.options.library),
            }
        if self.options.mode != "powercut":
            return variables
        return {
            **variables,
            "POWERCUT_ROOT": str(self.server.data),
            "POWERCUT_JOURNAL": str(self.options.directory / "journal"),
            "POWERCUT_MODE": self.dice.choice(CUTS),
            "POWERCUT_SEED": str(self.dice.getrandbits(31)),
            "POWERCUT_NO_SYNC": "1",
            "LD_PRELOAD": str(self.options.library),
        }

    def start(self):
        self.server.env = self.environment()
        self.server.start()

    def doctor(self):
        done = subprocess.run(
            [binary(), "doctor", str(self.server.data)],
            env={**os.environ, **self.environment()}, capture_output=True, text=True,
            timeout=DOCTOR_SECONDS,
        )  # fmt: skip
        if done.returncode not in UNDAMAGED:
            raise Failure(f"doctor: exit {done.returncode}\n{done.stdout}{done.stderr}"[-4000:])

    # --- workers ---

    def begin_workers(self):
        for number in range(self.options.processes):
            ours, theirs = self.processes.Pipe()
            arguments = (theirs, number, self.options, self.progress)
            worker = self.processes.Process(target=serve, args=arguments, daemon=True)
            worker.start()
            theirs.close()
            self.pipes.append(ours)
            self.workers.append(worker)

    def tell(self, *command):
        try:
            for pipe in self.pipes:
                pipe.send(command)
        except BrokenPipeError:
            raise Failure("a worker has failed") from None

    def ledgers(self):
        """Of all workers, when what they have under way has ended."""
        self.tell("rest")
        return [pipe.recv() for pipe in self.pipes]

    def wait_for(self, count):
        """Until that many transactions more have succeeded."""
        begun = last = sum(self.progress)
        until = time.monotonic() + STUCK_SECONDS
        while last - begun < count:
            time.sleep(POLL_SECONDS)
            if not all(worker.is_alive() for worker in self.workers):
                raise Failure("a worker has failed")
            if sum(self.progress) > last:
                until = time.monotonic() + STUCK_SECONDS
            elif time.monotonic() > until:
                raise Failure(f"no transaction has succeeded in {STUCK_SECONDS} s")
            last = sum(self.progress)

    # --- rounds ---

    def run(self):
        try:
            with self.processes.Pool(1) as judges:
                self.begin_workers()
                self.start()
                while self.outcomes[SUCCEEDED] < self.options.transactions:
                    self.run_round(judges)
                    self.rounds += 1
                self.take_verdict()
            self.tell("end")
            self.server.stop()
            self.doctor()
        finally:
            if self.server.process is not None:
                self.server.kill()

    def run_round(self, judges):
        number, size = self.rounds, self.options.round
        Entities(self.server.host, number).make()
        begun = time.monotonic()
        self.tell("begin", self.server.host, number)
        for _ in range(self.options.kills):
            self.step_clock()
            self.wait_for(self.dice.randint(1, 2 * size // (self.options.kills + 1)))
            self.server.kill()
            self.kills += 1
            self.start()
            self.tell("go on", self.server.host)
        self.wait_for(size // (self.options.kills + 1))
        ledgers = self.ledgers()
        self.work_seconds += time.monotonic() - begun
        for ledger in ledgers:
            self.outcomes += ledger.outcomes
        state = self.look(number)
        problems = [problem for ledger in ledgers for problem in ledger.problems]
        problems += compare(state, ledgers)
        if problems:
            raise Failure("\n".join(problems[:20]))
        self.take_verdict()
        history = [each for ledger in ledgers for each in ledger.history]
        self.judged += len(history)
        self.judging = judges.apply_async(check, (history, lists_of(state)))

    def step_clock(self):
        if self.options.clock_steps:
            set_clock(self.options.directory, self.dice.choice(CLOCKS))

    def look(self, number):
        """All that there is of the round, which stays as it is."""
        entities = Entities(self.server.host, number)
        names = ["List", "Account", "Duty", "Counter", "Member"]
        state = {name: entities.all_of(name) for name in names}
        self.compare_with_lookups(entities, state)
        entities.write_all(state)
        self.compare_with_lookups(entities, state)
        return state

    def compare_with_lookups(self, entities, state):
        for name, found in state.items():
            if entities.look_up(name, list(found)) != found:
                raise Failure(f"round {entities.round}: {name}: a query finds other than lookups")
        by_index = {}
        for slot in range(SLOTS):
            by_index.update(entities.all_of("List", PropertyFilter("slot", "=", f"slot {slot}")))
        if by_index != state["List"]:
            raise Failure(f"round {entities.round}: an index finds other lists than there are")

    def take_verdict(self):
        """Of the round before: it is judged while the next is run."""
        problems = self.judging.get() if self.judging is not None else []
        self.judging = None
        if problems:
            raise Failure(f"round {self.rounds - 1}:\n" + "\n".join(problems))

    def summary(self):
        counted = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items())
        rate = self.outcomes[SUCCEEDED] / max(self.work_seconds, 0.001)
        return (
            f"{self.rounds} rounds, {self.kills} kills; transactions: {counted}; "
            f"{self.judged} in histories\n{self.work_seconds:.0f} s of work, {rate:.0f} a second"
        )


def lists_of(state):
    return {name: value_of(each["values"]) for name, each in state["List"].items()}


def compare(state, ledgers):
    """What is not as the acknowledged transactions left it, lists apart."""
    total = Ledger()
    for ledger in ledgers:
        total.increments += ledger.increments
        total.doubts += ledger.doubts
    money = sum(each["balance"] for each in state["Account"].values())
    if money != ACCOUNTS * BALANCE:
        yield f"all accounts have {money}"
    for pair in range(PAIRS):
        if not any(state["Duty"][f"{pair} {side}"]["is_on"] for side in ("left", "right")):
            yield f"nobody of pair {pair} is on duty"
    for group in range(GROUPS):
        members = [each for each in state["Member"].values() if each["group"] == f"group {group}"]
        if len(members) > MOST_MEMBERS:
            yield f"group {group} has {len(members)} members"
    for number in map(str, range(COUNTERS)):
        least = total.increments[number]
        most, value = least + total.doubts[number], state["Counter"][number]["n"]
        if not least <= value <= most:
            yield f"counter {number} is {value}, acknowledged {least}, at most {most}"


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev crash transactions",
        description="Kills the server in the middle of Datastore transactions, and proves that "
        "they were serializable.",
    )
    add = parser.add_argument
    add("--transactions", type=int, default=20_000, metavar="N",
        help="that must succeed; default 20000")  # fmt: skip
    add("--round", type=int, default=6_000, metavar="N", help="in one round, about; default 6000")
    add("--kills", type=int, default=2, metavar="N", help="in a round; default 2")
    add("--seed", type=int, metavar="N", help="default: chosen, and printed")
    add("--mode", choices=["kill", "powercut"], default="kill", help="default kill")
    add("--concurrency", choices=["optimistic", "pessimistic"], default="optimistic",
        help="the server's --datastore-concurrency; default optimistic")  # fmt: skip
    add("--clock-steps", action="store_true",
        help="the clock is set ahead and back before each kill")  # fmt: skip
    add("--processes", type=int, default=2, metavar="N", help="of clients; default 2")
    add("--clients", type=int, default=8, metavar="N", help="in a process; default 8")
    add("--only", nargs="+", choices=list(WORKS), default=list(WORKS), help="these workloads alone")
    add("--directory", type=Path, metavar="DIR", help="default build/crash/transactions-SEED")
    add("--library", type=Path, metavar="FILE", help="libpowercut.so; default: beside the server")
    options = parser.parse_args()
    options.settings = ["--datastore-concurrency", options.concurrency]
    beside = Path(binary()).resolve().parent
    if options.seed is None:
        options.seed = random.SystemRandom().getrandbits(31)
    if options.directory is None:
        options.directory = beside / "crash" / f"transactions-{options.seed}"
    options.directory = options.directory.resolve()
    if options.library is None:
        options.library = beside / "tests/crash/powercut/libpowercut.so"
    if (options.mode == "powercut" or options.clock_steps) and not options.library.exists():
        parser.error(f"{options.library} is missing: build it with ninja")
    return options


def again(options):
    return (
        f"./dev crash transactions --transactions {options.transactions} --round {options.round} "
        f"--kills {options.kills} --seed {options.seed} --mode {options.mode} "
        f"--concurrency {options.concurrency} "
        f"--processes {options.processes} --clients {options.clients} "
        f"--only {' '.join(options.only)}" + " --clock-steps" * options.clock_steps
    )


def main():
    options = arguments()
    if options.directory.exists():
        shutil.rmtree(options.directory)
    run = Run(options)
    print(f"seed {options.seed}, mode {options.mode}, {options.concurrency}", flush=True)
    try:
        run.run()
    except (Failure, AssertionError, RuntimeError) as failure:
        print(f"{failure}\nkept: {options.directory}\nagain: {again(options)}", file=sys.stderr)
        print(run.summary())
        return 1
    print(run.summary())
    print(f"none wrong, {run.outcomes[UNKNOWN]} in doubt")
    shutil.rmtree(options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
