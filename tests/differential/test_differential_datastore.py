"""Datastore against Google's emulators, in short: ./dev differential datastore has as much of it as
one likes."""

from pathlib import Path

import pytest
from differential.datastore import __main__ as differential
from differential.datastore import known
from harness import datastore_emulators as emulators

FIXED = "20261121"
OPERATIONS = 300


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """--host for both emulators."""
    if emulators.missing():
        pytest.skip(emulators.missing())
    started = []
    try:
        for name in (emulators.CLASSIC, emulators.FIRESTORE):
            started.append(emulators.Emulator(name, tmp_path_factory.mktemp(name)).start())
        yield [f"--host={each.name}={each.host}" for each in started]
    finally:
        for each in started:
            each.close()


def compare(server, hosts, capfd, *more):
    """Status and output of a run."""
    arguments = ["--seed", FIXED, "--operations", str(OPERATIONS), *more]
    code = differential.main([*arguments, f"--host=trestle={server.host}", *hosts])
    return code, capfd.readouterr().out


def test_datastore_is_as_the_emulators_have_it(server, hosts, capfd):
    code, shown = compare(server, hosts, capfd)
    assert code == 0, shown
    assert ", 0 differences that are not known" in shown


def test_a_difference_is_shown_and_made_small(server, hosts, capfd, monkeypatch):
    rules = [each for each in known.RULES if each.name != "classic_masks"]
    monkeypatch.setattr(known, "RULES", rules)
    code, shown = compare(server, hosts, capfd, "--stop-after", "1", "--alike", "1")
    assert code == 1
    assert f"--- differs: ./dev differential datastore --seed {FIXED} --only " in shown
    small = shown.split("--- small (")[1]
    assert int(small.split()[0]) <= 3


def test_the_readme_has_the_table():
    page = Path(known.__file__).with_name("README.md").read_text()
    assert known.table() in page, "write it anew: ./dev differential datastore --rules"
