"""What came of the tests of a suite, and why those that did not pass did not."""

import dataclasses
import re
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
OURS = "ours"


@dataclasses.dataclass(frozen=True)
class Outcome:
    test: str
    status: str
    message: str = ""


class NotPublishedError(Exception):
    """There is no such suite to be had by anyone; the text, which the page shows, says why."""


class UnavailableError(Exception):
    """The suite, or a tool that it needs, cannot be had here and now; the page stays as it is."""


def load(name):
    return tomllib.loads((HERE / name).read_text())


def suites():
    return load("suites.toml")


def reason_of(suite, outcome, reasons=None):
    """(kind, why) of an outcome that did not pass; ("ours", its message) if none is known."""
    for each in reasons if reasons is not None else load("reasons.toml")["reason"]:
        if each["suite"] != suite or not re.search(each["test"], outcome.test):
            continue
        if re.search(each.get("message", ""), outcome.message):
            return each["kind"], each["why"]
    return OURS, first_line(outcome.message)


def wanted(suite, name):
    """Whether what is so named was asked for: --only."""
    return re.search(suite["only"], name) is not None


def first_line(message):
    """The line of a failure that says most: an error's, else the first."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"(?i)error|expected|want|assert|panic", line)]
    return (telling or lines or ["no message"])[0][:300]


def count(outcomes, status):
    return sum(outcome.status == status for outcome in outcomes)
