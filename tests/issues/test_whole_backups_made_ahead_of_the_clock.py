"""Each new whole backup was removed in the second in which it was made, as long as the clock had
been ahead before, and health said that all was well.

A second breaker found it: backups were ordered by their names, which are times of the wall clock.
After a clock that was three days ahead, expiry took what it had made then for the newest for three
days, and so did a restore that names none. The order is that of commit versions. The server's clock
is moved by tests/crash/powercut."""

import time

import pytest
from harness.moved_server import DAY_SECONDS, MovedServer
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell
from harness.server import run_trestle

KEEP = 2


@pytest.fixture
def place(tmp_path):
    place = tmp_path / "whole"
    place.mkdir()
    return place


@pytest.fixture
def server(tmp_path, place):
    directory = tmp_path / "server"
    directory.mkdir()
    server = MovedServer(directory, [
        "--backup-places", str(place), "--backup-schedule", "1s", "--backup-keep", str(KEEP),
    ])  # fmt: skip
    yield server.start()
    server.close()


def backup(*arguments):
    done = run_trestle("backup", *map(str, arguments))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def names(place):
    """As `trestle backup list` has them."""
    done = run_trestle("backup", "list", str(place))
    return [line.split()[0] for line in done.stdout.splitlines()]


def wait_for(condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_ahead(name):
    return name > time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + DAY_SECONDS))


def test_what_is_made_by_the_right_clock_stays(server, place, tmp_path, connect):
    server.move(3 * DAY_SECONDS)
    wait_for(lambda: len(found := names(place)) == KEEP and all(map(is_ahead, found)))
    server.move(0)
    rpc = connect(server.host)
    table = rpc.create_table("t")
    rpc.mutate_rows(table, [(b"row", [set_cell("f", b"q", b"value", 1000)])])
    wait_for(lambda: (found := names(place)) and not any(map(is_ahead, found)))
    server.stop()
    made = backup("create", place, "--data-dir", server.data).partition(":")[0]
    assert names(place)[-1] == made
    backup("expire", place, "--keep", "1")
    assert names(place) == [made]


def test_those_of_the_future_are_the_older_ones(server, place, tmp_path, connect):
    """By hand, while all of them are there."""
    server.move(3 * DAY_SECONDS)
    wait_for(lambda: any(map(is_ahead, names(place))))
    server.stop()
    future = names(place)
    server.move(0)
    server.arguments = [*server.arguments[:2]]
    server.start()
    rpc = connect(server.host)
    table = rpc.create_table("t")
    rpc.mutate_rows(table, [(b"row", [set_cell("f", b"q", b"value", 1000)])])
    made = backup("create", place, "--endpoint", server.host).partition(":")[0]
    assert not is_ahead(made)
    assert names(place) == [*future, made]
    said = backup("restore", place, "--to", tmp_path / "restored")
    assert made in said
    backup("expire", place, "--keep", "1")
    assert names(place) == [made]
