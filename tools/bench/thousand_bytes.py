"""Rows of 1,000 bytes: what 2 server cores would do, beside what a Bigtable node is said to do."""

from client import Client, rows_per_cpu_second
from page import at_least, number, table
from servers import Server, trestle_command

VALUE_SIZE = 1000
CORES = 2
MB = 1e6

# Workload, words, bytes of a row in the figure's unit, unit, goal, a documented Bigtable SSD node.
FIGURES = [
    ("read", "point reads", 1, "/s", 170_000, 17_000),
    ("write", "writes, MutateRow", 1, "/s", 80_000, 14_000),
    ("scan", "scan of 100 rows", VALUE_SIZE / MB, " MB/s", 900, 220),
]


def measure(options):
    """{workload: its figure for 2 cores}"""
    with Server(trestle_command()) as server:
        client = Client(
            server, rows=options.rows, value_size=VALUE_SIZE, duration=options.seconds
        )
        client.run("load")
        server.await_rest()
        return {
            name: rows_per_cpu_second(client.run(name)) * CORES * unit_bytes
            for name, _, unit_bytes, _, _, _ in FIGURES
        }


def goals(measured):
    for name, words, _, unit, goal, _ in FIGURES:
        yield at_least(f"1,000-byte rows on {CORES} cores: {words}", goal, measured[name], unit)


def section(measured):
    yield "## Rows of 1,000 bytes"
    yield ""
    yield (
        f"What {CORES} processors would do if the server had them to itself: {CORES} times what it "
        "does in a second of CPU. Google documents the last column for a node of Bigtable with "
        "SSD, rows of 1 KB."
    )
    yield ""
    yield from table(
        ["", f"{CORES} cores of Trestle", "goal", "Bigtable node"],
        (
            [words, f"{number(measured[name])}{unit}", f"{number(goal)}{unit}", f"{node:,}{unit}"]
            for name, words, _, unit, goal, node in FIGURES
        ),
    )
