#!/usr/bin/python3
"""What puts over a few entities cost that everybody writes to, once they have been written often.

One server's hot entities are written many times; then it takes turns with servers that have just
been started, whose entities are as hot and new: so many puts on the one, as many on the other, by
as many clients as there are entities. `Of the fresh rate` is the median of the turns' ratios, by
the server's CPU time for a put and by puts a second.

With --former BINARY the same is done with another program, in the same turns.
"""

import argparse
import statistics
from contextlib import ExitStack
from pathlib import Path

import client as clients
from client import Client
from servers import TRESTLE, serve


def new_client(server, options):
    connections = 4
    client = Client(
        server,
        rows=options.entities,
        connections=connections,
        streams=options.entities // connections,
        duration=3600,
    )
    client.run("entities")
    client.run("update", operations=options.entities)
    return client


def cost(result):
    """CPU microseconds of a put."""
    return result["server_cpu_seconds"] * 1e6 / result["requests"]


def rate(result):
    """Puts a second."""
    return result["requests"] / result["seconds"]


def turn(worn, program, options, seed):
    """(of the fresh server, of the worn)"""
    with serve(program) as server:
        fresh = new_client(server, options)
        worn.run("update", operations=options.entities)  # both have just been busy
        first = fresh.run("update", operations=options.puts, seed=seed)
    return first, worn.run("update", operations=options.puts, seed=seed)


def report(program, taken):
    fresh, worn = zip(*taken)
    costs = [cost(new) / cost(old) for new, old in taken]
    rates = [rate(old) / rate(new) for new, old in taken]
    each = ", ".join(f"{ratio:.2f}" for ratio in sorted(costs))
    print(f"| {Path(program).name} | {statistics.median(map(cost, fresh)):.0f} "
          f"| {statistics.median(map(cost, worn)):.0f} | {statistics.median(costs):.2f} ({each}) "
          f"| {statistics.median(map(rate, fresh)):,.0f} "
          f"| {statistics.median(map(rate, worn)):,.0f} "
          f"| {statistics.median(rates):.2f} |", flush=True)  # fmt: skip


def measure(options):
    programs = list(filter(None, (options.former, TRESTLE)))
    with ExitStack() as stack:
        worn = {}
        taken = {program: [] for program in programs}
        for program in programs:
            worn[program] = new_client(stack.enter_context(serve(program)), options)
            worn[program].run("update", operations=options.updates)
        for i in range(options.turns):
            for program in programs:
                taken[program].append(turn(worn[program], program, options, 100 + i))
        print(f"| | us of CPU a put, fresh | after {options.updates:,} | of the fresh rate "
              "| puts/s, fresh | after | of the fresh rate |")  # fmt: skip
        print("|---|---:|---:|---:|---:|---:|---:|")
        for program in programs:
            report(program, taken[program])


def main():
    parser = argparse.ArgumentParser(
        prog="./dev bench hot-entities",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--entities", type=int, default=16, help="a multiple of 4")
    parser.add_argument("--updates", type=int, default=20_000, help="before the turns")
    parser.add_argument("--puts", type=int, default=1_000, help="of a turn, on each server")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--former", help="another program, to be compared with")
    options = parser.parse_args()
    clients.TRESTLE = TRESTLE
    measure(options)


if __name__ == "__main__":
    main()
