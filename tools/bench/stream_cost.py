#!/usr/bin/python3
"""What a change stream costs its table's writers, and how its readers fare.

Writes: two servers stand side by side, of one the table has a stream. `trestle bench` makes as many
writes on one, then on the other, turn about, with the order of each pair the other way round than
that of the pair before; a turn ends when the server is at rest, so flushes and compactions count,
which small write buffers make often. Of each pair the CPU time is divided.

Catching up: a million changes are made, and a reader reads them all, for the first time and once
more.

Latency: a table with a stream is written to at a steady pace. Rows whose keys nobody else writes
are written beside, by REST, one after the other, and `trestle tail` prints these: the time from the
answer to the line. The same load without a stream is run in between, for its own latencies; and how
late a thread wakes that does nothing but sleep tells what the machine does to all of it.

Idle readers: of a table with a thousand partitions, all of them read by one `trestle tail`.
"""

import argparse
import base64
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

from client import Client
from servers import TRESTLE, Server, trestle_command

TABLE = "projects/p/instances/i/tables/bench"
BUFFER = ("--write-buffer", "16MB")
# Partitions stay as they are.
WHOLE = ("--split-size", "1TB", "--split-load", "1000000000", "--merge-after", "30d")
WRITES = [
    # what it is, the workload, its options, requests of a turn
    ("MutateRow", "write", {}, 60_000),
    ("MutateRows of 100 rows", "batch", {}, 4_000),
    ("MutateRow of 10 cells", "write", {"cells": 10}, 30_000),
]
MARK = "mark"
MARK_SECONDS = 0.02  # between two
SLEEP_SECONDS = 0.001


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


# --- writes ---


def cpu_of(client, workload, operations):
    """Of the server until it is at rest again."""
    before = client.server.cpu_seconds()
    client.run(workload, operations=operations, duration=3600)
    client.server.await_rest()
    return client.server.cpu_seconds() - before


def pairs_of(options, workload, own, operations, streamed_first):
    settings = trestle_command(*BUFFER)
    with Server(settings) as one, Server(settings) as other:
        streamed, plain = (one, other) if streamed_first else (other, one)
        clients = [
            Client(streamed, rows=options.rows, stream=True, **own),
            Client(plain, rows=options.rows, **own),
        ]
        for client in clients:
            client.run("load")
            cpu_of(client, workload, operations)
        written = streamed.metric("change_log_written_bytes_total")
        for turn in range(options.turns):
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            pair = {which: cpu_of(clients[which], workload, operations) for which in order}
            yield pair[0], pair[1]
        written = streamed.metric("change_log_written_bytes_total") - written
        options.logged.append(written / (options.turns * operations))


def measure_writes(options):
    print(f"load when it began: {os.getloadavg()[0]:.1f}\n")
    print("| write | us of CPU with a stream | without | ratio | least–most | bytes logged |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, workload, own, operations in WRITES:
        options.logged = []
        pairs = []
        for couple in range(options.couples):
            pairs += pairs_of(options, workload, own, operations, couple % 2 == 0)
        us = [statistics.median(side) * 1e6 / operations for side in zip(*pairs, strict=True)]
        ratios = [streamed / plain for streamed, plain in pairs]
        print(f"| {name} | {us[0]:.1f} | {us[1]:.1f} | {statistics.median(ratios):.2f} "
              f"| {min(ratios):.2f}–{max(ratios):.2f} | {statistics.median(options.logged):.0f} |",
              flush=True)  # fmt: skip


# --- catching up ---


def measure_reading(options):
    print("\n| reading | changes | per CPU second of the server | per second |")
    print("|---|---:|---:|---:|")
    with Server(trestle_command(*WHOLE)) as server:
        command = [TRESTLE, "bench", "--json", "--endpoint", server.endpoint, "--server-pid",
                   str(server.pid), "--stream", "--rows", str(options.changes), "--connections",
                   "1", "--streams", "1", "--operations", "1", "--duration", "1h",
                   "--workloads", "load,changes,changes"]  # fmt: skip
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name, line in zip(["the first time", "again"], lines.splitlines()[1:], strict=True):
        found = json.loads(line)
        print(f"| {name} | {found['rows']:,} | {found['rows'] / found['server_cpu_seconds']:,.0f} "
              f"| {found['rows'] / found['seconds']:,.0f} |")  # fmt: skip


# --- latency ---


class Tail:
    """`trestle tail` of the rows that are marked: {key: when its line came}."""

    def __init__(self, server):
        command = [TRESTLE, "tail", "bench", "--endpoint", server.endpoint, "--prefix", MARK]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.came = {}
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            at = time.monotonic()
            self.came[json.loads(line)["key"]] = at

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.thread.join()


class Sleeper(threading.Thread):
    """How late it wakes, in seconds."""

    def __init__(self):
        super().__init__(daemon=True)
        self.late, self.is_over = [], threading.Event()

    def run(self):
        while not self.is_over.is_set():
            before = time.monotonic()
            time.sleep(SLEEP_SECONDS)
            self.late.append(time.monotonic() - before - SLEEP_SECONDS)


def mark(server, key):
    """Writes the row; when it was acknowledged."""
    text = base64.b64encode(key.encode()).decode()
    cell = {"familyName": "cf", "columnQualifier": "YzA=", "timestampMicros": "1000", "value": ""}
    body = {"rowKey": text, "mutations": [{"setCell": cell}]}
    request = urllib.request.Request(
        f"http://{server.endpoint}/v2/{TABLE}:mutateRow", json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()
    return time.monotonic()


def load(server, options, number):
    """(p99 of the load in ms, when each mark was acknowledged)."""
    client = Client(server, rows=options.rows, rate=options.rate)
    running, acknowledged = client.start("write", duration=options.latency_seconds), {}
    while running.process.poll() is None:
        key = f"{MARK}{number:03}{len(acknowledged):06}"
        acknowledged[key] = mark(server, key)
        time.sleep(MARK_SECONDS)
    return running.result()["p99_us"] / 1000, acknowledged


def one_latency(options, streamed, plain, number):
    """(p50, p99, most of the latencies, p99 of the load with and without; all ms)."""
    with contextlib.closing(Tail(streamed)) as tail:
        time.sleep(1)
        with_p99, acknowledged = load(streamed, options, number)
        time.sleep(1)
    without_p99, _ = load(plain, options, number)
    late = [1000 * (tail.came[key] - at) for key, at in acknowledged.items()]
    return percentile(late, 0.5), percentile(late, 0.99), max(late), with_p99, without_p99


def measure_latency(options):
    print(f"\n{options.rate} writes a second; ms\n")
    print("| run | from answer to line: p50 | p99 | most | writes with a stream, and a reader: p99 "
          "| without | a sleeper is late: p99 |")  # fmt: skip
    print("|---|---:|---:|---:|---:|---:|---:|")
    found = []
    with Server(trestle_command()) as streamed, Server(trestle_command()) as plain:
        Client(streamed, rows=options.rows, stream=True).run("load")
        Client(plain, rows=options.rows).run("load")
        for number in range(options.latency_runs):
            sleeper = Sleeper()
            sleeper.start()
            found.append(one_latency(options, streamed, plain, number))
            sleeper.is_over.set()
            sleeper.join()
            slept = 1000 * percentile(sleeper.late, 0.99)
            print("| {} | {:.2f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |".format(
                number + 1, *found[-1], slept), flush=True)  # fmt: skip
    ratio = statistics.median(each[3] / each[4] for each in found)
    p99 = statistics.median(each[1] for each in found)
    print(f"\nmedian: p99 {p99:.1f} ms from answer to line; of writes {ratio:.2f} × that without a "
          "stream")  # fmt: skip


# --- idle readers ---


def resident(server):
    for line in open(f"/proc/{server.pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise KeyError("VmRSS")


def measure_idle(options):
    with Server(trestle_command(*WHOLE)) as server:
        client = Client(server, rows=options.rows, stream=True, tablets=options.partitions)
        client.run("load")
        server.await_rest()
        before = resident(server)
        with contextlib.closing(Tail(server)):
            time.sleep(15)
            cpu = server.cpu_seconds()
            time.sleep(10)
            cpu = (server.cpu_seconds() - cpu) / 10
            readers, more = server.metric("change_streams"), resident(server) - before
            print(f"\n{readers:.0f} idle readers, heartbeats each second: {more:.1f} MB more than "
                  f"without, {100 * cpu:.1f} % of a processor")  # fmt: skip


PARTS = {"writes": measure_writes, "reading": measure_reading, "latency": measure_latency,
         "idle": measure_idle}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="./dev bench streams", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what; all")
    parser.add_argument("--rows", type=int, default=50_000, help="that are written to")
    parser.add_argument("--turns", type=int, default=5, help="pairs of them, a couple of servers")
    parser.add_argument("--couples", type=int, default=2, help="of servers, one after the other")
    parser.add_argument("--changes", type=int, default=1_000_000, help="that are caught up with")
    parser.add_argument("--rate", type=int, default=5_000, help="writes a second")
    parser.add_argument("--latency-seconds", type=float, default=10)
    parser.add_argument("--latency-runs", type=int, default=5)
    parser.add_argument("--partitions", type=int, default=1_000, help="1 to 1,000")
    options = parser.parse_args()
    for part in options.parts or PARTS:
        PARTS[part](options)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
