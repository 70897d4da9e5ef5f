#!/usr/bin/python3
"""Measures Trestle beside Google's emulator with `trestle bench`, in turn, on this machine.

For each number of cells a row and each run, every server is started anew and given the same
workloads. What is compared is requests per second of the server's own CPU time (user and system),
which depends less than requests per second on what else the machine does. Figures are medians over
the runs. The emulator is left out if it is not installed.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRESTLE = ROOT / "build/trestle"
EMULATOR = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator"
PAGE = ROOT / "docs/benchmarks.md"
WORKLOADS = ["load", "batch", "write", "read", "scan", "limit", "mixed", "rmw"]
WHAT = {
    "load": "load, MutateRows of {batch} rows",
    "batch": "batch, MutateRows of {batch} rows over existing rows",
    "write": "write, MutateRow",
    "read": "point read",
    "scan10": "scan of 10 rows",
    "scan": "scan of {scan} rows",
    "limit": "scan of {scan} rows by rows_limit, open range",
    "mixed": "mixed 50/50",
    "rmw": "ReadModifyWriteRow",
}


class Process:
    """A server on a port and a directory of its own, for a `with` statement."""

    def __init__(self, command):
        self.command = command

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="trestle-bench-", dir=ROOT / "build")
        self.endpoint = f"127.0.0.1:{free_port()}"
        self.log = open(Path(self.directory.name) / "log", "wb")
        command = [
            part.format(
                endpoint=self.endpoint, port=self.endpoint.split(":")[1], data=self.directory.name
            )
            for part in self.command
        ]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        wait_for(self.endpoint, self.process)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        self.directory.cleanup()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(endpoint, process):
    host, port = endpoint.split(":")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"no server at {endpoint}")


def servers(options):
    """Name, command, tablets."""
    serve = [str(TRESTLE), "serve", "--listen", "{endpoint}", "--data-dir", "{data}/data"]
    found = [("Trestle", serve, 1), (f"Trestle, {options.tablets} tablets", serve, options.tablets)]
    emulator = EMULATOR if os.path.exists(EMULATOR) else shutil.which("cbtemulator")
    if emulator:
        found.append(("emulator", [emulator, "-host", "127.0.0.1", "-port", "{port}"], 1))
    return found


def bench(server, options, cells, tablets, workloads, scan_rows):
    command = [
        str(TRESTLE), "bench", "--json", "--endpoint", server.endpoint,
        "--server-pid", str(server.process.pid), "--rows", str(options.rows),
        "--cells", str(cells), "--batch", str(options.batch), "--scan-rows", str(scan_rows),
        "--tablets", str(tablets), "--duration", f"{options.seconds}s",
        "--workloads", ",".join(workloads),
    ]  # fmt: skip
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def measure(server, options, cells, tablets):
    """{workload: what `trestle bench` says of it}."""
    results = bench(server, options, cells, tablets, options.workloads, options.scan_rows)
    measured = {result["workload"]: result for result in results}
    if "scan" in options.workloads:
        (measured["scan10"],) = bench(server, options, cells, tablets, ["scan"], 10)
    return measured


def run(options):
    """{(server, cells, workload): [results of the runs]}"""
    collected = {}
    for number in range(options.runs):
        for cells in options.cells:
            for name, command, tablets in servers(options):
                print(f"run {number + 1}, {cells} cells: {name}", file=sys.stderr)
                with Process(command) as server:
                    for workload, result in measure(server, options, cells, tablets).items():
                        collected.setdefault((name, cells, workload), []).append(result)
    return collected


def median(results, figure):
    return statistics.median(map(figure, results))


def per_cpu_second(result):
    return result["requests"] / max(result["server_cpu_seconds"], 0.01)


def per_second(result):
    return result["requests"] / result["seconds"]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def table_lines(options, collected, cells):
    names = [name for name, _, _ in servers(options)]
    peer = "emulator" if "emulator" in names else None
    head = ["workload", *(f"{name}: per CPU s" for name in names)]
    head += ["ratio"] if peer else []
    head += ["Trestle: per s", "p50 µs", "p99 µs"]
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for workload, words in WHAT.items():
        if ("Trestle", cells, workload) not in collected:
            continue
        figures = {name: collected[name, cells, workload] for name in names}
        rates = {name: median(results, per_cpu_second) for name, results in figures.items()}
        own = figures["Trestle"]
        row = [words.format(batch=options.batch, scan=options.scan_rows)]
        row += [number(rates[name]) for name in names]
        row += [f"{rates['Trestle'] / rates[peer]:.1f}"] if peer else []
        row += [number(median(own, per_second))]
        row += [number(median(own, lambda r, p=p: r[p])) for p in ("p50_us", "p99_us")]
        yield "| " + " | ".join(row) + " |"


def machine():
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
    return f"{os.cpu_count()} × {model}, Linux {platform.release()}"


def page_lines(options, collected):
    yield "# Benchmarks"
    yield ""
    yield f"Made by `./dev bench --write {' '.join(options.given)}`".rstrip() + (
        f" on {datetime.date.today()}: {machine()}."
    )
    yield (
        f"{options.rows:,} rows; 4 connections of 16 streams; {options.seconds} s for each "
        f"workload; medians of {options.runs} runs, the servers in turn. Trestle acknowledges "
        "what has been fsynced; the emulator keeps its data in memory only. The load generator "
        "runs on the same processors. "
        f"Load average of the machine before the first run: {options.load:.1f}."
    )
    for cells in options.cells:
        yield ""
        yield f"## {cells} cell{'s' * (cells != 1)} of 100 bytes a row"
        yield ""
        yield from table_lines(options, collected, cells)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    integers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--cells", type=integers, default=[1, 10], help="of a row: 1,10")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--scan-rows", type=int, default=100)
    parser.add_argument("--tablets", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=5, help="for each workload")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workloads", type=lambda t: t.split(","), default=WORKLOADS)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args(arguments)
    options.load = os.getloadavg()[0]
    options.given = [part for part in arguments if part != "--write"]
    return options


def main(arguments):
    options = parse(arguments)
    page = "\n".join(page_lines(options, run(options))) + "\n"
    print(page)
    if options.write:
        PAGE.write_text(page)


if __name__ == "__main__":
    main(sys.argv[1:])
