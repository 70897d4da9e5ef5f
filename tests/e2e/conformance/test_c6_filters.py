"""C6 of docs/reference/conformance.md: what filters let through. What they refuse is C1.8."""

import pytest
from google.cloud.bigtable.data import ReadRowsQuery, SetCell, row_filters
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import Cell, fails_with, set_cell

KEY = b"k"
PASS = {"pass_all_filter": True}
BLOCK = {"block_all_filter": True}

# Who follows whom: rows follow columns.
FOLLOWS = {
    b"alincoln": [b"gwashington", b"jadams", b"tjefferson"],
    b"gwashington": [b"jadams"],
    b"jadams": [b"gwashington", b"tjefferson"],
    b"tjefferson": [b"alincoln", b"gwashington", b"jadams"],
}


@pytest.fixture(scope="module")
def follows(rpc):
    name = rpc.create_table("follows", ["follows", "other"])
    for key, columns in FOLLOWS.items():
        mutations = [
            set_cell(family, column, b"1", at)
            for family in ("follows", "other")
            for column in columns
            for at in (1000, 2000)
        ]
        rpc.mutate(name, key, *mutations)
    yield name
    rpc.delete_table(name)


def chain(*filters):
    return {"chain": {"filters": list(filters)}}


def interleave(*filters):
    return {"interleave": {"filters": list(filters)}}


def condition(predicate, true=None, false=None):
    branches = {"predicate_filter": predicate, "true_filter": true, "false_filter": false}
    return {"condition": {name: value for name, value in branches.items() if value is not None}}


def columns(rpc, name, row_filter, key=b"alincoln"):
    """family:qualifier of each cell that comes of a row."""
    cells = rpc.read_row(name, key, filter=types.RowFilter(row_filter))
    return [f"{cell.family}:{cell.qualifier.decode()}" for cell in cells]


NEWEST = {"cells_per_column_limit_filter": 1}
FOLLOWS_ONLY = {"family_name_regex_filter": "follows"}


def test_c6_1_column_range_is_of_one_family(rpc, follows):
    """The family is compared, not matched."""

    def wanted(family):
        limits = {"start_qualifier_closed": b"g", "end_qualifier_closed": b"jadams"}
        return chain({"column_range_filter": {"family_name": family, **limits}}, NEWEST)

    assert columns(rpc, follows, wanted("follows")) == ["follows:gwashington", "follows:jadams"]
    with fails_with(StatusCode.NOT_FOUND, "Requested column family not found"):
        columns(rpc, follows, wanted("f.*"))


def test_c6_2_value_range_compares_bytes(rpc, table_name):
    values = [b"", b"\x00", b"A", b"a", b"a\x00", b"b", b"\x80", b"\xff"]
    for number, value in enumerate(values):
        rpc.mutate(table_name, KEY, set_cell("f", b"%d" % number, value, 1000))

    def within(**bounds):
        cells = rpc.read_row(table_name, KEY, filter={"value_range_filter": bounds})
        return [cell.value for cell in cells]

    assert within(start_value_closed=b"a", end_value_closed=b"b") == [b"a", b"a\x00", b"b"]
    assert within(start_value_open=b"a", end_value_open=b"b") == [b"a\x00"]
    assert within(start_value_open=b"b") == [b"\x80", b"\xff"]
    assert within(end_value_open=b"A") == [b"", b"\x00"]


def test_c6_3_strip_keeps_all_but_the_value(rpc, follows):
    strip = {"strip_value_transformer": True}
    whole = rpc.read_row(follows, b"jadams")
    stripped = rpc.read_row(follows, b"jadams", filter=types.RowFilter(strip))
    assert stripped == [cell._replace(value=b"") for cell in whole]
    labelled = chain({"apply_label_transformer": "kept"}, strip)
    cells = rpc.read_row(follows, b"jadams", filter=types.RowFilter(labelled))
    assert {cell.labels for cell in cells} == {("kept",)}


def test_c6_4_label_goes_to_every_cell(rpc, follows):
    label = types.RowFilter(chain(NEWEST, {"apply_label_transformer": "prezzy-1"}))
    for key, cells in rpc.read(follows, filter=label):
        assert [cell.labels for cell in cells] == [("prezzy-1",)] * 2 * len(FOLLOWS[key])


def test_c6_5_sink_outlives_the_chain(rpc, follows):
    sunk = chain({"column_qualifier_regex_filter": b"jadams"}, NEWEST, {"sink": True})
    rest = {"column_qualifier_regex_filter": b"gwash.*"}
    found = columns(rpc, follows, chain(FOLLOWS_ONLY, interleave(sunk, NEWEST), rest))
    assert found == ["follows:gwashington", "follows:jadams"]
    assert columns(rpc, follows, chain(FOLLOWS_ONLY, NEWEST, {"sink": True}, BLOCK)) == [
        "follows:gwashington", "follows:jadams", "follows:tjefferson",
    ]  # fmt: skip


def test_c6_6_sink_of_the_node_client(rpc, follows):
    """Its system test: all cells, and once more with a label into the sink; then one column."""
    copies = interleave(PASS, chain({"apply_label_transformer": "prezzy"}, {"sink": True}))
    row_filter = chain(
        {"row_key_regex_filter": b"alincoln"},
        FOLLOWS_ONLY,
        copies,
        {"column_qualifier_regex_filter": b"gwashington"},
    )
    ((key, cells),) = rpc.read(follows, filter=types.RowFilter(row_filter))
    assert key == b"alincoln"
    assert {cell.qualifier for cell in cells} == {b"gwashington", b"jadams", b"tjefferson"}
    assert [cell.labels for cell in cells if cell.qualifier != b"gwashington"] == [("prezzy",)] * 4
    labels = [cell.labels for cell in cells if cell.qualifier == b"gwashington"]
    assert sorted(labels) == [(), (), ("prezzy",), ("prezzy",)]


def test_c6_7_a_missing_branch_lets_nothing_through(rpc, follows):
    yes = {"column_qualifier_regex_filter": b"tjefferson"}
    no = {"column_qualifier_regex_filter": b"nobody"}
    one = chain(FOLLOWS_ONLY, NEWEST, {"cells_per_row_limit_filter": 1})
    assert columns(rpc, follows, condition(yes, true=one)) == ["follows:gwashington"]
    assert columns(rpc, follows, condition(yes, false=one)) == []
    assert columns(rpc, follows, condition(no, true=one)) == []
    assert columns(rpc, follows, condition(no, false=one)) == ["follows:gwashington"]


def test_c6_8_sample_takes_whole_rows(client, follows):
    """Of 60 samples of 4 rows not all have the same size: one chance in 10 to the 25th."""
    sizes = set()
    with client.get_table("i", "follows") as table:
        for _ in range(60):
            rows = table.read_rows(ReadRowsQuery(row_filter=row_filters.RowSampleFilter(0.5)))
            assert all(len(row.cells) == 4 * len(FOLLOWS[row.row_key]) for row in rows)
            sizes.add(len(rows))
    assert len(sizes) > 1


def test_c6_9_limits_and_offsets_go_over_families(rpc, follows):
    """In the order in which the cells come: families by name."""
    every = columns(rpc, follows, PASS)
    assert len(every) == 12
    for count in (1, 6, 7, 11, 12, 13):
        assert columns(rpc, follows, {"cells_per_row_limit_filter": count}) == every[:count]
        assert columns(rpc, follows, {"cells_per_row_offset_filter": count}) == every[count:]


def test_c6_10_interleave_keeps_duplicates(rpc, follows):
    twice = interleave(FOLLOWS_ONLY, FOLLOWS_ONLY)
    cells = rpc.read_row(follows, b"gwashington", filter=types.RowFilter(twice))
    once = [Cell("follows", b"jadams", at, b"1") for at in (2000, 1000)]
    assert cells == [once[0], once[0], once[1], once[1]]
    newest = chain(twice, NEWEST)
    assert columns(rpc, follows, newest, b"gwashington") == ["follows:jadams"]
    three = chain(twice, {"cells_per_row_limit_filter": 3})
    assert len(columns(rpc, follows, three, b"gwashington")) == 3


def test_c6_11_a_chain_without_a_match_as_predicate(rpc, follows):
    """Each of its filters lets cells through, together they do not."""
    none = chain(
        {"column_qualifier_regex_filter": b"jadams"},
        {"column_qualifier_regex_filter": b"gwashington"},
    )
    assert columns(rpc, follows, condition(none, true=PASS)) == []
    assert len(columns(rpc, follows, condition(none, true=BLOCK, false=PASS))) == 12


@pytest.fixture
def byte_values(rpc, table_name):
    """A table with a row of one cell for each value."""

    def make(*values):
        rows = [(b"%03d" % i, [set_cell("f", b"q", value)]) for i, value in enumerate(values)]
        rpc.mutate_rows(table_name, rows)
        return table_name

    return make


def matching(rpc, name, pattern):
    row_filter = types.RowFilter(value_regex_filter=pattern)
    return [cells[0].value for _, cells in rpc.read(name, filter=row_filter)]


def test_c6_12_patterns_are_bytes(rpc, byte_values):
    """Latin-1: one byte is one character, whatever UTF-8 would make of it."""
    snowman = "☃".encode()
    name = byte_values(b"\xff", b"\x80\x81", snowman, b"a\nb", b"\x00", b"a")
    assert matching(rpc, name, rb"\xff") == [b"\xff"]
    assert matching(rpc, name, b"\xff") == [b"\xff"]
    assert matching(rpc, name, rb"[\x80-\x81]+") == [b"\x80\x81"]
    assert matching(rpc, name, snowman) == [snowman]
    assert matching(rpc, name, b"...") == [snowman], "three bytes; a dot is no line end"
    assert matching(rpc, name, rb"\C\C\C") == [snowman, b"a\nb"]
    assert matching(rpc, name, rb"\x00") == [b"\x00"]
    assert matching(rpc, name, b"\x00") == [b"\x00"]


def test_c6_13_patterns_match_as_a_whole(rpc, byte_values):
    """Each side of an alternation as well."""
    name = byte_values(b"ab", b"abc", b"cd", b"xcd", b"")
    assert matching(rpc, name, b"ab|cd") == [b"ab", b"cd"]
    assert matching(rpc, name, b"ab") == [b"ab"]
    assert matching(rpc, name, b".*cd") == [b"cd", b"xcd"]
    assert matching(rpc, name, b"") == [b""]
    assert matching(rpc, name, b"^ab$") == [b"ab"]


LITERALS = [
    # (written, asked for, found)
    (b"abc", b"abc", True),
    (b"abc", "abc", True),
    (b".", ".", True),
    (b".*", ".*", True),
    (b"a", ".*", False),
    (rb"\a", rb"\a", True),
    ("☃".encode(), "☃", True),
    (r"\C☃".encode(), r"\C☃", True),
    (b"a", r"\C", False),
    (b"\x00\x01", b"\x00\x01", True),
    (b"\n", b"\n", True),
    (1, 1, True),
    (2, 1, False),
    (68, 68, True),
    (b"D", 68, False),
    (68, "D", False),
    (-1, -1, True),
    (2852126720, 2852126720, True),
    (-1431655766, -1431655766, True),
    (-1431655766, -1, False),
]


@pytest.mark.parametrize(("written", "asked", "found"), LITERALS)
def test_c6_14_literals_of_the_python_client(table, written, asked, found):
    """It escapes what it is given, integers as their 8 bytes, and must find exactly that."""
    table.mutate_row(KEY, SetCell("f", b"q", written, 1000))
    literal = row_filters.LiteralValueFilter(asked)
    assert (table.read_row(KEY, row_filter=literal) is not None) == found


FULL = types.ReadRowsRequest.RequestStatsView.REQUEST_STATS_FULL


def test_c6_15_statistics(rpc, follows):
    """Twice the same column of two rows: 2 rows, 4 cells; in one last message."""
    column = chain(FOLLOWS_ONLY, {"column_qualifier_regex_filter": b"tjefferson"}, NEWEST)
    twice = types.RowFilter(interleave(column, column))
    responses = list(rpc.read_stream(follows, filter=twice, request_stats_view=FULL))
    assert ["request_stats" in response for response in responses] == [False] * (
        len(responses) - 1
    ) + [True]
    stats = responses[-1].request_stats.full_read_stats_view.read_iteration_stats
    assert (stats.rows_returned_count, stats.cells_returned_count) == (2, 4)
    assert stats.rows_seen_count >= 2
    assert stats.cells_seen_count >= 4
