"""Many clients, each with a connection of its own and one call at a time: what is left of the rate
of few? Few and many take turns, so that both meet the same noise of the machine."""

import statistics

from client import Client, rows_per_cpu_second
from page import at_least, number, table
from servers import Server, trestle_command

TURNS = 5
# Workload, and connections × calls at once on each, of few and of many; the least share.
COUPLES = {
    "point read": ("read", (4, 16), (400, 1), 0.6),
    "AddToCell to one cell": ("hot", (64, 1), (1000, 1), 0.9),
    "AddToCell to one cell, four connections": ("hot", (4, 16), (4, 250), 0.9),
}


def measure(options):
    """{what: [(rate of few, of many) of each turn]}"""
    with Server(trestle_command()) as server:
        client = Client(server, rows=options.rows, duration=options.seconds)
        client.run("load")
        client.run("add", operations=1)  # makes the family
        server.await_rest()
        return {what: measure_couple(client, *couple) for what, couple in COUPLES.items()}


def measure_couple(client, workload, few, many, _):
    return [
        tuple(
            rows_per_cpu_second(client.run(workload, connections=connections, streams=streams))
            for connections, streams in (few, many)
        )
        for _ in range(TURNS)
    ]


def share(turns):
    return statistics.median(many / few for few, many in turns)


def shape(connections, streams):
    return f"{connections} × {streams}"


def goals(measured):
    for what, (_, few, many, least) in COUPLES.items():
        words = f"{what}, {shape(*many)}: of the rate of {shape(*few)}"
        yield at_least(words, least, share(measured[what]))


def section(measured):
    yield "## Few clients and a crowd"
    yield ""
    yield (
        "Rows per CPU second of the server, with so many connections × calls at once on each; "
        f"medians of {TURNS} turns."
    )
    yield ""
    yield from table(
        ["workload", "few", "rows per CPU s", "many", "rows per CPU s", "share"],
        (
            [
                what,
                shape(*few),
                number(statistics.median(rate for rate, _ in measured[what])),
                shape(*many),
                number(statistics.median(rate for _, rate in measured[what])),
                number(share(measured[what])),
            ]
            for what, (_, few, many, _) in COUPLES.items()
        ),
    )
