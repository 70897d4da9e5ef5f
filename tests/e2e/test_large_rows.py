"""Rows of many megabytes, whose values are got one by one while the row is sent: what comes is what
the row's cells are when each is read by itself."""

import random

import pytest
from google.cloud.bigtable_v2 import types
from google.protobuf.json_format import ParseDict
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import decode_responses, set_cell

KIB = 1 << 10
KEY = b"large"
FAMILIES = ["m", "z", "b"]  # later ones may come before former ones by name
NEIGHBOURS = (b"a-small-row", b"z-small-row")


def cells_to_write():
    """(family, qualifier, value, timestamp) of about 20 MB: small values that will be in the row's
    record, those of records of their own, and some of more than one chunk."""
    chance = random.Random(19)
    sizes = [0, 10, 3 * KIB, 20 * KIB, 100 * KIB, 700 * KIB, 5000 * KIB]
    for i in range(70):
        family = FAMILIES[i % 3]
        size = sizes[i % len(sizes)] if i < 14 else sizes[i % 5]
        for version in (1000, 2000):
            yield family, b"q%03d" % i, chance.randbytes(size), version
    for i in range(600):
        yield "m", b"s%03d" % i, chance.randbytes(4 * KIB), 3000


@pytest.fixture(scope="module")
def large(rpc):
    name = rpc.create_table("large-rows", FAMILIES)
    for family, qualifier, value, version in cells_to_write():
        rpc.mutate(name, KEY, set_cell(family, qualifier, value, version))
    for key in NEIGHBOURS:
        rpc.mutate(name, key, set_cell("m", b"q", key, 1000))
    yield name
    rpc.delete_table(name)


@pytest.fixture(scope="module")
def expected():
    """As rpc.Cell, in order."""
    cells = sorted(cells_to_write(), key=lambda cell: (cell[0], cell[1], -cell[3]))
    return [(family, qualifier, version, value) for family, qualifier, value, version in cells]


def plain(cells):
    return [(cell.family, cell.qualifier, cell.timestamp, cell.value) for cell in cells]


def is_same(found, wanted):
    """Without a text of megabytes when it is not."""
    return found == wanted


def columns(family, first, last):
    bounds = {"start_qualifier_closed": first, "end_qualifier_closed": last}
    return types.RowFilter(column_range_filter={"family_name": family, **bounds})


def test_the_row_whole(rpc, large, expected):
    assert is_same(plain(rpc.read_row(large, KEY)), expected)


def test_the_row_among_others(rpc, large, expected):
    for is_reversed in (False, True):
        rows = rpc.read(large, reversed=is_reversed)
        keys = sorted([KEY, *NEIGHBOURS], reverse=is_reversed)
        assert [key for key, _ in rows] == keys
        assert is_same(plain(dict(rows)[KEY]), expected)
        assert [cell.value for cell in dict(rows)[NEIGHBOURS[1]]] == [NEIGHBOURS[1]]


def test_the_row_in_pieces(rpc, large, expected):
    """Each column by itself: of most, the values are few enough to be read at once."""
    for family in sorted(FAMILIES):
        for i in range(70):
            name = b"q%03d" % i
            wanted = [cell for cell in expected if cell[:2] == (family, name)]
            found = rpc.read_row(large, KEY, filter=columns(family, name, name))
            assert is_same(plain(found), wanted)


def test_what_filters_leave(rpc, large, expected):
    newest = types.RowFilter(cells_per_column_limit_filter=1)
    some = columns("m", b"q010", b"s100")
    everything = types.RowFilter(pass_all_filter=True)
    long_values = types.RowFilter(value_range_filter={"start_value_closed": b"\x80"})
    cases = [
        (newest, [c for c in expected if c[2] != 1000]),
        (some, [c for c in expected if c[0] == "m" and b"q010" <= c[1] <= b"s100"]),
        (types.RowFilter(cells_per_row_limit_filter=50), expected[:50]),
        (types.RowFilter(cells_per_row_offset_filter=50), expected[50:]),
        (types.RowFilter(strip_value_transformer=True), [(*c[:3], b"") for c in expected]),
        (types.RowFilter(apply_label_transformer="x"), expected),
        (types.RowFilter(chain={"filters": [everything, types.RowFilter(sink=True)]}), expected),
        (long_values, [c for c in expected if c[3] >= b"\x80"]),
        (
            types.RowFilter(interleave={"filters": [newest, some]}),
            sorted(
                [c for c in expected if c[2] != 1000]
                + [c for c in expected if c[0] == "m" and b"q010" <= c[1] <= b"s100"],
                key=lambda c: (c[0], c[1], -c[2]),
            ),
        ),
        (types.RowFilter(timestamp_range_filter={"end_timestamp_micros": 2000}),
         [c for c in expected if c[2] < 2000]),
    ]  # fmt: skip
    for row_filter, wanted in cases:
        found = rpc.read_row(large, KEY, filter=row_filter)
        assert is_same(plain(found), wanted), row_filter


def test_through_a_view(rpc, admin, large, expected):
    """Of a large row, what a view shows of one family."""
    shows = {"z": {"qualifier_prefixes": [b"q00", b"q05"]}}
    subset = {"row_prefixes": [b""], "family_subsets": shows}
    view = f"{large}/authorizedViews/some"
    admin.tables.create_authorized_view(
        parent=large, authorized_view_id="some", authorized_view={"subset_view": subset}
    ).result(PATIENCE_SECONDS)
    shown = [c for c in expected if c[0] == "z" and c[1].startswith((b"q00", b"q05"))]
    assert is_same(plain(rpc.read_row(view, KEY)), shown)
    admin.tables.delete_authorized_view(name=view)


def test_by_rest(server, large, expected):
    answer = Rest(server.host).call("POST", f"/v2/{large}:readRows", {})
    messages = [ParseDict(element, types.ReadRowsResponse.pb()()) for element in answer]
    rows = dict(decode_responses(messages))
    assert is_same(plain(rows[KEY]), expected)
