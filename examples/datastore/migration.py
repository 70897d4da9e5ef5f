#!/usr/bin/env python3
"""Moves profiles from one kind to another, with other keys, while the application goes on.

    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./migration.py begin
    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./migration.py copy

The old keys are names as they come, which are neighbours where they are alike; the new ones begin
with a hash. The steps, each of which can be interrupted, repeated, and seen by `status`:

    begin   from now on a write goes to both kinds, in one commit
    copy    a job copies what is not there yet, page by page, and remembers where it is
    verify  compares the two
    ramp N  N percent of the names are read from the new kind; back to 0 if anything is wrong
    finish  at 100: nobody writes or reads the old kind any more, and it is deleted
"""

import random
import sys
import time

from google.cloud import datastore
from recipes import client_of, hash_of, parser, transact

OLD, NEW = "Profile", "ProfileByHash"
PAGE = 20


def old_key(client, name):
    return client.key(OLD, name)


def new_key(client, name):
    return client.key(NEW, f"{hash_of(name, 65536):04x}-{name}")


def state_of(client):
    """The entity that says how far the migration is. Whoever writes a profile reads it in the same
    transaction, so that no write under the old rules comes after the rules have changed."""
    key = client.key("Migration", "profiles")
    found = client.get(key)
    if found is None:
        found = datastore.Entity(key)
        found.update(phase="old", percent=0)
    return found


def change_state(client, check, **properties):
    def work():
        state = state_of(client)
        check(state)
        state.update(properties)
        client.put(state)

    transact(client, work)


def refuse_unless(condition, text):
    if not condition:
        raise SystemExit(text)


# --- the application ---


def keys_written(client, state, name):
    match state["phase"]:
        case "old":
            return [old_key(client, name)]
        case "both":
            return [old_key(client, name), new_key(client, name)]
    return [new_key(client, name)]


def write(client, name, city):
    def work():
        for key in keys_written(client, state_of(client), name):
            profile = datastore.Entity(key)
            profile.update(name=name, city=city)
            client.put(profile)

    transact(client, work)


def delete(client, name):
    def work():
        client.delete_multi(keys_written(client, state_of(client), name))

    transact(client, work)


def read(client, name):
    """The profile, or None. Both kinds are looked up at once, so that it takes no longer; what one
    does not have, yet or any more, is taken from the other."""
    state = state_of(client)
    old, new = old_key(client, name), new_key(client, name)
    found = {profile.key: profile for profile in client.get_multi([old, new])}
    ramped = hash_of(name, 100) < state["percent"]
    first, second = (new, old) if ramped else (old, new)
    return found.get(first) or found.get(second)


# --- the job ---


def pages(client, kind, cursor=None):
    """Yields lists of keys, each with the cursor behind it."""
    while True:
        query = client.query(kind=kind)
        query.keys_only()
        page = query.fetch(limit=PAGE, start_cursor=cursor)
        keys = [found.key for found in page]
        cursor = page.next_page_token
        if keys:
            yield keys, cursor
        if len(keys) < PAGE or cursor is None:
            return


def copy_page(client, keys):
    """Copies what the new kind does not have. In a transaction: a profile that is written or
    deleted meanwhile is not made again what it was."""

    def work():
        profiles = client.get_multi(keys)
        there = {e.key for e in client.get_multi([new_key(client, key.name) for key in keys])}
        copies = []
        for profile in profiles:
            copy = datastore.Entity(new_key(client, profile.key.name))
            copy.update(profile)
            if copy.key not in there:
                copies.append(copy)
        client.put_multi(copies)
        return len(copies)

    return transact(client, work)


def copy(client, options):
    refuse_unless(state_of(client)["phase"] == "both", "begin first")
    job_key = client.key("MigrationJob", "profiles")
    job = client.get(job_key) or datastore.Entity(job_key, exclude_from_indexes=("cursor",))
    copied = seen = 0
    for keys, cursor in pages(client, OLD, job.get("cursor")):
        random.shuffle(keys)  # the new keys are scattered, and the reads need not be in order
        copied += copy_page(client, keys)
        seen += len(keys)
        job["cursor"] = cursor  # behind the page: what an interruption repeats changes nothing
        client.put(job)
        time.sleep(options.pause)
    print(f"{copied} copied of {seen} seen")


def differing(client, names):
    """Those of the names whose profiles differ, as of one moment."""
    with client.transaction(read_only=True):
        old = client.get_multi([old_key(client, name) for name in names])
        new = client.get_multi([new_key(client, name) for name in names])
    was, is_now = ({each["name"]: dict(each) for each in of} for of in (old, new))
    return {name for name in names if was.get(name) != is_now.get(name)}


def verify(client):
    """Compares by the old keys, and by the new for what only they have. How many differ."""
    count, differ = 0, set()
    for keys, _ in pages(client, OLD):
        count += len(keys)
        differ |= differing(client, [key.name for key in keys])
    for keys, _ in pages(client, NEW):
        differ |= differing(client, [key.name.split("-", 1)[1] for key in keys])
    print(f"{count} profiles, {len(differ)} differ")
    return len(differ)


def finish(client):
    def check(state):
        refuse_unless(state["percent"] == 100, "ramp to 100 first")

    check(state_of(client))
    refuse_unless(state_of(client)["phase"] == "new" or verify(client) == 0, "copy first")
    change_state(client, check, phase="new")
    for keys, _ in pages(client, OLD):
        client.delete_multi(keys)


def status(client):
    state = state_of(client)
    counts = []
    for kind in OLD, NEW:
        ((count,),) = client.aggregation_query(client.query(kind=kind)).count().fetch()
        counts.append(f"{int(count.value)} of kind {kind}")
    print(f"phase {state['phase']}, {state['percent']} % read the new kind; {', '.join(counts)}")


def main():
    made = parser(__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    for name in "put", "get", "delete", "begin", "copy", "verify", "ramp", "finish", "status":
        command = commands.add_parser(name)
        if name in ("put", "get", "delete"):
            command.add_argument("name")
        if name == "put":
            command.add_argument("city")
        if name == "ramp":
            command.add_argument("percent", type=int, choices=range(101), metavar="PERCENT")
        if name == "copy":
            command.add_argument("--pause", type=float, default=0, help="seconds after each page")
    options = made.parse_args()
    client = client_of(options)
    match options.command:
        case "put":
            write(client, options.name, options.city)
        case "get":
            profile = read(client, options.name)
            print(profile["city"] if profile else "no such profile")
        case "delete":
            delete(client, options.name)
        case "begin":
            change_state(
                client, lambda s: refuse_unless(s["phase"] != "new", "finished"), phase="both"
            )
        case "copy":
            copy(client, options)
        case "verify":
            sys.exit(verify(client) > 0)
        case "ramp":
            change_state(
                client,
                lambda s: refuse_unless(s["phase"] == "both", "begin first"),
                percent=options.percent,
            )
        case "finish":
            finish(client)
        case "status":
            status(client)


if __name__ == "__main__":
    main()
