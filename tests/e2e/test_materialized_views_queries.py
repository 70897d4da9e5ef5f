"""Continuous materialized views against their queries, and as they are read: by ReadRows with all
that it has, by SQL, through logical views, by Google's client."""

import random

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import INSTANCE, delete_row, fails_with, set_cell
from harness.sql import execute, explain, prepare, values_of
from harness.views import MARKER, big_endian, comes_to, number_cell, put, rows_of

GROUPS = b"abcdef"


def short(name):
    return name.rsplit("/", 1)[-1]


@pytest.fixture
def t(table_name):
    return short(table_name)


# --- 3 ---

KEYS = ["f['g'] AS g", "SUBSTR(f['g'], 1, 1) AS g", "MOD(TO_INT64(f['n']), 3) AS g",
        "CAST(f['g'] AS STRING) AS g", "_key"]  # fmt: skip
SUMS = ["COUNT(*) AS c", "COUNT(f['n']) AS c", "SUM(TO_INT64(f['n'])) AS c",
        "MIN(TO_INT64(f['n'])) AS c", "MAX(f['g']) AS c", "AVG(TO_INT64(f['n'])) AS c",
        "BIT_AND(TO_INT64(f['n'])) AS c", "BIT_OR(TO_INT64(f['n'])) AS c",
        "BIT_XOR(TO_INT64(f['n'])) AS c", "SUM(TO_INT64(f['n']) / 7) AS c",
        "HLL_COUNT.INIT(f['g']) AS c"]  # fmt: skip
CONDITIONS = ["", " WHERE f['n'] IS NOT NULL", " WHERE _key > 'row3'",
              " WHERE TO_INT64(f['n']) > 10"]  # fmt: skip
INDEXES = ["SELECT f['g'] AS g, _key FROM `{}`{} ORDER BY g, _key",
           "SELECT TO_INT64(f['n']) AS n, _key, f['g'] AS g FROM `{}`{} ORDER BY n, _key",
           ]  # fmt: skip


def random_query(chance, table):
    condition = chance.choice(CONDITIONS)
    if chance.random() < 0.25:
        return chance.choice(INDEXES).format(table, condition)
    key, value = chance.choice(KEYS), chance.choice(SUMS)
    name = key.rsplit(" ", 1)[-1]
    return f"SELECT {key}, {value} FROM `{table}`{condition} GROUP BY {name}"


def change(chance, rpc, table):
    key = b"row%d" % chance.randrange(60)
    cells = {"g": bytes([chance.choice(GROUPS)]), "n": chance.randrange(-50, 50)}
    kind = chance.random()
    if kind < 0.7:
        column = chance.choice([["g", "n"], ["g"], ["n"]])
        put(rpc, table, key, **{name: cells[name] for name in column})
    elif kind < 0.85:
        rpc.mutate(table, key, delete_row())
    elif kind < 0.95:
        column = {"family_name": "f", "column_qualifier": chance.choice([b"g", b"n"])}
        rpc.mutate(table, key, {"delete_from_column": column})
    else:
        rpc.drop_row_range(table, prefix=b"row%d" % chance.randrange(6))


@pytest.mark.parametrize("seed", range(4))
def test_check_3_views_come_to_what_their_queries_say(views, rpc, table_name, t, seed):
    chance = random.Random(seed)
    for _ in range(100):
        change(chance, rpc, table_name)
    queries = [random_query(chance, t) for _ in range(5)]
    made = {views.create(query): query for query in queries}
    for _ in range(300):
        change(chance, rpc, table_name)
    for view, query in made.items():
        views.equals(view, query)


# --- 8 ---


def test_check_8_an_index_has_each_row_once_and_follows_it(views, rpc, table_name, t):
    count = 4000
    batches = (range(n, n + 1000) for n in range(0, count, 1000))
    for batch in batches:
        rows = [(b"%06d" % n, [set_cell("f", b"n", big_endian(n % 100), 1000)]) for n in batch]
        assert set(rpc.mutate_rows(table_name, rows)) == {0}
    view = views.create(
        f"SELECT TO_INT64(f['n']) AS n, _key AS k FROM `{t}` ORDER BY n, _key"
    )
    found = sorted(cells[1].value for _, cells in rpc.read(view))
    assert found == [b"%06d" % n for n in range(count)]
    plan = " ".join(
        value.string_value
        for value in values_of(execute(
            rpc, explain(rpc, f"SELECT k FROM `{short(view)}` WHERE n = 7", "analyze")))
    )  # fmt: skip
    assert f"read: {count // 100} rows" in plan
    stream = rpc.read_stream(
        view, rows={"row_ranges": [{"start_key_closed": b"\x87", "end_key_open": b"\x88"}]},
        request_stats_view=types.ReadRowsRequest.RequestStatsView.REQUEST_STATS_FULL,
    )  # fmt: skip
    stats = [r.request_stats.full_read_stats_view.read_iteration_stats for r in stream]
    assert max(s.rows_seen_count for s in stats) == count // 100
    put(rpc, table_name, b"000007", n=5000)
    behind = {"row_ranges": [{"start_key_closed": b"\xd0"}]}
    comes_to(lambda: [key for key, _ in rpc.read(view, rows=behind)], [b"\xd3\x88\0\1" b"000007"])
    assert len(rpc.read(view)) == count


# --- ReadRows and SampleRowKeys ---


@pytest.fixture
def counted(views, rpc, table_name, t):
    """A view of ten rows, r0 to r9, with a count and a sum each."""
    for number in range(10):
        put(rpc, table_name, b"r%d" % number, n=number)
    return views.create(
        f"SELECT _key, COUNT(*) AS c, SUM(TO_INT64(f['n'])) AS s FROM `{t}` GROUP BY _key"
    )


def test_reads_have_all_that_reads_of_tables_have(rpc, counted):
    assert [key for key, _ in rpc.read(counted, rows_limit=3)] == [b"r0", b"r1", b"r2"]
    assert [key for key, _ in rpc.read(counted, reversed=True, rows_limit=1)] == [b"r9"]
    row = rpc.read_row(counted, b"r4")
    assert row == [MARKER, number_cell(b"c", 1), number_cell(b"s", 4)]
    only = {"column_qualifier_regex_filter": b"s"}
    ranges = {"row_ranges": [{"start_key_closed": b"r7"}]}
    assert rpc.read(counted, filter=only, rows=ranges) == [
        (b"r%d" % n, [number_cell(b"s", n)]) for n in (7, 8, 9)
    ]
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(counted, filter={"family_name_regex_filter": "f"})


def test_samples_end_with_the_end(rpc, counted):
    assert rpc.sample_row_keys(counted)[-1][0] == b""


def test_an_app_profile_may_be_named(rpc, counted):
    assert len(rpc.read(counted, app_profile_id="default")) == 10


@pytest.mark.parametrize("routed", ["tables/{}", "materializedViews/{}", ""])
def test_a_request_is_routed_by_the_view_or_as_by_a_table(rpc, counted, routed):
    """As Google's clients do: that for Go names a table of the view's id."""
    place = f"{INSTANCE}/{routed.format(short(counted))}".rstrip("/").replace("/", "%2F")
    route = [("x-goog-request-params", f"table_name={place}&app_profile_id=")]
    assert len(list(rpc.read(counted, metadata=route))) == 10
    route = [("x-goog-request-params", f"table_name={place}x")]
    with fails_with(StatusCode.INVALID_ARGUMENT, "routing header"):
        rpc.read(counted, metadata=route)


def test_a_table_and_a_view_are_not_both_named(rpc, counted, table_name):
    request = types.ReadRowsRequest(table_name=table_name, materialized_view_name=counted)
    with fails_with(StatusCode.INVALID_ARGUMENT):
        list(rpc.data.read_rows(request))


# --- SQL ---


def test_sql_reads_a_view_as_a_typed_table(rpc, counted):
    view = short(counted)
    prepared = prepare(rpc, f"SELECT * FROM `{view}`")
    assert [column.name for column in prepared.metadata.proto_schema.columns] == ["_key", "c", "s"]
    assert len(rows_of(rpc, f"SELECT * FROM `{view}`")) == 10
    sums = values_of(execute(rpc, prepare(rpc, f"SELECT SUM(s) FROM `{view}` WHERE _key >= 'r8'")))
    assert [value.int_value for value in sums] == [17]


def test_sql_knows_no_key_that_a_view_does_not_give(views, rpc, table_name, t):
    put(rpc, table_name, b"r", g="a")
    view = short(views.create(f"SELECT f['g'] AS g, COUNT(*) AS n FROM `{t}` GROUP BY g"))
    with fails_with(StatusCode.INVALID_ARGUMENT, "Unrecognized name: _key [at 1:8]"):
        prepare(rpc, f"SELECT _key FROM `{view}`")
    with fails_with(StatusCode.INVALID_ARGUMENT):
        prepare(rpc, f"SELECT * FROM `{view}`(with_history => TRUE)")


def test_explain_shows_what_is_read_of_a_view(rpc, counted):
    lines = values_of(execute(rpc, explain(
        rpc, f"SELECT s FROM `{short(counted)}` WHERE _key = 'r3'", "analyze"
    )))  # fmt: skip
    text = "\n".join(value.string_value for value in lines)
    assert short(counted) in text
    assert "read: 1 rows" in text


def test_no_view_is_read_where_a_query_names_its_source(rpc, counted, t):
    lines = values_of(execute(rpc, explain(
        rpc, f"SELECT _key, COUNT(*) AS c FROM `{t}` GROUP BY _key", "plan"
    )))  # fmt: skip
    assert short(counted) not in "\n".join(value.string_value for value in lines)


def test_logical_views_are_of_materialized_ones_and_never_the_reverse(
    views, admin, rpc, counted, new_table_id
):
    above = new_table_id()
    admin.instances.create_logical_view(
        parent=INSTANCE, logical_view_id=above,
        logical_view={"query": f"SELECT s FROM `{short(counted)}` WHERE s > 7"},
    ).result()  # fmt: skip
    values = values_of(execute(rpc, prepare(rpc, f"SELECT s FROM `{above}`")))
    assert [value.int_value for value in values] == [8, 9]
    for name in (above, short(counted)):
        with pytest.raises(exceptions.InvalidArgument, match="Table not found"):
            views.begin(f"SELECT s, COUNT(*) AS n FROM `{name}` GROUP BY s")
    admin.instances.delete_logical_view(name=f"{INSTANCE}/logicalViews/{above}")


def test_a_prepared_query_of_a_view_that_is_gone(views, rpc, counted, t):
    prepared = prepare(rpc, f"SELECT * FROM `{short(counted)}`")
    views.delete(counted)
    gone = f"clusters/trestle/materializedViews/{short(counted)}"
    with fails_with(StatusCode.NOT_FOUND, f"Failed to read: {INSTANCE}/{gone} : "):
        execute(rpc, prepared)
    views.create(f"SELECT _key, COUNT(*) AS other FROM `{t}` GROUP BY _key", short(counted))
    with fails_with(StatusCode.FAILED_PRECONDITION, "expired"):
        execute(rpc, prepared)


# --- Google's client ---


def test_googles_client_reads_a_view(client, counted):
    with client.get_materialized_view("i", short(counted)) as view:
        row = view.read_row(b"r4")
        (cell,) = row.get_cells("default", b"s")
        assert (cell.value, cell.timestamp_micros) == (big_endian(4), 0)
        assert [key for key, _ in view.sample_row_keys()][-1] == b""
        with pytest.raises(NotImplementedError):
            view.mutate_row(b"r4", [])
    rows = client.execute_query(f"SELECT s FROM `{short(counted)}` WHERE _key = 'r5'", "i")
    assert [row["s"] for row in rows] == [5]
