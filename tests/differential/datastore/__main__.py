"""A differential test of the Datastore API against Google's two emulators: README.md says more.

python -m differential.datastore --seed S --operations N [--against classic|firestore|both]
python -m differential.datastore --seed S --only ROUND
python -m differential.datastore --rules
"""

import argparse
import collections
import json
import multiprocessing
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from differential.datastore import known, record
from differential.datastore.compare import OPERATIONS_A_ROUND, kind_of, run_round
from differential.datastore.shrink import shrink
from differential.datastore.sides import Side
from harness import datastore_emulators as emulators
from harness import server as harness_server
from harness.moved_server import MovedServer, Mover

SERVER_OPTIONS = ["--log-level", "warn"]
SIDES = {
    "classic": [emulators.CLASSIC], "firestore": [emulators.FIRESTORE],
    "both": [emulators.CLASSIC, emulators.FIRESTORE],
}  # fmt: skip


def arguments_of(argv):
    parser = argparse.ArgumentParser(
        prog="differential datastore", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--seed", default=str(random.randrange(10**9)), help="random by default")
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--against", choices=SIDES, default="both")
    parser.add_argument("--host", action="append", metavar="SIDE=HOST",
                        help="of a side that runs: trestle, classic or firestore")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--clock-steps", action="store_true",
                        help="our clock is set ahead and back meanwhile, and our server is killed "
                        "between rounds; not with --jobs")  # fmt: skip
    parser.add_argument("--concurrency", choices=["optimistic", "pessimistic"],
                        help="our server's --datastore-concurrency")  # fmt: skip
    parser.add_argument("--only", type=int, metavar="ROUND", help="one round of the seed")
    parser.add_argument("--stop-after", type=int, default=10, metavar="N", help="differences")
    parser.add_argument("--alike", type=int, default=2, metavar="N",
                        help="show so many differences of one kind")  # fmt: skip
    parser.add_argument("--kind", default="", metavar="PATTERN",
                        help="show only those whose kind has this in it")  # fmt: skip
    parser.add_argument("--rules", action="store_true", help="print what is known to differ")
    parser.add_argument("--record", type=Path, metavar="FILE",
                        help="write what the emulators answer to the first rounds")  # fmt: skip
    parser.add_argument("--no-shrink", action="store_true", help="show differences as they come")
    arguments = parser.parse_args(argv)
    ours_is_given = any(each.startswith("trestle=") for each in arguments.host or [])
    if arguments.clock_steps and (arguments.jobs > 1 or ours_is_given):
        parser.error("--clock-steps is for a server of its own, and one job")
    return arguments


def rounds_of(arguments):
    """(number, operations) of the rounds that are to be run."""
    if arguments.only is not None:
        return [(arguments.only, OPERATIONS_A_ROUND)]
    full, rest = divmod(arguments.operations, OPERATIONS_A_ROUND)
    sizes = [OPERATIONS_A_ROUND] * full + [rest] * (rest > 0)
    return list(enumerate(sizes))


def stepped_outcomes(arguments, hosts, server):
    mover = Mover(server, arguments.seed)
    mover.start()
    try:
        for each in rounds_of(arguments):
            server.kill()
            hosts[0] = ("trestle", server.start().host)
            yield run_round((hosts, arguments.seed, *each))
    finally:
        mover.stop()


def outcomes(arguments, hosts, started):
    if arguments.clock_steps:
        yield from stepped_outcomes(arguments, hosts, started[0])
        return
    tasks = [(hosts, arguments.seed, *each) for each in rounds_of(arguments)]
    if arguments.jobs == 1 or len(tasks) == 1:
        yield from map(run_round, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        yield from pool.imap_unordered(run_round, tasks)


def report(arguments, hosts, number, difference):
    command = f"./dev differential datastore --seed {arguments.seed} --only {number}"
    print(f"--- differs: {command}\n{described(difference.case)}", flush=True)
    if arguments.no_shrink:
        return
    sides = [Side(*each) for each in hosts]
    small = shrink(sides, difference)
    for each in sides:
        each.close()
    print(f"--- small ({len(small.operations)} operations)")
    for operation in small.operations:
        print(json.dumps(operation, ensure_ascii=False))
    print(described(small.case), flush=True)


def described(case):
    return "\n".join([
        f"{case.field}, beside {case.side}: "
        f"{json.dumps(case.operation, ensure_ascii=False)[:3000]}",
        f"  ours   {json.dumps(shown(case, case.ours), ensure_ascii=False)[:3000]}",
        f"  theirs {json.dumps(shown(case, case.theirs), ensure_ascii=False)[:3000]}",
    ])  # fmt: skip


def shown(case, answer):
    return answer[case.field] if case.field in answer and "error" not in answer else answer


def summary(arguments, counts, differences, seconds):
    lines = [
        f"seed {arguments.seed}: {counts['operations']} operations, {differences} differences "
        f"that are not known; {seconds:.0f} s",
    ]
    rules = {key[1]: n for key, n in counts.items() if isinstance(key, tuple) and key[0] == "rule"}
    for key, n in sorted(counts.items(), key=str):
        if isinstance(key, str):
            lines.append(f"  {key}: {n}")
        elif key[0] != "rule":
            lines.append(f"  {key[1]}: {n}")
    lines.append("known differences:")
    for rule in known.RULES:
        lines.append(f"  {rules.get(rule.name, 0):6} {rule.name}: {rule.why}")
    return "\n".join(lines)


def run(arguments, hosts, started=None):
    shown = collections.Counter()
    begun, counts, differences = time.monotonic(), collections.Counter(), 0
    for number, more, found in outcomes(arguments, hosts, started):
        counts.update(more)
        for each in found:
            differences += 1
            kind = repr(kind_of(each.case))
            shown[kind] += 1
            if shown[kind] <= arguments.alike and re.search(arguments.kind, kind):
                report(arguments, hosts, number, each)
        if differences >= arguments.stop_after:
            break
    for kind, times in shown.most_common():
        print(f"{times:6} of the kind {kind}")
    print(summary(arguments, counts, differences, time.monotonic() - begun), flush=True)
    return differences


def write_record(arguments, hosts):
    """All rounds of so many operations; 1 if there were differences, which are shown."""
    sides = [Side(*each) for each in hosts]
    sizes = [size for _, size in rounds_of(arguments)]
    differences = record.record(sides, arguments.seed, sizes, arguments.record)
    for side in sides:
        side.close()
    for each in differences:
        print(described(each.case))
    return 1 if differences else 0


def server_of(arguments, directory):
    """Ours, not yet started."""
    options = list(SERVER_OPTIONS)
    if arguments.concurrency:
        options += ["--datastore-concurrency", arguments.concurrency]
    make = MovedServer if arguments.clock_steps else harness_server.Server
    return make(directory, options)


def hosts_of(arguments, directory, started):
    """Of all sides, ours first; those that nobody has started are."""
    given = dict(each.split("=", 1) for each in arguments.host or [])
    hosts = []
    for name in ["trestle", *SIDES[arguments.against]]:
        if name not in given:
            is_ours = name == "trestle"
            make = server_of(arguments, directory) if is_ours else None
            started.append((make or emulators.Emulator(name, directory)).start())
            given[name] = started[-1].host
        hosts.append((name, given[name]))
    return hosts


def main(argv=None):
    arguments = arguments_of(argv)
    if arguments.rules:
        print(known.table())
        return 0
    command = f"./dev differential datastore --seed {arguments.seed}"
    command += f" --operations {arguments.operations} --against {arguments.against}"
    print(command, flush=True)
    started = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            hosts = hosts_of(arguments, directory, started)
            if arguments.record:
                return write_record(arguments, hosts)
            return 1 if run(arguments, hosts, started) else 0
        finally:
            for each in started:
                each.close()


if __name__ == "__main__":
    sys.exit(main())
