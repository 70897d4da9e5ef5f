"""SQL against SQLite, in short: ./dev differential has as much of it as one likes."""

import random

from differential import __main__ as differential
from differential import operators

QUERIES = 750
FIXED = "26"


def compare(host, seed, capfd, queries=QUERIES):
    """Status and output of a run."""
    arguments = ["--seed", seed, "--queries", str(queries), "--host", host, "--jobs", "1"]
    code = differential.main(arguments)
    return code, capfd.readouterr().out


def test_sql_is_as_sqlite_has_it(server, capfd):
    for seed in (FIXED, str(random.randrange(10**9))):
        code, shown = compare(server.host, seed, capfd)
        assert code == 0, f"again: ./dev differential --seed {seed} --queries {QUERIES}\n{shown}"
        assert f"seed {seed}: {QUERIES} queries alike, 0 not" in shown


def test_a_difference_is_shown_and_made_small(server, capfd, monkeypatch):
    monkeypatch.setattr(operators.ADD, "sqlite", "{0} - {1}")
    code, shown = compare(server.host, FIXED, capfd, queries=100)
    assert code == 1
    assert "--- differs: ./dev differential --seed 26 --only 0/" in shown
    small = shown.split("--- small\n")[1].splitlines()[0]
    assert " + " in small and len(small) < 200
