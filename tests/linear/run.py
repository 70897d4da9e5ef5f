#!/usr/bin/env python3
"""Many clients on few rows, kills in between, and a proof that each row was linearizable.

Several processes (client.py) record what each client called, when, and what was answered; the
server is killed at random moments and started again on the same data. Then the checker looks, row
by row, for an order in which all of it can have happened (checker.py, row.py). README.md says more.

Exit code 0 if there is one for each row, 1 if not, or if something else was wrong; the histories
and the data are kept then.
"""

import argparse
import json
import random
import re
import select
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests")]

import row  # noqa: E402
from checker import Operation, check  # noqa: E402
from client import FAMILIES, row_key, set_constant  # noqa: E402
from harness.rpc import Rpc  # noqa: E402
from harness.server import SHARDS, SHARDS_TYPED, Server, run_trestle  # noqa: E402

# Rows spill, tables are flushed and tablets split and merge, all the time.
SETTINGS = {
    "--cache": "8MB",
    "--write-buffer": "4MB",
    "--overflow-threshold": "256",
    "--split-load": "50",
    "--merge-after": "1s",
    "--gc-interval": "1s",
    "--disk-reserve": "0",
}
CLIENTS_A_PROCESS = 16
SHOWN_OPERATIONS = 12
ANSWER_SECONDS = 120  # more than a request's deadline


class Failure(Exception):
    pass


class ClientProcess:
    def __init__(self, options, table, history, numbers):
        command = [sys.executable, Path(__file__).with_name("client.py"), table, options.rows,
                   options.seed, history, *numbers]  # fmt: skip
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def command(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def answer(self):
        if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
            raise Failure("a process of clients does not answer")
        line = self.process.stdout.readline()
        if not line:
            raise Failure("a process of clients ended")
        return json.loads(line)

    def close(self):
        self.process.kill()
        self.process.communicate()


class Run:
    def __init__(self, options):
        self.options = options
        options.directory.mkdir(parents=True)
        words = [word for setting in SETTINGS.items() for word in setting]
        self.server = Server(options.directory, words)
        self.processes = []
        self.histories = []
        self.operations = 0

    def lives(self):
        """How long each life of the server is, in seconds: about as long as the others."""
        dice = random.Random(self.options.seed)
        shares = [dice.uniform(0.5, 1.5) for _ in range(self.options.kills + 1)]
        return [self.options.seconds * share / sum(shares) for share in shares]

    def run(self):
        try:
            *killed, last = self.lives()
            self.server.start()
            self.make_clients(self.make_table())
            for seconds in killed:
                self.live(seconds, is_killed=True)
                self.server.start()
            self.live(last, is_killed=False)
            self.server.stop()
        finally:
            for process in self.processes:
                process.close()
            if self.server.process is not None:
                self.server.kill()
        self.server.check_log()
        if SHARDS > 1:
            return  # the doctor looks at one store
        doctor = run_trestle("doctor", self.server.data)
        if doctor.returncode != 0:
            raise Failure(f"doctor: exit {doctor.returncode}\n{doctor.stdout}{doctor.stderr}")

    def make_table(self):
        rpc = Rpc(self.server.host)
        try:
            families = dict.fromkeys(FAMILIES, {"max_num_versions": 1})
            table = rpc.create_table("linear", families, splits=[row_key(5).encode()])
            for i in range(self.options.rows):
                rpc.mutate(table, row_key(i).encode(), set_constant())
        finally:
            rpc.close()
        return table

    def make_clients(self, table):
        count = self.options.clients
        for first in range(0, count, CLIENTS_A_PROCESS):
            numbers = range(first, min(first + CLIENTS_A_PROCESS, count))
            self.histories.append(self.options.directory / f"history-{first}.jsonl")
            self.processes.append(
                ClientProcess(self.options, table, self.histories[-1], numbers)
            )
        for process in self.processes:
            process.answer()

    def live(self, seconds, is_killed):
        """Lets the clients work. None of their connections may end before the server is killed."""
        for process in self.processes:
            process.command("work", self.server.host)
        time.sleep(seconds)
        killed_at = time.monotonic_ns()
        if is_killed:
            self.server.kill()
        for process in self.processes:
            process.command("rest")
        for process in self.processes:
            self.take(process.answer(), killed_at if is_killed else None)

    def take(self, summary, killed_at):
        self.operations += summary["operations"]
        if summary["failure"] is not None:
            raise Failure(summary["failure"])
        failed_at = summary["failed_at"]
        if failed_at is not None and (killed_at is None or failed_at < killed_at):
            raise Failure("a connection ended by itself")


# --- the proof ---


def read_histories(paths):
    """The operations by row."""
    rows = defaultdict(list)
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for each in map(json.loads, file):
                if each["answer"] is None and row.only_looks(each["call"]):
                    continue
                rows[each["row"]].append(
                    Operation(each["invoked"], each["returned"], each["call"], each["answer"])
                )
    return rows


def prove(rows):
    """What is wrong, a text for each row without an order."""
    problems = []
    for key, operations in sorted(rows.items()):
        verdict = check(operations, row)
        if not verdict.is_linearizable:
            problems.append(f"row {key}: {explain(verdict, operations)}")
    return problems


def explain(verdict, operations):
    if verdict.is_undecided:
        return "too many orders to try"
    begin = min(operation.invoked for operation in operations)
    lines = [f"not linearizable: {len(verdict.order)} operations can be explained, the last are"]
    lines += [line_of(operation, begin) for operation in verdict.order[-SHOWN_OPERATIONS:]]
    lines += [f"the row is then {verdict.state}; next would have to be one of"]
    lines += [line_of(operation, begin) for operation in verdict.stuck[:SHOWN_OPERATIONS]]
    return "\n".join(lines)


def line_of(operation, begin):
    """Times in milliseconds; texts without their padding."""
    invoked, returned = (operation.invoked - begin) / 1e6, (operation.returned - begin) / 1e6
    answer = json.dumps(operation.answer) if operation.is_certain else "?"
    line = f"  {invoked:.3f} to {returned:.3f}: {json.dumps(operation.call)} -> {answer}"
    return re.sub(r"\.+", ".", line)


def summary(run, rows, checking_seconds):
    operations = [operation for history in rows.values() for operation in history]
    unknown = sum(not operation.is_certain for operation in operations)
    return (
        f"{run.operations} requests of {run.options.clients} clients, {run.options.kills} kills: "
        f"{len(operations)} operations on {len(rows)} rows, {unknown} of unknown outcome; "
        f"checked in {checking_seconds:.1f} s"
    )


def arguments():
    parser = argparse.ArgumentParser(description="Checks that rows are linearizable.")
    add = parser.add_argument
    add("--clients", type=int, default=64, metavar="N", help="default 64")
    add("--seconds", type=float, default=120, metavar="S", help="of work in all; default 120")
    add("--kills", type=int, default=10, metavar="K", help="default 10")
    add("--rows", type=int, default=16, metavar="N", help="default 16")
    add("--seed", type=int, metavar="N", help="default: chosen, and printed")
    add("--directory", type=Path, metavar="DIR", help="default build/linear-SEED; made anew")
    add("--history", type=Path, nargs="+", metavar="FILE", help="only check these, of a former run")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().getrandbits(31)
    if options.directory is None:
        options.directory = ROOT / "build" / f"linear-{options.seed}"
    options.directory = options.directory.resolve()
    return options


def again(options):
    return SHARDS_TYPED + (
        f"tests/linear/run.py --clients {options.clients} --seconds {options.seconds} "
        f"--kills {options.kills} --rows {options.rows} --seed {options.seed}"
    )


def perform(options):
    """The problems that were found."""
    shutil.rmtree(options.directory, ignore_errors=True)
    print(f"seed {options.seed}", flush=True)
    run = Run(options)
    try:
        run.run()
    except (Failure, AssertionError, RuntimeError) as failure:
        return [str(failure)]
    rows = read_histories(run.histories)
    began = time.monotonic()
    problems = prove(rows)
    print(summary(run, rows, time.monotonic() - began))
    return problems


def main():
    options = arguments()
    if options.history:
        problems = prove(read_histories(options.history))
    else:
        problems = perform(options)
    if problems:
        print("\n".join(problems[:5]), file=sys.stderr)
        print(f"kept: {options.directory}\nagain: {again(options)}", file=sys.stderr)
        return 1
    print("linearizable")
    shutil.rmtree(options.directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
