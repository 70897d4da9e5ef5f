"""The largest row and value of a table are told wherever they are, whatever the sample: the server
notes what is large when it stores it."""

import json

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.patience import PATIENCE_SECONDS
from harness.proxy import CountingProxy
from harness.rpc import delete_row, set_cell
from harness.server import run_trestle

NEWEST = admin_types.GcRule(max_num_versions=1)
MIB = 1 << 20
WORDS = "amber basil cedar delta ember fable grove hazel ivory jade koala lemon maple".split()


def user(number):
    """A key that no rule has anything to say about."""
    return f"{WORDS[number % 13]}-{WORDS[number // 13 % 13]}-{number}".encode()


LARGE, OTHER = user(100002), user(100003)  # in the middle of the table


def fill(rpc, table, count, value=b"v"):
    at_once = 500 if len(value) < 1000 else 1
    rows = [(user(i), [set_cell("f", b"q", value)]) for i in range(count)]
    for first in range(0, count, at_once):
        assert set(rpc.mutate_rows(table, rows[first : first + at_once])) == {0}


def put_large(rpc, table, key=LARGE, parts=15):
    """A row of `parts` times 8 MiB: no value of it is too large."""
    for part in range(parts):
        rpc.mutate(table, key, set_cell("f", b"part%02d" % part, bytes(8 * MIB)))


def advise(server, table, *options):
    """The exit status, and the findings by their rules."""
    done = run_trestle(
        "advise", table.split("/")[-1], "--endpoint", server.host, "--format", "json", *options,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    report = json.loads(done.stdout)
    return done.returncode, {each["rule"]: each for each in report["findings"]}


@pytest.fixture
def unheated(fresh_server, connect):
    """A server that counts no heat: under a sanitizer a hundred MiB are load enough to be hot."""
    server = fresh_server("--heat=false")
    rpc = connect(server.host)
    return server, rpc, rpc.create_table("t", {"f": NEWEST})


@pytest.mark.parametrize(
    ("others", "value"), [(6000, b"v"), (6, bytes(4 * MIB)), (20, b"v")],
    ids=["many-small", "some-large", "few"],
)  # fmt: skip
def test_one_large_row_among_others(unheated, others, value):
    """Among many small ones; among such that a sample ends with the first of them; among few."""
    server, rpc, table = unheated
    fill(rpc, table, others, value)
    assert "row-size" not in advise(server, table)[1]
    put_large(rpc, table)
    for seed in (1, 2):
        returned, findings = advise(server, table, "--seed", seed)
        assert (returned, set(findings)) == (1, {"row-size"})
        assert findings["row-size"]["keys"] == [LARGE.decode()]
        assert "the largest has 120 MiB" in findings["row-size"]["evidence"]


def test_a_row_that_was_large_is_not_told_for_ever(unheated):
    server, rpc, table = unheated
    fill(rpc, table, 6000)
    put_large(rpc, table)
    put_large(rpc, table, OTHER)
    assert "2 have" in advise(server, table)[1]["row-size"]["evidence"]
    rpc.mutate(table, LARGE, delete_row())
    assert "1 has" in advise(server, table)[1]["row-size"]["evidence"]
    for part in range(3):
        rpc.mutate(table, OTHER, set_cell("f", b"part%02d" % part, b"shrunk"))
    assert advise(server, table) == (0, {})


def test_a_large_value_among_small_ones(unheated):
    """Also where it stands in no table file yet, and over restarts."""
    server, rpc, table = unheated
    fill(rpc, table, 6000)
    rpc.mutate(table, LARGE, set_cell("f", b"q", bytes(10 * MIB)))
    assert advise(server, table) == (0, {})
    rpc.mutate(table, LARGE, set_cell("f", b"q", bytes(12 * MIB)))
    server.kill()
    server.start()
    returned, findings = advise(server, table)
    assert (returned, set(findings)) == (1, {"cell-size"})
    assert findings["cell-size"]["keys"] == [LARGE.decode()]
    assert "in the family f, has 12 MiB" in findings["cell-size"]["evidence"]


# --- as a client ---


def advise_as_client(server, table, *options):
    """As `advise` does, and how many bytes the server sent for that."""
    proxy = CountingProxy(server.host)
    try:
        done = run_trestle(
            "advise", table.split("/")[-1], "--endpoint", proxy.host, "--format", "json",
            "--by", "client", *options, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
    finally:
        proxy.close()
    report = json.loads(done.stdout)
    assert report["sample"]["bytes"] <= proxy.sent
    return proxy.sent, {each["rule"]: each for each in report["findings"]}


def test_a_client_reads_no_more_than_it_may(unheated):
    """A row is one message, and it and its values were weighed by reading them: 600 MiB were read
    of a table where 8 had been asked for. Nothing is less known for it."""
    server, rpc, table = unheated
    for number in range(2):
        rpc.mutate(table, user(number), set_cell("f", b"one", bytes(11 * MIB)))
    for part in range(8):
        rpc.mutate(table, LARGE, set_cell("f", b"%d" % part, bytes(12 * MIB)))
    rpc.mutate(table, LARGE, set_cell("f", b"8", bytes(4 * MIB + 12345)))
    sent, findings = advise_as_client(server, table)
    assert sent < 8 * MIB
    assert set(findings) == {"row-size", "cell-size"}
    assert findings["row-size"]["keys"] == [LARGE.decode()]
    assert "the largest has 100 MiB" in findings["row-size"]["evidence"]
    assert "has 12 MiB" in findings["cell-size"]["evidence"]
    sent, _ = advise_as_client(server, table, "--max-bytes", "1MB")
    assert sent < 1.5 * MIB


def test_a_client_reads_no_more_than_it_may_of_many_cells(unheated):
    """Rows of a hundred thousand cells, of which no message is too large, and none is the row."""
    server, rpc, table = unheated
    for number in range(3):
        for first in range(0, 60000, 20000):
            cells = [
                set_cell("f", b"%05d" % i, bytes(40)) for i in range(first, first + 20000)
            ]
            rpc.mutate(table, user(number), *cells)
    sent, _ = advise_as_client(server, table, "--max-bytes", "1MB")
    assert MIB / 2 < sent < 1.5 * MIB
