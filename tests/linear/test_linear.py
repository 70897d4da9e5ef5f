"""tests/linear/run.py, a few seconds of it."""

import subprocess
import sys

import pytest
from harness.server import EXTERNAL, ROOT


@pytest.mark.skipif(EXTERNAL is not None, reason="needs a server of its own")
def test_rows_are_linearizable_across_kills(tmp_path):
    options = ["--seconds", "4", "--kills", "2", "--seed", "1", "--directory", tmp_path / "linear"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/linear/run.py"), *map(str, options)],
        capture_output=True, text=True,
    )  # fmt: skip
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("linearizable\n")
    assert "requests of 64 clients, 2 kills" in done.stdout
    assert " 0 operations" not in done.stdout
