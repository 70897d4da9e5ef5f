"""`./dev crash`: a few cycles of each mode, and fifty of each in `./dev test --long`."""

import subprocess
import sys

import pytest
from harness.server import ROOT

RUN = [sys.executable, str(ROOT / "tests/crash/run.py")]
MODES = {
    "kill": ["--mode", "kill"],
    "powercut": ["--mode", "powercut"],
    "powercut, clock set back": ["--mode", "powercut", "--clock-back"],
    "clock set ahead and back": ["--clock-steps"],
    "64 writers, rows of 256 bytes spill": ["--writers", "64", "--overflow-threshold", "256"],
}


def run(directory, cycles, seed, mode):
    options = ["--cycles", cycles, "--seed", seed, "--directory", directory, *mode]
    done = subprocess.run([*RUN, *map(str, options)], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert f"{cycles} cycles, " in done.stdout
    assert " 0 lost" in done.stdout
    assert " 0 acknowledged" not in done.stdout


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_nothing_acknowledged_is_lost(tmp_path, mode):
    run(tmp_path / "crash", 6, 1, mode)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_nothing_acknowledged_is_lost_by_many(tmp_path, mode):
    run(tmp_path / "crash", 50, 2, mode)
