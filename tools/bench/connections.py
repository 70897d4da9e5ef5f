"""As many calls over few connections as over many: do few use all processors?"""

from client import Client, cores, rows_per_cpu_second, rows_per_second
from page import at_most, number, table
from servers import Server, trestle_command

SHAPES = [(4, 100), (400, 1)]  # connections, calls at once on each
WORKLOADS = ["read", "scan", "write"]
MOST_SHARE = 0.6  # of the busier of two event loops


def measure(options):
    """{(workload, connections): result}"""
    measured = {}
    with Server(trestle_command()) as server:
        client = Client(server, rows=options.rows, duration=options.seconds)
        client.run("load")
        server.await_rest()
        for workload in WORKLOADS:
            for count, streams in SHAPES:
                before = server.loop_seconds()
                result = client.run(workload, connections=count, streams=streams)
                after = server.loop_seconds()
                used = [after[loop] - before[loop] for loop in after]
                result["busiest_loop"] = max(used) / sum(used)
                measured[workload, count] = result
    return measured


def goals(measured):
    few = SHAPES[0][0]
    for workload in WORKLOADS:
        what = f"{few} connections: the busier event loop's share of the work, {workload}"
        yield at_most(what, MOST_SHARE, measured[workload, few]["busiest_loop"])


def section(measured):
    yield "## Few connections and many"
    yield ""
    yield (
        "400 calls at once, over 4 connections and over 400. A connection belongs to one event "
        "loop of two; *busier loop* is the share of the one that did more. Each connection more "
        "has its own system calls."
    )
    yield ""
    yield from table(
        ["workload", "connections", "rows/s", "rows per CPU s", "cores", "busier loop"],
        (
            [
                workload,
                str(count),
                number(rows_per_second(result)),
                number(rows_per_cpu_second(result)),
                f"{cores(result):.2f}",
                f"{result['busiest_loop']:.2f}",
            ]
            for (workload, count), result in measured.items()
        ),
    )
