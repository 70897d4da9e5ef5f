#!/usr/bin/python3
"""Measures what the release binary takes: memory, time to start, file descriptors.

Prints each figure with its limit, and exits with 1 if one is over it. Needs .venv (./dev footprint
sees to that). Resident memory is VmRSS, its peak VmHWM, of /proc/PID/status.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness.rpc import Rpc, set_cell  # noqa: E402
from harness.server import Server  # noqa: E402

MB = 1 << 20
TABLES = 1000
DESCRIPTORS = 1024
CELL = 10 * MB
BIG_ROW_CELLS = 20
CACHE_MB = 64


class Report:
    def __init__(self):
        self.failed = False

    def line(self, what, value, limit, unit):
        verdict = "ok" if value <= limit else "TOO MUCH"
        self.failed |= value > limit
        print(f"{what:<58} {value:8.1f} {unit:<3} limit {limit:6.1f}  {verdict}", flush=True)


def memory(server, field):
    """MB of VmRSS or VmHWM."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def timed_start(server):
    started = time.monotonic()
    server.start()
    return time.monotonic() - started


def touch(rpc, names):
    for name in names:
        rpc.mutate(name, b"k", set_cell("f", b"q", b"v", 1000))
        assert len(rpc.read(name)) == 1


def measure_idle(report, directory):
    server = Server(directory).start()
    report.line("idle: resident", memory(server, "VmRSS"), 60, "MB")
    server.stop()


def measure_tables(report, directory):
    server = Server(directory, ["--cache", f"{CACHE_MB}MB"]).start()
    rpc = Rpc(server.host)
    names = [rpc.create_table(f"t{i}") for i in range(TABLES)]
    touch(rpc, names)
    what = f"{TABLES} tables, all touched: resident beyond the cache"
    report.line(what, memory(server, "VmRSS") - CACHE_MB, 400, "MB")
    descriptors = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
    report.line(f"{TABLES} tables: file descriptors", descriptors, DESCRIPTORS, "")
    server.stop()
    report.line(f"{TABLES} tables: start after a stop", timed_start(server), 2, "s")
    touch(Rpc(server.host), names)
    server.kill()
    report.line(f"{TABLES} tables: start after a kill", timed_start(server), 2, "s")
    touch(Rpc(server.host), names[::50])
    server.stop()


def measure_big_row(report, directory):
    server = Server(directory).start()
    rpc = Rpc(server.host)
    name = rpc.create_table("big")
    for i in range(BIG_ROW_CELLS):
        value = bytes([i]) * CELL
        rpc.mutate(name, b"row", set_cell("f", b"%02d" % i, value, 1000))
    server.restart()
    rpc = Rpc(server.host)
    size = sum(len(cell.value) for cell in rpc.read_row(name, b"row"))
    assert size == BIG_ROW_CELLS * CELL
    report.line(f"reading a row of {size // MB} MB: peak", memory(server, "VmHWM"), 500, "MB")
    server.stop()


def main():
    report = Report()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, min(DESCRIPTORS, most)))
    for measure in (measure_idle, measure_tables, measure_big_row):
        with tempfile.TemporaryDirectory(prefix="trestle-footprint-", dir=ROOT / "build") as path:
            measure(report, path)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
