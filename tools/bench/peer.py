"""A durable peer beside Trestle: Apache HBase, one process on the machine's own disk.

Three loads of the same keys, sizes and calls take turns: HBase by its own asynchronous client,
Trestle by `trestle bench`, and Trestle by Google's client for Java, which is the fairer comparison
for who writes Java. The programs in Java are in peer/; Maven fetches what they need."""

import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from client import Client
from page import at_least, milliseconds, number, table
from servers import ROOT, Server, free_port, trestle_command, wait_for

sys.path.append(str(ROOT / "tools/clients"))

from fetching import cache, demand, fetch  # noqa: E402
from outcomes import UnavailableError  # noqa: E402

HERE = Path(__file__).resolve().parent / "peer"
HEAP = ["-Xmx2g", "-XX:+UseG1GC"]
OPENED = ["java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
          "java.util.concurrent", "sun.nio.ch", "jdk.internal.ref"]  # fmt: skip
AWAIT_SECONDS = 120
HBASE, TRESTLE, JAVA = "HBase", "Trestle", "Trestle, Java"
WHO = [HBASE, TRESTLE, JAVA]
# What issue 25 wants: times HBase's rate, and Java's share of that of `trestle bench`.
LEAST_TIMES, LEAST_SHARE = 3, 0.6


@dataclass(frozen=True)
class Workload:
    name: str
    words: str
    least_times: float = None
    least_share: float = None


WORKLOADS = [
    Workload("read", "point read", least_share=LEAST_SHARE),
    Workload("scan", "scan of 100 rows, of a table just loaded"),
    Workload("write", "write of a row", least_share=LEAST_SHARE),
    Workload("scan", "the same scan after these writes", least_times=LEAST_TIMES),
    Workload("batch", "batch of 100 rows"),
]


def say(text):
    print(f"peer: {text}", file=sys.stderr, flush=True)


# --- programs ---


def class_path(name, program):
    """Fetches the libraries of peer/NAME.xml, and compiles the program with them."""
    folder = cache("peer")
    listing, compiled = folder / f"{name}.classpath", folder / name
    say(f"fetching what {program} needs")
    fetch(f"what {program} needs", [
        "mvn", "-q", "-B", "-f", HERE / f"{name}.xml", "dependency:build-classpath",
        f"-Dmdep.outputFile={listing}", "-Dmdep.includeScope=runtime",
    ])  # fmt: skip
    libraries = listing.read_text().strip()
    sources = [HERE / f"{each}.java" for each in ("Calls", "Streams", program)]
    fetch(program, ["javac", "-nowarn", "-cp", libraries, "-d", compiled, *sources])
    return f"{compiled}:{libraries}"


class HBase(Server):
    """`port` is of its ZooKeeper, which clients ask where it is."""

    def __init__(self, libraries):
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        # braces: Server fills in names of its own
        super().__init__(["java", *HEAP, *opened, "-cp", f"{{data}}/conf:{libraries}",
                          "org.apache.hadoop.hbase.master.HMaster", "start"])  # fmt: skip

    def start(self, command):
        self.port, self.master = free_port(), free_port()
        conf = self.data / "conf"
        conf.mkdir(parents=True)
        site = (HERE / "hbase-site.xml").read_text()
        site = site.format(data=self.data, zookeeper=self.port, master=self.master,
                           regions=free_port())  # fmt: skip
        (conf / "hbase-site.xml").write_text(site)
        super().start(command)

    def await_start(self, seconds=AWAIT_SECONDS):
        wait_for(f"127.0.0.1:{self.port}", self.process, seconds)
        wait_for(f"127.0.0.1:{self.master}", self.process, seconds)


class JavaClient:
    """A program of peer/, which runs one workload after another."""

    def __init__(self, libraries, program, port, server, options, cells):
        self.server = server
        self.options = options
        command = ["java", "-Xmx1g", "-cp", libraries, program, port, server.pid, options.rows,
                   cells]  # fmt: skip
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def run(self, workload, warm=0, seconds=0, seed=1):
        line = f"{workload} {warm} {seconds} {seed}\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.log.seek(0)
        sys.exit(f"{workload}: {self.log.read()[-4000:]}")


class NativeClient:
    def __init__(self, server, options, cells):
        name = f"projects/p/instances/i/tables/bench{cells}"
        self.server = server
        self.client = Client(server, table=name, rows=options.rows, cells=cells)

    def run(self, workload, warm=0, seconds=0, seed=1):
        if workload == "load":
            return self.client.run(workload)
        return self.client.run(workload, duration=seconds, seed=seed)


# --- measuring ---


def warm_up(clients, options):
    """Compilers have then seen each call; what was written goes with the next load."""
    for who in (HBASE, JAVA):
        say(f"warming up, {who}")
        clients[who].run("load")
        for workload in ("read", "scan", "write", "batch"):
            clients[who].run(workload, seconds=options.warm_seconds, seed=7)


def one_turn(clients, turn, options):
    """{(place in WORKLOADS, who): result}"""
    found = {}
    for who, client in clients.items():
        client.run("load", seed=turn)
        client.server.await_rest(AWAIT_SECONDS)
    for at, workload in enumerate(WORKLOADS):
        for who, client in clients.items():
            seed = 1000 * (turn + 1) + 100 * at
            found[at, who] = client.run(workload.name, 1, options.peer_seconds, seed)
        rates = ", ".join(f"{who} {number(rate(found[at, who]))}" for who in clients)
        say(f"{workload.words}: {rates}")
    return found


def measure_cells(cells, libraries, options):
    with ExitStack() as running:
        hbase = running.enter_context(HBase(libraries["hbase"]))
        trestle = running.enter_context(Server(trestle_command()))
        conf = f"{hbase.data}/conf:{libraries['hbase']}"
        port = trestle.endpoint.rsplit(":", 1)[1]
        clients = {
            HBASE: JavaClient(conf, "HBaseCalls", hbase.port, hbase, options, cells),
            TRESTLE: NativeClient(trestle, options, cells),
            JAVA: JavaClient(libraries["bigtable"], "BigtableCalls", port, trestle, options, cells),
        }
        for who in (HBASE, JAVA):
            running.enter_context(clients[who])
        warm_up(clients, options)
        turns = [one_turn(clients, turn, options) for turn in range(options.runs)]
        memory = {HBASE: hbase.resident_bytes(), TRESTLE: trestle.resident_bytes()}
    return {"turns": turns, "memory": memory}


def measure(options):
    try:
        demand("java", "javac", "mvn")
        libraries = {"hbase": class_path("hbase", "HBaseCalls"),
                     "bigtable": class_path("bigtable", "BigtableCalls")}  # fmt: skip
    except UnavailableError as missing:
        sys.exit(f"peer: {missing}")
    of_cells = {cells: measure_cells(cells, libraries, options) for cells in options.cells}
    return {"options": options, "cells": of_cells}


# --- figures ---


def rate(result):
    """Requests for each second of the server's CPU time."""
    return result["requests"] / result["server_cpu_seconds"]


def median(turns, at, who, figure):
    return statistics.median(figure(turn[at, who]) for turn in turns)


def ratio(turns, at, who, other=HBASE):
    """Of the rates in the same turn: how many times the other's."""
    return statistics.median(rate(turn[at, who]) / rate(turn[at, other]) for turn in turns)


def goals(measured):
    for cells, found in measured["cells"].items():
        turns = found["turns"]
        for at, workload in enumerate(WORKLOADS):
            what = f"{workload.words}, {cells} cells: "
            if workload.least_times is not None:
                times = ratio(turns, at, TRESTLE)
                yield at_least(f"{what}times HBase's rate", workload.least_times, times)
            if workload.least_share is not None:
                share = ratio(turns, at, JAVA, TRESTLE)
                what += "Google's client for Java, of the rate of `trestle bench`"
                yield at_least(what, workload.least_share, share)


# --- the page ---


def settings():
    yield "HBase is version 2.6.4-hadoop3, its master, its region server and its ZooKeeper in one"
    yield f"process with `{' '.join(HEAP)}`. Its table has one family and is written with"
    yield "`FSYNC_WAL`, so that an answer means an fsync as it does here (`SYNC_WAL`, its default,"
    yield "leaves the bytes to the system). The rest is as shipped, but for `hbase-site.xml`:"
    yield ""
    yield "```xml"
    yield (HERE / "hbase-site.xml").read_text().strip()
    yield "```"


def rates(found):
    turns = found["turns"]
    rows = []
    for at, workload in enumerate(WORKLOADS):
        row = [workload.words] + [number(median(turns, at, who, rate)) for who in WHO]
        rows.append(row + [number(ratio(turns, at, who)) for who in (TRESTLE, JAVA)])
    yield from table(
        ["requests per CPU second", *WHO, "Trestle × HBase", "Trestle, Java × HBase"], rows
    )


def latencies(found):
    turns = found["turns"]
    rows = []
    for at, workload in enumerate(WORKLOADS):
        row = [workload.words]
        for who in WHO:
            p50 = median(turns, at, who, lambda result: result["p50_us"])
            p99 = median(turns, at, who, lambda result: result["p99_us"])
            row.append(f"{milliseconds(p50)}, {milliseconds(p99)}")
        rows.append(row)
    yield from table(["p50, p99, ms", *WHO], rows)


def section(measured):
    options = measured["options"]
    yield from settings()
    yield ""
    yield (
        f"{options.rows:,} rows, 64 calls at once, {options.runs} turns of "
        f"{options.peer_seconds:g} s for each workload, medians; × is the median of the turns' "
        "ratios. A table is loaded anew at the begin of each turn. Rates are requests for each "
        "second of the server's CPU time, flushes, compactions and collections of garbage "
        "included. Clients run on the same processors: latencies are theirs as much as the "
        "servers'."
    )
    for cells, found in measured["cells"].items():
        yield ""
        yield f"## {cells} cell{'s' if cells != 1 else ''} of 100 bytes a row"
        yield ""
        yield from rates(found)
        yield ""
        yield from latencies(found)
        yield ""
        memory = ", ".join(f"{who} {size / 1e6:,.0f} MB" for who, size in found["memory"].items())
        yield f"Resident memory at the end: {memory} (two tables of Trestle's, one of HBase's)."
