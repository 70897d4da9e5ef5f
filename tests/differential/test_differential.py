"""SQL against SQLite, in short: ./dev differential has as much of it as one likes."""

import random
import subprocess
import sys
from pathlib import Path

from differential import __main__ as differential
from differential import operators
from harness.patience import PATIENCE_SECONDS

QUERIES = 750
TESTS = Path(__file__).resolve().parents[1]
FIXED = "26"


def compare(host, seed, capfd, queries):
    """Status and output of a run."""
    arguments = ["--seed", seed, "--queries", str(queries), "--host", host, "--jobs", "1"]
    code = differential.main(arguments)
    return code, capfd.readouterr().out


def run_apart(host, seed):
    """Status and output of a run in a process of its own. Its process died once, with all the other
    tests of its worker and without a word: gRPC's and SQLite's C code runs in it, and what else a
    worker has loaded. Its death says what it was now: the signal, where it stood, and the seed."""
    command = [sys.executable, "-X", "faulthandler", "-m", "differential", "--jobs", "1"]
    done = subprocess.run(
        [*command, "--seed", seed, "--queries", str(QUERIES), "--host", host],
        cwd=TESTS,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    return done.returncode, done.stdout


def test_sql_is_as_sqlite_has_it(server):
    for seed in (FIXED, str(random.randrange(10**9))):
        code, shown = run_apart(server.host, seed)
        again = f"./dev differential --seed {seed} --queries {QUERIES}"
        assert code == 0, f"exit {code}, below 0 a signal; again: {again}\n{shown}"
        assert f"seed {seed}: {QUERIES} queries alike, 0 not" in shown


def test_a_difference_is_shown_and_made_small(server, capfd, monkeypatch):
    monkeypatch.setattr(operators.ADD, "sqlite", "{0} - {1}")
    code, shown = compare(server.host, FIXED, capfd, queries=100)
    assert code == 1
    assert "--- differs: ./dev differential --seed 26 --only 0/" in shown
    small = shown.split("--- small\n")[1].splitlines()[0]
    assert " + " in small and len(small) < 200
