"""The arithmetic of the limit: what a request's parts cost by themselves, on this machine.

A call that does nothing (PingAndWarm) has HTTP/2, gRPC and the kernel's share. store_bench has the
store without a server: a row by its key, the next row of a cursor, a row in a synced batch of 64
(as many as there are calls at once), or of 6,400 (when each brings 100).
Nothing of Bigtable's own is in it (requests and answers in protobuf, cells, filters), nor the bytes
to the socket: what is measured can only be worse, but for what parts share.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass

from client import Client
from page import table
from servers import ROOT, Server, trestle_command

STORE_BENCH = str(ROOT / "build/src/store/store_bench")
# What the steps of store_bench do, see there.
GETS, NEXTS, PUTS = 200_000, 2_000 * 100, 100_000


@dataclass(frozen=True)
class Parts:
    """Microseconds of CPU."""

    call: float
    get: float
    next: float
    put: float
    put_many: float


def step_seconds(steps):
    """CPU seconds of each step of store_bench."""
    with tempfile.TemporaryDirectory(prefix="trestle-bench-", dir=ROOT / "build") as directory:
        command = [STORE_BENCH, directory, *steps]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: float(cpu) for name, cpu in re.findall(r"(\w+) .*CPU +([\d.]+) s", output)}


def store_parts(call, *size):
    seconds = step_seconds(["keyspaces", *size, "rows", "get", "scan"])
    many = step_seconds(["keyspaces", *size, "many", "rows"])
    return Parts(
        call,
        get=seconds["get"] / GETS * 1e6,
        next=seconds["scan"] / NEXTS * 1e6,
        put=seconds["rows"] / PUTS * 1e6,
        put_many=many["rows"] / PUTS * 1e6,
    )


def measure(options):
    """{cells of a row: Parts}"""
    with Server(trestle_command()) as server:
        ping = Client(server, duration=options.seconds).run("ping")
    call = ping["server_cpu_seconds"] / ping["requests"] * 1e6
    return {1: store_parts(call, "small"), 10: store_parts(call)}


def section(measured):
    yield "## The limit"
    yield ""
    yield (
        "What the parts of a request take by themselves, in microseconds of CPU. A call that does "
        "nothing is PingAndWarm through the server; the store without a server is `store_bench`, "
        "rows in no order, most still in the write buffer. *Limit* in the tables above is their "
        "sum: a call and a row by its key for a point read, a call and so many next rows for a "
        "scan, a call and a row written for a write, with its part of the sync. Protobuf, cells "
        "and the bytes to the socket are not in it."
    )
    yield ""
    yield from table(
        ["", "100-byte rows", "1,000-byte rows"],
        (
            [words, *(f"{getattr(parts, name):.2f}" for parts in measured.values())]
            for name, words in (
                ("call", "a call that does nothing"),
                ("get", "a row by its key"),
                ("next", "the next row"),
                ("put", "a row written, 64 a sync"),
                ("put_many", "a row written, 6,400 a sync"),
            )
        ),
    )
