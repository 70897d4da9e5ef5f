"""A damaged part of the log of change streams: its readers are told, and nobody else notices; a
repair leaves it, and it goes when it is too old."""

import os
import time

import pytest
from grpc import StatusCode
from harness.change_streams import (
    Reader,
    now_micros,
    one_token,
    partition,
    stream_config,
    timestamp,
)
from harness.damage import flip, keyspace_of, tables
from harness.moved_server import DAY_SECONDS, LIBRARY, MovedServer
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with, set_cell
from harness.server import EXTERNAL, run_trestle
from google.cloud.bigtable_v2 import types

pytestmark = [
    pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own"),
    pytest.mark.skipif(not LIBRARY.exists(), reason="the library that moves clocks is not built"),
]
# With a buffer this small what the write-ahead log has is flushed at the next start.
SETTINGS = ["--write-buffer", "4MB", "--disk-reserve", "1MB"]
ROWS = 200


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def key(number):
    return b"k%05d" % number


def write(rpc, name, first, count):
    for number in range(first, first + count):
        rpc.mutate(name, key(number), set_cell("f", b"q", os.urandom(30_000), 1000))


def log_tables(data):
    return [path for path in tables(data) if (keyspace_of(path) or b"").startswith(b"L")]


def read_until_it_fails(rpc, name, **fields):
    """The keys that came before DATA_LOSS did."""
    request = types.ReadChangeStreamRequest(table_name=name, partition=partition(), **fields)
    keys = []
    with fails_with(StatusCode.DATA_LOSS, ".sst"):
        for response in rpc.data.read_change_stream(request, timeout=PATIENCE_SECONDS):
            keys.append(response.data_change.row_key)
    return [each for each in keys if each]


def test_a_damaged_segment(tmp_path, connect):
    (tmp_path / "server").mkdir()
    server = MovedServer(tmp_path / "server", SETTINGS).start()
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    start = timestamp(now_micros())
    write(rpc, name, 0, ROWS)
    with Reader(rpc, name, start_time=start) as reader:
        behind = one_token(b"", b"", reader.changes(ROWS)[-1].token)
    rpc.close()
    server.stop()
    server.start()
    server.stop()
    (hit, *_) = log_tables(server.data)
    flip(hit, hit.stat().st_size // 2)
    server.start()
    rpc = connect(server.host)
    try:
        # Readers of what it had are told, with what lies before it; others go on.
        for _ in range(2):
            keys = read_until_it_fails(rpc, name, start_time=start)
            assert 0 < len(keys) < ROWS
            assert keys == [key(number) for number in range(len(keys))]
        assert [k for k, _ in rpc.read(name)] == [key(number) for number in range(ROWS)]
        write(rpc, name, ROWS, 3)
        with Reader(rpc, name, continuation_tokens=behind) as reader:
            assert [c.key for c in reader.changes(3)] == [key(ROWS + i) for i in range(3)]
        # The doctor names it; a repair gives nothing up for it.
        rpc.close()
        server.stop()
        found = run_trestle("doctor", server.data)
        assert "changes that readers may want" in found.stdout + found.stderr
        done = run_trestle("repair", server.data)
        assert hit.exists(), done.stdout + done.stderr
        server.start()
        rpc = connect(server.host)
        assert read_until_it_fails(rpc, name, start_time=start) == keys
        # It goes with its time, and is forgotten.
        server.move(2 * DAY_SECONDS)
        write(rpc, name, ROWS + 3, 1)
        wait_until(lambda: server.metric("change_log_segments") == 2)
        server.move(4 * DAY_SECONDS)
        write(rpc, name, ROWS + 4, 1)
        wait_until(lambda: not hit.exists())
        wait_until(lambda: server.metric("damaged_ranges") == 0)
        assert [k for k, _ in rpc.read(name)] == [key(number) for number in range(ROWS + 5)]
    finally:
        rpc.close()
        server.close()
