"""The page: tables, numbers, and the goals that issue 4 sets with what came of them."""

import datetime
import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Goal:
    what: str
    demanded: str
    measured: str
    is_met: bool


def at_least(what, demanded, measured, unit=""):
    is_met = measured >= demanded
    return Goal(what, f"≥ {number(demanded)}{unit}", f"{number(measured)}{unit}", is_met)


def at_most(what, demanded, measured, unit=""):
    is_met = measured <= demanded
    return Goal(what, f"≤ {number(demanded)}{unit}", f"{number(measured)}{unit}", is_met)


def number(value):
    """Three digits or more."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values):
    return f"{number(min(values))}–{number(max(values))}"


def milliseconds(us):
    return f"{us / 1000:.2f}"


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def machine():
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
    return f"{os.cpu_count()} × {model}, Linux {platform.release()}"


def head(options):
    yield f"# {options.title}"
    yield ""
    yield (
        f"Made by `./dev bench --write {' '.join(options.given)}`".rstrip()
        + f" on {datetime.date.today()}: {machine()}; load average before the first run "
        f"{options.load:.1f}. Every write is fsynced before it is acknowledged. The load "
        "generator, `trestle bench`, is one thread on the same processors, with 4 connections of "
        "16 calls each unless said otherwise. CPU is the server's, user and system."
    )


def goals_met(goals, issue=4):
    """Those that are not, one by one."""
    missed = [goal for goal in goals if not goal.is_met]
    yield f"{len(goals) - len(missed)} of {len(goals)} goals of issue {issue} are met."
    if missed:
        yield ""
        yield from table(
            ["not met", "goal", "measured"],
            ([goal.what, goal.demanded, goal.measured] for goal in missed),
        )
