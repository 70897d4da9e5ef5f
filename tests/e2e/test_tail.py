"""`trestle tail`: changes as lines, through splits, merges and kills of either side."""

import json
import random
import signal
import subprocess
import threading
import time
from datetime import UTC, datetime

import pytest
from google.cloud.bigtable_v2 import types
from harness.change_streams import (
    Writers,
    now_micros,
    partitions_of,
    stream_config,
    update_stream,
)
from harness.patience import PATIENCE_SECONDS
from harness.rpc import delete_row, set_cell
from harness.secured import ADMIN
from harness.server import run_trestle
from harness.tail import Counts, Tail, bytes_of, wait_for

TABLE = "t"
NAME = "projects/p/instances/i/tables/t"


@pytest.fixture
def streamed(fresh_server, connect):
    def make(*arguments, families=("f",), splits=(), **fields):
        server = fresh_server(*arguments)
        rpc = connect(server.host)
        rpc.create_table(TABLE, families, splits, change_stream_config=stream_config(), **fields)
        return server, rpc

    return make


def put(rpc, key, value=b"v"):
    rpc.mutate(NAME, key, set_cell("f", b"q", value, 1000))


def set_to(value):
    return {"set_cell": {"family": "f", "qualifier": "q", "timestamp": 1000, "value": value}}


def now():
    """For --from: nothing was written before."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# --- what is told ---


def test_every_kind_of_change_is_a_line(streamed):
    kinds = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
    server, rpc = streamed(families=(), column_families={
        "f": {}, "g": {},
        "s": {"value_type": {"aggregate_type": {"input_type": kinds, "sum": {}}}},
    })  # fmt: skip
    aggregate = {
        "family_name": "s", "column_qualifier": {"raw_value": b"n"},
        "timestamp": {"raw_timestamp_micros": 1000},
    }  # fmt: skip
    before = now_micros()
    with Tail(server.host, TABLE, "--from", now()) as tail:
        rpc.mutate(
            NAME, b"k\xff", set_cell("f", b"q", b"v", 1000), set_cell("f", b"\x80", b"\xfe", 2000),
            types.Mutation(delete_from_column={
                "family_name": "f", "column_qualifier": b"d",
                "time_range": {"start_timestamp_micros": 1000, "end_timestamp_micros": 5000},
            }),
            types.Mutation(delete_from_column={"family_name": "f", "column_qualifier": b"e"}),
            types.Mutation(delete_from_family={"family_name": "g"}),
            types.Mutation(add_to_cell={**aggregate, "input": {"int_value": -5}}),
            types.Mutation(merge_to_cell={**aggregate, "input": {"bytes_value": b"\0" * 8}}),
        )  # fmt: skip
        put(rpc, "ü".encode(), b'"\\\n')
        rpc.mutate(NAME, "ü".encode(), delete_row())
        all_kinds, umlaut, deletion = tail.take(3)
        assert tail.stop() == []
    assert before <= all_kinds.pop("commit") <= now_micros()
    assert bytes_of(all_kinds.pop("key")) == b"k\xff"
    assert all_kinds == {
        "tiebreaker": 0, "cluster": "trestle", "mutations": [
            set_to("v"),
            {"set_cell": {
                "family": "f", "qualifier": {"base64": "gA=="}, "timestamp": 2000,
                "value": {"base64": "/g=="},
            }},
            {"delete_from_column": {"family": "f", "qualifier": "d", "start": 1000, "end": 5000}},
            {"delete_from_column": {"family": "f", "qualifier": "e"}},
            {"delete_from_family": {"family": "g"}},
            {"add_to_cell": {"family": "s", "qualifier": "n", "timestamp": 1000, "input": -5}},
            {"merge_to_cell": {
                "family": "s", "qualifier": "n", "timestamp": 1000, "input": "\0" * 8,
            }},
        ],
    }  # fmt: skip
    assert (umlaut["key"], umlaut["mutations"]) == ("ü", [set_to('"\\\n')])
    assert deletion["mutations"] == [{"delete_from_family": {"family": "f"}}]


# --- splits, merges, kills ---


@pytest.mark.long
def test_partitions_split_and_merge_meanwhile(streamed):
    server, rpc = streamed("--split-load", "100", "--merge-after", "1s")
    keys = [b"%02d" % i for i in range(100)]
    counts = Counts()
    with Tail(server.host, TABLE, "--from", now(), "--status", "100ms") as tail:
        with Writers(rpc, NAME, keys) as writers:
            wait_for(lambda: len(partitions_of(rpc, NAME)) >= 3, "no split")
            counts.take(tail.take_here())
        last = {key: count - 1 for key, count in writers.written.items()}
        while counts.got != last:
            counts.take([tail.next()])
        wait_for(lambda: partitions_of(rpc, NAME) == [(b"", b"")], "no merge")
        put(rpc, b"00", b"%d" % (last[b"00"] + 1))
        counts.take([tail.next()])
        assert tail.stop() == []
        told = tail.process.stderr.read()
    assert " partitions\n" in told
    assert told.splitlines()[-1].endswith("; 1 partition")
