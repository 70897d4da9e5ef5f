#!/usr/bin/python3
"""What the server counts while nobody asks costs a point read.

Two servers stand side by side: one as it is by itself, with a page of the console open that asks
for metrics and heat; and one without heat, slow requests and anybody who asks. `trestle bench`
reads rows from one, then from the other, turn about, with the order of each pair the other way
round than that of the pair before: what changes on the machine meanwhile meets both. Of each pair
the CPU time a request of the first is divided by that of the second. Counting requests by method
and app profile cannot be switched off; how many instructions a request it takes, as all the rest,
is what --instructions counts, by callgrind.
"""

import argparse
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

from client import Client
from servers import ROOT, TRESTLE, Server, trestle_command

OFF = ["--heat=false", "--slow-request", "0"]
TABLE = "projects/p/instances/i/tables/bench"
METRICS = "/v1/servers/self/metrics"
HEAT = f"/v1/{TABLE}:heat"
# The console's pages ask so often.
METRICS_SECONDS, HEAT_SECONDS = 2, 10
GOAL = 1.01
RESAMPLES = 10_000
# With callgrind: more than the first of a window, which are counted each.
WARMING, COUNTED = 300_000, 20_000
# Who of the server is asked about, with all that they call.
COUNTERS = {
    "heat": r"heat_begin|heat_end_read",
    "slow requests": r"slow_log_concerns",
    "metrics by method and profile": r"metrics_rpc_ended|metrics_profile",
}


class Page:
    """Asks for what an open page of the console asks for, until the end of a `with` statement."""

    def __init__(self, server):
        self.address = f"http://{server.endpoint}"
        self.asked = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.ask)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def ask(self):
        while not self.is_over.wait(METRICS_SECONDS):
            self.get(METRICS)
            if self.asked % (HEAT_SECONDS // METRICS_SECONDS) == 0:
                self.get(HEAT)
            self.asked += 1

    def get(self, path):
        with urllib.request.urlopen(self.address + path) as answer:
            answer.read()


def cpu_us(client, options):
    """Of the server, for one request."""
    result = client.run("read", duration=options.seconds)
    return result["server_cpu_seconds"] * 1e6 / result["requests"]


def prepare(server, options):
    client = Client(server, rows=options.rows)
    client.run("load")
    server.await_rest()
    cpu_us(client, options)  # caches are warm, and heat has come to one in so many
    return client


def turns(options):
    """(with, without) of each pair, in microseconds of CPU a read."""
    with (
        Server(trestle_command()) as full,
        Server(trestle_command(*OFF)) as bare,
        contextlib.nullcontext() if options.no_page else Page(full),
    ):
        both = prepare(full, options), prepare(bare, options)
        for turn in range(options.turns):
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            pair = dict((which, cpu_us(both[which], options)) for which in order)
            print(f"{turn + 1}: {pair[0]:.3f} {pair[1]:.3f}", file=sys.stderr)
            yield pair[0], pair[1]


def interval(ratios):
    """Where the median lies, 95 times of 100: by drawing from the ratios again and again."""
    draw = random.Random(1)
    medians = sorted(
        statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)
    )
    return medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000]


def compare(options):
    pairs = list(turns(options))
    ratios = [full / bare for full, bare in pairs]
    least, most = interval(ratios)
    median = statistics.median(ratios)
    print(f"load when it began: {options.load:.1f}")
    print(f"with:    {statistics.median(full for full, _ in pairs):.3f} us of CPU a read (median)")
    print(f"without: {statistics.median(bare for _, bare in pairs):.3f}")
    print(f"ratio:   {median:.4f}, between {least:.4f} and {most:.4f} (95 %), {len(pairs)} pairs")
    print(f"goal:    under {GOAL}: {'met' if most < GOAL else 'not shown'}")


# --- instructions ---


class Callgrind(Server):
    """A server that runs in callgrind, which counts when it is told to."""

    def __init__(self, program, output, settings):
        super().__init__([
            "valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}",
            program, *trestle_command(*settings, "--threads", "1")[1:],
        ])  # fmt: skip

    def count(self, state):
        command = ["callgrind_control", f"--instr={state}", str(self.pid)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def count_reads(program, output, settings):
    """Counts into `output` the instructions of COUNTED reads."""
    with Callgrind(program, output, settings) as server:
        client = Client(server, rows=20_000, connections=1)
        client.run("load")
        client.run("read", operations=WARMING, duration=600)
        server.count("on")
        client.run("read", operations=COUNTED, duration=600)
        server.count("off")


def instructions(output):
    """Of a read: all of them, and those of each counter."""
    command = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", output]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = re.findall(r"^\s*([\d,]+)(?: \([^)]*\))?\s+(.*)$", text, re.MULTILINE)
    total = next(int(count.replace(",", "")) for count, name in lines if "PROGRAM TOTALS" in name)
    found = {"all": total / COUNTED}
    for what, pattern in COUNTERS.items():
        own = re.compile(rf":(?:{pattern})(?:'2)?(?: |$)")
        counts = [int(count.replace(",", "")) for count, name in lines if own.search(name)]
        found[what] = sum(counts) / COUNTED
    return found


def count_instructions():
    measured = {}
    with tempfile.TemporaryDirectory(prefix="trestle-bench-", dir=ROOT / "build") as directory:
        program = str(Path(directory) / "trestle")  # valgrind does not know this form of DWARF
        subprocess.run(["objcopy", "--strip-debug", TRESTLE, program], check=True)
        for name, settings in ("with", []), ("without", OFF):
            output = str(Path(directory) / name)
            count_reads(program, output, settings)
            measured[name] = instructions(output)
    print("| instructions of a read | with | without |")
    print("|---|---|---|")
    for what, count in measured["with"].items():
        print(f"| {what} | {count:,.0f} | {measured['without'][what]:,.0f} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench always-on", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3, help="of each turn")
    parser.add_argument("--turns", type=int, default=40, help="pairs of them")
    parser.add_argument("--no-page", action="store_true", help="no page of the console is open")
    parser.add_argument(
        "--instructions", action="store_true", help="counts them instead: needs valgrind"
    )
    options = parser.parse_args()
    options.load = os.getloadavg()[0]
    if options.instructions:
        count_instructions()
    else:
        compare(options)


if __name__ == "__main__":
    main()
