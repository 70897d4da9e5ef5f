"""A differential test of SQL against SQLite: README.md says what it does.

    python -m differential --seed S --queries N [--host H] [--jobs J]
    python -m differential --seed S --only ROUND/PLACE
"""

import argparse
import collections
import multiprocessing
import random
import sys
import tempfile
import time

from differential.compare import QUERIES_A_ROUND, run_round
from harness import server as harness_server

SERVER_OPTIONS = ["--log-level", "warn"]


def arguments_of(argv):
    parser = argparse.ArgumentParser(prog="differential", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", default=str(random.randrange(10**9)), help="random by default")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--host", help="of a server that runs; without, one is started")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--only", metavar="ROUND/PLACE", help="one query of the seed")
    parser.add_argument("--features", action="store_true", help="print how often each was used")
    parser.add_argument("--stop-after", type=int, default=10, metavar="N", help="differences")
    return parser.parse_args(argv)


def rounds_of(arguments):
    """(number, places) of the rounds that are to be run."""
    if arguments.only:
        number, place = map(int, arguments.only.split("/"))
        return [(number, [place])]
    full, rest = divmod(arguments.queries, QUERIES_A_ROUND)
    sizes = [QUERIES_A_ROUND] * full + [rest] * (rest > 0)
    return [(number, range(size)) for number, size in enumerate(sizes)]


def outcomes(arguments, host):
    tasks = [(host, arguments.seed, *each) for each in rounds_of(arguments)]
    if arguments.jobs == 1 or len(tasks) == 1:
        yield from map(run_round, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        yield from pool.imap_unordered(run_round, tasks)


def report(seed, number, place, difference, small):
    command = f"./dev differential --seed {seed} --only {number}/{place}"
    print(f"--- differs: {command}\n{difference}\n--- small\n{small}\n", flush=True)


def summary(seed, counts, seconds, features):
    asked = counts["queries"]
    lines = [f"seed {seed}: {asked} queries alike, {counts['differences']} not; {seconds:.0f} s"]
    for name in ["rows", "no rows", "refused by both", "ordered"]:
        share = counts[name] / max(asked, 1)
        lines.append(f"  {name}: {counts[name]} ({share:.1%})")
    lines.append(f"  rows in all: {counts['rows in all']}")
    if features:
        named = {key[1]: n for key, n in counts.items() if isinstance(key, tuple)}
        used = sorted(named.items(), key=lambda pair: -pair[1])
        lines.append("  used by: " + ", ".join(f"{name} {n}" for name, n in used))
    return "\n".join(lines)


def run(arguments, host):
    started, counts = time.monotonic(), collections.Counter()
    for number, more, differences in outcomes(arguments, host):
        counts.update(more)
        for each in differences:
            report(arguments.seed, number, *each)
        if counts["differences"] >= arguments.stop_after:
            break
    seconds = time.monotonic() - started
    print(summary(arguments.seed, counts, seconds, arguments.features), flush=True)
    return counts


def main(argv=None):
    arguments = arguments_of(argv)
    print(f"./dev differential --seed {arguments.seed} --queries {arguments.queries}", flush=True)
    if arguments.host:
        return 1 if run(arguments, arguments.host)["differences"] else 0
    with tempfile.TemporaryDirectory() as directory:
        server = harness_server.Server(directory, SERVER_OPTIONS).start()
        try:
            return 1 if run(arguments, server.host)["differences"] else 0
        finally:
            server.close()


if __name__ == "__main__":
    sys.exit(main())
