"""C3 of docs/reference/conformance.md: timestamps of cells."""

import time

import pytest
from google.cloud.bigtable.data import SetCell
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import Cell, fails_with, set_cell

KEY = b"k"
NEWEST = (2**63 - 1) // 1000 * 1000
MICROS = admin_types.Table.TimestampGranularity.MICROS
Origin = types.Mutation.TimestampOrigin


@pytest.fixture
def micros_table(make_table):
    return make_table(granularity=MICROS)


def timestamps(rpc, name):
    return [cell.timestamp for cell in rpc.read_row(name, KEY)]


def test_c3_1_server_time(rpc, table_name):
    before = time.time_ns() // 1_000_000 * 1000
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v", -1))
    after = time.time_ns() // 1000
    (timestamp,) = timestamps(rpc, table_name)
    assert before <= timestamp <= after
    assert timestamp % 1000 == 0


def test_c3_1_server_time_in_microseconds(rpc, micros_table):
    """Of 20 moments not all are whole milliseconds."""
    for number in range(20):
        rpc.mutate(micros_table, KEY, set_cell("f", b"%d" % number, b"v", -1))
    assert any(timestamp % 1000 for timestamp in timestamps(rpc, micros_table))


def test_c3_2_granularity(rpc, table_name, micros_table):
    for timestamp in (1, 999, 1001):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v", timestamp))
        rpc.mutate(micros_table, KEY, set_cell("f", b"q", b"v", timestamp))
    assert rpc.read(table_name) == []
    assert timestamps(rpc, micros_table) == [1001, 999, 1]


def test_c3_3_first_and_last(rpc, table_name):
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v", 0), set_cell("f", b"q", b"v", NEWEST))
    assert timestamps(rpc, table_name) == [NEWEST, 0]


@pytest.mark.parametrize("timestamp", [-2, -1000, -(2**63), NEWEST + 1, 2**63 - 1])
def test_c3_3_beyond(rpc, table_name, timestamp):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v", timestamp))


def test_c3_4_a_cell_of_the_same_time_is_overwritten(table):
    table.mutate_row(KEY, SetCell("f", b"q", b"first", 1000))
    table.mutate_row(KEY, [SetCell("f", b"q", b"second", 1000), SetCell("f", b"q", b"x", 2000)])
    table.mutate_row(KEY, SetCell("f", b"q", b"third", 1000))
    cells = [(cell.timestamp_micros, cell.value) for cell in table.read_row(KEY)]
    assert cells == [(2000, b"x"), (1000, b"third")]


def test_c3_5_one_moment_for_a_request(rpc, micros_table):
    cells = [set_cell("f", b"%d" % number, b"v", -1) for number in range(1000)]
    rpc.mutate(micros_table, KEY, *cells)
    assert rpc.mutate_rows(micros_table, [(b"a", cells[:1]), (b"b", cells[:1])]) == [0, 0]
    assert len(set(timestamps(rpc, micros_table))) == 1
    a, b = (rpc.read_row(micros_table, key) for key in (b"a", b"b"))
    assert a[0].timestamp == b[0].timestamp


def from_origin(origin, timestamp):
    mutation = set_cell("f", b"q", b"v", timestamp)
    mutation.timestamp_origin = origin
    return mutation


def test_c3_6_timestamp_origin(rpc, table_name, micros_table):
    """What the client made up is truncated; what its user said is refused."""
    made_up = from_origin(Origin.CLIENT_AUTO_GENERATED, 1_234_567)
    for origin in (Origin.USER_SPECIFIED, Origin.TIMESTAMP_ORIGIN_UNSPECIFIED):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            rpc.mutate(table_name, KEY, from_origin(origin, 1_234_567))
    rpc.mutate(table_name, KEY, made_up)
    assert rpc.read_row(table_name, KEY) == [Cell("f", b"q", 1_234_000, b"v")]
    rpc.mutate(micros_table, KEY, made_up)
    assert timestamps(rpc, micros_table) == [1_234_567]
