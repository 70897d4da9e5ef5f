#!/usr/bin/env python3
"""Writes rows as one should not, so that a server gets hot in one place.

    BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 ./hotspot.py prefix

It makes the table hotspot-LOAD anew, fills it evenly, and then writes as fast as it can."""

import argparse
import contextlib
import itertools
import multiprocessing
import os
import random
import signal
import time

import grpc
from google.api_core.exceptions import NotFound
from google.cloud.bigtable import Client
from google.cloud.bigtable.column_family import MaxVersionsGCRule
from google.cloud.bigtable_v2.services.bigtable import BigtableClient
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport
from google.cloud.bigtable_v2.types import MutateRowsRequest, MutateRowsResponse

INSTANCE = "i"
PROJECT = "p"
ROWS_A_REQUEST = 2000
COLUMNS = [b"c%02d" % number for number in range(20)]
VALUE = b"0123456789"
KINDS = ("customer", "order", "visit")
FILLED = 2000  # rows of each kind
HOT = "order#7"  # one in thirty of the rows gets nine in ten of the writes
NUMBERS = 100_000  # of a kind


def fill_kinds():
    """Rows of three kinds, evenly numbered."""
    step = NUMBERS // FILLED
    return (b"%s#%05d" % (kind.encode(), n * step) for kind in KINDS for n in range(FILLED))


def prefix(_writer, _writers):
    """Nine of ten writes are to rows of one prefix."""
    chance = random.Random(1)
    step = NUMBERS // FILLED
    while True:
        if chance.random() < 0.9:
            yield b"%s%04d" % (HOT.encode(), chance.randrange(0, 10_000, step))
        else:
            kind = chance.choice(KINDS).encode()
            yield b"%s#%05d" % (kind, chance.randrange(0, NUMBERS, step))


def fill_numbers():
    return (b"%012d" % number for number in range(3 * FILLED))


def sequential(writer, writers):
    """Rows are numbered as they come."""
    return (b"%012d" % number for number in itertools.count(3 * FILLED + writer, writers))


def time_key(microseconds, sensor):
    return b"%d#sensor%02d" % (microseconds, sensor)


def fill_times():
    """A reading of each of twenty sensors a minute, of the hours before."""
    now = time.time_ns() // 1000
    minutes = 3 * FILLED // 20
    return (time_key(now - 60_000_000 * (minutes - n), sensor) for n in range(minutes)
            for sensor in range(20))  # fmt: skip


def time_first(writer, writers):
    """Keys begin with the time of the reading."""
    for sensor in itertools.cycle(range(writer, 100, writers)):
        yield time_key(time.time_ns() // 1000, sensor)


# What the table has at first, and which keys are written then.
LOADS = {
    "prefix": (fill_kinds, prefix),
    "sequential": (fill_numbers, sequential),
    "time-first": (fill_times, time_first),
}


def make_table(name):
    """The table, empty; of each column it keeps the newest version."""
    admin = Client(project=PROJECT, admin=True)
    table = admin.instance(INSTANCE).table(name)
    with contextlib.suppress(NotFound):
        table.delete()
    table.create(column_families={"f": MaxVersionsGCRule(1)})
    admin.close()


class Writer:
    """Sends rows by Google's generated client: those above it make objects of each mutation, and
    would be what is busy."""

    def __init__(self, name):
        channel = grpc.insecure_channel(os.environ["BIGTABLE_EMULATOR_HOST"])
        self.client = BigtableClient(transport=BigtableGrpcTransport(channel=channel))
        self.request = MutateRowsRequest.pb(
            MutateRowsRequest(table_name=f"projects/{PROJECT}/instances/{INSTANCE}/tables/{name}")
        )
        for _ in range(ROWS_A_REQUEST):
            entry = self.request.entries.add()
            for column in COLUMNS:
                cell = entry.mutations.add().set_cell
                cell.family_name, cell.column_qualifier, cell.value = "f", column, VALUE
                cell.timestamp_micros = 1000  # the same cell again and again

    def write(self, keys):
        """As many of the keys as a request has room for; returns how many."""
        count = 0
        for entry, key in zip(self.request.entries, keys, strict=False):
            entry.row_key = key
            count += 1
        del self.request.entries[count:]
        for answer in self.client.mutate_rows(MutateRowsRequest.wrap(self.request)):
            entries = MutateRowsResponse.pb(answer).entries
            if any(entry.status.code != 0 for entry in entries):
                raise RuntimeError("a row was not written")
        return count


def fill(name, keys):
    writer = Writer(name)
    for batch in iter(lambda: list(itertools.islice(keys, ROWS_A_REQUEST)), []):
        writer.write(batch)


def work(name, keys, until, total):
    """Writes until that moment; adds the rows to the total."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    writer, count = Writer(name), 0
    while time.monotonic() < until:
        count += writer.write(itertools.islice(keys, ROWS_A_REQUEST))
    with total.get_lock():
        total.value += count


def run(name, load, writers, seconds):
    """Returns how many rows were written."""
    context = multiprocessing.get_context("spawn")  # gRPC does not outlive a fork
    total = context.Value("q", 0)
    until = time.monotonic() + seconds
    workers = [context.Process(target=start, args=(name, load, i, writers, until, total),
                               daemon=True) for i in range(writers)]  # fmt: skip
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return total.value


def start(name, load, writer, writers, until, total):
    work(name, LOADS[load][1](writer, writers), until, total)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("load", choices=LOADS)
    parser.add_argument("--seconds", type=float, default=90, help="how long it writes")
    parser.add_argument("--writers", type=int, default=2, help="processes that do")
    arguments = parser.parse_args()
    name = f"hotspot-{arguments.load}"
    make_table(name)
    fill(name, LOADS[arguments.load][0]())
    print(f"{name} is there; now its rows are written", flush=True)
    count = run(name, arguments.load, arguments.writers, arguments.seconds)
    print(f"{count} rows in {arguments.seconds:.0f} s")


if __name__ == "__main__":
    main()
