#!/usr/bin/python3
"""Whether `--memory` holds: a server with each bound, under all that `trestle bench` does, under
rows of 1 MB in messages of 20 MB, 64 at a time, and under a thousand SQL queries; then under
cells as large as it takes: written by two clients at a time, over and over, so that flushes and
compactions have nothing else; read by clients that stop within them, while others read on; and
asked for by eight SQL queries at a time.

What the server takes of memory without what is a file's (RssAnon of /proc/PID/status) is looked at
every 50 ms. Where a control group for memory can be made, as root on most machines, the server is
in one of its own with the same bound: if it took more than that once, between two looks, the kernel
would kill it. (What is there of files is counted too by a group, and goes first: so its own peak
is the bound itself, and how often it had to make room says nothing of the process.) What the
kernel says it killed is told at the end.

With `--trace FILE` each look is a line of FILE, tab-separated: the second, the MB taken, and, every
fourth time, who has them, as far as `/metrics` tells: MB of write buffers, of blocks, of writes
that wait; flushes and compactions under way; files at level 0; whether writes are held back.

Fails if more was taken than the bound says, if the server ended, or if a step did nothing.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import functools
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import raw_calls
from servers import TRESTLE, Server, trestle_command

LOOK_SECONDS = 0.05
MB, GB = 1 << 20, 1 << 30
SIZES = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
ROWS, LARGE_ROWS, QUERIES = 100_000, 400, 1_000
SMALL = "load,overwrite,batch,write,read,query,scan,sift,limit,reverse,mixed,rmw,add,hot,hotread"
SMALL_MIXED = "batch,mixed,scan,query,rmw"
LARGE = "load,batch,write,read,scan,mixed"  # 64 messages of 20 MB at a time
ENTITIES = "entities,put,batchput,update,get,ancestor,find,up,down,merge,transaction"
SHAPES = {
    "rows of 100 bytes": ["--rows", str(ROWS), "--workloads", SMALL],
    "rows of 1 MB": ["--rows", str(LARGE_ROWS), "--value-size", "1MB", "--batch", "20",
                     "--overwrites", "1", "--scan-rows", "20", "--workloads", LARGE],
    "a wide row": ["--workloads", "wide"],
    "entities": ["--rows", "20000", "--workloads", ENTITIES],
}  # fmt: skip
LARGEST_CELL, OVERHEAD = 100 * MB, 4 * MB  # what a cell may have, and what a request has beside it
LARGE_CELLS, LARGE_WRITES, LARGE_WRITERS = 6, 24, 2
LARGEST_ROW, OLD_WRITES = 255 * MB, 16
MIXED_TIMES = 6  # so often the seconds of a workload
STOPPED, READ_ON = 8, 4
PATIENCE_SECONDS = 120
INSTANCE = "projects/p/instances/i"
QUERY_SHAPES = [
    "SELECT _key, cf FROM bench WHERE _key >= b'{key}' LIMIT {length}",
    "SELECT COUNT(*) AS n FROM bench WHERE STARTS_WITH(_key, b'{prefix}')",
    "SELECT _key, LENGTH(cf['c0']) AS n FROM bench WHERE STARTS_WITH(_key, b'{prefix}') "
    "ORDER BY n DESC, _key LIMIT 10",
    "SELECT SUBSTR(_key, 1, {length}) AS k, COUNT(*) AS n, MAX(cf['c0']) AS m FROM bench "
    "GROUP BY k",
    "SELECT _key, cf['c0'] AS v FROM bench ORDER BY v LIMIT {length}",
    "SELECT COUNT(DISTINCT cf['c0']) AS n FROM bench WHERE _key >= b'{key}'",
]
LARGE_QUERIES = [
    "SELECT _key, LENGTH(TO_HEX(cf['q'])) AS n FROM {table} LIMIT 2",
    "SELECT _key, LENGTH(CONCAT(cf['q'], cf['q'])) AS n FROM {table} LIMIT 2",
    "SELECT MAX(LENGTH(cf['q'])) AS n FROM {table}",
    "SELECT cf['q'] AS v FROM {table} LIMIT 1",
]


# --- what is looked at ---

TRACED = {
    "write_buffers": ("store_write_buffer_bytes", MB),
    "blocks": ("store_cache_bytes", MB),
    "commits": ("commit_queue_bytes", MB),
    "transactions": ("datastore_transactions_bytes", MB),
    "pool": ("pool_tasks", 1),
    "connections": ("connections", 1),
    "flushes": ("store_flushes_running", 1),
    "flushed": ("store_flushes_total", 1),
    "compactions": ("store_compactions_running", 1),
    "compacted": ("store_compactions_total", 1),
    "level0": ('store_level_files{level="0"}', 1),
    "stalled": ("store_stalled", 1),
    "short": ("memory_short", 1),
}
TRACE_EVERY = 4  # looks


def traced(server):
    """A line of the columns; empty if the server does not answer."""
    with contextlib.suppress(OSError, ValueError):
        numbers = server.metrics()
        return [f"{numbers.get(name, 0) / unit:.0f}" for name, unit in TRACED.values()]
    return []


def bytes_of(size):
    return int(size[:-2]) * SIZES[size[-2:]]


def taken(pid):
    """Bytes of memory that is no file's; 0 if the process is not there any more."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return 0


class Watch:
    """Looks at a server's process until the end of a `with` statement."""

    def __init__(self, server, trace=None):
        self.server, self.trace, self.peak, self.looks = server, trace, 0, 0
        self.began = time.monotonic()
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over.wait(LOOK_SECONDS):
            now = taken(self.server.pid)
            self.peak = max(self.peak, now)
            self.looks += 1
            if self.trace is not None:
                self.write_line(now)

    def write_line(self, now):
        told = traced(self.server) if self.looks % TRACE_EVERY == 1 else []
        seconds = f"{time.monotonic() - self.began:.2f}"
        print(seconds, round(now / MB), *told, sep="\t", file=self.trace, flush=True)

    def take_peak(self):
        """Since it was asked the last time."""
        peak, self.peak = self.peak, taken(self.server.pid)
        return peak

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


# --- the control group ---


def memory_groups():
    """(directory that groups can be made in, the file with the bound), or None."""
    unified, former = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            return former / path.lstrip("/"), "memory.limit_in_bytes"
        if controllers == "" and "memory" in controllers_of(unified / path.lstrip("/")):
            return unified / path.lstrip("/"), "memory.max"
    return None


def controllers_of(directory):
    with contextlib.suppress(OSError):
        return (directory / "cgroup.subtree_control").read_text().split()
    return []


@contextlib.contextmanager
def control_group(bound):
    """A group that has so much memory; None where there is none to be had."""
    found = memory_groups()
    if found is None:
        yield None
        return
    directory = found[0] / f"trestle-bench-{os.getpid()}"
    try:
        directory.mkdir()
        (directory / found[1]).write_text(str(bound))
    except OSError:
        with contextlib.suppress(OSError):
            directory.rmdir()
        yield None
        return
    try:
        yield directory
    finally:
        directory.rmdir()


def killed_in(group):
    """Processes, as the kernel counts them; None if it does not say."""
    for name in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError):
            for line in (group / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return None


def enter(group, command):
    if group is None:
        return command
    return ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh", *command]


# --- what is done ---


def bench(server, arguments, seconds):
    """[result of each workload]"""
    command = [TRESTLE, "bench", "--json", "--endpoint", server.endpoint, *arguments]
    command += ["--duration", f"{round(seconds * 1000)}ms"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def name_of(table):
    return f"{INSTANCE}/tables/{table}"


def create_table(server, table):
    raw_calls.ask(server.endpoint, raw_calls.create_table(INSTANCE, table, "cf"))


def queries(count):
    chance = random.Random(1)
    for i in range(count):
        key = f"user{chance.randrange(10**20):020d}"
        shape = QUERY_SHAPES[i % len(QUERY_SHAPES)]
        yield shape.format(key=key, prefix=key[:7], length=chance.randrange(5, 9))


def ask(server, statements):
    """Eight at once. Returns what was said of those that were refused."""
    command = [TRESTLE, "sql", "--endpoint", server.endpoint, "--format", "csv", "-e"]

    def run_one(statement):
        done = subprocess.run([*command, statement], capture_output=True, text=True)
        return done.stderr if done.returncode != 0 else None

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [said.strip() for said in pool.map(run_one, statements) if said is not None]


def write_cells(server, table, size, writes):
    """So many, of fewer rows: what they replace is compacted away.

    Returns how many went well, and the seconds that the slowest took.
    """
    chance = random.Random(2)
    values = [chance.randbytes(size) for _ in range(LARGE_WRITERS)]

    def write(i):
        key = f"row{i % LARGE_CELLS}"
        request = raw_calls.set_cell(name_of(table), key, "cf", values[i % LARGE_WRITERS])
        began = time.monotonic()
        went_well = raw_calls.ask(server.endpoint, request) > 0
        return went_well, time.monotonic() - began

    create_table(server, table)
    with concurrent.futures.ThreadPoolExecutor(LARGE_WRITERS) as pool:
        went_well, seconds = zip(*pool.map(write, range(writes)), strict=True)
    return went_well.count(True), max(seconds)


def read_large_cells(server, table, size):
    """Returns how many were read whole, by those that read on and by those that had stopped."""

    def read(i):
        request = raw_calls.read_row(name_of(table), f"row{i % LARGE_CELLS}")
        return raw_calls.Call(server.endpoint, request)

    with contextlib.ExitStack() as open_calls:
        stopped = [open_calls.enter_context(read(i)) for i in range(STOPPED)]
        stopped[0].stop_after(1)
        with concurrent.futures.ThreadPoolExecutor(READ_ON) as pool:
            read_on = list(pool.map(lambda i: read(i).finish(), range(READ_ON)))
        finished = [call.finish() for call in stopped[:2]]
    return sum(got >= size for got in read_on), sum(got >= size for got in finished)


def query_large_cells(server, table, what):
    """Eight at once. They may be refused, as long as the server lives."""
    statements = [each.format(table=table) for each in 2 * LARGE_QUERIES]
    told = ask(server, statements)
    if table == "less" and len(told) == len(statements):
        sys.exit(f"{what}: none came to an end: {told}")
    return f"{what}: {len(statements)}, {len(told)} refused {told[:1]}"


def largest_cell(bound):
    return min(bound // (8 if bound >= GB else 12) - OVERHEAD, LARGEST_CELL)


def in_words(result):
    requests = result["requests"] + result["errors"]
    what = f"{result['workload']}: {requests} requests in {result['seconds']:.1f} s"
    return f"{what}, {result['errors']} refused"


def run_bench(server, shape, seconds):
    for result in bench(server, SHAPES[shape], seconds):
        if result["requests"] == 0:
            sys.exit(f"{shape}: nothing was done: {result}")
        yield f"{shape}: {in_words(result)}"


# --- the scenarios: each yields what was done ---


def run_small(server, seconds, bound):
    yield from run_bench(server, "rows of 100 bytes", seconds)
    told = ask(server, list(queries(QUERIES)))
    yield f"{QUERIES} SQL queries: {len(told)} refused {told[:1]}"


def run_rows(server, seconds, bound):
    yield from run_bench(server, "rows of 1 MB", seconds)
    yield from run_bench(server, "a wide row", seconds)


def run_datastore(server, seconds, bound):
    yield from run_bench(server, "entities", seconds)


def run_cells(server, seconds, bound):
    size = largest_cell(bound)
    written, slowest = write_cells(server, "large", size, LARGE_WRITES)
    server.await_rest()
    what = f"cells of {size // MB} MB"
    if written == 0:
        sys.exit(f"{what}: none was written")
    refused = LARGE_WRITES - written
    yield f"{what}: {written} written, {refused} refused, in {slowest:.1f} s at most; compacted"
    on, finished = read_large_cells(server, "large", size)
    if on < READ_ON:
        sys.exit(f"{what}: {on} of {READ_ON} were read beside clients that stop")
    yield f"{what}: {STOPPED} clients stop within one, {on} read on, {finished} go on"
    yield query_large_cells(server, "large", f"queries of {what}")
    create_table(server, "less")
    table, value = name_of("less"), random.Random(3).randbytes(size // 3)
    for i in range(LARGE_CELLS):
        raw_calls.ask(server.endpoint, raw_calls.set_cell(table, f"row{i}", "cf", value))
    yield query_large_cells(server, "less", f"queries of cells of {size // 3 // MB} MB")


def run_row_of_cells(server, seconds, bound):
    """The largest row, of the largest cells: filters and updates look at all of it, four at once.
    """
    size, table = largest_cell(bound), name_of("row")
    create_table(server, "row")
    value = b"0" + random.Random(4).randbytes(size - 1)
    count = LARGEST_ROW // size
    for i in range(count):
        raw_calls.ask(server.endpoint, raw_calls.set_cell(table, "row", "cf", value, f"q{i}"))
    for kind, request in raw_calls.looks_at_values(table, "row", "cf").items():
        with concurrent.futures.ThreadPoolExecutor(READ_ON) as pool:
            ask_it = functools.partial(raw_calls.ask, server.endpoint)
            done = list(pool.map(ask_it, READ_ON * [request]))
        went_well = sum(got > 0 for got in done)
        row = f"a row of {count} cells of {size // MB} MB"
        yield f"{row}, {kind}: {went_well} of {READ_ON} went well"


def run_old_cells(server, seconds, bound):
    """Cells written with no bound, in write buffers and in many files at level 0; the server is
    killed, and starts with the bound. Larger ones than a request may have keep it from that."""
    size, bounded = largest_cell(bound), server.command
    for is_fine in [True] + [False] * (size < LARGEST_CELL):
        size = size if is_fine else LARGEST_CELL
        what, table = f"cells of {size // MB} MB written without --memory", f"old{size // MB}"
        server.kill()
        server.start(trestle_command())
        server.await_start()
        write_cells(server, table, size, OLD_WRITES)
        server.kill()
        server.start(bounded)
        yield None
        if is_fine:
            began = time.monotonic()
            server.await_start(PATIENCE_SECONDS)
            took = time.monotonic() - began
            server.await_rest()
            yield f"{what}: a start with it, in {took:.0f} s"
            on, finished = read_large_cells(server, table, size)
            yield f"{what}: {STOPPED} clients stop within one, {on} read on, {finished} go on"
        else:
            yield f"{what}: no start with it: {server.process.wait(PATIENCE_SECONDS)}"
            server.data.rename(server.data.with_name("too-large"))
            server.start(bounded)
            server.await_start()


def run_mixed(server, seconds, bound):
    """All at once, for so long as six workloads take."""
    size, counts, puts = largest_cell(bound), collections.Counter(), []

    def again(name, work, until):
        while time.monotonic() < until and server.process.poll() is None:
            with contextlib.suppress(ConnectionError):
                work()
                counts[name] += 1

    def write():
        puts.append(write_cells(server, "mixed", size, LARGE_CELLS))

    def read_stopping():
        request = raw_calls.read_row(name_of("mixed"), f"row{random.randrange(LARGE_CELLS)}")
        with raw_calls.Call(server.endpoint, request) as call:
            call.stop_after(1)
            time.sleep(seconds / 4)
            call.finish()

    def of_bench(workloads, *arguments):
        command = [TRESTLE, "bench", "--json", "--endpoint", server.endpoint, "--workloads"]
        command += [workloads, *arguments, "--duration", f"{round(seconds * 1000)}ms"]
        return lambda: subprocess.run(command, capture_output=True)

    statements = itertools.cycle(list(queries(QUERIES)))
    large_rows = ("--rows", str(LARGE_ROWS), "--table", name_of("bench-large"))
    large_rows += ("--value-size", "1MB")
    works = {
        "small": of_bench(SMALL_MIXED, "--rows", str(ROWS)),
        "rows of 1 MB": of_bench("batch,scan", *large_rows, "--batch", "20", "--scan-rows", "20"),
        "entities": of_bench(ENTITIES, "--rows", "20000"),
        "SQL queries": lambda: ask(server, list(itertools.islice(statements, 8))),
        "queries of large cells": lambda: query_large_cells(server, "mixed", ""),
        "large cells written": write,
        "large cells read": read_stopping,
    }  # fmt: skip
    of_bench("load", "--rows", str(ROWS))()
    of_bench("load", *large_rows, "--batch", "20")()
    of_bench("entities", "--rows", "20000")()
    write_cells(server, "mixed", size, LARGE_CELLS)
    until = time.monotonic() + MIXED_TIMES * seconds
    threads = [threading.Thread(target=again, args=(*item, until)) for item in works.items()]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    written, slowest = sum(count for count, _ in puts), max((most for _, most in puts), default=0)
    yield f"all at once: {dict(counts)}; {written} large cells written, in {slowest:.1f} s at most"


SCENARIOS = {
    "small": run_small,
    "rows": run_rows,
    "datastore": run_datastore,
    "cells": run_cells,
    "row": run_row_of_cells,
    "mixed": run_mixed,
    "old": run_old_cells,
}


def run(server, seconds, bound, names):
    """Until a connection breaks, which it does when the server ends."""
    for name in names:
        try:
            for done in SCENARIOS[name](server, seconds, bound):
                yield name, done
        except OSError as error:
            yield name, f"BROKEN: {error}"
            return


def measure(size, seconds, names, trace):
    """Whether the bound holds."""
    bound = bytes_of(size)
    with control_group(bound) as group:
        command = enter(group, trestle_command("--memory", size))
        killed, peaks = None, {}
        with Server(command) as server, Watch(server, trace) as watch:
            how = "in a control group" if group else "no control group can be made"
            print(f"\n--memory {size}, {how}")
            for name, done in run(server, seconds, bound, names):
                peak = watch.take_peak()
                if done is None:
                    continue
                peaks[name] = max(peak, peaks.get(name, 0))
                print(f"    {peak >> 20:5} MB; {done}", flush=True)
            is_alive = server.process.poll() is None
            killed = killed_in(group) if group else None
    end = "" if is_alive else "; IT HAS ENDED"
    most = ", ".join(f"{name} {peak / MB:.0f} MB" for name, peak in peaks.items())
    group_told = "" if killed is None else f"; killed in the group: {killed}"
    print(f"at most, in {watch.looks} looks: {most}{end}{group_told}")
    return is_alive and max(peaks.values()) <= bound and not killed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", action="append", metavar="SIZE", help="512MB and 1GB")
    parser.add_argument("--seconds", type=float, default=10, help="for each workload")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="all of them")
    parser.add_argument("--trace", type=argparse.FileType("w"), metavar="FILE", help="each look")
    options = parser.parse_args()
    if options.trace is not None:
        print("second", "taken", *TRACED, sep="\t", file=options.trace)
    began = time.monotonic()
    names = options.only or list(SCENARIOS)
    sizes = options.memory or ["512MB", "1GB"]
    holds = [measure(size, options.seconds, names, options.trace) for size in sizes]
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
