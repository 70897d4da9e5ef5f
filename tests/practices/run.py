"""Makes good and broken tables on a server, asks `trestle advise` about each, and counts what it
says wrongly and what it does not say. README.md says more.

    ./dev practices --good 200 --broken 200 [--seed S]
    ./dev practices --good 0 --every                   # each appearance once
    ./dev practices --again RESULTS                    # the table of a run that was kept
"""

import argparse
import collections
import contextlib
import datetime
import json
import sys
import tempfile
import time
from pathlib import Path

import grpc
from harness.server import Server, run_trestle

from practices import generator
from practices.load import Target
from practices.practices import PRACTICES, UNSEEN

RULES = Path(__file__).with_name("rules.tsv")
WINDOW_SECONDS = 5
SETTINGS = ["--heat-window", f"{WINDOW_SECONDS}s", "--log-level", "warn", "--disk-reserve", "0"]
ROUNDS = 3  # windows that a case's traffic is spread over
GROUP = 16  # cases whose traffic is played side by side
NOTHING_FOUND, SOMETHING_FOUND = 0, 1  # the command's exit status
WARNINGS = ("warning", "critical")


def arguments_of(argv):
    parser = argparse.ArgumentParser(prog="practices", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", default=datetime.date.today().strftime("%Y%m%d"),
                        help="of all that is made; today's date by default")  # fmt: skip
    parser.add_argument("--now", type=int, default=int(time.time()), metavar="SECONDS",
                        help="since 1970, at which the tables' times end")  # fmt: skip
    parser.add_argument("--good", type=int, default=100, metavar="N")
    parser.add_argument("--broken", type=int, default=100, metavar="N")
    parser.add_argument("--every", action="store_true",
                        help="of the broken ones each appearance once")  # fmt: skip
    parser.add_argument("--only", metavar="TEXT", help="those in whose appearance this stands")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep what was said")
    parser.add_argument("--again", type=Path, metavar="FILE", help="the table of a run kept")
    return parser.parse_args(argv)


# --- the cases ---


def plans(arguments):
    """(name, function that makes the case) of all that is wanted."""
    now = arguments.now * 1_000_000
    seed = arguments.seed
    if arguments.every:
        chosen = generator.every_appearance()
    else:
        chosen = generator.broken_cases(seed, arguments.broken)
    for number in range(arguments.good):
        yield f"good-{number:04d}", lambda n=number: generator.good_case(seed, n, now)
    for number, each in enumerate(chosen):
        if not arguments.only or arguments.only in each[2].__name__:
            yield (
                f"broken-{number:04d}",
                lambda n=number, c=each: generator.broken_case(seed, n, now, c),
            )


# --- what the advisor says ---


def ask(host, name, case):
    """{"status": [of each call], "findings": [...]} of the case's tables or database."""
    said = {"status": [], "findings": []}
    for words in questions(name, case):
        done = run_trestle("advise", *words, "--format", "json", "--endpoint", host)
        said["status"].append(done.returncode)
        if done.stdout.strip():
            said["findings"] += findings_of(json.loads(done.stdout))
        if done.stderr.strip():
            said["words"] = done.stderr.strip()
    return said


def questions(name, case):
    if case.database:
        return [["--database", "(default)", "--project", name]]
    return [[table.name, "--instance", name] for table in case.tables[: case.asked]]


def findings_of(document):
    return [
        {"rule": each["rule"], "severity": each["severity"], "title": each["title"]}
        for each in document["findings"]
    ]


# --- the run ---


class Run:
    def __init__(self, host, kept=None):
        self.host = host
        self.kept = kept  # a file
        self.target = Target(host)
        self.results = []
        self.waiting = []  # cases with traffic: (name, case, loaded)

    def take(self, name, case):
        loaded = self.target.load(case, name)
        case.tables = [without_rows(each) for each in case.tables]
        if case.traffic:
            self.waiting.append((name, case, loaded))
        else:
            self.judge(name, case)
        if len(self.waiting) == GROUP:
            self.play_all()

    def play_all(self):
        """Round by round, so that each case's traffic lasts for as many windows."""
        group, self.waiting = self.waiting, []
        refused = set()
        for part in range(ROUNDS):
            end = time.monotonic() + WINDOW_SECONDS
            for name, case, loaded in group:
                if not play_part(case, loaded, part):
                    refused.add(name)
            time.sleep(max(0, end - time.monotonic()))
        for name, case, _ in group:
            self.judge(name, case, name in refused)

    def judge(self, name, case, is_refused=False):
        said = ask(self.host, name, case)
        self.results.append({
            "name": name, "practice": case.practice, "appearance": case.appearance,
            "also": sorted(case.also), "refused": is_refused and case.refused, **said,
        })  # fmt: skip
        if self.kept:
            print(json.dumps(self.results[-1], ensure_ascii=False), file=self.kept, flush=True)


def without_rows(table):
    table.rows = ()
    return table


def play_part(case, loaded, part):
    """False if the server refused what it must refuse; any other refusal is an error."""
    size = -(-len(case.traffic) // ROUNDS)
    try:
        for step in case.traffic[part * size : (part + 1) * size]:
            loaded.play(step)
    except grpc.RpcError as error:
        if not case.refused or error.code() != grpc.StatusCode.INVALID_ARGUMENT:
            raise
        return False
    return True


def run(arguments, host, kept):
    """What was said about each case."""
    running = Run(host, kept)
    started = time.monotonic()
    for count, (name, make) in enumerate(plans(arguments), 1):
        running.take(name, make())
        if count % 50 == 0:
            print(f"{count} cases, {time.monotonic() - started:.0f} s", file=sys.stderr)
    running.play_all()
    running.target.close()
    return running.results


# --- the verdict ---

VERDICTS = ("refused", "told", "informed", "wrong", "silent")
RIGHT = VERDICTS[:3]


def rules():
    """{rule of the advisor: practices that it speaks of}."""
    lines = [line.split("\t") for line in RULES.read_text().splitlines() if line[:1] not in "#"]
    return {rule: frozenset(numbers.split()) - {"-"} for rule, numbers in lines}


def verdict(result, known):
    """Of a broken case, one of VERDICTS."""
    if result["refused"]:
        return "refused"
    wanted = {result["practice"], *result["also"]}
    right = [each for each in result["findings"] if known.get(each["rule"], frozenset()) & wanted]
    if any(each["severity"] in WARNINGS for each in right):
        return "told"
    if right:
        return "informed"
    return "wrong" if warnings_of(result) else "silent"


def warnings_of(result):
    return [each["rule"] for each in result["findings"] if each["severity"] in WARNINGS]


def names_of(findings):
    return ", ".join(dict.fromkeys(each["rule"] for each in findings))


def print_good(results):
    good = [each for each in results if each["practice"] is None]
    bad = [each for each in good if warnings_of(each)]
    print(f"good: {len(good)}, with a false warning: {len(bad)}")
    for each in good:
        if each["findings"]:
            grave = "warning" if each in bad else "information"
            words = f"{grave} {names_of(each['findings'])}"
            print(f"  {each['name']} {each['appearance']}: {words}")


def print_broken(results):
    known = rules()
    judged = [(each, verdict(each, known)) for each in results if each["practice"]]
    total = collections.Counter(found for _, found in judged)
    right = sum(total[each] for each in RIGHT)
    print(f"\nbroken: {len(judged)}, of which {right} right: "
          + ", ".join(f"{total[each]} {each}" for each in VERDICTS))  # fmt: skip
    print(f"\n| | practice | {' | '.join(VERDICTS)} | not told |\n|---|---|{'---:|' * 5}---|")
    for practice in PRACTICES.values():
        mine = [each for each in judged if each[0]["practice"] == practice.number]
        print_practice(practice, mine)


def print_practice(practice, judged):
    counts = collections.Counter(found for _, found in judged)
    cells = [str(counts[each] or "") for each in VERDICTS]
    missed = collections.Counter(
        words_of(result) for result, found in judged if found not in RIGHT
    )
    words = ", ".join(f"{count} x {each}" if count > 1 else each for each, count in missed.items())
    note = "cannot be seen" if UNSEEN in practice.seen else words
    print(f"| {practice.number} | {practice.short} | {' | '.join(cells)} | {note} |")


def words_of(result):
    """The appearance, and what was said instead."""
    said = names_of(result["findings"])
    return result["appearance"] + (f" ({said})" if said else "")


def print_odd(results):
    """What would make the figures mean less: rules that nobody has mapped, calls that failed."""
    said = {found["rule"] for each in results for found in each["findings"]}
    if unknown := sorted(said - set(rules())):
        print(f"\nnot in {RULES.name}: {', '.join(unknown)}")
    for each in results:
        if not set(each["status"]) <= {NOTHING_FOUND, SOMETHING_FOUND}:
            words = each.get("words", "")
            print(f"{each['name']} {each['appearance']}: exit {each['status']} {words}")


def results_of(arguments):
    if arguments.again:
        return [json.loads(line) for line in arguments.again.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        kept = stack.enter_context(open(arguments.results, "w")) if arguments.results else None
        server = Server(directory, SETTINGS).start()
        stack.callback(server.close)
        return run(arguments, server.host, kept)


def main(argv=None):
    arguments = arguments_of(argv)
    results = results_of(arguments)
    if not arguments.again:
        print(f"--seed {arguments.seed} --now {arguments.now}")
    print_good(results)
    print_broken(results)
    print_odd(results)


if __name__ == "__main__":
    main()
