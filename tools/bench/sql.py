"""SQL beside ReadRows: aggregates over a million rows of ten columns, by one thread and by several,
and a row by its key; and SQLite over the same rows, for orientation."""

import csv
import sqlite3
import statistics
import subprocess
import sys
import time

from client import Client, rows_per_cpu_second
from page import at_least, at_most, number, table
from servers import TRESTLE, Server, trestle_command

ROWS, CELLS, VALUE_SIZE = 1_000_000, 10, 8
RUNS = 5
SECONDS = 3  # for rows by their keys
MOST_SCAN = 2  # times the CPU of ReadRows
LEAST_POINT = 0.6  # of the rate of ReadRows
LEAST_THREADS = 1.8  # times as fast as one thread, with two processors
DIVIDED = "a filtered aggregate"

# name: GoogleSQL, and SQLite's
QUERIES = {
    "COUNT(*)": ("SELECT COUNT(*) AS n FROM bench", "SELECT COUNT(*) FROM bench"),
    "a filtered aggregate": (
        "SELECT COUNT(*) AS n, AVG(TO_INT64(cf['c0'])) AS a FROM bench "
        "WHERE TO_INT64(cf['c1']) > 0",
        "SELECT COUNT(*), AVG(c0) FROM bench WHERE c1 > 0",
    ),
    "ten groups": (
        "SELECT MOD(TO_INT64(cf['c2']), 10) AS k, MAX(TO_INT64(cf['c3'])) AS m FROM bench "
        "GROUP BY k",
        "SELECT c2 % 10 AS k, MAX(c3) FROM bench GROUP BY k",
    ),
    "the ten greatest": (
        "SELECT _key, TO_INT64(cf['c4']) AS c FROM bench ORDER BY c DESC LIMIT 10",
        "SELECT key, c4 FROM bench ORDER BY c4 DESC LIMIT 10",
    ),
}


def ask(server, query):
    command = [TRESTLE, "sql", "--endpoint", server.endpoint, "--format", "csv", "-e", query]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def cpu_of(server, query):
    before = server.cpu_seconds()
    ask(server, query)
    return server.cpu_seconds() - before


def scan_cpu(client, workload):
    """Of ReadRows of all rows: `scan` sends them, `sift` drops them in the server."""
    result = client.run(
        workload, scan_rows=ROWS, connections=1, streams=1, operations=1, duration=60
    )
    return result["server_cpu_seconds"]


def in_sqlite(server):
    """{query's name: CPU seconds}"""
    columns = ", ".join(f"TO_INT64(cf['c{i}']) AS c{i}" for i in range(CELLS))
    exported = ask(server, f"SELECT CAST(_key AS STRING) AS key, {columns} FROM bench")
    database = sqlite3.connect(":memory:")
    names = ", ".join(f"c{i} INTEGER" for i in range(CELLS))
    database.execute(f"CREATE TABLE bench (key TEXT PRIMARY KEY, {names}) WITHOUT ROWID")
    rows = csv.reader(exported.splitlines())
    next(rows)
    database.executemany(f"INSERT INTO bench VALUES (?{', ?' * CELLS})", rows)
    figures = {}
    for name, (_, query) in QUERIES.items():
        times = []
        for _ in range(RUNS):
            began = time.process_time()
            database.execute(query).fetchall()
            times.append(time.process_time() - began)
        figures[name] = statistics.median(times)
    return figures


def loaded(server):
    client = Client(server, rows=ROWS, cells=CELLS, value_size=VALUE_SIZE, duration=SECONDS)
    print("sql: loading", file=sys.stderr)
    client.run("load")
    server.await_rest()
    return client


def seconds_of(server, query):
    began = time.monotonic()
    ask(server, query)
    return time.monotonic() - began


def by_threads(server):
    """[(seconds by one thread, by several)], turn about."""
    with Server(trestle_command("--query-threads", "1")) as alone:
        loaded(alone)
        query = QUERIES[DIVIDED][0]
        for each in (alone, server):
            ask(each, query)
        return [(seconds_of(alone, query), seconds_of(server, query)) for _ in range(RUNS)]


def measure(_):
    with Server(trestle_command()) as server:
        client = loaded(server)
        cpu = {name: [] for name in ("scan", "sift", *QUERIES)}
        points = []
        for run in range(RUNS):
            print(f"sql: run {run + 1} of {RUNS}", file=sys.stderr)
            for workload in ("scan", "sift"):
                cpu[workload].append(scan_cpu(client, workload))
            for name, (query, _) in QUERIES.items():
                cpu[name].append(cpu_of(server, query))
            rates = [rows_per_cpu_second(client.run(each)) for each in ("read", "query")]
            points.append(rates)
        figures = {name: statistics.median(values) for name, values in cpu.items()}
        threads = by_threads(server)
        return {
            "cpu": figures, "points": points, "threads": threads, "sqlite": in_sqlite(server)
        }  # fmt: skip


def point_share(measured):
    return statistics.median(query / read for read, query in measured["points"])


def thread_ratio(measured):
    return statistics.median(one / several for one, several in measured["threads"])


def goals(measured):
    cpu = measured["cpu"]
    for name in ("COUNT(*)", "a filtered aggregate"):
        yield at_most(f"{name}: CPU of a scan in the server", MOST_SCAN, cpu[name] / cpu["sift"])
    yield at_least("a row by its key: of the rate of ReadRows", LEAST_POINT, point_share(measured))
    yield at_least(f"{DIVIDED}: several threads, times one", LEAST_THREADS, thread_ratio(measured))


def section(measured):
    cpu, sqlite = measured["cpu"], measured["sqlite"]
    read, query = (statistics.median(rates) for rates in zip(*measured["points"], strict=True))
    yield "## A million rows"
    yield ""
    yield (
        f"{ROWS:,} rows of {CELLS} cells of {VALUE_SIZE} bytes, CPU seconds of the server, the "
        f"median of {RUNS} runs. The first two lines are ReadRows of all rows: sent to the "
        "client, and with a filter that looks at a column's value and lets nothing pass, which "
        "is what a scan costs inside the server. SQLite has the same rows as integers in a "
        "table in memory; its own CPU time."
    )
    yield ""
    rows = [
        ["ReadRows", number(cpu["scan"]), number(cpu["scan"] / cpu["sift"]), ""],
        ["ReadRows, nothing passes", number(cpu["sift"]), "1", ""],
    ]
    for name in QUERIES:
        rows.append(
            [name, number(cpu[name]), number(cpu[name] / cpu["sift"]), number(sqlite[name])]
        )
    yield from table(["", "CPU s", "of a scan inside", "SQLite, CPU s"], rows)
    yield ""
    for name, (text, _) in QUERIES.items():
        yield f"    {text};  -- {name}"
    yield ""
    yield "## By several threads"
    yield ""
    one, several = (statistics.median(each) for each in zip(*measured["threads"], strict=True))
    yield (
        f"{DIVIDED.capitalize()} takes {number(one)} s by the clock with `--query-threads 1`, "
        f"{number(several)} s with the default: {number(thread_ratio(measured))} times as fast, "
        f"the median of {RUNS} pairs of runs, turn about, of two servers."
    )
    yield ""
    yield "## A row by its key"
    yield ""
    yield (
        f"Requests for each second of the server's CPU time: {number(read)} by ReadRows, "
        f"{number(query)} by ExecuteQuery of `SELECT * … WHERE _key = @key`, prepared once: "
        f"{number(point_share(measured))} of the rate, the median of {RUNS} pairs of runs."
    )
