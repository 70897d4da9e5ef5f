#!/usr/bin/python3
"""Says where the server's CPU time goes in workloads of `trestle bench`.

perf samples the server while a workload runs; each sample belongs to the part in which it was
taken: a system call, a library, a folder of src/. The table gives microseconds of CPU a request, by
part, from the shares and from the requests per CPU second that the bench reports.
"""

import argparse
import collections
import json
import re
import subprocess
import tempfile
from pathlib import Path

from servers import TRESTLE, Server, trestle_command

LIBRARIES = [
    ("libnghttp2", "nghttp2"),
    ("libprotobuf-c", "src/wire, protobuf"),
    ("librocksdb", "RocksDB"),
    ("libstdc++", "RocksDB"),
    ("vdso", "reading clocks"),
]
# The first that is the start of a name among a sample's kernel frames.
KERNEL = {
    "eventfd_write": "kernel: wake-ups", "futex": "kernel: wake-ups", "recv": "kernel: recv",
    "send": "kernel: send", "epoll": "kernel: epoll", "page_fault": "kernel: page faults",
    "write": "kernel: files", "pwrite": "kernel: files", "fdatasync": "kernel: files",
    "sync_file_range": "kernel: files", "pread": "kernel: files", "fallocate": "kernel: files",
}  # fmt: skip
MEMORY = re.compile(r"malloc|calloc|realloc|free|unlink_chunk|operator (new|delete)|sysmalloc")
MOVING = re.compile(r"__(mem|str)")
ENTRY = re.compile(r"^(__x64_sys_|__sys_|do_sys_|ksys_|vfs_|asm_exc_|exc_)")
FRAME = re.compile(r"\s*([0-9a-f]+) (.*) \((.*)\)$")


def kernel_part(symbols):
    names = [ENTRY.sub("", symbol) for symbol in symbols]
    for start, part in KERNEL.items():
        if any(name.startswith(start) for name in names):
            return part
    return "kernel: the rest"


def folders(addresses):
    """{address in the binary: folder of src/ that it was compiled from}"""
    command = ["addr2line", "-e", TRESTLE]
    result = subprocess.run(
        command, input="\n".join(addresses), check=True, stdout=subprocess.PIPE, text=True
    )
    found = {}
    for address, line in zip(addresses, result.stdout.splitlines()):
        path = re.search(r"src/(\w+)/(\w+)", line)
        folder = path.group(1) if path else "rest"
        is_codec = path and path.group(2) in ("proto", "varint")
        found[address] = "src/wire, protobuf" if is_codec else f"src/{folder}"
    return found


def scripted(data, fields):
    """The lines that perf has for each sample."""
    command = ["perf", "script", "-i", data, "-F", fields]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for block in text.split("\n\n"):
        yield block.strip().splitlines()


def samples(data):
    """The frames of each sample, innermost first: (address, symbol, object)."""
    for lines in scripted(data, "ip,sym,dso"):
        frames = [found.groups() for found in map(FRAME.match, lines) if found]
        if frames:
            yield frames


def threads_and_symbols(data):
    """(the thread's name, its symbols) of each sample."""
    for thread, *frames in filter(None, scripted(data, "comm,ip,sym")):
        if frames:
            yield thread.strip(), [frame.strip().partition(" ")[2] for frame in frames]


def record(server, seconds):
    """Samples the server from a second on, when caches are warm; says where the samples are."""
    data = str(Path(server.directory.name) / "perf.data")
    command = ["perf", "record", "-g", "-F", "1999", "-p", str(server.pid), "-o", data,
               "--delay", "1000", "sleep", str(seconds)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return data


def part_of(frames, folder_of):
    address, symbol, library = frames[0]
    if "kernel" in library:
        return kernel_part([frame[1] for frame in frames if "kernel" in frame[2]])
    if library == TRESTLE:
        return folder_of[address]
    for name, part in LIBRARIES:
        if name in library:
            return part
    if MEMORY.search(symbol):
        return "malloc and free"
    return "copying and comparing" if MOVING.match(symbol) else "libc, the rest"


def shares(data):
    taken = list(samples(data))
    own = sorted({frames[0][0] for frames in taken if frames[0][2] == TRESTLE})
    folder_of = folders(own)
    counts = collections.Counter(part_of(frames, folder_of) for frames in taken)
    return {part: count / len(taken) for part, count in counts.items()}


def run(server, options, workload, *more):
    name, _, rows = workload.partition(":")
    command = [TRESTLE, "bench", "--json", "--endpoint", server.endpoint, "--workloads", name,
               "--server-pid", str(server.pid), "--cells", str(options.cells),
               "--scan-rows", rows or "100", *more]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result_of(bench):
    output, _ = bench.communicate()
    return json.loads(output)


def profile(server, options, workload):
    """{part: microseconds a request}"""
    bench = run(server, options, workload, "--duration", f"{options.seconds}s")
    data = record(server, options.seconds)
    result = result_of(bench)
    per_request = result["server_cpu_seconds"] * 1e6 / result["requests"]
    return {part: share * per_request for part, share in shares(data).items()}


def print_table(results):
    parts = sorted({part for result in results.values() for part in result})
    print("| us of CPU a request |", " | ".join(results), "|")
    print("|---|" + "---|" * len(results))
    for part in parts:
        print(f"| {part} |", " | ".join(f"{r.get(part, 0):.2f}" for r in results.values()), "|")
    print("| **all** |", " | ".join(f"**{sum(r.values()):.2f}**" for r in results.values()), "|")


def main():
    parser = argparse.ArgumentParser(prog="./dev profile", description=__doc__)
    parser.add_argument("workloads", nargs="+", help="of `trestle bench`; scan:10 is of 10 rows")
    parser.add_argument("--cells", type=int, default=1, help="cells of a row")
    parser.add_argument("--seconds", type=int, default=4, help="for each workload")
    parser.add_argument("--datastore", action="store_true", help="workloads on entities")
    options = parser.parse_args()
    with Server(trestle_command()) as server:
        result_of(run(server, options, "entities" if options.datastore else "load"))
        print_table({w: profile(server, options, w) for w in options.workloads})


if __name__ == "__main__":
    main()
