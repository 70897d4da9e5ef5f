#!/usr/bin/env python3
"""Runs the integration suites of Google's clients against Trestle, and beside it Google's emulator.

    ./dev clients                       all of them
    ./dev clients go python             some
    ./dev clients node --source DIR     out of a checkout of the client's repository
    ./dev clients go --only Presidents  the tests (classes, modules, files) whose names fit

They are fetched from the registry of the language as this machine is set to it, built and kept
under SUITES_CACHE, and never put into the tree. docs/reference/client-suites.md is written anew."""

import argparse
import sys

import go_suite
import hbase_suite
import java_suite
import node_suite
import page
import python_suite
from outcomes import FAILED, OURS, NotPublishedError, UnavailableError, reason_of, suites
from servers import Emulator, Server, emulator_program

MODULES = {
    "go": go_suite, "python": python_suite, "java": java_suite, "node": node_suite,
    "hbase": hbase_suite,
}  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(prog="./dev clients", description=__doc__.split("\n", 1)[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(suites()))
    parser.add_argument("--source", metavar="DIR", help="a checkout, instead of what is published")
    parser.add_argument("--only", metavar="PATTERN", help="run these, and leave the page as it is")
    parser.add_argument("--no-emulator", action="store_true", help="Trestle alone")
    chosen = parser.parse_args()
    for name in chosen.suites:
        if name not in suites():
            parser.error(f"no such suite: {name}; there are {', '.join(suites())}")
    if chosen.source and len(chosen.suites) != 1:
        parser.error("--source goes with one suite")
    return chosen


def run_on(kind, key, suite, module, prepared):
    """The outcomes on a server of its own, each told as it comes."""
    found = []
    with kind() as server:
        for outcome in module.run_suite(suite, prepared, server):
            found.append(outcome)
            tell(key, server.name, outcome)
    return found


def tell(key, name, outcome):
    print(f"{name}: {outcome.status:8}{outcome.test}", flush=True)
    if outcome.status == FAILED and name == Server.name:
        reason, why = reason_of(key, outcome)
        print(f"    {reason}: {why}", flush=True)


def run_one(key, suite, chosen):
    """(the page's text or None, whether a failure is ours or the suite cannot be had here)."""
    module = MODULES[key]
    try:
        prepared = module.prepare(suite, chosen.source)
    except NotPublishedError as reason:
        print(f"{key}: {reason}", flush=True)
        return page.not_run(str(reason)), False
    except UnavailableError as reason:
        print(f"{key}: {reason}", flush=True)
        return None, True
    suite = {**suite, "only": chosen.only or ""}
    outcomes = run_on(Server, key, suite, module, prepared)
    emulator = None
    if module.EMULATOR_TOO and not chosen.no_emulator and emulator_program():
        emulator = run_on(Emulator, key, suite, module, prepared)
    ours = [each for each in outcomes if each.status == FAILED and reason_of(key, each)[0] == OURS]
    return page.section(key, suite, outcomes, emulator), bool(ours)


def main():
    chosen = arguments()
    sections, failed = {}, False
    for key, suite in suites().items():
        if chosen.suites and key not in chosen.suites:
            continue
        text, ours = run_one(key, suite, chosen)
        if text is not None:
            sections[key, suite["title"]] = text
        failed |= ours
    if chosen.only:
        print("\n".join(sections.values()))
    elif sections:
        page.write(sections)
        print(f"written: {page.PAGE}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
