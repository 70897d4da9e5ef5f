#!/usr/bin/env python3
"""How long lists of 1,000 tables and 10,000 backups take, and starts with them.

    TRESTLE_BINARY=build/trestle .venv/bin/python tools/bench/lists.py

Lists are asked for 30 times, as bytes: a client's decoding is not measured.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import grpc  # noqa: E402
from google.cloud.bigtable_admin_v2 import types  # noqa: E402
from harness.admin import Admin  # noqa: E402
from harness.backups import Backups  # noqa: E402
from harness.rpc import CHANNEL_OPTIONS  # noqa: E402
from harness.server import Server  # noqa: E402

TABLES, BACKUPS, CALLS = 1000, 10_000, 30


def cpu_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server, what, method, request):
    channel = grpc.insecure_channel(server.host, options=CHANNEL_OPTIONS)
    call = channel.unary_unary(f"/google.bigtable.admin.v2.BigtableTableAdmin/{method}")
    wire = type(request).serialize(request)
    size, before, times = len(call(wire)), cpu_seconds(server.process), []
    for _ in range(CALLS):
        began = time.monotonic()
        call(wire)
        times.append(1000 * (time.monotonic() - began))
    cpu = 1000 * (cpu_seconds(server.process) - before) / CALLS
    median = sorted(times)[CALLS // 2]
    print(f"{what}: {size} bytes, median {median:.1f} ms, worst {max(times):.1f} ms, "
          f"server's CPU {cpu:.1f} ms")  # fmt: skip
    channel.close()


def start(server, what):
    began = time.monotonic()
    server.start()
    print(f"a start with {what}: {time.monotonic() - began:.2f} s")


def run(directory):
    server = Server(directory).start()
    admin = Admin(server.host)
    instance = admin.create_instance("i")
    tables = [admin.create_table(instance, f"t{n:04}") for n in range(TABLES)]
    Backups(admin, instance).create("b", "t0000")
    measure(server, f"{TABLES} tables", "ListTables", types.ListTablesRequest(parent=instance))
    server.stop()
    first = server.data / "backups" / "p,i,c,b"
    for number in range(1, BACKUPS):
        shutil.copytree(first, first.with_name(f"p,i,c,b{number}"))
    start(server, f"{TABLES} tables and {BACKUPS} backups")
    request = types.ListBackupsRequest(parent=f"{instance}/clusters/-")
    measure(server, f"{BACKUPS} backups", "ListBackups", request)
    admin = Admin(server.host)
    for name in tables:
        admin.tables.delete_table(name=name)
    server.stop()
    shutil.rmtree(server.data / "backups")
    start(server, f"{TABLES} deleted tables")
    server.stop()


def main():
    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory))


if __name__ == "__main__":
    main()
