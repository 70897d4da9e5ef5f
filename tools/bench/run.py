#!/usr/bin/python3
"""Measures Trestle with `trestle bench`, beside Google's emulator where it is installed.

What is compared is rows per second of the server's own CPU time (user and system), which depends
less than rows per second on what else the machine does. Every part has servers of its own, with
default settings. The page says what each part is, and which goals are met.
"""

import argparse
import os
import sys

import beside_load
import connections
import crowd
import datastore
import hot_cell
import large
import page
import parts
import peer
import small_rows
import sql
import thousand_bytes
from servers import ROOT

# Parts besides small_rows, which needs the parts of a request.
SECTIONS = [thousand_bytes, beside_load, hot_cell, connections, crowd]


def default_page(options):
    """All of the page but its head."""
    limit = parts.measure(options)
    collected = small_rows.measure(options)
    measured = {}
    for section in SECTIONS:
        print(section.__name__.replace("_", " "), file=sys.stderr)
        measured[section] = section.measure(options)
    goals = list(small_rows.goals(collected))
    for section, figures in measured.items():
        goals += section.goals(figures)
    yield "## In short"
    yield ""
    yield from page.goals_met(goals)
    yield from small_rows.machine(collected)
    yield ""
    yield from small_rows.headline(collected)
    yield ""
    yield from small_rows.section(collected, limit)
    yield ""
    yield from parts.section(limit)
    for section, figures in measured.items():
        yield ""
        yield from section.section(figures)


def page_of(section, issue=4):
    """What makes the page of a section that has one by itself, with goals of that issue."""

    def made(options):
        measured = section.measure(options)
        yield "## In short"
        yield ""
        yield from page.goals_met(list(section.goals(measured)), issue=issue)
        yield ""
        yield from section.section(measured)

    return made


# What is measured instead of small rows: its option, title, page and what is on it.
PAGES = {
    "large": ("Benchmarks: a large table", "benchmarks-large.md", page_of(large)),
    "sql": ("Benchmarks: SQL", "benchmarks-sql.md", page_of(sql, "6 and 25")),
    "peer": ("Benchmarks: a durable peer", "benchmarks-peers.md", page_of(peer, 25)),
    "datastore": ("Benchmarks: Datastore", "benchmarks-datastore.md", page_of(datastore, 7)),
}


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    integers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--cells", type=integers, default=[1, 10], help="of a small row: 1,10")
    parser.add_argument("--seconds", type=float, default=2, help="for each workload")
    parser.add_argument("--runs", type=int, default=3, help="of the workloads on small rows")
    parser.add_argument(
        "--minute", type=int, default=60, help="seconds beside a load, and for a hot cell"
    )
    parser.add_argument(
        "--large", action="store_true", help="ten million rows instead (25 GB of disk for a while)"
    )
    parser.add_argument(
        "--sql", action="store_true", help="SQL beside ReadRows instead, over a million rows"
    )
    parser.add_argument(
        "--datastore", action="store_true", help="Datastore beside both of Google's emulators"
    )
    parser.add_argument(
        "--peer", choices=["hbase"], help="beside another durable server, by programs in Java"
    )
    parser.add_argument("--peer-seconds", type=float, default=6, help="for each of its workloads")
    parser.add_argument("--entities", type=int, default=1_000_000, help="of Datastore")
    parser.add_argument(
        "--emulator-entities", type=int, default=200_000, help="of the emulators, and beside them"
    )
    parser.add_argument("--datastore-runs", type=int, default=5, help="of each of its operations")
    parser.add_argument("--warm-seconds", type=float, default=10, help="before them, each server")
    parser.add_argument("--large-seconds", type=int, default=20, help="for each of its workloads")
    parser.add_argument("--write", action="store_true", help="write the page in docs/")
    options = parser.parse_args(arguments)
    options.load = os.getloadavg()[0]
    options.given = [part for part in arguments if part != "--write"]
    chosen = [PAGES[name] for name in PAGES if getattr(options, name)]
    small = ("Benchmarks", "benchmarks.md", default_page)
    options.title, options.page, options.body = chosen[0] if chosen else small
    return options


def main(arguments):
    options = parse(arguments)
    text = "\n".join([*page.head(options), "", *options.body(options)]) + "\n"
    print(text)
    if options.write:
        (ROOT / "docs" / options.page).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
