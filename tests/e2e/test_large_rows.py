"""Rows of many megabytes, whose values are got one by one while the row is sent: what comes is what
the row's cells are when each is read by itself."""

import concurrent.futures
import random

import pytest
from google.cloud.bigtable_v2 import types
from google.protobuf.json_format import ParseDict
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import decode_responses, delete_row, set_cell

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


def keeps(what, **fields):
    """(a filter that looks at values, what it comes to in Python)"""
    return types.RowFilter(**fields), what


def value_filters():
    """Of values that are random bytes, or none: some of each size come through, and some do not."""
    high = keeps(lambda v: v >= b"\x80", value_range_filter={"start_value_closed": b"\x80"})
    low = keeps(lambda v: v < b"\x30", value_range_filter={"end_value_open": b"\x30"})
    begins = keeps(
        lambda v: b"\x40" <= v[:1] < b"\xc0", value_regex_filter=rb"[\x40-\xbf]\C*"
    )
    ends = keeps(lambda v: v[-1:] > b"\x60", value_regex_filter=rb"\C*[\x61-\xff]")
    mask = keeps(lambda v: len(v) == 10, value_bitmask_filter={"mask": bytes(10)})
    return [high, low, begins, ends, mask]


def in_order(cells):
    return sorted(cells, key=lambda c: (c[0], c[1], -c[2]))


def test_what_filters_of_values_leave(rpc, large, expected):
    for row_filter, passes in value_filters():
        found = rpc.read_row(large, KEY, filter=row_filter)
        assert is_same(plain(found), [c for c in expected if passes(c[3])]), row_filter


def test_filters_of_values_in_others(rpc, large, expected):
    (high, is_high), (low, is_low), (begins, begins_so), (ends, ends_so), _ = value_filters()
    nothing = types.RowFilter(value_regex_filter=b"not in it")
    some = columns("m", b"s100", b"s102")
    strips = types.RowFilter(strip_value_transformer=True)
    newest = types.RowFilter(cells_per_column_limit_filter=1)
    five = types.RowFilter(cells_per_row_limit_filter=5)
    labels = types.RowFilter(apply_label_transformer="x")

    def chain(*filters):
        return types.RowFilter(chain={"filters": filters})

    def interleave(*filters):
        return types.RowFilter(interleave={"filters": filters})

    def condition(predicate, then, otherwise=None):
        fields = {"predicate_filter": predicate, "true_filter": then, "false_filter": otherwise}
        return types.RowFilter(condition=fields)

    highs = [c for c in expected if is_high(c[3])]
    lows = [c for c in expected if is_low(c[3])]
    both = [c for c in expected if begins_so(c[3]) and ends_so(c[3])]
    of_some = [c for c in expected if c[0] == "m" and b"s100" <= c[1] <= b"s102"]
    stripped = [(*c[:3], b"") for c in highs]
    firsts = [c for i, c in enumerate(highs) if i == 0 or highs[i - 1][:2] != c[:2]]
    cases = [
        (chain(begins, ends), both),
        (chain(high, strips), stripped),
        (chain(strips, high), []),
        (chain(high, newest), firsts),
        (chain(high, five), highs[:5]),
        (chain(five, high), [c for c in expected[:5] if is_high(c[3])]),
        (chain(high, labels), highs),
        (interleave(high, low), in_order(highs + lows)),
        (interleave(high, chain(high, strips)), in_order(highs + stripped)),
        (interleave(high, high), in_order(highs + highs)),
        (chain(interleave(chain(high, types.RowFilter(sink=True)), low), some),
         in_order(highs + [c for c in of_some if is_low(c[3])])),
        (condition(nothing, high, some), of_some),
        (condition(chain(high, low), high, low), lows),
        (condition(low, high), highs),
    ]  # fmt: skip
    for row_filter, wanted in cases:
        found = plain(rpc.read_row(large, KEY, filter=row_filter))
        if row_filter.interleave.filters:  # the order of copies is nobody's
            found, wanted = sorted(found), sorted(wanted)
        assert is_same(found, wanted), row_filter


def test_filters_of_values_among_other_rows(rpc, large, expected):
    """Both small rows' values begin with a letter."""
    letters = types.RowFilter(value_regex_filter=rb"[a-z]\C*")
    passing = [c for c in expected if b"a" <= c[3][:1] <= b"z"]
    for is_reversed in (False, True):
        rows = rpc.read(large, reversed=is_reversed, filter=letters)
        keys = sorted([KEY, *NEIGHBOURS], reverse=is_reversed)
        assert [key for key, _ in rows] == keys
        assert is_same(plain(dict(rows)[KEY]), passing)


def test_a_filter_sees_what_is_sent(rpc, large):
    """A row that is written as a whole over and over, while it is judged and sent: one state."""
    key, cells, size = b"written-over-and-over", 30, 100 * KIB
    states = [b"%02d" % i for i in range(12)]

    def write(state):
        rest = state * (size // 2)
        changes = [set_cell("m", b"q%02d" % i, rest, 1000) for i in range(cells)]
        rpc.mutate(large, key, *changes)

    def write_all():
        for state in states:
            write(state)

    even = types.RowFilter(value_regex_filter=rb"\d[02468]\C*")
    odd = types.RowFilter(value_regex_filter=rb"\d[13579]\C*")
    either = types.RowFilter(interleave={"filters": [even, odd]})
    write(states[0])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_all)
        is_over = False
        while not is_over:
            is_over = writing.done()
            found = rpc.read_row(large, key, filter=either)
            assert len(found) == cells
            assert len({cell.value for cell in found}) == 1
    writing.result()
    assert found[0].value[:2] == states[-1]
    rpc.mutate(large, key, delete_row())


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
