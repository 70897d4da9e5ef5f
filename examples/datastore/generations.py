#!/usr/bin/env python3
"""Sessions that expire, without an index that begins with what was deleted.

    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./generations.py put alice --seconds 3600
    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./generations.py sweep

A plain index on the time of expiry is deleted from its beginning, over and over: each sweep passes
over the rows that all earlier ones deleted and that no compaction has removed yet, and all writers
write at its end. So what is indexed is

    00000003-07-2026-11-21T23:00:00Z
    generation, shard, time of expiry

A sweep begins a new generation, and empties the one before: what has expired is deleted, what has
not is written again with the new number. No sweep reads a range from which another has deleted.
Shards put writers, and the sweep's own queries, on as many ranges of the index.
"""

import concurrent.futures
import datetime

from google.cloud import datastore
from google.cloud.datastore.query import PropertyFilter
from recipes import client_of, hash_of, parser, transact

SHARDS = 8
AT_ONCE = 50  # entities a transaction


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def text_of(moment):
    """Texts of moments compare as moments do."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def prefix_of(generation, shard):
    return f"{generation:08}-{shard:02}-"


def session_key(client, name):
    return client.key("Session", name)


def generations(client):
    """The entity that says which generation is written (current) and up to which all are empty
    (swept). Whoever writes a session reads it in the same transaction, so that nothing comes into a
    generation after the sweep has left it."""
    key = client.key("Generation", "sessions")
    found = client.get(key)
    if found is None:
        found = datastore.Entity(key, exclude_from_indexes=("current", "swept"))
        found.update(current=1, swept=0)
    return found


def session(client, name, user, generation, expiry):
    made = datastore.Entity(session_key(client, name), exclude_from_indexes=("user",))
    made.update(user=user, expiry=prefix_of(generation, hash_of(name, SHARDS)) + expiry)
    return made


def expiry_of(found):
    return found["expiry"].split("-", 2)[2]


def put(client, name, user, expiry):
    """A session, or one that is to last longer."""

    def work():
        current = generations(client)["current"]
        client.put(session(client, name, user, current, text_of(expiry)))

    transact(client, work)


def get(client, name):
    """None if it has expired, whether it was swept or not."""
    found = client.get(session_key(client, name))
    return found if found and expiry_of(found) > text_of(now()) else None


def begin_generation(client):
    """Returns the generations that are to be emptied: the last one, and those of a sweep that did
    not come to its end."""

    def work():
        of = generations(client)
        of["current"] += 1
        client.put(of)
        return range(of["swept"] + 1, of["current"])

    return transact(client, work)


def sweep_some(client, keys, old, moment):
    """Deletes or moves what is still in the generation `old`. Returns (deleted, moved)."""

    def work():
        current = generations(client)["current"]
        found = [
            each for each in client.get_multi(keys) if each["expiry"].startswith(f"{old:08}-")
        ]
        over = [each.key for each in found if expiry_of(each) <= moment]
        stay = [each for each in found if expiry_of(each) > moment]
        client.delete_multi(over)
        client.put_multi(
            [session(client, s.key.name, s["user"], current, expiry_of(s)) for s in stay]
        )
        return len(over), len(stay)

    return transact(client, work)


def sweep_shard(client, generation, shard, moment):
    prefix = prefix_of(generation, shard)
    query = client.query(kind="Session", order=["expiry"])
    query.add_filter(filter=PropertyFilter("expiry", ">=", prefix))
    query.add_filter(filter=PropertyFilter("expiry", "<", prefix + "\U0010ffff"))
    query.keys_only()
    keys = [found.key for found in query.fetch()]
    parts = [keys[at : at + AT_ONCE] for at in range(0, len(keys), AT_ONCE)]
    counts = [sweep_some(client, part, generation, moment) for part in parts]
    return [sum(column) for column in zip((0, 0), *counts)]


def sweep(client):
    """Empties all generations but a new one. Returns (deleted, moved)."""
    old, moment = begin_generation(client), text_of(now())
    work = [(generation, shard) for generation in old for shard in range(SHARDS)]
    with concurrent.futures.ThreadPoolExecutor(SHARDS) as pool:
        counts = list(pool.map(lambda each: sweep_shard(client, *each, moment), work))

    def finish():
        of = generations(client)
        of["swept"] = max(of["swept"], old[-1])
        client.put(of)

    transact(client, finish)
    return [sum(column) for column in zip(*counts)]


def main():
    made = parser(__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    putting = commands.add_parser("put", help="begin a session")
    putting.add_argument("name")
    putting.add_argument("--user", default="somebody")
    putting.add_argument("--seconds", type=int, default=3600)
    getting = commands.add_parser("get", help="look at a session")
    getting.add_argument("name")
    commands.add_parser("sweep", help="delete those that have expired")
    options = made.parse_args()
    client = client_of(options)
    match options.command:
        case "put":
            expiry = now() + datetime.timedelta(seconds=options.seconds)
            put(client, options.name, options.user, expiry)
        case "get":
            found = get(client, options.name)
            print(f"{found['user']}, {found['expiry']}" if found else "no such session")
        case "sweep":
            deleted, moved = sweep(client)
            print(f"{deleted} deleted, {moved} moved to the next generation")


if __name__ == "__main__":
    main()
