#!/usr/bin/env python3
"""The newest of many events, by an index that is not written at one end.

    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./queries.py log "somebody came in"
    DATASTORE_EMULATOR_HOST=127.0.0.1:8086 ./queries.py newest 10

An index on the time of an event is written at its end and nowhere else, by all writers: one tablet
has all the work, however many there are. So what is indexed has a shard of fixed length before it,

    05 2026-11-21T23:00:00.123456

and a query is as many queries, which run side by side; their results are merged.
"""

import concurrent.futures
import datetime
import heapq
import itertools
import random

from google.cloud import datastore
from google.cloud.datastore.query import PropertyFilter
from recipes import client_of, parser

SHARDS = 8


def text_of(moment):
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}"


def moment_of(event):
    return event["when"].split(" ", 1)[1]


def log(client, *texts):
    """In one commit. The keys are automatic, which are scattered, too."""
    events = []
    for text in texts:
        event = datastore.Entity(client.key("Event"), exclude_from_indexes=("text",))
        moment = text_of(datetime.datetime.now(datetime.timezone.utc))
        event.update(text=text, when=f"{random.randrange(SHARDS):02} {moment}")
        events.append(event)
    client.put_multi(events)


def query_shard(client, shard, since, until, limit):
    query = client.query(kind="Event", order=["-when"])
    query.add_filter(filter=PropertyFilter("when", ">=", f"{shard:02} {since}"))
    query.add_filter(filter=PropertyFilter("when", "<", f"{shard:02} {until}"))
    return list(query.fetch(limit=limit))


def newest(client, limit, since="", until="~"):
    """The newest events of [since, until), at most `limit`. Any shard may have all of them, so each
    is asked for as many."""
    with concurrent.futures.ThreadPoolExecutor(SHARDS) as pool:
        found = pool.map(
            lambda shard: query_shard(client, shard, since, until, limit), range(SHARDS)
        )
        merged = heapq.merge(*found, key=moment_of, reverse=True)
    return list(itertools.islice(merged, limit))


def main():
    made = parser(__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    logging = commands.add_parser("log", help="write events")
    logging.add_argument("text", nargs="+")
    asking = commands.add_parser("newest", help="print the newest events")
    asking.add_argument("limit", type=int)
    asking.add_argument("--since", default="", metavar="2026-11-21T23", help="or more of it")
    asking.add_argument("--until", default="~", metavar="2026-11-21T24", help="or more of it")
    options = made.parse_args()
    client = client_of(options)
    if options.command == "log":
        log(client, *options.text)
        return
    for event in newest(client, options.limit, options.since, options.until):
        print(f"{moment_of(event)}  {event['text']}")


if __name__ == "__main__":
    main()
