"""`./dev crash damage`, a few rounds."""

import subprocess
import sys

import pytest
from harness.server import EXTERNAL, ROOT

RUN = [sys.executable, str(ROOT / "tests/crash/damage.py")]
ROUNDS = 2
KEYS = 800


@pytest.mark.long
@pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
@pytest.mark.parametrize("seed", range(1, 6))
def test_damage_is_never_a_wrong_answer(tmp_path, seed):
    options = ["--rounds", ROUNDS, "--keys", KEYS, "--seed", seed]
    options += ["--directory", tmp_path / "damage"]
    done = subprocess.run([*RUN, *map(str, options)], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert f"{ROUNDS} rounds, " in done.stdout and " 0 damages" not in done.stdout
