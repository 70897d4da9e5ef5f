#!/usr/bin/env python3
"""How fast `trestle import dynamodb` is, beside what `trestle bench` loads of the same rows.

    tools/bench/imports.py --items 1000000

Writes an export of items of about 1 KB, compressed, then takes turns: a fresh server gets the rows
by the bench's `load`, another one by an import. Both programs share the machine with their server,
so what counts on a busy one is the CPU time of both together."""

import argparse
import base64
import gzip
import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from client import Client
from servers import ROOT, TRESTLE, Server, trestle_command

GOAL_SHARE = 0.6  # of the bench's rate
GOAL_MB = 300
ROW_BYTES = 1000
ITEMS_PER_FILE = 50_000


def value_of(chance, size):
    return base64.b64encode(chance.randbytes(size * 3 // 4)).decode()[:size]


def write_file(path, chance, first, count, cells):
    size = ROW_BYTES // cells
    with gzip.open(path, "wt", compresslevel=6) as out:
        for number in range(first, first + count):
            item = {"Id": {"S": f"item-{number:012}"}}
            for cell in range(cells):
                item[f"c{cell}"] = {"S": value_of(chance, size)}
            out.write(json.dumps({"Item": item}, separators=(",", ":")) + "\n")


def write_export(directory, items, cells):
    """Returns the bytes of its data files."""
    (directory / "data").mkdir(parents=True)
    chance = random.Random(1)
    lines, total = [], 0
    for first in range(0, items, ITEMS_PER_FILE):
        count = min(ITEMS_PER_FILE, items - first)
        path = directory / "data" / f"part{first // ITEMS_PER_FILE:04}.json.gz"
        write_file(path, chance, first, count, cells)
        data = path.read_bytes()
        total += len(data)
        md5 = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        lines.append(
            {"itemCount": count, "md5Checksum": md5, "dataFileS3Key": f"data/{path.name}"}
        )
    (directory / "manifest-files.json").write_text("".join(json.dumps(x) + "\n" for x in lines))
    summary = {"version": "2020-06-30", "itemCount": items, "exportTime": "2024-01-01T00:00:00Z"}
    (directory / "manifest-summary.json").write_text(json.dumps(summary))
    return total


class Run:
    """What filling one fresh server took."""

    def __init__(self, fill, options):
        with Server(trestle_command()) as server:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.seconds = fill(server, options)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.server_cpu_seconds = server.cpu_seconds()
        self.cpu_seconds = (
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        )
        self.rate = options.items / self.seconds
        self.cpu_rate = options.items / (self.cpu_seconds + self.server_cpu_seconds)

    def __str__(self):
        return (
            f"{self.rate:,.0f} rows/s, {self.cpu_rate:,.0f} a CPU second "
            f"(client {self.cpu_seconds:.1f} s, server {self.server_cpu_seconds:.1f} s)"
        )


def load(server, options):
    client = Client(
        server, rows=options.items, cells=options.cells, value_size=ROW_BYTES // options.cells
    )
    return client.run("load")["seconds"]


def run_import(server, options):
    command = [
        TRESTLE, "import", "dynamodb", str(options.export), "--table", "imported", "--endpoint",
        server.endpoint, "--partition-key", "Id", "--quiet", *options.options,
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    options.memory_mb = max(options.memory_mb, used.ru_maxrss / 1024)
    return time.monotonic() - began


def measure(options):
    loads, imports = [], []
    for turn in range(options.turns):
        loads.append(Run(load, options))
        imports.append(Run(run_import, options))
        print(f"turn {turn + 1}: load {loads[-1]}\n        import {imports[-1]}")
    for words, figure in [("rows a second", "rate"), ("rows a CPU second", "cpu_rate")]:
        load_median, import_median = (
            statistics.median(getattr(run, figure) for run in runs) for runs in (loads, imports)
        )
        print(f"{words}: {import_median / load_median:.0%} of the load's (goal: {GOAL_SHARE:.0%})")
    print(f"memory: {options.memory_mb:.0f} MB (goal: {GOAL_MB})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--cells", type=int, default=10, help="attributes besides the key")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("options", nargs="*", help="more options of the import, behind --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trestle-imports-", dir=ROOT / "build") as directory:
        export = Path(directory) / "export"
        size = write_export(export, options.items, options.cells)
        print(f"{options.items:,} items of {options.cells} attributes, {size / 1e6:.0f} MB gzip")
        options.export, options.memory_mb = export, 0
        measure(options)


if __name__ == "__main__":
    main()
