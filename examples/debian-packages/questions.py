#!/usr/bin/env python3
"""Asks the questions in questions/ and prints a page: each with its query, answer, plan and time.

    BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 ./questions.py --since '2026-11-21 12:00:00'
"""

import argparse
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "questions.md"


def ask(trestle, query, since, *flags):
    """What `trestle sql` prints, as lines."""
    command = [trestle, "sql", "--param", f"since=TIMESTAMP:{since}", "-f", str(query), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def indented(lines):
    return [f"    {line}".rstrip() for line in lines]


def section(trestle, query, since):
    question, *text = query.read_text().splitlines()
    plan = ask(trestle, query, since, "--analyze")
    return [
        f"## {question.removeprefix('-- ')}",
        "",
        f"[{query.name}](questions/{query.name})",
        "",
        *indented(text),
        "",
        *indented(ask(trestle, query, since)),
        "",
        "Plan, and what was read:",
        "",
        *indented(plan),
        "",
    ]


def page(trestle, since):
    yield (HERE / "questions" / "head.txt").read_text()
    for query in sorted((HERE / "questions").glob("*.sql")):
        yield "\n".join(section(trestle, query, since))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trestle", default=str(HERE.parents[1] / "build/trestle"))
    parser.add_argument("--since", default="1970-01-01 00:00:00", help="for the last question")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    text = "\n".join(page(options.trestle, options.since)).rstrip() + "\n"
    if options.write:
        PAGE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
