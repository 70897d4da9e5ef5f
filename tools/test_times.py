#!/usr/bin/python3
"""Says where the time of a run of the tests went: what `./dev test` prints at its end.

    test_times.py JUNIT_XML [TESTLOG_JSON]

CPU seconds of the end-to-end tests by file and kind of program, as tests/harness/cpu_time.py noted
them in pytest's JUnit file, and seconds on the wall of the unit tests, from Meson's. The dearest
files come first; what the others took is one line.
"""

import collections
import json
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

FILES = 20
KINDS = ("server", "browser", "tests")


def by_file(junit):
    """{file: {kind: CPU seconds}}."""
    spent = collections.defaultdict(collections.Counter)
    for case in xml.parse(junit).iter("testcase"):
        for each in case.iter("property"):
            kind = each.get("name").removeprefix("cpu_")
            if kind in KINDS:
                spent[case.get("classname")][kind] += float(each.get("value"))
    return spent


def print_row(name, kinds):
    print(f"{sum(kinds.values()):9.0f}", *(f"{kinds[kind]:9.0f}" for kind in KINDS), f"  {name}")


def print_files(spent):
    ranked = sorted(spent.items(), key=lambda item: -sum(item[1].values()))
    print(f"{'CPU s':>9}", *(f"{kind:>9}" for kind in KINDS), "  of")
    for name, kinds in ranked[:FILES]:
        print_row(name, kinds)
    rest = sum((kinds for _, kinds in ranked[FILES:]), collections.Counter())
    print_row(f"{len(ranked[FILES:])} other files", rest)
    print_row("all", sum(spent.values(), collections.Counter()))


def print_programs(log):
    records = [json.loads(line) for line in Path(log).read_text().splitlines()]
    records.sort(key=lambda record: -record["duration"])
    total = sum(record["duration"] for record in records)
    dearest = ", ".join(f"{each['name']} {each['duration']:.0f}" for each in records[:5])
    print(f"{total:9.0f} s on the wall of {len(records)} unit test programs; {dearest}")


def main(junit, *logs):
    print_files(by_file(junit))
    for log in logs:
        print_programs(log)


if __name__ == "__main__":
    main(*sys.argv[1:])
