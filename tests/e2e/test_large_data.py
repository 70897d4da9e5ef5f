"""Large cells and wide rows: what the tests of C2 and C4 leave open."""

import pytest
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import fails_with, set_cell

MIB = 1 << 20
KEY = b"k"
COLUMNS = 30_000
PER_REQUEST = 10_000


def test_a_cell_of_100_mib_in_pieces(rpc, table_name):
    """Of one message, of which the server has a piece in memory at a time."""
    largest = bytes(range(256)) * (100 * MIB // 256)
    rpc.mutate(table_name, KEY, set_cell("f", b"q", largest, 1000))
    (message,) = map(types.ReadRowsResponse.pb, rpc.read_stream(table_name))
    pieces = message.chunks
    is_whole = b"".join(piece.value for piece in pieces) == largest
    assert is_whole  # without a text of 200 MB
    assert max(len(piece.value) for piece in pieces) <= 2 * MIB
    assert [piece.value_size for piece in pieces] == [len(largest)] * (len(pieces) - 1) + [0]
    assert [piece.row_key for piece in pieces] == [KEY] + [b""] * (len(pieces) - 1)
    assert [piece.commit_row for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert not any(piece.reset_row for piece in pieces)
    with fails_with(StatusCode.INVALID_ARGUMENT, "104857601 bytes long; at most 104857600"):
        rpc.mutate(table_name, KEY, set_cell("f", b"q", largest + b"x"))


# --- wide rows ---


@pytest.fixture(scope="module")
def wide(rpc):
    """A row of many columns, between two small ones."""
    name = rpc.create_table("wide-rows", ["f", "g"])
    for key in (b"before", b"wider"):
        rpc.mutate(name, key, set_cell("g", b"000007", b"small", 1000))
    for first in range(0, COLUMNS, PER_REQUEST):
        columns = range(first, first + PER_REQUEST)
        rpc.mutate(name, b"wide", *(set_cell("f", b"%06d" % i, b"%d" % i, 1000) for i in columns))
    rpc.mutate(name, b"wide", set_cell("g", b"000007", b"of g", 1000))
    yield name
    rpc.delete_table(name)


def qualifier(pattern):
    return types.RowFilter(column_qualifier_regex_filter=pattern)


def chain(*filters):
    return types.RowFilter(chain={"filters": filters})


FAMILY_F = types.RowFilter(family_name_regex_filter="f")


def columns(first, last):
    bounds = {"start_qualifier_closed": b"%06d" % first, "end_qualifier_closed": b"%06d" % last}
    return types.RowFilter(column_range_filter={"family_name": "f", **bounds})


@pytest.mark.parametrize(
    ("row_filter", "expected"),
    [
        (chain(FAMILY_F, qualifier(b"000007")), [7]),
        (chain(qualifier(b"029999"), FAMILY_F), [29_999]),
        (columns(20_000, 20_002), [20_000, 20_001, 20_002]),
        (types.RowFilter(cells_per_row_limit_filter=3), [0, 1, 2]),
        (qualifier(b"no such column"), []),
    ],
    ids=["first", "last", "range", "limit", "none"],
)
def test_columns_of_a_wide_row(rpc, wide, row_filter, expected):
    """The answer, and that no other cell was looked at: a few at most."""
    full = types.ReadRowsRequest.RequestStatsView.REQUEST_STATS_FULL
    query = {"rows": {"row_keys": [b"wide"]}, "filter": row_filter}
    cells = rpc.read_row(wide, b"wide", filter=row_filter)
    assert [int(cell.value) for cell in cells] == expected
    *_, last = rpc.read_stream(wide, request_stats_view=full, **query)
    seen = last.request_stats.full_read_stats_view.read_iteration_stats.cells_seen_count
    assert seen <= len(expected) + 3


def test_a_scan_takes_the_column_of_every_row(rpc, wide):
    cells = rpc.read(wide, filter=qualifier(b"000007"))
    assert [(key, [cell.value for cell in row]) for key, row in cells] == [
        (b"before", [b"small"]), (b"wide", [b"7", b"of g"]), (b"wider", [b"small"]),
    ]  # fmt: skip


def test_all_columns_of_a_wide_row(rpc, wide):
    cells = rpc.read_row(wide, b"wide")
    assert [cell.value for cell in cells] == [b"%d" % i for i in range(COLUMNS)] + [b"of g"]
