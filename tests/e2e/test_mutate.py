"""MutateRow and MutateRows: what is written, in which order, whole or not at all. Limits are in
conformance/test_c2_limits.py."""

import time

import pytest
from google.cloud.bigtable.data import (
    DeleteAllFromFamily,
    DeleteAllFromRow,
    DeleteRangeFromColumn,
    MutationsExceptionGroup,
    RowMutationEntry,
    SetCell,
)
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import INSTANCE, Cell, fails_with, set_cell

KEY = b"k"
MAX_TIMESTAMP = (2**63 - 1) // 1000 * 1000


def delete_column(family, qualifier, start=0, end=0):
    return types.Mutation(
        delete_from_column={
            "family_name": family,
            "column_qualifier": qualifier,
            "time_range": {"start_timestamp_micros": start, "end_timestamp_micros": end},
        }
    )


def values(cells):
    return [cell.value for cell in cells]


# --- SetCell ---


def test_versions_and_overwriting(table):
    table.mutate_row(KEY, SetCell("f", b"q", b"one", 1000))
    table.mutate_row(KEY, SetCell("f", b"q", b"two", 2000))
    table.mutate_row(KEY, SetCell("f", b"q", b"one again", 1000))
    assert values(table.read_row(KEY)) == [b"two", b"one again"]


def test_later_mutation_of_a_request_wins(rpc, table_name):
    rpc.mutate(table_name, KEY, *(set_cell("f", b"q", b"%d" % i, 1000) for i in range(10)))
    assert rpc.read_row(table_name, KEY) == [Cell("f", b"q", 1000, b"9")]


def test_server_time_is_one_for_the_request(rpc, table_name):
    before = time.time_ns() // 1_000_000 * 1000
    rpc.mutate(table_name, KEY, *(set_cell("f", b"%d" % i, b"v", -1) for i in range(20)))
    after = time.time_ns() // 1000
    (timestamp,) = {cell.timestamp for cell in rpc.read_row(table_name, KEY)}
    assert before <= timestamp <= after
    assert timestamp % 1000 == 0


def test_no_timestamp_means_zero(rpc, table_name):
    cell = types.Mutation.SetCell(family_name="f", column_qualifier=b"q", value=b"v")
    rpc.mutate(table_name, KEY, types.Mutation(set_cell=cell))
    assert rpc.read_row(table_name, KEY) == [Cell("f", b"q", 0, b"v")]


@pytest.mark.parametrize("timestamp", [0, 1000, MAX_TIMESTAMP])
def test_timestamps_that_are_fine(rpc, table_name, timestamp):
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v", timestamp))
    assert rpc.read_row(table_name, KEY) == [Cell("f", b"q", timestamp, b"v")]


@pytest.mark.parametrize("timestamp", [1, 1001, -2, -1000, MAX_TIMESTAMP + 1, 2**63 - 1, -(2**63)])
def test_timestamps_that_are_not(rpc, table_name, timestamp):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v", timestamp))
    assert rpc.read(table_name) == []


def test_empty_qualifier_and_value(rpc, table_name):
    rpc.mutate(table_name, KEY, set_cell("f", b"", b"", 1000))
    assert rpc.read_row(table_name, KEY) == [Cell("f", b"", 1000, b"")]


def test_integers_are_big_endian(table):
    table.mutate_row(KEY, SetCell("f", b"n", -2, 1000))
    assert values(table.read_row(KEY)) == [b"\xff" * 7 + b"\xfe"]
    assert int(table.read_row(KEY).cells[0]) == -2


# --- deletions ---


@pytest.fixture
def filled(rpc, table_name):
    """One row: columns f:a, f:b, g:a, each with cells at 1, 2 and 3 ms."""
    columns = [("f", b"a"), ("f", b"b"), ("g", b"a")]
    cells = [set_cell(*column, b"v", ms * 1000) for column in columns for ms in (1, 2, 3)]
    rpc.mutate(table_name, KEY, *cells)
    return table_name


def times(rpc, name, family, qualifier):
    cells = rpc.read_row(name, KEY)
    return [c.timestamp for c in cells if (c.family, c.qualifier) == (family, qualifier)]


def test_delete_from_column(table, rpc, filled):
    table.mutate_row(KEY, DeleteRangeFromColumn("f", b"a"))
    assert times(rpc, filled, "f", b"a") == []
    assert times(rpc, filled, "f", b"b") == [3000, 2000, 1000]
    assert times(rpc, filled, "g", b"a") == [3000, 2000, 1000]


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (0, 0, []),
        (2000, 0, [1000]),
        (0, 2000, [3000, 2000]),
        (2000, 3000, [3000, 1000]),
        (3000, 4000, [2000, 1000]),
        (4000, 5000, [3000, 2000, 1000]),
    ],
)
def test_delete_from_column_between(rpc, filled, start, end, left):
    rpc.mutate(filled, KEY, delete_column("f", b"a", start, end))
    assert times(rpc, filled, "f", b"a") == left
    assert times(rpc, filled, "f", b"b") == [3000, 2000, 1000]


@pytest.mark.parametrize(("start", "end"), [(3000, 2000), (1, 2000), (1000, 2001), (-1000, 0)])
def test_delete_range_that_is_wrong(rpc, filled, start, end):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(filled, KEY, delete_column("f", b"a", start, end))
    assert times(rpc, filled, "f", b"a") == [3000, 2000, 1000]


def test_delete_of_an_unknown_column_is_fine(table):
    table.mutate_row(KEY, DeleteRangeFromColumn("f", b"never written"))
    assert table.read_row(KEY) is None


def test_delete_from_family(table, rpc, filled):
    table.mutate_row(KEY, DeleteAllFromFamily("f"))
    assert {cell.family for cell in rpc.read_row(filled, KEY)} == {"g"}


def test_delete_from_row(table, rpc, filled):
    rpc.mutate(filled, b"k\0", set_cell("f", b"q", b"neighbour", 1000))
    table.mutate_row(KEY, DeleteAllFromRow())
    assert [key for key, _ in rpc.read(filled)] == [b"k\0"]


def test_mutations_apply_in_order(table, filled):
    table.mutate_row(KEY, [SetCell("f", b"a", b"gone", 9000), DeleteAllFromRow()])
    assert table.read_row(KEY) is None
    table.mutate_row(KEY, [DeleteAllFromRow(), SetCell("f", b"a", b"kept", 1000)])
    assert values(table.read_row(KEY)) == [b"kept"]
    table.mutate_row(KEY, [SetCell("f", b"a", b"gone", 9000), DeleteRangeFromColumn("f", b"a")])
    assert table.read_row(KEY) is None


def test_write_after_delete_with_an_older_timestamp(table):
    """A deletion covers what was there before it, not what is written later."""
    table.mutate_row(KEY, SetCell("f", b"q", b"v", 5000))
    table.mutate_row(KEY, DeleteAllFromRow())
    table.mutate_row(KEY, SetCell("f", b"q", b"older", 1000))
    assert values(table.read_row(KEY)) == [b"older"]


# --- what is refused, and that nothing of it stays ---


def test_all_or_nothing(rpc, table_name):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v"), set_cell("nope", b"q", b"v"))
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v"), set_cell("f", b"q", b"v", 1001))
    assert rpc.read(table_name) == []


def test_empty_key(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT, "Row keys must be non-empty"):
        rpc.mutate(table_name, b"", set_cell("f", b"q", b"v"))


def test_no_mutations(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT, "No mutations provided"):
        rpc.mutate(table_name, KEY)


def test_mutation_of_no_kind(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, types.Mutation())


def test_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(f"{INSTANCE}/tables/no-such-table", KEY, set_cell("f", b"q", b"v"))


def test_add_to_a_plain_family(rpc, table_name):
    add = types.Mutation.AddToCell(
        family_name="f",
        column_qualifier={"raw_value": b"q"},
        timestamp={"raw_timestamp_micros": 1000},
        input={"int_value": 1},
    )
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(table_name, KEY, types.Mutation(add_to_cell=add))


# --- MutateRows ---


def test_bulk(table, rpc, table_name):
    entries = [RowMutationEntry(b"%04d" % i, SetCell("f", b"q", b"%d" % i)) for i in range(500)]
    table.bulk_mutate_rows(entries)
    rows = rpc.read(table_name)
    assert [(key, values(cells)) for key, cells in rows] == [
        (b"%04d" % i, [b"%d" % i]) for i in range(500)
    ]


def test_a_bad_entry_fails_alone(table, rpc, table_name):
    entries = [
        RowMutationEntry(b"a", SetCell("f", b"q", b"v")),
        RowMutationEntry(b"b", [SetCell("f", b"q", b"v"), SetCell("nope", b"q", b"v")]),
        RowMutationEntry(b"c", SetCell("f", b"q", b"v")),
    ]
    with pytest.raises(MutationsExceptionGroup) as caught:
        table.bulk_mutate_rows(entries)
    assert [error.index for error in caught.value.exceptions] == [1]
    assert [key for key, _ in rpc.read(table_name)] == [b"a", b"c"]


def test_codes_of_bad_entries(rpc, table_name):
    entries = [
        (b"a", [set_cell("nope", b"q", b"v")]),
        (b"b", [set_cell("f", b"q", b"v", 1001)]),
        (b"c", [set_cell("f", b"q", b"v", 1000)]),
    ]
    assert rpc.mutate_rows(table_name, entries) == [
        StatusCode.NOT_FOUND.value[0],
        StatusCode.INVALID_ARGUMENT.value[0],
        0,
    ]


def test_no_entries(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate_rows(table_name, [])


def test_entry_without_mutations(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate_rows(table_name, [(b"a", [])])


def test_bulk_to_a_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate_rows(f"{INSTANCE}/tables/no-such-table", [(b"a", [set_cell("f", b"q", b"v")])])


def test_a_row_twice_in_a_request(rpc, table_name):
    entries = [(b"a", [set_cell("f", b"%d" % i, b"v", 1000)]) for i in range(50)]
    assert rpc.mutate_rows(table_name, entries) == [0] * 50
    assert len(rpc.read_row(table_name, b"a")) == 50


def test_large_bulk_request(rpc, table_name):
    """20 MB in one message, far over gRPC's default limit."""
    rows = [(b"%05d" % i, [set_cell("f", b"q", b"x" * 1000)]) for i in range(20_000)]
    assert set(rpc.mutate_rows(table_name, rows)) == {0}
    assert len(rpc.read(table_name)) == 20_000


def test_batcher_of_the_client(table, rpc, table_name):
    with table.mutations_batcher(flush_limit_mutation_count=100) as batcher:
        for i in range(1_000):
            batcher.append(RowMutationEntry(b"%04d" % i, SetCell("f", b"q", b"v")))
    assert len(rpc.read(table_name)) == 1_000
