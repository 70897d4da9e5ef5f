"""A short day of `./dev crash disks`: on disks that are full, read-only or fail, health, metrics,
`trestle status`, the log and the alerts say the same as a write does."""

import importlib.util
import subprocess
import sys
from types import SimpleNamespace

import pytest
from harness import promtool
from harness.server import EXTERNAL, ROOT

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs a server of its own")


@pytest.fixture(scope="module")
def disks():
    """tests/crash/disks.py."""
    spec = importlib.util.spec_from_file_location("disks", ROOT / "tests/crash/disks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Each is what a small program on such a disk comes to.
PROGRAM = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
os.posix_fallocate(file, 0, 8192)  # room on it, and so it stays
def attempt(what, *arguments):
    try:
        what(*arguments)
        print("done")
    except OSError as error:
        print(os.strerror(error.errno))
print("ready", flush=True)
input()
attempt(os.pwrite, file, b"x" * 4096, 0)
attempt(os.pwrite, file, b"x" * 4096, 1 << 20)
attempt(os.pread, file, 16, 0)
attempt(os.fsync, file)
attempt(os.rename, sys.argv[1], sys.argv[1] + ".new")
print(os.statvfs(os.path.dirname(sys.argv[1])).f_bavail)
"""
FULL, READ_ONLY, BROKEN = (
    "No space left on device",
    "Read-only file system",
    "Input/output error",
)


@pytest.mark.parametrize(
    ("kind", "number", "told"),
    [
        ("sound", 0, ["done", "done", "done", "done", "done"]),
        ("low", 0, ["done", "done", "done", "done", "done", "0"]),
        ("full", 0, ["done", FULL, "done", "done", "done", "0"]),
        ("read_only", 0, [READ_ONLY, READ_ONLY, "done", READ_ONLY, READ_ONLY]),
        ("failing", 1000, [BROKEN, BROKEN, BROKEN, BROKEN, "done"]),
    ],
)
def test_what_a_disk_does(disks, tmp_path, kind, number, told):
    """Of the library itself, which is loaded into Python here."""
    sick = disks.Disks(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").touch()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path / "data/file"],
        env=sick.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert program.stdout.readline() == "ready\n"
    sick.make(0, kind, number)
    said = program.communicate("\n")[0].splitlines()
    assert said[: len(told)] == told


@pytest.mark.long
def test_a_day_of_bad_disks(disks, tmp_path):
    day = disks.play(SimpleNamespace(seconds=2, record=None), tmp_path)
    parts = dict.fromkeys(second.part for second in day.seconds)
    assert len(parts) == 14
    if promtool.PROMTOOL is not None:
        assert disks.Alerts(day).evaluate() == ""


def test_who_says_something_else_is_found(disks):
    """Else nothing would be shown by all that."""
    second = disks.Second("made up")
    second.writes, second.ready = [True, True], [(200, "ok", set())] * 2
    second.status, second.log = (0, "ok", set()), set()
    second.metrics = {"trestle_store_healthy": 1.0, "trestle_health_level": 0.0}
    disks.check(second)
    for change in (
        {"status": (1, "no_writes", {"fenced"})},
        {"log": {"disk_full"}},
        {"metrics": second.metrics | {"trestle_store_healthy": 0.0}},
        {"metrics": second.metrics | {'trestle_health{reason="fenced"}': 1.0}},
        {"writes": [False, False]},
    ):
        other = disks.Second("made up")
        vars(other).update(vars(second) | change)
        with pytest.raises(disks.Failure):
            disks.check(other)
