"""`./dev crash streams`: a few cycles of each mode, and fifty of each in `./dev test --long`."""

import subprocess
import sys

import pytest
from harness.server import ROOT

RUN = [sys.executable, str(ROOT / "tests/crash/streams.py")]


def run(directory, cycles, seed, mode):
    options = ["--cycles", str(cycles), "--seed", str(seed), "--directory", str(directory)]
    done = subprocess.run([*RUN, *options, "--mode", mode], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert f"{cycles} cycles, " in done.stdout
    assert " acknowledged changes, 0 wrong" in done.stdout
    assert ", 0 acknowledged" not in done.stdout
    assert " 0 were told" not in done.stdout


@pytest.mark.parametrize("mode", ["kill", "powercut"])
def test_each_change_is_told_once_over_crashes(tmp_path, mode):
    run(tmp_path / "crash", 4, 1, mode)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["kill", "powercut"])
def test_each_change_is_told_once_over_many_crashes(tmp_path, mode):
    run(tmp_path / "crash", 50, 2, mode)
