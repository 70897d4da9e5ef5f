"""One cell that everybody adds to: how fast that goes, what a read of it then takes, and whether
other requests pay for it."""

from client import Client, cores, rows_per_cpu_second, rows_per_second
from page import at_least, at_most, milliseconds, number, table
from servers import Server, trestle_command

READ_RATE = 10_000  # a second
ADD_RATE = 20_000
BESIDE_SECONDS = 10
LEAST_ADDS = 50_000  # a second
MOST_READ_MS = 5
MOST_SLOWDOWN = 1.1  # of the rest of the load: more than the noise of a run


def measure(options):
    with Server(trestle_command()) as server:
        client = Client(server, rows=options.rows)
        client.run("load")
        client.run("add", operations=1)  # makes the family
        server.await_rest()
        measured = {
            "alone": reads(client),
            "beside adds": reads_beside(client, "add"),
            "beside hot": reads_beside(client, "hot"),
            "hot": client.run("hot", duration=options.minute),
            "read after": client.run("hotread", operations=1, connections=1, streams=1),
            "reads after": client.run("hotread", operations=1000, connections=1, streams=1),
        }
        return measured


def reads(client):
    return client.run("read", rate=READ_RATE, duration=BESIDE_SECONDS)


def reads_beside(client, workload):
    adds = client.start(workload, rate=ADD_RATE, duration=BESIDE_SECONDS)
    result = reads(client)
    adds.result()
    return result


def goals(measured):
    yield at_least("AddToCell/s to one cell", LEAST_ADDS, rows_per_second(measured["hot"]))
    read_ms = measured["read after"]["max_us"] / 1000
    yield at_most("a read of that cell afterwards", MOST_READ_MS, read_ms, " ms")
    yield at_most(
        "CPU of a load with a hot cell, for one with random cells",
        MOST_SLOWDOWN,
        cores(measured["beside hot"]) / cores(measured["beside adds"]),
    )


def section(measured):
    hot, after = measured["hot"], measured["reads after"]
    yield "## A hot cell"
    yield ""
    yield (
        f"AddToCell to one cell by 64 calls at once for {hot['seconds']:.0f} s: "
        f"{number(rows_per_second(hot))} a second, {number(rows_per_cpu_second(hot))} per CPU "
        f"second, p99 {milliseconds(hot['p99_us'])} ms. The first read of the cell right after "
        f"that took {milliseconds(measured['read after']['max_us'])} ms; of the next "
        f"{after['requests']:,}, one at a time, 99 % took {milliseconds(after['p99_us'])} ms at "
        "most."
    )
    yield ""
    yield (
        f"Others beside it: {READ_RATE:,} reads of random rows a second, alone, beside "
        f"{ADD_RATE:,} AddToCell a second to random rows, and beside as many to one cell."
    )
    yield ""
    rows = [
        ("alone", measured["alone"]),
        ("beside AddToCell to random rows", measured["beside adds"]),
        ("beside AddToCell to one cell", measured["beside hot"]),
    ]
    yield from table(
        ["reads", "cores, all requests", "p50 ms", "p99 ms", "p99.9 ms"],
        (
            [
                words,
                f"{cores(result):.2f}",
                *(milliseconds(result[f"{name}_us"]) for name in ("p50", "p99", "p999")),
            ]
            for words, result in rows
        ),
    )
