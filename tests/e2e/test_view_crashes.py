"""`./dev crash views`: a few cycles of each mode, and forty of each in `./dev test --long`."""

import os
import re
import subprocess
import sys

import pytest
from harness.server import ROOT

RUN = [sys.executable, str(ROOT / "tests/crash/views.py")]


RANDOM_VIEWS, SHARES = 200, 7  # a seventh of what is long runs each day
MANY = 40 if os.environ.get("TRESTLE_LONG") == "all" else 10


def run(directory, cycles, seed, mode, *more):
    """How many views were held against their queries."""
    options = ["--cycles", str(cycles), "--seed", str(seed), "--directory", str(directory)]
    words = [*RUN, *options, "--mode", mode, *more]
    done = subprocess.run(words, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert f"{cycles} cycles, " in done.stdout
    return int(re.search(r"; (\d+) views were their queries", done.stdout)[1])


@pytest.mark.parametrize("mode", ["kill", "powercut"])
def test_views_are_their_queries_over_crashes(tmp_path, mode):
    assert run(tmp_path / "crash", 2, 1, mode) >= 8


@pytest.mark.long
@pytest.mark.timeout(3600 if MANY == 40 else 1200)  # a cycle is ten seconds, beside others more
@pytest.mark.parametrize("mode", ["kill", "powercut"])
def test_views_are_their_queries_over_many_crashes(tmp_path, mode):
    assert run(tmp_path / "crash", MANY, 2, mode) >= 4 * MANY


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("share", range(SHARES))
def test_check_3_two_hundred_random_views_over_crashes(tmp_path, share):
    """Both forms, all aggregates, over writes of every kind, drops, garbage collection, splits,
    merges, kills and power cuts."""
    mode = ["kill", "powercut"][share % 2]
    assert run(tmp_path / "crash", 7, 30 + share, mode, "--random") >= RANDOM_VIEWS / SHARES
