#!/usr/bin/python3
"""How a server does that is written, read and changed for ten minutes, and what memory it keeps.

A table of a million rows of three cells of 200 bytes is loaded. Then half reads and half writes
(mixed), MutateRows of 100 rows (batch), ReadModifyWriteRow (rmw) and AddToCell (add) take turns
of five seconds, with a server's default settings. Each workload's rate per CPU second of the
server in the last minute is compared with that in the first, and all of them by the geometric
mean. A pause is the slowest request of a turn; beside it stands what the server itself says of that
turn: writes held back, and turns of its event loops that took long.

Then the table is deleted, and, half a minute later, what is resident is compared with what the
settings add up to, and with what the caches hold.
"""

import argparse
import os
import statistics
import time
import urllib.request

import client as clients
from client import Client, rows_per_cpu_second
from servers import TRESTLE, Server, trestle_command

WORKLOADS = ["mixed", "batch", "rmw", "add"]
TABLE = "projects/p/instances/i/tables/soak"
CACHE_BYTES, WRITE_BUFFER_BYTES = 512 << 20, 128 << 20  # the defaults
PAUSE_MS = 200
SETTLED_SECONDS = 30
EXPLAINS = [
    "store_stall_milliseconds_total",
    "loop_slow_turns_total",
    "store_flushes_total",
    "store_compactions_total",
]
MB = 1e6


def delete_table(server):
    request = urllib.request.Request(f"http://{server.endpoint}/v2/{TABLE}", method="DELETE")
    with urllib.request.urlopen(request) as answer:
        answer.read()


def counters(server):
    told = server.metrics()
    return {name: told.get(name, 0) for name in EXPLAINS}


class Turns:
    """What was measured, and what it says."""

    def __init__(self):
        self.turns = []
        self.most_resident = 0

    def run(self, client, workload, seconds):
        server = client.server
        before = counters(server)
        result = client.run(workload, duration=seconds)
        after = counters(server)
        result["told"] = {name: after[name] - before[name] for name in EXPLAINS}
        self.turns.append((workload, result))
        self.most_resident = max(self.most_resident, server.resident_bytes())

    def shares(self, turns_a_minute):
        """{workload: rate of the last minute for that of the first}"""
        first, last = self.turns[:turns_a_minute], self.turns[-turns_a_minute:]
        return {name: rate(last, name) / rate(first, name) for name in WORKLOADS}

    def pauses(self):
        for number, (workload, result) in enumerate(self.turns):
            if result["max_us"] >= PAUSE_MS * 1000:
                yield number, workload, result


def rate(turns, workload):
    results = [result for name, result in turns if name == workload]
    cpu = sum(result["server_cpu_seconds"] for result in results)
    return sum(result["rows"] for result in results) / cpu


def tell_pause(number, workload, result):
    told = ", ".join(f"{name} {value:.0f}" for name, value in result["told"].items() if value)
    print(f"turn {number}, {workload}: {result['max_us'] / 1000:.0f} ms; {told}")


def tell_shares(turns, options):
    turns_a_minute = max(len(WORKLOADS), round(60 / options.turn))
    shares = turns.shares(turns_a_minute)
    print("\nRate per CPU second in the last minute, of that in the first: ", end="")
    print(", ".join(f"{name} {share:.2f}" for name, share in shares.items()), end="")
    print(f"; all {statistics.geometric_mean(shares.values()):.2f}")


def tell_memory(server, turns):
    before = server.resident_bytes()
    delete_table(server)
    time.sleep(SETTLED_SECONDS)
    told = server.metrics()
    held = told["store_cache_bytes"] + told["store_write_buffer_bytes"]
    after = server.resident_bytes()
    most, set_to, above = turns.most_resident, CACHE_BYTES + WRITE_BUFFER_BYTES, after - held
    print(f"\nResident: {most / MB:.0f} MB at most, {before / MB:.0f} at the end; "
          f"cache and write buffer are set to {set_to / MB:.0f}.")
    print(f"{SETTLED_SECONDS} s after the table was deleted: {after / MB:.0f} MB; "
          f"{held / MB:.0f} are in cache and write buffer, {above / MB:.0f} above them.")


def soak(options):
    with Server(trestle_command()) as server:
        client = Client(server, table=TABLE, rows=options.rows, cells=3, value_size=200)
        client.run("load")
        server.await_rest()
        turns = Turns()
        until = time.monotonic() + options.minutes * 60
        while time.monotonic() < until:
            for workload in WORKLOADS:
                turns.run(client, workload, options.turn)
        for pause in turns.pauses():
            tell_pause(*pause)
        tell_shares(turns, options)
        tell_memory(server, turns)


def main():
    parser = argparse.ArgumentParser(
        prog="./dev bench soak",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--turn", type=float, default=5, help="seconds of a workload")
    options = parser.parse_args()
    clients.TRESTLE = TRESTLE
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    soak(options)


if __name__ == "__main__":
    main()
