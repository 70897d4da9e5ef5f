#!/usr/bin/python3
"""What scans of a table cost after its rows were overwritten one by one, at random, and while they
still are.

A server has two tables: one that was loaded and left alone, and one whose rows have then been
overwritten so many times each by MutateRow. Scans of 100 rows go over both in turn, so that both
meet the same noise of the machine. The second table is scanned for ten seconds right after the
writes, and then, both again, while one `trestle bench` goes on with writes at a steady pace. What
these cost by themselves is told by scans of the first table with them and without, and is not
counted.

With --former BINARY the same is done with another program's server, and what MutateRow costs is
compared: so many writes on the one, then on the other, turn about, each until the server is at
rest, so that flushes and compactions count.
"""

import argparse
import contextlib
import statistics
from pathlib import Path

import client as clients
from client import Client
from servers import TRESTLE, serve

FRESH, WORN = (f"projects/p/instances/i/tables/{name}" for name in ("fresh", "worn"))
AFTER_SECONDS = 10
TURN_SECONDS = 1.4


class Sum:
    def __init__(self):
        self.rows = self.cpu = self.seconds = 0

    def add(self, result):
        self.rows += result["rows"]
        self.cpu += result["server_cpu_seconds"]
        self.seconds += result["seconds"]

    def cost(self):
        """CPU seconds of a row."""
        return self.cpu / self.rows


def scan(client, table, seconds, into):
    into.add(client.run("scan", table=table, duration=seconds))


# --- scans ---


def overwrite(client, options):
    client.run("load", table=FRESH)
    client.run("load", table=WORN)
    client.server.await_rest()
    count = round(options.times * options.rows)
    client.run("write", table=WORN, operations=count, duration=3600)


def beside_writes(client, options, alone):
    """The cost of a row of the worn table while writes go on, without theirs."""
    sums = {FRESH: Sum(), WORN: Sum()}
    seconds = 2 * options.turns * (TURN_SECONDS + 0.3)
    writes = client.start("write", table=WORN, rate=options.rate, duration=seconds, seed=77)
    for turn in range(2 * options.turns):
        table = (FRESH, WORN)[turn % 2]
        scan(client, table, TURN_SECONDS, sums[table])
    writes.result()
    fresh, worn = sums[FRESH], sums[WORN]
    of_writes = max(0, fresh.cpu - alone.cost() * fresh.rows) / fresh.seconds
    return (worn.cpu - of_writes * worn.seconds) / worn.rows


def measure_scans(options, program, cells):
    with serve(program) as server:
        client = Client(server, rows=options.rows, cells=cells, value_size=100)
        overwrite(client, options)
        first, later, alone = Sum(), Sum(), Sum()
        scan(client, WORN, AFTER_SECONDS, first)
        for _ in range(2):
            scan(client, FRESH, TURN_SECONDS, alone)
            scan(client, WORN, TURN_SECONDS, later)
        beside = beside_writes(client, options, alone)
        scan(client, FRESH, TURN_SECONDS, alone)
        print(f"| {Path(program).name} | {cells} | {1 / alone.cost():,.0f} "
              f"| {alone.cost() / first.cost():.2f} | {alone.cost() / later.cost():.2f} "
              f"| {alone.cost() / beside:.2f} "
              f"| {server.metric('tables_settled_total'):.0f} |", flush=True)  # fmt: skip


def scans(options):
    print(f"| | cells | rows/CPU s, fresh | the {AFTER_SECONDS} s after {options.times:g} "
          f"overwrites a row, of that | then | beside {options.rate:,} writes/s | compacted |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for cells in options.cells:
        for program in filter(None, (options.former, TRESTLE)):
            measure_scans(options, program, cells)
        if options.former:
            compare_writes(options, cells)


# --- writes ---


def cpu_of_writes(client, count, seed):
    before = client.server.cpu_seconds()
    client.run("write", operations=count, duration=3600, seed=seed)
    client.server.await_rest()
    return client.server.cpu_seconds() - before


def compare_writes(options, cells):
    with contextlib.ExitStack() as stack:
        couple = []
        for program in (options.former, TRESTLE):
            server = stack.enter_context(serve(program))
            couple.append(Client(server, rows=options.rows, cells=cells, value_size=100))
            couple[-1].run("load")
        ratios = []
        for turn in range(options.turns):
            taken = {}
            for i in (0, 1) if turn % 2 else (1, 0):
                taken[i] = cpu_of_writes(couple[i], 2 * options.rows, turn + 1)
            ratios.append(taken[1] / taken[0])
    each = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    print(f"\nCPU of MutateRow, {cells} cells, of the former: "
          f"{statistics.median(ratios):.3f} ({each})\n", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        prog="./dev bench overwritten",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--cells", type=int, nargs="*", default=[1, 10], help="of a row")
    parser.add_argument("--times", type=float, default=7, help="that each row is overwritten")
    parser.add_argument("--rate", type=int, default=5_000, help="writes a second, then")
    parser.add_argument("--turns", type=int, default=7, help="of scans beside them, and of writes")
    parser.add_argument("--former", help="another program, to be compared with")
    options = parser.parse_args()
    clients.TRESTLE = TRESTLE
    scans(options)


if __name__ == "__main__":
    main()
