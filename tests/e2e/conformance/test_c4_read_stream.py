"""C4 of docs/reference/conformance.md: the rules of ReadRows' stream, on the messages as they come.

One table has everything at once: rows of one cell and of many, several families, versions, labels,
empty values, a cell at time 0, values that come in pieces. Each rule is looked at in a scan of it
forwards and backwards."""

import pytest
from google.cloud.bigtable.data import ReadRowsQuery, RowRange
from google.cloud.bigtable_v2 import types
from harness.rpc import Cell, decode_rows, delete_row, features, set_cell

LARGE = bytes(range(256)) * (3 << 12)  # 3 MiB: more than one piece
FAMILIES = ["zeta", "alpha", "Beta"]
ROWS = {
    b"empty": [("alpha", b"", 0, b"")],
    b"large": [
        ("alpha", b"large", 1000, LARGE),
        ("alpha", b"large", 0, b"small"),
        ("zeta", b"q", 0, b""),
    ],
    b"many": [("alpha", b"%05d" % number, 1000, b"x" * 100) for number in range(3000)],
    b"several": [
        ("Beta", b"", 1000, b"B"),
        ("alpha", b"a", 3000, b"3"),
        ("alpha", b"a", 2000, b"2"),
        ("alpha", b"a", 1000, b"1"),
        ("alpha", b"a\x00", 1000, b"0"),
        ("alpha", b"b", 1000, b"b"),
        ("alpha", b"\xff", 1000, b"ff"),
        ("zeta", b"a", 0, b""),
    ],
}
KEYS = sorted(ROWS)


@pytest.fixture(scope="module")
def name(rpc):
    made = rpc.create_table("stream-rules", FAMILIES)
    for key, cells in ROWS.items():
        mutations = [set_cell(fam, qualifier, value, at) for fam, qualifier, at, value in cells]
        rpc.mutate(made, key, *reversed(mutations))
    yield made
    rpc.delete_table(made)


@pytest.fixture(scope="module", params=[False, True], ids=["forward", "reversed"])
def is_reversed(request):
    return request.param


@pytest.fixture(scope="module")
def responses(rpc, name, is_reversed):
    """The messages of a scan over the whole table."""
    return list(map(types.ReadRowsResponse.pb, rpc.read_stream(name, reversed=is_reversed)))


@pytest.fixture(scope="module")
def chunks(responses):
    return [chunk for response in responses for chunk in response.chunks]


@pytest.fixture(scope="module")
def rows(chunks):
    """The chunks of each row: what ends with a commit."""
    found, row = [], []
    for chunk in chunks:
        row.append(chunk)
        if chunk.commit_row:
            found.append(row)
            row = []
    assert row == [], "the stream ends within a row"
    return found


def cells(row):
    """Lists of the chunks that make a cell."""
    found = [[]]
    for chunk in row:
        found[-1].append(chunk)
        if chunk.value_size == 0:
            found.append([])
    return found[:-1]


def test_c4_1_first_chunk_of_a_row(rows):
    assert len(rows) == len(ROWS)
    for row in rows:
        assert row[0].row_key
        assert row[0].HasField("family_name")
        assert row[0].HasField("qualifier")


def test_c4_2_a_new_family_comes_with_its_qualifier(chunks):
    with_family = [chunk for chunk in chunks if chunk.HasField("family_name")]
    assert len(with_family) >= sum(len({family for family, *_ in row}) for row in ROWS.values())
    assert all(chunk.HasField("qualifier") for chunk in with_family)


def test_c4_3_one_key_until_the_commit(rows):
    for row in rows:
        assert {chunk.row_key for chunk in row} <= {b"", row[0].row_key}


def test_c4_4_keys_are_in_order(rows, is_reversed):
    assert [row[0].row_key for row in rows] == (KEYS[::-1] if is_reversed else KEYS)


def test_c4_5_commit_ends_a_cell(rows):
    for row in rows:
        assert [chunk.commit_row for chunk in row] == [False] * (len(row) - 1) + [True]
        assert row[-1].value_size == 0


def test_c4_6_a_cell_may_have_nothing_but_its_place(rpc, name, client):
    """Time 0 and no value: clients take the chunk for a cell."""
    assert rpc.read_row(name, b"empty") == [Cell("alpha", b"", 0, b"")]
    with client.get_table("i", "stream-rules") as table:
        (cell,) = table.read_row(b"empty")
    assert (cell.timestamp_micros, cell.value) == (0, b"")


def test_c4_7_rows_are_not_begun_anew(chunks):
    """A row is read at one instant, so there is never a reason to take back what was sent."""
    assert not any(chunk.reset_row for chunk in chunks)


def test_c4_8_no_row_comes_twice(rpc, name, is_reversed):
    keys = [b"empty", b"several", b"empty"]
    ranges = [
        {"start_key_closed": b"e", "end_key_open": b"f"},
        {"start_key_closed": b"empty", "end_key_closed": b"empty"},
        {"start_key_closed": b"se"},
    ]
    found = rpc.read(name, rows={"row_keys": keys, "row_ranges": ranges}, reversed=is_reversed)
    expected = [b"empty", b"several"]
    assert [key for key, _ in found] == (expected[::-1] if is_reversed else expected)


def test_c4_15_messages_end_with_a_row(responses):
    """Google's client in Go takes what ends within one for the end of the stream."""
    assert len(responses) > 1
    for response in responses:
        assert response.chunks[0].row_key
        assert response.chunks[-1].commit_row


def test_c4_9_cells_in_pieces(rows):
    """Each piece but the last says how large the whole is, and only the first says whose it is."""
    (large,) = [row for row in rows if row[0].row_key == b"large"]
    pieces = cells(large)[0]
    assert len(pieces) > 1
    assert b"".join(piece.value for piece in pieces) == LARGE
    assert [piece.value_size for piece in pieces[:-1]] == [len(LARGE)] * (len(pieces) - 1)
    for piece in pieces[1:]:
        assert not piece.row_key
        assert not piece.HasField("family_name")
        assert not piece.HasField("qualifier")
        assert piece.timestamp_micros == 0
        assert not piece.labels


def test_c4_9_labels_come_with_the_first_piece(rpc, name):
    label = types.RowFilter(apply_label_transformer="l")
    stream = rpc.read_stream(name, rows={"row_keys": [b"large"]}, filter=label)
    row = [chunk for response in stream for chunk in response.chunks]
    for pieces in cells(row):
        assert [list(piece.labels) for piece in pieces] == [["l"]] + [[]] * (len(pieces) - 1)


@pytest.fixture(scope="module")
def long_table(rpc):
    """More rows than one step of a scan looks at."""
    made = rpc.create_table("stream-progress")
    rows = [(b"%05d" % i, [set_cell("f", b"q", b"v", 1000)]) for i in range(5000)]
    assert set(rpc.mutate_rows(made, rows)) == {0}
    yield made
    rpc.delete_table(made)


NOTHING = types.RowFilter(value_regex_filter=b"no such value")


def test_c4_10_last_scanned_row_key(rpc, long_table, is_reversed):
    flags = features(last_scanned_row_responses=True, reverse_scans=True)
    query = {"metadata": flags, "filter": NOTHING, "reversed": is_reversed}
    responses = list(rpc.read_stream(long_table, **query))
    told = [response.last_scanned_row_key for response in responses]
    assert told
    assert told == sorted(set(told), reverse=is_reversed)
    assert not any(response.chunks for response in responses)


def test_c4_10_only_if_it_is_flagged(rpc, long_table):
    without = features(reverse_scans=True, retry_info=True)
    assert list(rpc.read_stream(long_table, metadata=without, filter=NOTHING)) == []


def test_c4_10_never_within_a_row(rpc, long_table, name):
    """A filter that lets one row in a thousand through: keys and rows in one rising order, which
    decode_rows checks."""
    some = types.RowFilter(row_key_regex_filter=b"..000|....7")
    stream = rpc.read_stream(long_table, filter=some)
    assert len(list(decode_rows(stream))) == 505
    assert [key for key, _ in decode_rows(rpc.read_stream(name))] == KEYS


def test_c4_11_rows_by_key(client, name):
    """As Google's client hands them out, which has its own checks of all these rules. It takes a
    value in pieces only as the first of a stream."""
    queries = [
        ReadRowsQuery(row_keys=[b"several", b"empty", b"many"]),
        ReadRowsQuery(row_ranges=RowRange(b"large", b"m")),
    ]
    with client.get_table("i", "stream-rules") as table:
        found = [
            {
                row.row_key: [(c.family, c.qualifier, c.timestamp_micros, c.value) for c in row]
                for row in table.read_rows(query)
            }
            for query in queries
        ]
    assert list(found[0]) == [b"empty", b"many", b"several"]
    assert found[0] | found[1] == ROWS


def test_c4_12_order_of_cells(rpc, name):
    """Families by name, qualifiers by their bytes, the newest cell first."""
    assert rpc.read_row(name, b"several") == [
        Cell(family, qualifier, at, value) for family, qualifier, at, value in ROWS[b"several"]
    ]


def test_c4_13_limit_counts_rows_with_a_cell(rpc, name, is_reversed):
    some = types.RowFilter(value_regex_filter=b"|[a-z]+")
    found = rpc.read(name, filter=some, rows_limit=2, reversed=is_reversed)
    expected = [b"several", b"many"] if is_reversed else [b"empty", b"large"]
    assert [key for key, _ in found] == expected


def test_c4_14_empty_rows_do_not_come(rpc, table_name):
    rpc.mutate_rows(table_name, [(b"%d" % i, [set_cell("f", b"q", b"%d" % i)]) for i in range(9)])
    rpc.mutate(table_name, b"1", delete_row())
    not_two = types.RowFilter(value_regex_filter=b"[^2]")
    found = rpc.read(table_name, filter=not_two, rows_limit=3)
    assert [key for key, _ in found] == [b"0", b"3", b"4"]
