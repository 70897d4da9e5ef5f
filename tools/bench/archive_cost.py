#!/usr/bin/python3
"""What the archive costs a write, and what a second whole backup takes.

Two servers stand side by side, one with --archive and one without. `trestle bench` writes to one,
then to the other, turn about, with the order of each pair the other way round than that of the pair
before. Of each pair the CPU time a write of the first is divided by that of the second; couples of
servers are started again and again, as ./dev bench always-on does, whose way with such pairs it is.
Write buffers hold all that is written, so that no flush falls into a turn. How many bytes a write
is in the archive, the server's metrics say.

Then: a table is loaded, backed up as a whole, one row of a hundred is written again, and it is
backed up once more: what was not in the place yet, with and without a compaction in between.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from always_on import interval, median_ratio, ratio_of
from client import Client
from servers import ROOT, TRESTLE, Server, trestle_command

BUFFER = ("--write-buffer", "2GB")


# --- a write ---


def cpu_us(client, options):
    """Of the server, for one write."""
    result = client.run("write", duration=options.seconds)
    return result["server_cpu_seconds"] * 1e6 / result["requests"]


def prepare(server, options):
    client = Client(server, rows=options.rows, value_size=options.value_size)
    client.run("load")
    server.await_rest()
    cpu_us(client, options)
    return client


def turns(options, archive, archived_is_first):
    """(with, without) of each pair of a couple of servers, in microseconds of CPU a write."""
    settings = [("--archive", archive), ()]
    if not archived_is_first:
        settings.reverse()
    with (
        Server(trestle_command(*BUFFER, *settings[0])) as first,
        Server(trestle_command(*BUFFER, *settings[1])) as second,
    ):
        archived, bare = (first, second) if archived_is_first else (second, first)
        both = prepare(archived, options), prepare(bare, options)
        for turn in range(options.turns):
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            pair = {which: cpu_us(both[which], options) for which in order}
            yield pair[0], pair[1]
        options.bytes_archived.append(archived_bytes(archived, both[0], options))


def archived_bytes(server, client, options):
    """Of one write, with all around it, in the archive."""
    server.await_rest()
    before = server.metric("archive_bytes_total")
    written = client.run("write", operations=50_000, duration=600)["requests"]
    while server.metric("archive_waiting_bytes") > 0:
        server.await_rest()
    return (server.metric("archive_bytes_total") - before) / written


def measure_writes(options, archive):
    couples = []
    for number in range(options.couples):
        pairs = list(turns(options, archive, archived_is_first=number % 2 == 0))
        print(f"{number + 1}: {median_ratio(pairs):.4f}", file=sys.stderr)
        couples.append(pairs)
    pairs = [pair for each in couples for pair in each]
    least, most = interval(couples)
    print(f"load when it began: {options.load:.1f}")
    archived = statistics.median(each for each, _ in pairs)
    print(f"with an archive: {archived:.2f} us of CPU a write (median)")
    print(f"without:         {statistics.median(each for _, each in pairs):.2f}")
    print(
        f"ratio:           {ratio_of(couples):.4f}, between {least:.4f} and {most:.4f} (95 %), "
        f"{len(couples)} couples of servers, {len(pairs)} pairs"
    )
    print(f"in the archive:  {statistics.median(options.bytes_archived):.0f} bytes a write")


# --- a second backup ---


def back_up(server, place):
    """(bytes of it, bytes that were not there yet), as the command tells them, in MB."""
    command = [TRESTLE, "backup", "create", place, "--endpoint", server.endpoint]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(each) for each in re.findall(r"([\d.]+) MB", said)]


def measure_increments(options, directory):
    place = str(directory / "whole")
    print("\n| whole backup | MB | of which were not there yet |")
    print("|---|---:|---:|")
    with Server(trestle_command("--backup-places", place, "--backup-rate", "0")) as server:
        client = Client(server, rows=options.increment_rows, value_size=options.value_size)
        client.run("load")
        server.await_rest()
        print("| the first | {:.1f} | {:.1f} |".format(*back_up(server, place)))
        print("| the next, nothing was written | {:.1f} | {:.1f} |".format(*back_up(server, place)))
        for turn in range(3):
            client.run("write", operations=options.increment_rows // 100, duration=600)
            server.await_rest()
            what = "one row of 100 was written again" + (", once more" if turn else "")
            print(f"| {what} | {{:.1f}} | {{:.1f}} |".format(*back_up(server, place)))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench archive", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="that are written to")
    parser.add_argument("--value-size", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=1, help="of each turn")
    parser.add_argument("--turns", type=int, default=20, help="pairs of them, a couple of servers")
    parser.add_argument("--couples", type=int, default=4, help="of servers, one after the other")
    parser.add_argument("--increment-rows", type=int, default=400_000, help="that are backed up")
    options = parser.parse_args()
    options.load, options.bytes_archived = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory(prefix="trestle-bench-", dir=ROOT / "build") as directory:
        archive = Path(directory) / "archive"
        archive.mkdir()
        measure_writes(options, str(archive))
        measure_increments(options, Path(directory))


if __name__ == "__main__":
    main()
