"""What it takes two servers to copy 10,000 changed rows a second, plain and packed by gzip
(--replication-compression): CPU time of both, and bytes over the wire. Pairs of rounds, turn about,
on loopback, each with new servers. Values are JSON as of a shop, of about 105 bytes.

    ./dev bench links [--rounds N] [--seconds S] [--cells N...]
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import grpc
from google.cloud.bigtable_v2 import types

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.peers import join, know_each_other, list_peers, peer_server
from harness.rest import Rest

TICKS = os.sysconf("SC_CLK_TCK")
INSTANCE = "projects/p/instances/spread"
TABLE = f"{INSTANCE}/tables/orders"
MODES = ("off", "gzip")
ROWS, REQUESTS, PER_SECOND = 100, 50, 100
REST_SECONDS = 1.5
NAMES = [f"{first} {last}" for first in "Ana Ben Cleo Dan Eva Finn Gil Hana Ida Jan".split()
         for last in "Meyer Okafor Lopez Tanaka Novak Singh Weber Rossi".split()]  # fmt: skip


def value(rng):
    at = f"2026-11-{rng.randrange(1, 31):02d}T{rng.randrange(24):02d}:{rng.randrange(60):02d}:00Z"
    order = {"sku": f"A-{rng.randrange(10**6)}", "customer": rng.choice(NAMES),
             "amount": rng.randrange(10**5), "paid": rng.random() < 0.5, "at": at}  # fmt: skip
    return json.dumps(order).encode()


def entry(rng, cells):
    mutations = [
        types.Mutation(
            set_cell=types.Mutation.SetCell(
                family_name="f", column_qualifier=b"c%d" % cell,
                timestamp_micros=1000 * rng.randrange(10**9), value=value(rng),
            )
        )
        for cell in range(cells)
    ]  # fmt: skip
    key = b"order#%08d" % rng.randrange(10**7)
    return types.MutateRowsRequest.Entry(row_key=key, mutations=mutations)


def messages(cells):
    rng = random.Random(1)
    for _ in range(REQUESTS):
        entries = [entry(rng, cells) for _ in range(ROWS)]
        request = types.MutateRowsRequest(table_name=TABLE, entries=entries)
        yield types.MutateRowsRequest.pb(request).SerializeToString()


def make_table(host):
    rest = Rest(host)
    clusters = {f"c{n}": {"location": f"projects/p/locations/zone-{n}", "serveNodes": 1}
                for n in (1, 2)}  # fmt: skip
    body = {"instanceId": "spread", "instance": {"displayName": "Spread"}, "clusters": clusters}
    rest.call("POST", "/v2/projects/p/instances", body)
    table = {"tableId": "orders", "table": {"columnFamilies": {"f": {}}}}
    rest.call("POST", f"/v2/{INSTANCE}/tables", table)


def write(host, requests, seconds):
    """At that pace; a cluster that is made just now may not be ready at first."""
    with grpc.insecure_channel(host) as channel:
        call = channel.unary_stream("/google.bigtable.v2.Bigtable/MutateRows")
        began = time.monotonic()
        for count in range(int(seconds * PER_SECOND)):
            try:
                list(call(requests[count % REQUESTS]))
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
            time.sleep(max(0, began + count / PER_SECOND - time.monotonic()))


def cpu_seconds(server):
    stat = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) / TICKS


def applied(server):
    state = list_peers(server)["states"][0]
    return int(state.get("appliedChanges", 0)), int(state.get("appliedBytes", 0))


def look(servers):
    time.sleep(REST_SECONDS)
    changes, unpacked = applied(servers[1])
    return {"origin": cpu_seconds(servers[0]), "receiver": cpu_seconds(servers[1]),
            "sent": servers[0].metric("sent_bytes_total"), "changes": changes,
            "unpacked": unpacked}  # fmt: skip


def round_of(mode, requests, seconds):
    """What it took, by change."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        servers = []
        for number in (1, 2):
            arguments = ["--replication-compression", mode]
            servers.append(peer_server(Path(directory) / f"{number}", number, *arguments))
            stack.callback(servers[-1].close)
        join(servers[1], servers[0])
        know_each_other(servers)
        make_table(servers[0].host)
        write(servers[0].host, requests, 1)
        before = look(servers)
        write(servers[0].host, requests, seconds)
        after = look(servers)
    risen = {name: after[name] - before[name] for name in after}
    return {name: risen[name] / risen["changes"] for name in risen}


def measure(options, cells):
    requests = list(messages(cells))
    rounds = {mode: [] for mode in MODES}
    for number in range(options.rounds):
        for mode in MODES if number % 2 == 0 else reversed(MODES):
            rounds[mode].append(round_of(mode, requests, options.seconds))
    pairs = list(zip(*rounds.values(), strict=True))
    print(f"rows of {cells} cells:")
    for who in ("origin", "receiver"):
        plain = 1e6 * statistics.median(each[who] for each in rounds["off"])
        ratio = statistics.median(packed[who] / plain_[who] for plain_, packed in pairs)
        print(f"  {who}: {plain:.1f} us of CPU a row, packed × {ratio:.2f}")
    # What else the origin sends, answers above all, is the same in both.
    others = statistics.median(each["sent"] - each["unpacked"] for each in rounds["off"])
    packed = statistics.median(each["sent"] for each in rounds["gzip"]) - others
    plain = statistics.median(each["unpacked"] for each in rounds["off"])
    print(f"  over the wire: {plain:.0f} bytes a row, packed {packed:.0f}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench links", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--cells", type=int, nargs="+", default=[1, 10])
    options = parser.parse_args()
    for cells in options.cells:
        measure(options, cells)


if __name__ == "__main__":
    main()
