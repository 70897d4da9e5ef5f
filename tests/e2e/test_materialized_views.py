"""What is in continuous materialized views, and how it follows their sources: those of the 20
checks of Bigtable's interface that are about contents. The others are in
test_materialized_views_life.py and test_materialized_views_queries.py.

A view comes to what it must be by itself: each test waits for that, and for nothing else."""

import datetime

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.rpc import Cell, delete_row, set_cell
from harness.views import MARKER, becomes, big_endian, comes_to, number_cell, put, rows_of

DAY_US = 24 * 3600 * 1_000_000
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def short(name):
    return name.rsplit("/", 1)[-1]


@pytest.fixture
def t(table_name):
    """The id of the table with the families f and g."""
    return short(table_name)


# --- 1 ---


def test_check_1_a_count_of_each_row_in_a_family_of_its_own(views, rpc, make_table):
    name = make_table(["fam1"])
    put(rpc, name, b"r1", family="fam1", col1="v")
    view = views.create(
        f"SELECT _key, COUNT(fam1['col1']) AS `result.count` FROM `{short(name)}` GROUP BY _key"
    )
    assert rpc.read(view) == [(b"r1", [MARKER, number_cell(b"count", 1, "result")])]


# --- 2 ---

STRUCTURED = {  # of (BYTES, INT64, STRING), as production was seen to make them
    (b"", INT64_MIN, "p1"): "00ff 0001 00ff3f8000ff00ff00ff00ff00ff00ff00ff 0001 7031",
    (b"k", 0, "p1"): "6b 0001 80 0001 7031",
    (b"k\0\1", 1, "p\0"): "6b00ff01 0001 81 0001 7000ff",
    (b"k\0a", -1, "p1"): "6b00ff61 0001 7f 0001 7031",
    (b"k\xff", 256, "p1"): "6bff 0001 c100ff 0001 7031",
    (b"t1", 50, "p1"): "7431 0001 b2 0001 7031",
    (b"t2", 70, "p1"): "7432 0001 c046 0001 7031",
    (b"t3", 100, "p1"): "7433 0001 c064 0001 7031",
    (b"t4", 7, "p1"): "7434 0001 87 0001 7031",
    (b"t5", INT64_MAX, "p1"): "7435 0001 ffc07fffffffffffffff 0001 7031",
    (b"t7", None, "p1"): "7437 0001 0000 0001 7031",
}
NUMBERS = {
    None: "0000", INT64_MIN: "00ff3f8000ff00ff00ff00ff00ff00ff00ff", -1: "7f", 0: "80", 1: "81",
    256: "c100ff",
}  # fmt: skip
BYTES = {
    b"": "00ff", b"\0": "00ff00ff", b"\0\0": "00ff00ff00ff", b"\0\1": "00ff01",
    b"k\0a": "6b00ff61", b"k\xff": "6bff",
}  # fmt: skip


def fill(rpc, name, values):
    """A row for each of the values: dictionaries of columns, None for what has no cell."""
    for number, row in enumerate(values):
        there = {column: value for column, value in row.items() if value is not None}
        put(rpc, name, b"row%03d" % number, there="1", **there)


def keys(rpc, view):
    return [key for key, _ in rpc.read(view)]


def test_check_2_keys_of_several_columns(views, rpc, table_name, t):
    fill(rpc, table_name, [{"b": b, "n": n, "s": s} for b, n, s in STRUCTURED])
    view = views.create(
        "SELECT f['b'] AS b, TO_INT64(f['n']) AS n, CAST(f['s'] AS STRING) AS s, COUNT(*) AS c "
        f"FROM `{t}` GROUP BY b, n, s"
    )
    expected = sorted(bytes.fromhex(key) for key in STRUCTURED.values())
    assert keys(rpc, view) == expected
    assert {tuple(cells) for _, cells in rpc.read(view)} == {(MARKER, number_cell(b"c", 1))}


@pytest.mark.parametrize("values, column", [(NUMBERS, "TO_INT64(f['n'])"), (BYTES, "f['n']")])
def test_check_2_keys_of_one_column(views, rpc, table_name, t, values, column):
    fill(rpc, table_name, [{"n": value} for value in values])
    view = views.create(f"SELECT {column} AS n, COUNT(*) AS c FROM `{t}` GROUP BY n")
    assert keys(rpc, view) == sorted(bytes.fromhex(key) for key in values.values())


def test_check_2_keys_of_an_index_and_cells_of_their_columns(views, rpc, table_name, t):
    put(rpc, table_name, b"t7#p1#n#rowJ", there="1")
    put(rpc, table_name, b"k\0a#p1#n#r1", n=-1)
    view = views.create(
        f"SELECT TO_INT64(f['n']) AS n, _key AS k FROM `{t}` ORDER BY n, _key"
    )
    assert rpc.read(view) == [
        (bytes.fromhex("0000 0001 7437237031236e23726f774a"),
         [MARKER, Cell("default", b"k", 0, b"t7#p1#n#rowJ")]),
        (bytes.fromhex("7f 0001 6b00ff61237031236e237231"),
         [MARKER, Cell("default", b"k", 0, b"k\0a#p1#n#r1"), number_cell(b"n", -1)]),
    ]  # fmt: skip


def test_check_2_a_lone_key_stays_as_it_is(views, rpc, table_name, t):
    put(rpc, table_name, b"k\0\1#p\0#n#r3", there="1")
    view = views.create(f"SELECT _key, f['there'] AS v FROM `{t}` ORDER BY _key")
    assert rpc.read(view) == [
        (bytes.fromhex("6b0001237000236e237233"), [MARKER, Cell("default", b"v", 0, b"1")])
    ]


def test_check_2_the_order_of_bytes_is_that_of_values(views, rpc, table_name, t):
    numbers = sorted({sign * (1 << bits) + by for bits in range(0, 63, 3)
                      for sign in (1, -1) for by in (-1, 0, 1)})  # fmt: skip
    fill(rpc, table_name, [{"n": number} for number in numbers])
    view = views.create(f"SELECT TO_INT64(f['n']) AS n, _key FROM `{t}` ORDER BY n, _key")
    decoded = [
        next(cell.value for cell in cells if cell.qualifier == b"n") for _, cells in rpc.read(view)
    ]
    assert decoded == [big_endian(number) for number in numbers]


# --- 4 ---


def test_check_4_a_row_changes_its_group(views, rpc, table_name, t):
    put(rpc, table_name, b"r1", group="a")
    put(rpc, table_name, b"r2", group="b")
    view = views.create(f"SELECT f['group'] AS _key, COUNT(*) AS n FROM `{t}` GROUP BY _key")
    assert rpc.read(view) == [(key, [MARKER, number_cell(b"n", 1)]) for key in (b"a", b"b")]
    put(rpc, table_name, b"r1", group="b")
    views.comes_to(view, [(b"b", [number_cell(b"n", 2)])])
    rpc.mutate(table_name, b"r2", delete_row())
    views.comes_to(view, [(b"b", [number_cell(b"n", 1)])])
    rpc.drop_row_range(table_name, everything=True)
    views.comes_to(view, [])


def test_check_4_no_total_that_the_source_never_had(views, rpc, table_name, t):
    """Of a view with a group for each row: each state of it is one that the row had."""
    view = views.create(
        f"SELECT _key, SUM(TO_INT64(f['a'])) AS a, SUM(TO_INT64(f['b'])) AS b FROM `{t}` "
        "GROUP BY _key"
    )
    for number in range(200):
        put(rpc, table_name, b"r", a=number, b=-number)
        for _, (_, a, b) in rpc.read(view):
            assert int.from_bytes(a.value, signed=True) == -int.from_bytes(b.value, signed=True)
    views.comes_to(view, [(b"r", [number_cell(b"a", 199), number_cell(b"b", -199)])])


# --- 5 ---


def test_check_5_the_next_extreme_comes_when_the_extreme_goes(views, rpc, table_name, t):
    """In a group of many rows, whose source is not looked through again."""
    count = 5000
    for batch in (range(n, n + 1000) for n in range(0, count, 1000)):
        cells = {n: set_cell("f", b"n", big_endian(n * 7 % count), 1000) for n in batch}
        rows = [(b"%06d" % n, [cell]) for n, cell in cells.items()]
        assert set(rpc.mutate_rows(table_name, rows)) == {0}
    view = views.create(
        "SELECT 'all' AS _key, MIN(TO_INT64(f['n'])) AS low, MAX(TO_INT64(f['n'])) AS high, "
        f"BIT_OR(TO_INT64(f['n'])) AS bits FROM `{t}` GROUP BY _key"
    )
    key_of = {n * 7 % count: b"%06d" % n for n in range(count)}
    bits = 8191

    def comes_to(low, high):
        cells = [number_cell(b"bits", bits), number_cell(b"high", high), number_cell(b"low", low)]
        views.comes_to(view, [(b"all", cells)])

    comes_to(0, count - 1)
    for value in (0, 1, count - 1):
        rpc.mutate(table_name, key_of[value], delete_row())
    comes_to(2, count - 2)
    put(rpc, table_name, b"more", n=-5)
    bits = -1  # what -5 and the rest come to
    comes_to(-5, count - 2)


# --- 6 ---


@pytest.fixture
def left_out(server):
    """Waits until so many were left out of a view in its life, and as many rows now."""

    def comes_to_be(view, errors, rows):
        def told():
            return [server.metric(f'{name}{{view="{view}"}}')
                    for name in ("view_user_errors_total", "view_excluded_rows")]  # fmt: skip

        comes_to(told, [errors, rows])

    return comes_to_be


def test_check_6_a_group_that_overflows_comes_back(views, rpc, table_name, t, left_out):
    for key, group, n in ((b"r1", "a", INT64_MAX), (b"r2", "b", 1), (b"r3", "a", 1)):
        put(rpc, table_name, key, group=group, n=n)
    view = views.create(
        f"SELECT f['group'] AS _key, SUM(TO_INT64(f['n'])) AS n FROM `{t}` GROUP BY _key"
    )
    assert keys(rpc, view) == [b"b"]
    left_out(view, errors=1, rows=0)
    rpc.mutate(table_name, b"r3", delete_row())
    views.comes_to(view, [(b"a", [number_cell(b"n", INT64_MAX)]), (b"b", [number_cell(b"n", 1)])])
    left_out(view, errors=1, rows=0)


def test_check_6_a_row_that_fails_is_left_out_and_mended(views, rpc, table_name, t, left_out):
    """Each is counted once, however often it is looked at while it fails."""
    put(rpc, table_name, b"r1", n=0)
    put(rpc, table_name, b"r2", n=5)
    view = views.create(
        f"SELECT _key, SUM(DIV(10, TO_INT64(f['n']))) AS n FROM `{t}` GROUP BY _key"
    )
    assert keys(rpc, view) == [b"r2"]
    left_out(view, errors=1, rows=1)
    put(rpc, table_name, b"r1", other="1")
    put(rpc, table_name, b"r3", n=10)
    views.comes_to(view, [(b"r2", [number_cell(b"n", 2)]), (b"r3", [number_cell(b"n", 1)])])
    left_out(view, errors=1, rows=1)
    put(rpc, table_name, b"r1", n=2)
    rpc.mutate(table_name, b"r3", delete_row())
    views.comes_to(view, [(b"r1", [number_cell(b"n", 5)]), (b"r2", [number_cell(b"n", 2)])])
    left_out(view, errors=1, rows=0)
    put(rpc, table_name, b"r2", n=0)
    views.comes_to(view, [(b"r1", [number_cell(b"n", 5)])])
    left_out(view, errors=2, rows=1)


# --- 7 ---

MIB = 1 << 20


def test_check_7_what_is_too_much_of_a_row_leaves_it_out(views, rpc, table_name, t):
    rpc.mutate(table_name, b"named", set_cell("f", b"v", bytes(MIB + 1), 1000))
    rpc.mutate(table_name, b"other", set_cell("f", b"w", bytes(MIB + 1), 1000),
               set_cell("f", b"v", b"small", 1000))  # fmt: skip
    view = views.create(f"SELECT _key, COUNT(f['v']) AS n FROM `{t}` GROUP BY _key")
    assert keys(rpc, view) == [b"other"]


def test_check_7_what_grows_too_much_leaves_a_row_out(views, rpc, table_name, t):
    rpc.mutate(table_name, b"r1", set_cell("f", b"v", b"x" * 1000, 1000))
    view = views.create(
        f"SELECT _key, REPEAT(f['v'], 11) AS v FROM `{t}` ORDER BY _key"
    )
    assert keys(rpc, view) == []
    rpc.mutate(table_name, b"r2", set_cell("f", b"v", b"x", 1000))
    views.keys_come_to(view, [b"r2"])


def test_check_7_many_pieces_of_a_row(views, rpc, table_name, t):
    cells = [set_cell("f", b"%04d" % n, b"v" * 20, 1000) for n in range(1000)]
    rpc.mutate(table_name, b"r", *cells)
    view = views.create(
        f"SELECT e.key AS q, COUNT(*) AS n FROM `{t}`, UNNEST(MAP_ENTRIES(f)) AS e GROUP BY q"
    )
    assert keys(rpc, view) == [b"%04d" % n for n in range(1000)]


# --- 9 ---


def test_check_9_an_inverted_index(views, rpc, table_name, t):
    put(rpc, table_name, b"doc1", apple="1", pear="1")
    put(rpc, table_name, b"doc2", pear="1")
    view = views.create(
        f"SELECT e.key AS word, _key FROM `{t}`, UNNEST(MAP_ENTRIES(f)) AS e ORDER BY word, _key"
    )

    def index(*pairs):
        return [word + b"\0\1" + document for word, document in pairs]

    assert keys(rpc, view) == index((b"apple", b"doc1"), (b"pear", b"doc1"), (b"pear", b"doc2"))
    put(rpc, table_name, b"doc2", fig="1")
    views.keys_come_to(view, index(
        (b"apple", b"doc1"), (b"fig", b"doc2"), (b"pear", b"doc1"), (b"pear", b"doc2")
    ))  # fmt: skip
    deletion = {"delete_from_column": {"family_name": "f", "column_qualifier": b"pear"}}
    rpc.mutate(table_name, b"doc1", deletion)
    views.keys_come_to(view, index((b"apple", b"doc1"), (b"fig", b"doc2"), (b"pear", b"doc2")))


# --- 10 ---


def test_check_10_versions_by_day_go_with_the_cells_that_made_them(fresh_views):
    """With nobody writing: by a rule that condemns them."""
    server, views, rpc = fresh_views("--gc-interval=1s")
    today = datetime.datetime.now(datetime.timezone.utc).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    midnight = int(today.timestamp()) * 1_000_000
    table = rpc.create_table("t", ["f"])
    for day, n in ((1, 5), (3, 7)):
        put(rpc, table, b"r", midnight - day * DAY_US + 3_600_000_000, n=n)
    view = views.create(
        "SELECT _key, TIMESTAMP_TRUNC(_timestamp, DAY) AS _timestamp, SUM(TO_INT64(n)) AS n FROM "
        "UNPACK((SELECT _key, f['n'] AS n FROM t(with_history => TRUE))) GROUP BY 1, 2"
    )

    def versions():
        return {
            cell.timestamp: cell.value
            for _, cells in rpc.read(view) for cell in cells if cell.qualifier == b"n"
        }  # fmt: skip

    assert versions() == {
        midnight - DAY_US: big_endian(5), midnight - 3 * DAY_US: big_endian(7)
    }  # fmt: skip
    rule = admin_types.GcRule(max_age=datetime.timedelta(days=2, hours=1))
    rpc.modify_families(table, {"id": "f", "update": {"gc_rule": rule}})
    becomes(lambda: versions() == {midnight - DAY_US: big_endian(5)})


# --- 11 ---


def test_check_11_a_group_of_null_is_kept_and_comes_first(views, rpc, table_name, t):
    put(rpc, table_name, b"r1", group="a")
    put(rpc, table_name, b"r2", other="1")
    view = views.create(f"SELECT f['group'] AS g, COUNT(*) AS n FROM `{t}` GROUP BY g")
    assert keys(rpc, view) == [b"\0\0", b"a"]
    rows = rows_of(rpc, f"SELECT * FROM `{short(view)}`")
    assert [group for group, _ in rows] == ["", 'bytes_value: "a"\n']


# --- forms and encodings ---


def test_encodings_of_values(views, rpc, table_name, t):
    put(rpc, table_name, b"r", n=-2, s="é", b=b"\0\xff")
    view = views.create(
        "SELECT _key, TRUE AS yes, 1.5 AS real, CAST(f['s'] AS STRING) AS text, f['b'] AS raw, "
        "TIMESTAMP_MICROS(5) AS time, f['none'] AS nothing, TO_INT64(f['n']) AS number "
        f"FROM `{t}` ORDER BY _key"
    )
    assert rpc.read(view) == [(b"r", [
        MARKER,
        number_cell(b"number", -2),
        Cell("default", b"raw", 0, b"\0\xff"),
        Cell("default", b"real", 0, bytes.fromhex("3ff8000000000000")),
        Cell("default", b"text", 0, "é".encode()),
        number_cell(b"time", 5),
        Cell("default", b"yes", 0, b"\1"),
    ])]  # fmt: skip


def test_a_family_that_is_passed_on(views, rpc, table_name, t):
    put(rpc, table_name, b"r", a="1", b="2")
    view = views.create(f"SELECT _key, f AS activity FROM `{t}` ORDER BY _key")
    assert rpc.read(view) == [(b"r", [
        Cell("activity", b"a", 0, b"1"), Cell("activity", b"b", 0, b"2"), MARKER
    ])]  # fmt: skip
    deletion = {"delete_from_column": {"family_name": "f", "column_qualifier": b"a"}}
    rpc.mutate(table_name, b"r", deletion)
    views.comes_to(view, [(b"r", [Cell("activity", b"b", 0, b"2")])])


def test_a_count_of_the_whole_table(views, rpc, table_name, t):
    view = views.create(f"SELECT '*' AS _key, COUNT(*) AS count FROM `{t}` GROUP BY _key")
    assert rpc.read(view) == []
    for number in range(10):
        put(rpc, table_name, b"%d" % number, v="1")
    views.comes_to(view, [(b"*", [number_cell(b"count", 10)])])
    rpc.drop_row_range(table_name, prefix=b"1")
    views.comes_to(view, [(b"*", [number_cell(b"count", 9)])])


def test_a_view_of_sums_follows_what_is_added(views, rpc, make_table):
    kind = {"aggregate_type": {"input_type": {"int64_type": {"encoding": {
        "big_endian_bytes": {}}}}, "sum": {}}}  # fmt: skip
    name = make_table([], column_families={"s": {"value_type": kind}})
    view = views.create(f"SELECT _key, SUM(s['n']) AS n FROM `{short(name)}` GROUP BY _key")
    for number in (3, 4):
        rpc.mutate(name, b"r", {"add_to_cell": {
            "family_name": "s", "column_qualifier": {"raw_value": b"n"},
            "timestamp": {"raw_timestamp_micros": 1000}, "input": {"int_value": number},
        }})  # fmt: skip
    views.comes_to(view, [(b"r", [number_cell(b"n", 7)])])
