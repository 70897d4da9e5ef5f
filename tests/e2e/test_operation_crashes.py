"""`./dev crash operations`, two rounds: kills in the middle of every administrative change."""

import re
import subprocess
import sys

from harness.server import ROOT

RUN = [sys.executable, str(ROOT / "tests/crash/operations.py")]


def test_every_change_happens_or_does_not(tmp_path):
    options = ["--rounds", "2", "--seed", "1", "--directory", tmp_path / "crash"]
    done = subprocess.run([*RUN, *map(str, options)], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    counts = re.search(r"(\d+) not happened, (\d+) happened, (\d+) answered", done.stdout)
    assert all(int(count) > 0 for count in counts.groups())
