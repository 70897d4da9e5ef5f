"""The suite of google-cloud-bigtable for Python: tests/system of the package's sdist, unmodified.

plugin.py leads the clients to the server. The package itself, too, is installed from its registry,
in an environment of its own."""

import shutil
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

from fetching import cache, clean_environment, fetch, run
from outcomes import FAILED, PASSED, SKIPPED, Outcome, wanted
from servers import PROJECT

EMULATOR_TOO = False  # its clients begin with an instance, which the emulator cannot make


def prepare(suite, source):
    """(the environment's python, the folder in which there is tests/)."""
    folder = cache("python", suite["version"])
    python = folder / "env/bin/python"
    stamp = folder / "installed"
    wanted = "\n".join([f"{suite['package']}=={suite['version']}", *suite["with"]])
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder / "env", ignore_errors=True)
        fetch("an environment", [sys.executable, "-m", "venv", folder / "env"])
        fetch("the suite for Python", [python, "-m", "pip", "install", "-q", *wanted.split("\n")])
        stamp.write_text(wanted)
    return python, Path(source) if source else unpacked(python, suite, folder)


def unpacked(python, suite, folder):
    tests = folder / "suite"
    if not (tests / "tests/system").is_dir():
        name = f"{suite['package']}=={suite['version']}"
        fetch(name, [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
                     suite["package"], name, "-d", folder])  # fmt: skip
        shutil.unpack_archive(next(folder.glob("*.tar.gz")), folder)
        unpacked_to = next(each for each in folder.glob("google*") if each.is_dir())
        shutil.rmtree(tests, ignore_errors=True)
        tests.mkdir()
        shutil.move(unpacked_to / "tests", tests / "tests")  # without google/: that is installed
    return tests


def run_suite(suite, prepared, server):
    for module in filter(lambda module: wanted(suite, module), suite["modules"]):
        yield from run_module(suite, *prepared, server, module)


def run_module(suite, python, folder, server, module):
    report = cache("python") / "report.xml"
    report.unlink(missing_ok=True)
    here = Path(__file__).resolve().parent
    environment = clean_environment(
        SUITE_HOST=server.host, GOOGLE_CLOUD_PROJECT=PROJECT, PYTHONPATH=f"{here}:{folder}",
    )  # fmt: skip
    code, output = run(
        [python, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider",
         "--junitxml", report, f"tests/system/{module}"],
        suite["seconds"], environment, cwd=folder,
    )  # fmt: skip
    if not report.exists():
        return [Outcome(f"{module} (whole)", FAILED, output if code else "no report")]
    return [outcome_of(module, case) for case in xml.parse(report).iter("testcase")]


def outcome_of(module, case):
    short = case.get("classname").rsplit(".", 1)[-1]
    name = f"{module.removesuffix('.py')}::{short}::{case.get('name')}"
    for tag, status in ("failure", FAILED), ("error", FAILED), ("skipped", SKIPPED):
        found = case.find(tag)
        if found is not None:
            return Outcome(name, status, told(found))
    return Outcome(name, PASSED)


def told(found):
    """What pytest marks as the error, else its summary."""
    marked = [line[1:].strip() for line in (found.text or "").splitlines() if line[:2] == "E "]
    return "\n".join(marked) or found.get("message") or "no message"
