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

Fails if more was taken than the bound says, if the server ended, or if a step did nothing.
"""

import argparse
import concurrent.futures
import contextlib
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
MB = 1 << 20
SIZES = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
ROWS, LARGE_ROWS, QUERIES = 100_000, 400, 1_000
SMALL = "load,overwrite,batch,write,read,query,scan,sift,limit,reverse,mixed,rmw,add,hot,hotread"
LARGE = "load,batch,write,read,scan,mixed"  # 64 messages of 20 MB at a time
SHAPES = {
    "rows of 100 bytes": ["--rows", str(ROWS), "--workloads", SMALL],
    "rows of 1 MB": ["--rows", str(LARGE_ROWS), "--value-size", "1MB", "--batch", "20",
                     "--overwrites", "1", "--scan-rows", "20", "--workloads", LARGE],
    "a wide row": ["--workloads", "wide"],
}  # fmt: skip
LARGEST_CELL, OVERHEAD = 100 * MB, 4 * MB  # what a cell may have, and what a request has beside it
LARGE_CELLS, LARGE_WRITES, LARGE_WRITERS = 6, 24, 2
STOPPED, READ_ON = 8, 4
INSTANCE = "projects/p/instances/i"
LARGE_TABLE = f"{INSTANCE}/tables/large"
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
    """Looks at a process until the end of a `with` statement."""

    def __init__(self, pid):
        self.pid, self.peak, self.looks = pid, 0, 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over.wait(LOOK_SECONDS):
            self.peak = max(self.peak, taken(self.pid))
            self.looks += 1

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


def write_large_cells(server, size):
    """So many as there are writes, of fewer rows: what they replace is compacted away."""
    chance = random.Random(2)
    values = [chance.randbytes(size) for _ in range(LARGE_WRITERS)]

    def write(i):
        key = f"row{i % LARGE_CELLS}"
        request = raw_calls.set_cell(LARGE_TABLE, key, "cf", values[i % LARGE_WRITERS])
        return raw_calls.ask(server.endpoint, request) > 0

    raw_calls.ask(server.endpoint, raw_calls.create_table(INSTANCE, "large", "cf"))
    with concurrent.futures.ThreadPoolExecutor(LARGE_WRITERS) as pool:
        done = list(pool.map(write, range(LARGE_WRITES)))
    server.await_rest()
    return done.count(True)


def read_large_cells(server, size):
    """Returns how many were read whole, by those that read on and by those that had stopped."""

    def read(i):
        request = raw_calls.read_row(LARGE_TABLE, f"row{i % LARGE_CELLS}")
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


def run_large_cells(server, bound):
    size = min(bound // 8 - OVERHEAD, LARGEST_CELL)
    written = write_large_cells(server, size)
    what = f"cells of {size // MB} MB"
    if written == 0:
        sys.exit(f"{what}: none was written")
    yield f"{what}: {written} written, {LARGE_WRITES - written} refused; flushed, compacted"
    on, finished = read_large_cells(server, size)
    if on < READ_ON:
        sys.exit(f"{what}: {on} of {READ_ON} were read beside clients that stop")
    yield f"{what}: {STOPPED} clients stop within one, {on} read on, {finished} go on"
    yield query_large_cells(server, "large", f"queries of {what}")
    raw_calls.ask(server.endpoint, raw_calls.create_table(INSTANCE, "less", "cf"))
    table, value = f"{INSTANCE}/tables/less", random.Random(3).randbytes(size // 3)
    for i in range(LARGE_CELLS):
        raw_calls.ask(server.endpoint, raw_calls.set_cell(table, f"row{i}", "cf", value))
    yield query_large_cells(server, "less", f"queries of cells of {size // 3 // MB} MB")


def in_words(result):
    requests = result["requests"] + result["errors"]
    what = f"{result['workload']}: {requests} requests in {result['seconds']:.1f} s"
    return f"{what}, {result['errors']} refused"


def run(server, seconds, bound):
    """Does all of it; yields what was done."""
    for shape, arguments in SHAPES.items():
        for result in bench(server, arguments, seconds):
            if result["requests"] == 0:
                sys.exit(f"{shape}: nothing was done: {result}")
            yield f"{shape}: {in_words(result)}"
        if shape == "rows of 100 bytes":
            told = ask(server, list(queries(QUERIES)))
            yield f"{QUERIES} SQL queries: {len(told)} refused {told[:1]}"
    yield from run_large_cells(server, bound)


def measure(size, seconds):
    """Whether the bound holds."""
    bound = bytes_of(size)
    with control_group(bound) as group:
        command = enter(group, trestle_command("--memory", size))
        killed = None
        with Server(command) as server, Watch(server.pid) as watch:
            how = "in a control group" if group else "no control group can be made"
            print(f"\n--memory {size}, {how}")
            for done in run(server, seconds, bound):
                print(f"    {watch.peak >> 20:5} MB so far; {done}", flush=True)
            is_alive = server.process.poll() is None
            told = server.metric("memory_peak_bytes") if is_alive else 0
            killed = killed_in(group) if group else None
    end = "" if is_alive else "; IT HAS ENDED"
    most = f"{watch.peak / MB:.0f} MB at most in {watch.looks} looks"
    group_told = "" if killed is None else f"; killed in the group: {killed}"
    print(f"{most}, {told / MB:.0f} by its own{end}{group_told}")
    return is_alive and watch.peak <= bound and not killed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", action="append", metavar="SIZE", help="512MB and 1GB")
    parser.add_argument("--seconds", type=float, default=10, help="for each workload")
    options = parser.parse_args()
    began = time.monotonic()
    holds = [measure(size, options.seconds) for size in options.memory or ["512MB", "1GB"]]
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
