"""ReadRows: keys, ranges, limits, order, direction, and the rules of its stream."""

import itertools

import pytest
from google.cloud.bigtable.data import ReadRowsQuery, RowMutationEntry, RowRange, SetCell
from google.cloud.bigtable.data.row_filters import (
    BlockAllFilter,
    CellsColumnLimitFilter,
    RowKeyRegexFilter,
)
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, Cell, decode_rows, delete_row, fails_with, features, set_cell

KEYS = [b"a", b"b", b"c", b"d", b"e"]


@pytest.fixture
def letters(rpc, table_name):
    """A table with one row for each of KEYS, each with the key as its value."""
    codes = rpc.mutate_rows(table_name, [(key, [set_cell("f", b"q", key, 1000)]) for key in KEYS])
    assert codes == [0] * len(KEYS)
    return table_name


def keys_of(rows):
    return [key for key, _ in rows]


def test_one_row(table):
    table.mutate_row(b"k", [SetCell("f", b"q", b"v", 5000), SetCell("g", b"", b"", 6000)])
    row = table.read_row(b"k")
    assert row.row_key == b"k"
    cells = [(cell.family, cell.qualifier, cell.timestamp_micros, cell.value) for cell in row]
    assert cells == [("f", b"q", 5000, b"v"), ("g", b"", 6000, b"")]


def test_a_missing_row_is_none(table):
    assert table.read_row(b"nobody") is None
    assert not table.row_exists(b"nobody")


def test_row_exists(table):
    table.mutate_row(b"k", SetCell("f", b"q", b"v"))
    assert table.row_exists(b"k")


def test_an_empty_table_reads_as_nothing(rpc, table_name):
    assert rpc.read(table_name) == []


def test_all_rows_in_order(rpc, letters):
    assert rpc.read(letters) == [(key, [Cell("f", b"q", 1000, key)]) for key in KEYS]


def test_keys_come_sorted_and_once(rpc, letters):
    assert keys_of(rpc.read(letters, rows={"row_keys": [b"d", b"a", b"x", b"d"]})) == [b"a", b"d"]


RANGES = [
    ({"start_key_closed": b"b", "end_key_closed": b"d"}, b"bcd"),
    ({"start_key_closed": b"b", "end_key_open": b"d"}, b"bc"),
    ({"start_key_open": b"b", "end_key_closed": b"d"}, b"cd"),
    ({"start_key_open": b"b", "end_key_open": b"d"}, b"c"),
    ({"start_key_closed": b"d"}, b"de"),
    ({"start_key_open": b"d"}, b"e"),
    ({"end_key_closed": b"b"}, b"ab"),
    ({"end_key_open": b"b"}, b"a"),
    ({"start_key_closed": b"", "end_key_open": b""}, b"abcde"),
    ({}, b"abcde"),
    ({"start_key_open": b"b", "end_key_open": b"b\0"}, b""),
    ({"start_key_closed": b"b", "end_key_closed": b"b"}, b"b"),
    ({"start_key_closed": b"z"}, b""),
]


@pytest.mark.parametrize(("row_range", "expected"), RANGES)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["forward", "reversed"])
def test_range(rpc, letters, row_range, expected, is_reversed):
    rows = rpc.read(letters, rows={"row_ranges": [row_range]}, reversed=is_reversed)
    found = b"".join(keys_of(rows))
    assert found == (expected[::-1] if is_reversed else expected)


def test_overlapping_keys_and_ranges(table, letters):
    query = ReadRowsQuery(
        row_keys=[b"c", b"a"],
        row_ranges=[RowRange(b"b", b"d"), RowRange(b"c", b"e", end_is_inclusive=True)],
    )
    assert [row.row_key for row in table.read_rows(query)] == KEYS


def test_several_ranges_reversed(rpc, letters):
    ranges = [{"start_key_closed": b"a", "end_key_open": b"c"}, {"start_key_closed": b"e"}]
    rows = rpc.read(letters, rows={"row_ranges": ranges, "row_keys": [b"d"]}, reversed=True)
    assert keys_of(rows) == [b"e", b"d", b"b", b"a"]


def test_inverted_range_is_refused(rpc, letters):
    inverted = {"start_key_closed": b"d", "end_key_open": b"b"}
    with fails_with(StatusCode.INVALID_ARGUMENT, "start_key_closed must be less than end_key_open"):
        rpc.read(letters, rows={"row_ranges": [inverted]})


def test_empty_key_is_refused(rpc, letters):
    with fails_with(StatusCode.INVALID_ARGUMENT, "Row keys must be non-empty"):
        rpc.read(letters, rows={"row_keys": [b"a", b""]})


def test_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(f"{INSTANCE}/tables/no-such-table")


@pytest.mark.parametrize("name", ["", "t", "projects/p/tables/t", INSTANCE, f"{INSTANCE}/tables/"])
def test_malformed_table_name(rpc, name):
    with fails_with({StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND}):
        rpc.read(name)


@pytest.mark.parametrize("limit", [1, 3, 5, 9])
@pytest.mark.parametrize("is_reversed", [False, True], ids=["forward", "reversed"])
def test_rows_limit(rpc, letters, limit, is_reversed):
    keys = KEYS[::-1] if is_reversed else KEYS
    assert keys_of(rpc.read(letters, rows_limit=limit, reversed=is_reversed)) == keys[:limit]


def test_negative_limit_is_refused(rpc, letters):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.read(letters, rows_limit=-1)


def test_limit_counts_only_rows_with_output(table, letters):
    query = ReadRowsQuery(limit=2, row_filter=RowKeyRegexFilter(b"[bde]"))
    assert [row.row_key for row in table.read_rows(query)] == [b"b", b"d"]


def test_rows_without_output_are_left_out(table, letters):
    assert table.read_rows(ReadRowsQuery(row_filter=BlockAllFilter(True))) == []


def test_prefix_as_a_range(table, rpc, table_name):
    keys = [b"user", b"user#1", b"user#\xff", b"user$", b"usf"]
    rpc.mutate_rows(table_name, [(key, [set_cell("f", b"q", b"v")]) for key in keys])
    rows = table.read_rows(ReadRowsQuery(row_ranges=RowRange(b"user#", b"user$")))
    assert [row.row_key for row in rows] == [b"user#1", b"user#\xff"]


def test_keys_are_any_bytes_in_unsigned_order(rpc, table_name):
    keys = [b"\0", b"\0\0", b"\0\x01", b"\x01", b"a\0b", b"ab", b"\x7f", b"\x80", b"\xc3(", b"\xff"]
    rpc.mutate_rows(table_name, [(key, [set_cell("f", b"q", key)]) for key in reversed(keys)])
    assert keys_of(rpc.read(table_name)) == keys
    assert keys_of(rpc.read(table_name, reversed=True)) == keys[::-1]
    for key in keys:
        assert rpc.read_row(table_name, key)[0].value == key


def test_order_of_cells(rpc, make_table):
    """Families by name, whatever order made them; qualifiers by bytes; the newest cell first."""
    name = make_table(["zeta", "alpha", "Beta"])
    qualifiers = [b"b", b"\xff", b"", b"a\0"]
    columns = itertools.product(["zeta", "Beta", "alpha"], qualifiers, [1, 3, 2])
    cells = [set_cell(family, qualifier, b"v", ms * 1000) for family, qualifier, ms in columns]
    rpc.mutate(name, b"k", *cells)
    expected = [
        Cell(family, qualifier, ms * 1000, b"v")
        for family in ["Beta", "alpha", "zeta"]
        for qualifier in [b"", b"a\0", b"b", b"\xff"]
        for ms in [3, 2, 1]
    ]
    assert rpc.read_row(name, b"k") == expected


def test_deleted_rows_do_not_count(rpc, letters):
    rpc.mutate(letters, b"a", delete_row())
    rpc.mutate(letters, b"c", delete_row())
    assert keys_of(rpc.read(letters, rows_limit=2)) == [b"b", b"d"]


def test_reversed_needs_the_client_to_say_so(rpc, letters):
    with fails_with(StatusCode.UNIMPLEMENTED, "reverse"):
        rpc.read(letters, metadata=(), reversed=True)


@pytest.mark.parametrize("padding", ["", "="])
def test_feature_flags_with_and_without_padding(rpc, letters, padding):
    ((name, value),) = features(reverse_scans=True)
    metadata = [(name, value.rstrip("=") + padding * (-len(value.rstrip("=")) % 4))]
    assert keys_of(rpc.read(letters, metadata=metadata, reversed=True)) == KEYS[::-1]


def test_last_scanned_row_key_only_for_clients_that_know_it(rpc, letters):
    nothing = types.RowFilter(row_key_regex_filter=b"none")
    stream = rpc.read_stream(letters, metadata=(), filter=nothing)
    assert not any(response.last_scanned_row_key for response in stream)


def test_large_value_comes_in_pieces(table, rpc, table_name):
    """Of one message: the official client receives at most 4 MiB from an emulator."""
    value = bytes(range(256)) * (3 * 4096)
    rpc.mutate(table_name, b"big", set_cell("f", b"q", value, 1000), set_cell("g", b"q", b"after"))
    row = table.read_row(b"big")
    assert [cell.value for cell in row] == [value, b"after"]
    (message,) = rpc.read_stream(table_name)
    sizes = [chunk.value_size for chunk in message.chunks]
    assert sizes[0] == len(value)
    assert sizes[-1] == 0


def test_row_of_many_cells_comes_in_one_message(table, rpc, table_name):
    for base in range(0, 25_000, 5_000):
        cells = [set_cell("f", b"%06d" % i, b"x" * 100, 1000) for i in range(base, base + 5_000)]
        rpc.mutate(table_name, b"wide", *cells)
    row = table.read_row(b"wide")
    assert [cell.qualifier for cell in row] == [b"%06d" % i for i in range(25_000)]
    assert len(list(rpc.read_stream(table_name))) == 1


def test_scan_of_rows_that_fill_a_message_each(table, rpc, table_name):
    """By many cells, and by a value that is written while its message is sent."""
    wide = [set_cell("f", b"%04d" % i, b"x" * 100, 1000) for i in range(2_000)]
    large = [set_cell("f", b"a", b"y" * 2_000_000, 1000), set_cell("f", b"b", b"z", 1000)]
    rows = {b"%d" % i: large if i % 3 == 1 else wide for i in range(6)}
    for key, cells in rows.items():
        rpc.mutate(table_name, key, *cells)
    found = table.read_rows(ReadRowsQuery())
    assert [(row.row_key, len(row.cells)) for row in found] == [
        (key, len(cells)) for key, cells in rows.items()
    ]
    assert len(rpc.read(table_name, reversed=True)) == len(rows)


def test_many_rows(table, rpc, table_name):
    keys = [b"row%05d" % i for i in range(5_000)]
    codes = rpc.mutate_rows(table_name, [(key, [set_cell("f", b"q", key)]) for key in keys])
    assert set(codes) == {0}
    assert [row.row_key for row in table.read_rows(ReadRowsQuery())] == keys
    assert keys_of(rpc.read(table_name, reversed=True)) == keys[::-1]


def test_scan_that_is_given_up_leaves_the_connection_whole(rpc, table_name):
    value = b"x" * 10_000
    rows = [(b"row%04d" % i, [set_cell("f", b"q", value)]) for i in range(1_000)]
    rpc.mutate_rows(table_name, rows)
    for _ in range(20):
        stream = rpc.read_stream(table_name)
        assert next(decode_rows(stream))[0] == b"row0000"
        stream.cancel()
    assert len(rpc.read(table_name)) == 1_000


def test_sharded_read(table, client, make_table, rpc):
    name = make_table(splits=[b"3", b"6"])
    keys = [b"%d" % i for i in range(10)]
    rpc.mutate_rows(name, [(key, [set_cell("f", b"q", b"v")]) for key in keys])
    with client.get_table("i", name.rsplit("/", 1)[-1]) as split_table:
        shards = ReadRowsQuery().shard(split_table.sample_row_keys())
        assert len(shards) == 3
        rows = split_table.read_rows_sharded(shards)
    assert [row.row_key for row in rows] == keys


def test_stream_of_the_client(table):
    entries = [RowMutationEntry(b"%03d" % i, SetCell("f", b"q", b"v")) for i in range(100)]
    table.bulk_mutate_rows(entries)
    stream = table.read_rows_stream(ReadRowsQuery())
    assert [row.row_key for row in stream] == [entry.row_key for entry in entries]


FULL_STATS = types.ReadRowsRequest.RequestStatsView.REQUEST_STATS_FULL


def test_request_stats(rpc, letters):
    limit = CellsColumnLimitFilter(1)._to_pb()
    query = {"rows": {"row_keys": [b"a", b"b", b"zz"]}, "filter": limit}
    responses = list(rpc.read_stream(letters, request_stats_view=FULL_STATS, **query))
    assert ["request_stats" in response for response in responses[:-1]] == [False] * (
        len(responses) - 1
    )
    stats = responses[-1].request_stats.full_read_stats_view.read_iteration_stats
    assert (stats.rows_returned_count, stats.cells_returned_count) == (2, 2)
    assert stats.rows_seen_count >= 2
    assert stats.cells_seen_count >= 2


def test_request_stats_of_an_empty_result(rpc, letters):
    rows = {"row_keys": [b"zz"]}
    responses = list(rpc.read_stream(letters, request_stats_view=FULL_STATS, rows=rows))
    stats = responses[-1].request_stats.full_read_stats_view.read_iteration_stats
    assert (stats.rows_returned_count, stats.cells_returned_count) == (0, 0)


def test_no_stats_unless_asked(rpc, letters):
    assert not any("request_stats" in response for response in rpc.read_stream(letters))


def test_ping_and_warm(rpc):
    rpc.data.ping_and_warm(types.PingAndWarmRequest(name=INSTANCE), timeout=PATIENCE_SECONDS)
