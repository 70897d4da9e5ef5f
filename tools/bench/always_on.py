#!/usr/bin/python3
"""What the server counts while nobody asks costs a point read.

Two servers stand side by side: one as it is by itself, with a page of the console open that asks
for metrics and heat; and one without heat, slow requests, remembered metrics and anybody who asks.
`trestle bench` reads rows from one, then from the other, turn about, with the order of each pair
the other way round than that of the pair before: what changes on the machine meanwhile meets both.
Of each pair the CPU time a request of the first is divided by that of the second. Where a server's
memory came to lie costs it, or spares it, some percent as long as it runs: so new ones are started
again and again, and the interval is that of drawing couples of servers, and of each of them pairs.

On a busy machine that tells no less than two percent. --samples lets perf look at one server many
thousand times while rows are read and the page asks, and sorts what it saw: which share of the CPU
time was spent on counting, and which in other threads than those that answer reads.

Counting requests by method and app profile cannot be switched off; how many instructions a request
it takes, as all the rest, is what --instructions counts, by callgrind.
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
from profiling import record, threads_and_symbols
from servers import ROOT, TRESTLE, Server, trestle_command

OFF = ["--heat=false", "--slow-request", "0", "--metrics-retention", "0"]
TABLE = "projects/p/instances/i/tables/bench"
METRICS_PAGE = "/v1/servers/self/metrics"
HEAT = f"/v1/{TABLE}:heat"
# The console's pages ask so often.
METRICS_SECONDS, HEAT_SECONDS = 2, 10
GOAL = 1.01
RESAMPLES = 2_000
# With callgrind: more than the first of a window, which are counted each.
WARMING, COUNTED = 300_000, 20_000
METRICS_OF_CALLS = "metrics by method and profile"
# Who of the server is asked about, with all that they call.
COUNTERS = {
    "heat": r"heat_begin|heat_end_read|heat_counts_\w+",
    "what requests do": r"request_usage_\w+",
    "slow requests": r"slow_log_concerns",
    METRICS_OF_CALLS: r"metrics_rpc_ended|metrics_profile",
}
REMEMBERING = "remembered metrics: the thread of the history, and not its commits"
OTHER_THREADS = "all other threads but the loops: the page's requests, maintenance"
TURN_SECONDS, WINDOW_SECONDS, SAMPLED_SECONDS = 0.5, 65, 60


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
            self.get(METRICS_PAGE)
            if self.asked % (HEAT_SECONDS // METRICS_SECONDS) == 0:
                self.get(HEAT)
            self.asked += 1

    def get(self, path):
        with urllib.request.urlopen(self.address + path) as answer:
            answer.read()


def page_of(server, options):
    return contextlib.nullcontext() if options.no_page else Page(server)


def cpu_us(client, options):
    """Of the server, for one request."""
    result = client.run("read", duration=options.seconds or TURN_SECONDS)
    return result["server_cpu_seconds"] * 1e6 / result["requests"]


def prepare(server, options):
    client = Client(server, rows=options.rows)
    client.run("load")
    server.await_rest()
    cpu_us(client, options)  # caches are warm, and heat has come to one in so many
    return client


def turns(options, full_is_first):
    """(with, without) of each pair of a couple of servers, in microseconds of CPU a read."""
    settings = [[], OFF] if full_is_first else [OFF, []]
    with (
        Server(trestle_command(*settings[0])) as first,
        Server(trestle_command(*settings[1])) as second,
    ):
        full, bare = (first, second) if full_is_first else (second, first)
        with page_of(full, options):
            both = prepare(full, options), prepare(bare, options)
            for turn in range(options.turns):
                order = (0, 1) if turn % 2 == 0 else (1, 0)
                pair = dict((which, cpu_us(both[which], options)) for which in order)
                yield pair[0], pair[1]


def median_ratio(pairs):
    return statistics.median(full / bare for full, bare in pairs)


def ratio_of(couples):
    """The mean of the couples' medians: each couple's luck counts once."""
    return statistics.fmean(median_ratio(pairs) for pairs in couples)


def interval(couples):
    """Where the ratio lies, 95 times of 100: by drawing couples and pairs again and again."""
    draw = random.Random(1)

    def again(sample):
        return draw.choices(sample, k=len(sample))

    ratios = sorted(
        ratio_of([again(pairs) for pairs in again(couples)]) for _ in range(RESAMPLES)
    )
    return ratios[RESAMPLES * 25 // 1000], ratios[RESAMPLES * 975 // 1000]


def measure(options):
    """The pairs of each couple of servers."""
    couples = []
    for number in range(options.couples):
        pairs = list(turns(options, full_is_first=number % 2 == 0))
        print(f"{number + 1}: {median_ratio(pairs):.4f}", file=sys.stderr)
        couples.append(pairs)
    return couples


def compare(options):
    couples = measure(options)
    pairs = [pair for pairs in couples for pair in pairs]
    least, most = interval(couples)
    print(f"load when it began: {options.load:.1f}")
    print(f"with:    {statistics.median(full for full, _ in pairs):.3f} us of CPU a read (median)")
    print(f"without: {statistics.median(bare for _, bare in pairs):.3f}")
    print(
        f"ratio:   {ratio_of(couples):.4f}, between {least:.4f} and {most:.4f} (95 %), "
        f"{len(couples)} couples of servers, {len(pairs)} pairs"
    )
    print(f"goal:    under {GOAL}: {'met' if most < GOAL else 'not shown'}")


# --- samples ---


def sort_samples(data):
    """The share of each counter, and of the threads that serve no reads."""
    counts = dict.fromkeys([*COUNTERS, REMEMBERING, OTHER_THREADS], 0)
    total = 0
    for thread, symbols in threads_and_symbols(data):
        total += 1
        if not thread.startswith("loop-"):
            counts[REMEMBERING if thread == "history" else OTHER_THREADS] += 1
            continue
        for what, pattern in COUNTERS.items():
            if any(re.fullmatch(pattern, symbol) for symbol in symbols):
                counts[what] += 1
                break
    return total, {what: count / total for what, count in counts.items()}


def look_on(options):
    with Server(trestle_command()) as server, page_of(server, options):
        client = prepare(server, options)
        # Maintenance has looked at what was loaded when a window of the heat has passed.
        client.run("read", duration=WINDOW_SECONDS)
        seconds = options.seconds or SAMPLED_SECONDS
        reading = client.start("read", duration=seconds + 2)
        total, shares = sort_samples(record(server, seconds))
        reading.result()
    print(f"| of the server's CPU time, {total:,} samples | share |")
    print("|---|---|")
    for what, share in shares.items():
        print(f"| {what} | {100 * share:.2f} % |")
    whole = sum(shares.values())
    can_be_off = whole - shares[METRICS_OF_CALLS]
    print(f"| all | {100 * whole:.2f} % |")
    print(f"| **all that can be switched off** | **{100 * can_be_off:.2f} %** |")
    print(f"goal: under {100 * (GOAL - 1):.0f} %: {'met' if can_be_off < GOAL - 1 else 'NOT MET'}")


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
    parser.add_argument("--seconds", type=float, help="of each turn: 0.5; with --samples: 60")
    parser.add_argument("--turns", type=int, default=40, help="pairs of them, a couple of servers")
    parser.add_argument("--couples", type=int, default=10, help="of servers, one after the other")
    parser.add_argument("--no-page", action="store_true", help="no page of the console is open")
    parser.add_argument(
        "--instructions", action="store_true", help="counts them instead: needs valgrind"
    )
    parser.add_argument(
        "--samples", action="store_true", help="sorts where it spends its time: needs perf"
    )
    options = parser.parse_args()
    options.load = os.getloadavg()[0]
    if options.instructions:
        count_instructions()
    elif options.samples:
        look_on(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
