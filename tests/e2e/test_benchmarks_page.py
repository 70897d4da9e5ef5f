"""`./dev bench` without its measurements: what it makes of figures that are made up here."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools/bench"))

import beside_load  # noqa: E402
import connections  # noqa: E402
import crowd  # noqa: E402
import datastore  # noqa: E402
import hot_cell  # noqa: E402
import large  # noqa: E402
import page  # noqa: E402
import parts  # noqa: E402
import peer  # noqa: E402
import small_rows  # noqa: E402
import sql  # noqa: E402
import thousand_bytes  # noqa: E402
from workloads import AGAIN, FRESH  # noqa: E402

OPTIONS = SimpleNamespace(rows=1000, cells=[1, 10], runs=3, seconds=2)
PARTS = parts.Parts(call=2.0, get=1.0, next=0.25, put=3.0, put_many=1.0)


def result(rows=10_000_000, **figures):
    """What `trestle bench` says of a workload that met every goal."""
    made_up = {
        "rows": rows, "requests": rows, "seconds": 1.0, "server_cpu_seconds": 1.0,
        "server_written_bytes": 2 * rows, "server_peak_bytes": 1e8,
        "p50_us": 100, "p99_us": 200, "p999_us": 300, "max_us": 400,
    }  # fmt: skip
    return {**made_up, **figures}


@pytest.fixture
def collected():
    """Three runs; the second of them had half of everything, on all servers."""
    rates = {"fresh": 10_000_000, "overwritten": 5_000_000, "tablets": 9_000_000, "emulator": 1e6}
    made_up = small_rows.Collected(OPTIONS)
    for cells in OPTIONS.cells:
        for share in (1, 0.5, 1):
            for stage, rate in rates.items():
                results = {each.name: result(rate * share) for each in FRESH}
                made_up.add(stage, cells, {**results, "overwrite": result(rate * share)})
    return made_up


def assert_tables_are_whole(lines):
    """Every row of a table has as many cells as its head, and there is a table."""
    lines = "\n".join(lines).split("\n")
    columns = None
    for line in lines:
        cells = line.count("|") if line.startswith("|") else None
        assert columns is None or cells is None or cells == columns, line
        columns = cells
    assert any(line.startswith("|---|") for line in lines)


def test_rates_of_small_rows(collected):
    goals = list(small_rows.goals(collected))
    missed = [goal for goal in goals if not goal.is_met]
    assert [goal.measured for goal in missed] == ["0.50"] * 2 * len(AGAIN)
    assert all("overwritten" in goal.what for goal in missed)
    said = next(page.goals_met(goals))
    assert said.startswith(f"{len(goals) - len(missed)} of {len(goals)} goals")
    assert_tables_are_whole(page.goals_met(goals))
    assert_tables_are_whole(small_rows.headline(collected))
    assert_tables_are_whole(small_rows.section(collected, {1: PARTS, 10: PARTS}))
    assert_tables_are_whole(parts.section({1: PARTS, 10: PARTS}))


def test_ratios_are_those_of_a_run(collected):
    runs = collected.of("fresh", 1, "read")
    runs[0] = result(20_000_000)  # a run in which the machine was faster, for this stage alone
    assert collected.ratio("fresh", "emulator", 1, "read") == 10


def test_a_page_without_an_emulator(collected):
    collected.results = {key: r for key, r in collected.results.items() if key[0] != "emulator"}
    lines = [*small_rows.headline(collected), *small_rows.section(collected, {1: PARTS, 10: PARTS})]
    assert_tables_are_whole(lines)
    assert not any("| emulator" in line for line in lines)


LOAD = {"loaded_bytes": 1e9, "load_p99_us": 5000}
READS_BESIDE_LOAD = {
    "alone": result(),
    "beside": result(**LOAD),
    "flat out": result(),
    "stalled_ms": 3,
}
HOT_CELL = {
    name: result()
    for name in ("alone", "beside adds", "beside hot", "hot", "read after", "reads after")
}
CONNECTIONS = {
    (workload, count): result(busiest_loop=0.5)
    for workload in connections.WORKLOADS
    for count, _ in connections.SHAPES
}
CROWD = {what: [(2e5, 1.9e5)] * crowd.TURNS for what in crowd.COUPLES}
TABLE = {
    **{name: result() for name in ("load", "read", "scan", "write")},
    **{"data": 100, "space": 110, "written": 500, "peak": 1e9, "rest_seconds": 1, "stalled_ms": 0},
}
LARGE = {large.SMALL_ROWS: TABLE, large.LARGE_ROWS: TABLE}
SQL_CPU = {"scan": 0.9, "sift": 0.5, **dict.fromkeys(sql.QUERIES, 0.9)}
SQL = {
    "cpu": SQL_CPU, "points": [[100, 70]], "threads": [(2, 1), (1.9, 1)],
    "sqlite": dict.fromkeys(sql.QUERIES, 0.1),
}  # fmt: skip
# Of each section: figures that meet its goals, and what makes them miss one.
SECTIONS = [
    (thousand_bytes, {"read": 1e9, "write": 1e9, "scan": 1e9}, {"scan": 899.0}),
    (beside_load, READS_BESIDE_LOAD, {"beside": result(p99_us=5001, **LOAD)}),
    (hot_cell, HOT_CELL, {"read after": result(max_us=5001)}),
    (connections, CONNECTIONS, {("read", 4): result(busiest_loop=0.9)}),
    (crowd, CROWD, {"point read": [(2e5, 1.1e5)] * 4 + [(1e5, 1e5)]}),
    (large, LARGE, {large.LARGE_ROWS: {**TABLE, "space": 121}}),
    (sql, SQL, {"points": [[100, 30]]}),
    (sql, SQL, {"threads": [(1.7, 1)]}),
]


@pytest.mark.parametrize(
    "section, good, bad", SECTIONS, ids=[section.__name__ for section, _, _ in SECTIONS]
)
def test_other_sections(section, good, bad):
    assert all(goal.is_met for goal in section.goals(good))
    met = [goal.is_met for goal in section.goals({**good, **bad})]
    assert met.count(False) == 1
    assert_tables_are_whole(section.section({**good, **bad}))


def peer_figures(rates):
    """Two turns: in the second everything took twice the time."""
    turns = [
        {(at, who): result(rates[who], server_cpu_seconds=cpu)
         for at in range(len(peer.WORKLOADS)) for who in peer.WHO}
        for cpu in (1.0, 2.0)
    ]  # fmt: skip
    memory = {peer.HBASE: 2e9, peer.TRESTLE: 2e8}
    options = SimpleNamespace(rows=1000, runs=2, peer_seconds=6)
    of_cells = {cells: {"turns": turns, "memory": memory} for cells in (1, 10)}
    return {"options": options, "cells": of_cells}


def test_beside_a_peer():
    rates = {peer.HBASE: 1e6, peer.TRESTLE: 3.1e6, peer.JAVA: 2e6}
    measured = peer_figures(rates)
    assert all(goal.is_met for goal in peer.goals(measured))
    slower = peer_figures({**rates, peer.TRESTLE: 2.9e6})
    assert [goal.is_met for goal in peer.goals(slower)].count(False) == 2  # one and ten cells
    java = peer_figures({**rates, peer.JAVA: 1.8e6})
    assert [goal.is_met for goal in peer.goals(java)].count(False) == 4  # reads and writes
    assert_tables_are_whole(peer.section(measured))


def datastore_figures(emulators):
    """Two turns: in the second everything took twice the time."""
    rates = {datastore.ALL: 4e6, datastore.TRESTLE: 5e6, **dict.fromkeys(emulators, 1e6)}
    turns = {
        name: [result(rate), result(rate, server_cpu_seconds=2.0)] for name, rate in rates.items()
    }
    figures = {operation.name: dict(turns) for operation in datastore.OPERATIONS}
    sizes = {"entities": 1000, "emulator_entities": 100}
    return {**sizes, "load": {name: result() for name in rates}, **figures}


def test_datastore_beside_its_emulators():
    measured = datastore_figures(datastore.EMULATORS)
    goals = list(datastore.goals(measured))
    assert len(goals) == 2 * len(datastore.OPERATIONS)
    assert all(goal.is_met for goal in goals)
    measured["find"] = {**measured["find"], datastore.CLASSIC: [result(1_100_000)] * 2}
    assert [goal.is_met for goal in datastore.goals(measured)].count(False) == 1
    assert_tables_are_whole(datastore.section(measured))


def test_datastore_without_its_emulators():
    measured = datastore_figures([])
    assert list(datastore.goals(measured)) == []
    lines = list(datastore.section(measured))
    assert_tables_are_whole(lines)
    assert any("not installed" in line for line in lines)
