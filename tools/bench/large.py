"""Ten million rows of 1,000 bytes and a cache a tenth of that, beside a small table: what does a
request cost more, and what becomes of the disk?"""

import sys

from client import Client, rows_per_cpu_second, rows_per_second
from page import at_least, at_most, milliseconds, number, table
from servers import Server, trestle_command

VALUE_SIZE = 1000
KEY_SIZE = 24  # of trestle bench
SMALL_ROWS, LARGE_ROWS = 100_000, 10_000_000
CACHE = "1GB"
REST_SECONDS = 1800  # for compactions to end, at most
WORKLOADS = [("read", "point read"), ("scan", "scan of 100 rows"), ("write", "MutateRow")]
LEAST_SHARE = 0.5  # of the small table's rates
MOST_READ_CPU = 1.5  # times that of the small table
MOST_SPACE = 1.2  # bytes on the disk for each of keys and values


def measure(options):
    """{rows: figures of a server with a table of so many}"""
    return {rows: measure_table(options, rows) for rows in (SMALL_ROWS, LARGE_ROWS)}


def measure_table(options, rows):
    print(f"{rows:,} rows: loading", file=sys.stderr)
    with Server(trestle_command("--cache", CACHE)) as server:
        client = Client(
            server, rows=rows, value_size=VALUE_SIZE, duration=options.large_seconds
        )
        # Values are random bytes, which no compression makes smaller.
        figures = {"data": rows * (KEY_SIZE + VALUE_SIZE), "load": client.run("load")}
        figures["rest_seconds"] = server.await_rest(REST_SECONDS)
        figures["stalled_ms"] = server.metric("store_stall_milliseconds_total")
        figures["written"] = server.written_bytes()
        figures["space"] = server.data_bytes()
        print(f"{rows:,} rows: reading and writing", file=sys.stderr)
        client.run("read")  # so that the cache is as full as it gets
        for workload, _ in WORKLOADS:
            figures[workload] = client.run(workload)
        figures["peak"] = figures["write"]["server_peak_bytes"]
        return figures


def share(measured, workload):
    small, large = (rows_per_cpu_second(measured[rows][workload]) for rows in measured)
    return large / small


def goals(measured):
    for workload, words in WORKLOADS:
        what = f"{words}: rate at {LARGE_ROWS:,} rows for that at {SMALL_ROWS:,}"
        yield at_least(what, LEAST_SHARE, share(measured, workload))
    what = f"CPU of a point read at {LARGE_ROWS:,} rows for that at {SMALL_ROWS:,}"
    yield at_most(what, MOST_READ_CPU, 1 / share(measured, "read"))
    large = measured[LARGE_ROWS]
    what = "space on the disk for each byte of keys and values"
    yield at_most(what, MOST_SPACE, large["space"] / large["data"])


def section(measured):
    large = measured[LARGE_ROWS]
    yield "## Ten million rows"
    yield ""
    yield (
        f"Rows of one cell of {VALUE_SIZE:,} random bytes, `--cache {CACHE}`. Loading took "
        f"{large['load']['seconds']:.0f} s ({number(rows_per_second(large['load']))} rows/s), and "
        f"{large['rest_seconds']:.0f} s more until compactions were done; writes were held back "
        f"for {large['stalled_ms'] / 1000:.0f} s of it. Only then began the rest, over random rows "
        "of all."
    )
    yield ""
    rates = [f"{rows:,} rows: per CPU s" for rows in measured]
    yield from table(
        ["workload", *rates, "share", "p50 ms", "p99 ms"],
        (
            [
                words,
                *(number(rows_per_cpu_second(figures[name])) for figures in measured.values()),
                f"{share(measured, name):.2f}",
                *(milliseconds(large[name][figure]) for figure in ("p50_us", "p99_us")),
            ]
            for name, words in (("load", "load, MutateRows of 100 rows"), *WORKLOADS)
        ),
    )
    yield ""
    yield from table(
        ["", *(f"{rows:,} rows" for rows in measured)],
        (
            [words, *(number(figure(figures)) for figures in measured.values())]
            for words, figure in (
                ("keys and values, MB", lambda f: f["data"] / 1e6),
                ("on the disk after compactions, MB", lambda f: f["space"] / 1e6),
                ("on the disk for each byte of keys and values", lambda f: f["space"] / f["data"]),
                ("written for each byte of them", lambda f: f["written"] / f["data"]),
                ("peak memory, MB", lambda f: f["peak"] / 1e6),
            )
        ),
    )
