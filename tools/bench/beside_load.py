"""Point reads while rows are loaded beside them: do flushes and compactions hold reads up?"""

from client import Client, cores
from page import at_most, milliseconds, number, table
from servers import Server, trestle_command

VALUE_SIZE = 1000
BATCH = 100
LOAD_BYTES = 20_000_000  # a second
READ_RATE = 10_000  # a second
ALONE_SECONDS = 10
MOST_MS = 5


def measure(options):
    with Server(trestle_command()) as server:
        client = Client(server, rows=options.rows, value_size=VALUE_SIZE, batch=BATCH)
        client.run("load")
        server.await_rest()
        alone = client.run("read", rate=READ_RATE, duration=ALONE_SECONDS)
        stalled = server.metric("store_stall_milliseconds_total")
        beside = read_beside_load(client, options.minute, rate=READ_RATE)
        flat_out = read_beside_load(client, ALONE_SECONDS)
        stalled = server.metric("store_stall_milliseconds_total") - stalled
    return {"alone": alone, "beside": beside, "flat out": flat_out, "stalled_ms": stalled}


def read_beside_load(client, seconds, **options):
    """What the reads say, with the bytes a second of the load that ran as long as they did."""
    load = client.start("batch", rate=LOAD_BYTES // (BATCH * VALUE_SIZE), duration=seconds)
    reads = client.run("read", duration=seconds, **options)
    loaded = load.result()
    reads["loaded_bytes"] = loaded["rows"] * VALUE_SIZE
    reads["load_p99_us"] = loaded["p99_us"]
    return reads


def goals(measured):
    what = f"p99 of {READ_RATE:,} point reads/s beside a load of {LOAD_BYTES // 10**6} MB/s"
    yield at_most(what, MOST_MS, measured["beside"]["p99_us"] / 1000, " ms")


def section(measured):
    beside = measured["beside"]
    yield "## Reads beside a load"
    yield ""
    yield (
        f"Rows of 1,000 bytes. One `trestle bench` overwrites random rows of the table, "
        f"{LOAD_BYTES // 10**6} MB/s in batches of {BATCH}; another reads {READ_RATE:,} random "
        f"rows a second of the same table for {beside['seconds']:.0f} s, or as many as it can. "
        f"Meanwhile the server wrote {beside['server_written_bytes'] / 1e9:.1f} GB to the disk for "
        f"{beside['loaded_bytes'] / 1e9:.1f} GB of values (log, flushes and compactions); "
        f"it held writes back for {measured['stalled_ms']:.0f} ms, and acknowledged 99 % of the "
        f"batches within {milliseconds(beside['load_p99_us'])} ms. A request that comes late "
        "because all 64 calls are waiting counts from when it was due."
    )
    yield ""
    rows = [
        (f"{READ_RATE:,} a second, alone", measured["alone"]),
        (f"{READ_RATE:,} a second, beside the load", beside),
        ("as many as possible, beside the load", measured["flat out"]),
    ]
    yield from table(
        ["point reads", "reads/s", "cores", "p50 ms", "p99 ms", "p99.9 ms", "longest ms"],
        (
            [
                words,
                number(result["requests"] / result["seconds"]),
                f"{cores(result):.2f}",
                *(milliseconds(result[f"{name}_us"]) for name in ("p50", "p99", "p999", "max")),
            ]
            for words, result in rows
        ),
    )
