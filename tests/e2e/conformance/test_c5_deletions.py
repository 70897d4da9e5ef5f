"""C5 of docs/reference/conformance.md: what deletions take."""

import pytest
from google.cloud.bigtable.data import (
    DeleteAllFromFamily,
    DeleteAllFromRow,
    DeleteRangeFromColumn,
    SetCell,
)
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import fails_with, set_cell

KEY = b"k"
TIMES = [4000, 3000, 2000, 1000]


def delete_column(start=None, end=None, family="f", qualifier=b"q"):
    column = {"family_name": family, "column_qualifier": qualifier}
    if start is not None:
        column["time_range"] = {"start_timestamp_micros": start, "end_timestamp_micros": end}
    return types.Mutation(delete_from_column=column)


@pytest.fixture
def versions(rpc, table_name):
    """The row KEY with f:q at TIMES, and a neighbour column."""
    rpc.mutate(table_name, KEY, *(set_cell("f", b"q", b"v", at) for at in TIMES))
    rpc.mutate(table_name, KEY, set_cell("f", b"neighbour", b"v", 2000))
    return table_name


def left(rpc, name):
    return [cell.timestamp for cell in rpc.read_row(name, KEY) if cell.qualifier == b"q"]


def test_c5_1_without_a_range_all_versions_go(rpc, versions):
    rpc.mutate(versions, KEY, delete_column())
    assert [cell.qualifier for cell in rpc.read_row(versions, KEY)] == [b"neighbour"]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (2000, 3000, [4000, 3000, 1000]),
        (2000, 4000, [4000, 1000]),
        (0, 2000, [4000, 3000, 2000]),
        (3000, 0, [2000, 1000]),
        (0, 0, []),
        (5000, 6000, TIMES),
    ],
)
def test_c5_2_from_start_to_before_end(rpc, versions, start, end, expected):
    """An end of 0 is no end."""
    rpc.mutate(versions, KEY, delete_column(start, end))
    assert left(rpc, versions) == expected


@pytest.mark.parametrize(("start", "end"), [(3000, 2000), (2000, 2000)])
def test_c5_3_inverted_range(rpc, versions, start, end):
    with fails_with(StatusCode.INVALID_ARGUMENT, "inverted or invalid timestamp range"):
        rpc.mutate(versions, KEY, delete_column(start, end))
    assert left(rpc, versions) == TIMES


@pytest.mark.parametrize(("start", "end"), [(1001, 2000), (1000, 2001), (-1000, 0), (0, -1000)])
def test_c5_3_bounds_are_timestamps(rpc, versions, start, end):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(versions, KEY, delete_column(start, end))
    assert left(rpc, versions) == TIMES


def test_c5_4_unknown_column(table):
    table.mutate_row(KEY, DeleteRangeFromColumn("f", b"never written"))
    assert table.read_row(KEY) is None


def test_c5_5_unknown_family(rpc, table_name):
    """Production refuses it in DeleteFromColumn, the emulator takes it in DeleteFromFamily; here
    one rule holds for both."""
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(table_name, KEY, delete_column(family="no-family"))
    gone = types.Mutation(delete_from_family={"family_name": "no-family"})
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(table_name, KEY, gone)


@pytest.mark.parametrize(
    "deletion",
    [DeleteAllFromRow(), DeleteAllFromFamily("f"), DeleteRangeFromColumn("f", b"q")],
    ids=["row", "family", "column"],
)
def test_c5_6_rows_without_cells_are_gone(table, rpc, table_name, deletion):
    """From reads, limits, and what CheckAndMutateRow sees."""
    for key in (b"a", b"b", b"c"):
        table.mutate_row(key, SetCell("f", b"q", b"v", 1000))
    table.mutate_row(b"a", deletion)
    assert not table.row_exists(b"a")
    assert [key for key, _ in rpc.read(table_name, rows_limit=2)] == [b"b", b"c"]
    assert rpc.check_and_mutate(table_name, b"a", true=[set_cell("f", b"q", b"v")]) is False
