"""`./dev crash transactions`, a short run of each mode; kills with the clock set ahead and back."""

import re
import subprocess
import sys

import pytest
from harness.server import ROOT

RUN = [sys.executable, str(ROOT / "tests/crash/transactions.py")]


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("mode", ["kill", "powercut"])
def test_transactions_are_serializable(tmp_path, mode, concurrency):
    options = ["--transactions", "300", "--round", "400", "--seed", "1", "--mode", mode]
    options += ["--clock-steps"] if mode == "kill" else []
    command = [*RUN, *options, "--concurrency", concurrency, "--directory", str(tmp_path / "crash")]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert "none wrong" in done.stdout
    assert int(re.search(r"(\d+) kills", done.stdout)[1]) >= 2
    assert int(re.search(r"(\d+) succeeded", done.stdout)[1]) >= 300
