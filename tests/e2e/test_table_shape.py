"""ReadTableShape: how many rows a table has, what is in its families, how old that is, and what a
rule of garbage collection would remove, before it is set."""

import datetime
import time

import pytest
from harness.rest import Rest
from harness.rpc import set_cell

NOW_MS = int(time.time() * 1000)
DAY_MS = 24 * 3600 * 1000
ROWS = 200


def shape(server, name, **body):
    """What is answered, and its families by name."""
    told = Rest(server.host).call("POST", f"/v1/{name}:shape", body)
    return told, {family["id"]: family for family in told.get("families", [])}


def days_ago(days):
    return (NOW_MS - days * DAY_MS) * 1000


def number(family, field):
    return int(family.get(field, 0))


@pytest.fixture
def table(make_table, rpc):
    """Each row has three versions of f:q, of today and before 10 and 20 days, and a cell g:r of
    1,000 bytes in each second row."""
    name = make_table(families=("f", "g", "h"))
    rows = []
    for i in range(ROWS):
        cells = [set_cell("f", b"q", b"v" * 9, days_ago(days)) for days in (0, 10, 20)]
        more = [set_cell("g", b"r", bytes(999), days_ago(1))] if i % 2 else []
        rows.append((b"k%04d" % i, cells + more))
    assert set(rpc.mutate_rows(name, rows)) == {0}
    return name


def test_rows_cells_bytes_and_ages(server, table):
    told, families = shape(server, table)
    assert told["rows"] == told["sampledRows"] == str(ROWS) and told["isExact"]
    f, g, h = (families[each] for each in "fgh")
    assert [number(f, each) for each in ("rows", "columns", "cells")] == [ROWS, ROWS, 3 * ROWS]
    assert number(f, "bytes") == 3 * ROWS * 10
    assert [number(g, each) for each in ("rows", "cells")] == [ROWS / 2, ROWS / 2]
    assert number(g, "bytes") == ROWS / 2 * 1000
    assert number(h, "rows") == 0 and "oldestTime" not in h
    ages = [(NOW_MS / 1000 - datetime.datetime.fromisoformat(f[each]).timestamp()) / 86400
            for each in ("oldestTime", "medianTime", "newestTime")]  # fmt: skip
    assert ages == pytest.approx([20, 10, 0], abs=0.01)
    assert number(f, "removedCells") == number(g, "removedCells") == 0


def test_a_row_of_many_cells_is_cut(server, make_table, rpc):
    name = make_table(families=("f",))
    cells = [set_cell("f", b"%05d" % i, b"v", days_ago(0)) for i in range(3000)]
    assert set(rpc.mutate_rows(name, [(b"narrow", cells[:10])])) == {0}
    assert "cutRows" not in shape(server, name)[0]
    assert set(rpc.mutate_rows(name, [(b"wide", cells)])) == {0}
    told, families = shape(server, name)
    assert told["cutRows"] == "1" and told["sampledRows"] == "2"
    assert 1000 < number(families["f"], "cells") < 3010


def test_times_to_a_hundredth_of_their_age(server, table):
    """Of 20 and of 10 days an hour is less than that; of seconds nothing is. What is older than
    100 days is told to the day (in the budget of the console's page)."""
    exact = shape(server, table)[1]["f"]
    rough = shape(server, table, roughTimes=True)[1]["f"]
    for name in ("oldestTime", "medianTime"):
        assert rough[name] == exact[name][: len("2026-11-30T05")] + ":00:00Z" != exact[name]
    assert rough["cells"] == exact["cells"]


UNION = {"union": {"rules": [{"maxNumVersions": 2}, {"maxAge": f"{5 * 86400}s"}]}}
BOTH = {"intersection": {"rules": [{"maxNumVersions": 1}, {"maxAge": f"{15 * 86400}s"}]}}


@pytest.mark.parametrize(
    ("rule", "removed"),
    [
        ({"maxNumVersions": 2}, 1),
        ({"maxNumVersions": 1}, 2),
        ({"maxNumVersions": 3}, 0),
        ({"maxAge": f"{15 * 86400}s"}, 1),
        (UNION, 2),
        (BOTH, 1),
        ({}, 0),
    ],
)
def test_what_a_rule_would_remove(server, table, rpc, rule, removed):
    """It is told, and nothing happens."""
    _, families = shape(server, table, family="f", gcRule=rule)
    assert number(families["f"], "removedCells") == removed * ROWS
    assert number(families["f"], "removedBytes") == removed * ROWS * 10
    assert number(families["g"], "removedCells") == 0
    assert len(rpc.read_row(table, b"k0000")) == 3


def test_what_is_asked_wrongly(server, table):
    rest = Rest(server.host)
    path = f"/v1/{table}:shape"
    error = rest.call("POST", path, {"family": "none", "gcRule": {}}, expect=400)
    assert 'no family "none"' in error["error"]["message"]
    rest.call("POST", path, {"family": "f", "gcRule": {"maxNumVersions": -1}}, expect=400)
    rest.call("POST", f"/v1/{table}x:shape", {}, expect=404)


def test_a_large_table_is_estimated(server, make_table, rpc):
    """Rows of two sizes, one after the other."""
    name = make_table(families=("f",))
    count = 30000
    for start in range(0, count, 5000):
        rows = [(b"k%06d" % i, [set_cell("f", b"q", b"%0*d" % (100 + start // 100, i), 1000)])
                for i in range(start, start + 5000)]  # fmt: skip
        assert set(rpc.mutate_rows(name, rows)) == {0}
    told, _ = shape(server, name)
    assert "isExact" not in told
    assert 0.7 * count < int(told["rows"]) < 1.4 * count
