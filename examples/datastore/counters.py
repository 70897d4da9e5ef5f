#!/usr/bin/env python3
"""A counter that many write at once: the sum of shards, each an entity of its own.

    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./counters.py add visits --times 100 --threads 4
    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./counters.py show visits

Two writers of one entity wait for each other, or one of them has to begin again. Of twenty entities
they seldom meet. What it costs: who reads the counter reads twenty entities, in one lookup. Where
that is too much a job writes the sum now and then (`sum`), and readers take that (`show --summed`).
"""

import concurrent.futures
import random

from google.cloud import datastore
from recipes import client_of, parser, transact

SHARDS = 20


def counter_key(client, name):
    """Of the entity that says how many shards there are, and what they were summed to."""
    return client.key("Counter", name)


def shard_key(client, name, shard):
    """The shard's number comes first, so that they are not neighbours in one tablet."""
    return client.key("CounterShard", f"{shard:03}-{name}")


def plain(key, **properties):
    """An entity without index rows: nobody looks for a counter by its number."""
    made = datastore.Entity(key, exclude_from_indexes=tuple(properties))
    made.update(properties)
    return made


def shards_of(client, name):
    counter = client.get(counter_key(client, name))
    return counter["shards"] if counter else SHARDS


def add(client, name, shards, amount=1):
    """Adds to a shard, whichever."""
    key = shard_key(client, name, random.randrange(shards))

    def work():
        shard = client.get(key)
        client.put(plain(key, count=(shard["count"] if shard else 0) + amount))

    transact(client, work)


def total(client, name):
    """The exact number, of one moment: a lookup of all shards sees all of them as of then."""
    keys = [shard_key(client, name, shard) for shard in range(shards_of(client, name))]
    return sum(shard["count"] for shard in client.get_multi(keys))


def grow(client, name, shards):
    """More shards, when writers meet too often. Never fewer: what the others hold would be lost."""

    def work():
        if shards_of(client, name) > shards:
            raise SystemExit(f"{name} has {shards_of(client, name)} shards already")
        counter = client.get(counter_key(client, name)) or {}
        client.put(plain(counter_key(client, name), **{**counter, "shards": shards}))

    transact(client, work)


def write_sum(client, name):
    """Leaves the sum in the counter's own entity, for those who read it with one lookup."""
    summed = total(client, name)

    def work():
        counter = client.get(counter_key(client, name)) or {"shards": SHARDS}
        client.put(plain(counter_key(client, name), **{**counter, "sum": summed}))

    transact(client, work)
    return summed


def add_from_threads(client, options):
    shards = shards_of(client, options.name)  # asked once: it seldom changes, and only grows

    def some(_):
        for _ in range(options.times):
            add(client, options.name, shards)

    with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(some, range(options.threads)))
    print(f"{options.threads} threads added {options.times} each to one of {shards} shards")


def show(client, options):
    if options.summed:
        counter = client.get(counter_key(client, options.name)) or {}
        print(counter.get("sum", 0))
    else:
        print(total(client, options.name))


def main():
    made = parser(__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="add one, many times")
    adding.add_argument("name")
    adding.add_argument("--times", type=int, default=1)
    adding.add_argument("--threads", type=int, default=1)
    showing = commands.add_parser("show", help="print the number")
    showing.add_argument("name")
    showing.add_argument("--summed", action="store_true", help="as of the last `sum`")
    growing = commands.add_parser("grow", help="have more shards")
    growing.add_argument("name")
    growing.add_argument("shards", type=int)
    summing = commands.add_parser("sum", help="write the sum down")
    summing.add_argument("name")
    options = made.parse_args()
    client = client_of(options)
    match options.command:
        case "add":
            add_from_threads(client, options)
        case "show":
            show(client, options)
        case "grow":
            grow(client, options.name, options.shards)
        case "sum":
            print(write_sum(client, options.name))


if __name__ == "__main__":
    main()
