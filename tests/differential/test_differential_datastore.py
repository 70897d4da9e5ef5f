"""Datastore against Google's emulators, in short: ./dev differential datastore has as much of it
as one likes."""

from pathlib import Path

import pytest
from differential.datastore import __main__ as differential
from differential.datastore import known, record
from differential.datastore.sides import Side
from harness import datastore_emulators as emulators
from harness.moved_server import MovedServer, Mover

FIXED = "20261121"
OPERATIONS = 300
RECORDED = Path(__file__).parents[1] / "data/datastore/emulators.txt"


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


def replay(server, between=lambda side: None):
    side, rounds = Side("trestle", server.host), []
    try:
        for one in record.replay(side, RECORDED):
            rounds.append(one)
            between(side)
        return rounds
    finally:
        side.close()


def test_datastore_is_as_the_emulators_had_it(server):
    """Made by the command that README.md names. It needs no emulators."""
    rounds = replay(server)
    assert sum(one.counts["operations"] for one in rounds) >= 490
    assert [each.case for one in rounds for each in one.differences] == []


@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
def test_it_is_so_while_the_clock_is_moved(tmp_path, mode):
    """And the server is killed after each round."""
    server = MovedServer(tmp_path, ["--datastore-concurrency", mode]).start()
    mover = Mover(server, mode)

    def restart(side):
        side.close()
        server.kill()
        side.dial(server.start().host)

    mover.start()
    try:
        rounds = replay(server, restart)
    finally:
        mover.stop()
        server.close()
    assert sum(one.counts["operations"] for one in rounds) >= 490
    assert [each.case for one in rounds for each in one.differences] == []
    assert mover.moves > 10


def test_what_was_recorded_is_looked_at(server, monkeypatch):
    monkeypatch.setattr(known, "RULES", [])
    sides = {each.case.side for one in replay(server) for each in one.differences}
    assert sides == {"classic", "firestore"}


def test_the_readme_has_the_table():
    page = Path(known.__file__).with_name("README.md").read_text()
    assert known.table() in page, "write it anew: ./dev differential datastore --rules"
