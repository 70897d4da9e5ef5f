"""Datastore's API beside both of Google's emulators: operations for each second of CPU time.

All servers run at the same time, and take turns with each operation, after each has been given time
to warm up: the emulators compile what they run often. They look at every entity for each query, so
what is read is measured before anything is written, and they have fewer entities by default; there
is a Trestle with as many, which they are compared with, and one with all."""

import os
import shutil
import statistics
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field

from client import Client
from page import at_least, number, table
from servers import Server, trestle_command

SDK = "/usr/lib/google-cloud-sdk/platform"
CLASSIC_JAR = f"{SDK}/cloud-datastore-emulator/CloudDatastore.jar"
FIRESTORE_JAR = f"{SDK}/cloud-firestore-emulator/cloud-firestore-emulator.jar"
HEAP = "-Xmx8g"

ALL, TRESTLE = "Trestle, all", "Trestle"
CLASSIC, FIRESTORE = "datastore emulator", "firestore emulator"
EMULATORS = [CLASSIC, FIRESTORE]
BATCH = 500
LEAST = 5  # times the operations per CPU second of an emulator
LOADING = {"connections": 1, "streams": 4}


@dataclass(frozen=True)
class Operation:
    name: str  # of the workload
    words: str
    calls: dict = field(default_factory=dict)  # at once, if not the usual


ONE_CALL = {"connections": 1, "streams": 1}
FEW_CALLS = {"connections": 1, "streams": 4}
SOME_CALLS = {"connections": 4, "streams": 4}
OPERATIONS = [
    Operation("get", "get of one entity"),
    Operation("ancestor", "ancestor query, 20 results", ONE_CALL),
    Operation("find", "query by one property, 20 results", ONE_CALL),
    Operation("merge", "merge join of two properties, 20 results", ONE_CALL),
    Operation("transaction", "transaction: five entities read, then written", SOME_CALLS),
    Operation("update", "put over an entity that is there"),
    Operation("put", "put of a new entity"),
    Operation("batchput", f"put of {BATCH} new entities in a batch", FEW_CALLS),
]


# --- servers ---


def classic_command():
    """It wants a directory that it has made itself."""
    program = f"java {HEAP} -cp {CLASSIC_JAR} com.google.cloud.datastore.emulator.CloudDatastore"
    create = f"{program} create --project_id=bench {{data}}"
    flags = "--host=127.0.0.1 --port={port} --store_on_disk=false --consistency=1.0"
    return ["sh", "-c", f"{create} && exec {program} start {flags} {{data}}"]


def firestore_command():
    main = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
    return ["java", HEAP, "-Duser.language=en", "-cp", FIRESTORE_JAR, main, "--host=127.0.0.1",
            "--port={port}", "--database-mode=datastore-mode"]  # fmt: skip


def commands():
    """{name: command} of what is installed."""
    found = {ALL: trestle_command(), TRESTLE: trestle_command()}
    if shutil.which("java") and os.path.exists(CLASSIC_JAR):
        found[CLASSIC] = classic_command()
    if shutil.which("java") and os.path.exists(FIRESTORE_JAR):
        found[FIRESTORE] = firestore_command()
    return found


# --- measuring ---


def say(text):
    print(f"datastore: {text}", file=sys.stderr, flush=True)


def measure_one(clients, operation, options):
    """{server: results}"""
    results = {name: [] for name in clients}
    for name, client in clients.items():
        say(f"{operation.name}: warming up, {name}")
        client.run(operation.name, duration=options.warm_seconds, **operation.calls)
    for turn in range(options.datastore_runs):
        for name, client in clients.items():
            # With the seed of the run before, entities would be written again as they are.
            result = client.run(operation.name, seed=1000 + turn, **operation.calls)
            results[name].append(result)
    rates = [f"{name} {number(rate(results[name]))}" for name in clients]
    say(f"{operation.name}: {', '.join(rates)}")
    return results


def load(clients):
    """{server: result}, of all at once."""
    say(f"loading {', '.join(clients)}")
    running = {name: client.start("entities", **LOADING) for name, client in clients.items()}
    results = {name: each.result() for name, each in running.items()}
    for client in clients.values():
        client.server.await_rest()
    return results


def measure(options):
    """{"load": {server: result}, operation's name: {server: results}}"""
    with ExitStack() as running:
        clients = {}
        for name, command in commands().items():
            server = running.enter_context(Server(command))
            rows = options.entities if name == ALL else options.emulator_entities
            clients[name] = Client(server, rows=rows, batch=BATCH, duration=options.seconds)
        measured = {
            "entities": options.entities,
            "emulator_entities": options.emulator_entities,
            "load": load(clients),
        }
        for operation in OPERATIONS:
            measured[operation.name] = measure_one(clients, operation, options)
        return measured


# --- figures ---


def per_cpu_second(result):
    return result["requests"] / result["server_cpu_seconds"]


def rate(results):
    return statistics.median(map(per_cpu_second, results))


def ratio(results, emulator):
    """Of the rates in the same turn: how many times the emulator's."""
    pairs = zip(results[TRESTLE], results[emulator], strict=True)
    return statistics.median(per_cpu_second(own) / per_cpu_second(other) for own, other in pairs)


def goals(measured):
    for operation in OPERATIONS:
        results = measured[operation.name]
        for emulator in EMULATORS:
            if emulator in results:
                what = f"{operation.words}: times the {emulator}'s rate"
                yield at_least(what, LEAST, ratio(results, emulator))


# --- the page ---


def section(measured):
    few = f"{measured['emulator_entities']:,}"
    yield f"## {measured['entities']:,} entities, and {few}"
    yield ""
    yield (
        f"*All* is Trestle with {measured['entities']:,} entities; the other servers have {few} "
        "each, since the emulators look at every entity for each query, and the Firestore emulator "
        "at some several times. Operations for each second of the server's CPU time, medians; × "
        "is how many times the emulator's rate Trestle's is, with as many entities: the median of "
        "the ratios of each turn. Entities have ten properties, eight of them indexed; twenty are "
        "in a group, which is an ancestor's. The emulators keep everything in memory and lose it "
        "when they end; what Trestle acknowledges is on the disk. Queries come one at a time, "
        "batches four at a time, transactions 16, other operations 64."
    )
    yield ""
    yield from rates_table(measured)
    yield ""
    yield "### Latencies"
    yield ""
    yield "Milliseconds, the median of the medians, with as many calls at once."
    yield ""
    yield from latencies_table(measured)
    yield ""
    yield "### Loading"
    yield ""
    yield f"By upserts of {BATCH} entities, four at a time, into all servers at once."
    yield ""
    yield from load_table(measured)


def rates_table(measured):
    head = ["operations per CPU second", ALL, TRESTLE]
    for emulator in EMULATORS:
        head += [emulator, "×"]
    rows = []
    for operation in OPERATIONS:
        results = measured[operation.name]
        row = [operation.words, number(rate(results[ALL])), number(rate(results[TRESTLE]))]
        for emulator in EMULATORS:
            is_there = emulator in results
            row += [number(rate(results[emulator])) if is_there else "not installed"]
            row += [number(ratio(results, emulator)) if is_there else ""]
        rows.append(row)
    yield from table(head, rows)


def servers_of(measured):
    return list(measured["load"])


def latencies_table(measured):
    rows = []
    for operation in OPERATIONS:
        row = [operation.words]
        for results in measured[operation.name].values():
            row.append(number(statistics.median(each["p50_us"] for each in results) / 1000))
        rows.append(row)
    yield from table(["ms", *servers_of(measured)], rows)


def load_table(measured):
    load = measured["load"].values()
    rates = [number(each["rows"] / each["server_cpu_seconds"]) for each in load]
    peaks = [number(each["server_peak_bytes"] / 1e6) for each in load]
    yield from table(
        ["", *servers_of(measured)],
        [
            ["entities per CPU second", *rates],
            ["peak memory, MB", *peaks],
        ],
    )
