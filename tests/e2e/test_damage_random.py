"""`./dev crash damage`: a few rounds each day, by its date, and more of them some days."""

import datetime
import subprocess
import sys

import pytest
from harness.server import EXTERNAL, ROOT

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

RUN = [sys.executable, str(ROOT / "tests/crash/damage.py")]
TODAY = datetime.date.today().toordinal()
KEYS = 800


def run(place, rounds, seed, *more):
    options = ["--rounds", rounds, "--keys", KEYS, "--seed", seed, "--directory", place / "damage"]
    options += more
    done = subprocess.run([*RUN, *map(str, options)], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert f"{rounds} rounds, " in done.stdout and " 0 damages" not in done.stdout


def test_damage_is_never_a_wrong_answer(tmp_path):
    run(tmp_path, 2, TODAY)


@pytest.mark.parametrize("kind", ["catalog", "pair", "archive"])
def test_damage_of_a_kind_is_never_a_wrong_answer(tmp_path, kind):
    run(tmp_path, 2, TODAY, "--kind", kind, "--lives", 2)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["catalog", "pair", "archive"])
def test_damage_of_a_kind_is_never_a_wrong_answer_in_many_rounds(tmp_path, kind):
    run(tmp_path, 8, TODAY + 1, "--kind", kind)


@pytest.mark.long
@pytest.mark.parametrize("share", range(5))
def test_damage_is_never_a_wrong_answer_in_many_rounds(tmp_path, share):
    run(tmp_path, 12, TODAY * 5 + share)
