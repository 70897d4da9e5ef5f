"""docs/reference/client-suites.md: a section for each language; a run writes its own anew."""

import datetime
import re
import subprocess

from outcomes import FAILED, OURS, PASSED, SKIPPED, count, first_line, reason_of
from servers import ROOT, binary

PAGE = ROOT / "docs/reference/client-suites.md"
HEAD = """# Google's own test suites

The integration tests that come with Google's clients, written to pass against production, run
against Trestle: `./dev clients` writes this page. What is fetched, and how each suite is led to the
server, is said in `tools/clients`; apart from where they dial the suites are as published. What
fails is *ours* unless `tools/clients/reasons.toml` has a reason why it is not. Where Google's
emulator is installed and the suite can begin on it, it is run beside.
"""
KINDS = {
    "cloud": "needs more of Google's cloud",
    "test": "the test's own assumption",
    "not built": "is not built",
    OURS: "**ours**",
}


def section(key, suite, outcomes, emulator):
    """The text for a suite that was run; `emulator` is None if that was not."""
    failed = [(each, *reason_of(key, each)) for each in outcomes if each.status == FAILED]
    ours = sum(kind == OURS for _, kind, _ in failed)
    rows = [("tests", len(outcomes), emulator and len(emulator))]
    for status in PASSED, SKIPPED, FAILED:
        rows.append((status, count(outcomes, status), emulator and count(emulator, status)))
    rows += [("failed for a known reason", len(failed) - ours, ""), ("failed, ours", ours, "")]
    lines = [f"Version {suite['version'].removeprefix('v')}, {where()}.", ""]
    lines += table(("", "Trestle", "Google's emulator"), rows, 2 if emulator is None else 3)
    if failed:
        reasons = [(each.test, f"{KINDS[kind]}: {why}") for each, kind, why in failed]
        lines += ["", *table(("failure", "why"), reasons, 2)]
    skipped = [each for each in outcomes if each.status == SKIPPED]
    if skipped:
        reasons = [(each.test, why_skipped(key, each)) for each in skipped]
        lines += ["", *table(("skips itself", "why"), reasons, 2)]
    return "\n".join(lines)


def table(head, rows, columns):
    """The first columns of each row, as a table."""
    lines = [head, ["---"] * columns, *rows]
    return [f"| {' | '.join(cell(str(each)) for each in line[:columns])} |" for line in lines]


def why_skipped(key, outcome):
    kind, why = reason_of(key, outcome)
    said = re.search(r"(?:_test\.go:\d+|[Ss]kipped): (.*)", outcome.message)
    return why if kind != OURS else said[1] if said else first_line(outcome.message)


def cell(text):
    """As a cell of a table: one line; no path of this machine, no address, no colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m|\(?https?://\S+", "", text.replace("\n", " "))
    plain = re.sub(r"(?<![^\s('\"])/\S*/", "", plain)
    return plain.replace("|", "\\|").replace("<", "&lt;").strip()


def not_run(why):
    return f"Not run: {cell(why)}."


def where():
    """The day, and the commit of the tree in which the server's binary was built."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=binary().parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    commit = done.stdout.strip() or "no commit"
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, at {commit}"


def write(sections):
    """Puts {(key, title): text} into the page; other sections stay."""
    text = PAGE.read_text() if PAGE.exists() else HEAD
    for (key, title), body in sections.items():
        new = f"<!-- {key} -->\n## {title}\n\n{body}\n<!-- end of {key} -->"
        old = re.compile(rf"<!-- {key} -->\n.*?<!-- end of {key} -->", re.DOTALL)
        if old.search(text):
            text = old.sub(lambda _, new=new: new, text)
        else:
            text = f"{text.rstrip()}\n\n{new}\n"
    PAGE.write_text(text)
