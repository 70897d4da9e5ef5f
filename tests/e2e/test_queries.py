"""SQL by Google's data client, and the messages underneath: PrepareQuery and ExecuteQuery."""

import datetime
import re
import threading

import pytest
from google.api_core.exceptions import InvalidArgument, OutOfRange
from google.cloud.bigtable.data.execute_query.metadata import SqlType
from google.cloud.bigtable_v2 import types
from google.rpc import error_details_pb2, status_pb2
from grpc import RpcError, StatusCode
from harness.rpc import INSTANCE, fails_with, set_cell
from harness.sql import execute, explain, prepare, values_of

UTC = datetime.timezone.utc


@pytest.fixture
def letters(rpc, make_table):
    """Rows a, b, c: f:x is a number of eight bytes; b has g:y, too. Gives the table's id."""
    name = make_table()
    for key, number in (b"a", 300), (b"b", 100), (b"c", 200):
        rpc.mutate(name, key, set_cell("f", b"x", number.to_bytes(8, "big"), 5000))
    rpc.mutate(name, b"b", set_cell("g", b"y", b"why", 7000))
    return name.rsplit("/", 1)[-1]


@pytest.fixture
def query(client):
    """A function that runs a query: gives its rows, each a dictionary."""

    def run(text, **parameters):
        values = {name: value for name, (value, _) in parameters.items()}
        kinds = {name: kind for name, (_, kind) in parameters.items() if kind is not None}
        rows = client.execute_query(text, "i", parameters=values, parameter_types=kinds)
        return [dict(row.fields) for row in rows]

    return run


def test_values_of_each_type(query):
    (row,) = query(
        "SELECT 'é' AS s, b'\\xff' AS b, -5 AS i, CAST(1.5 AS FLOAT32) AS f, 2.5 AS d, TRUE AS t, "
        "TIMESTAMP '2024-06-01 10:00:00.5+02' AS ts, DATE '2024-06-01' AS dt, [1, NULL] AS a, "
        "STRUCT(1 AS x, 'y' AS y) AS st, CAST(NULL AS STRING) AS n"
    )
    assert (row["s"], row["b"], row["i"], row["f"], row["d"]) == ("é", b"\xff", -5, 1.5, 2.5)
    assert row["t"] is True and row["n"] is None and row["a"] == [1, None]
    assert row["ts"] == datetime.datetime(2024, 6, 1, 8, 0, 0, 500000, UTC)
    assert (row["dt"].year, row["dt"].month, row["dt"].day) == (2024, 6, 1)
    assert (row["st"]["x"], row["st"]["y"]) == (1, "y")


def test_a_table_is_its_key_and_its_families(query, letters):
    rows = query(f"SELECT * FROM `{letters}`")
    assert rows[1] == {
        "_key": b"b",
        "f": {b"x": (100).to_bytes(8, "big")},
        "g": {b"y": b"why"},
    }
    assert [row["g"] for row in rows] == [{}, {b"y": b"why"}, {}]


def test_history(query, letters, rpc):
    rpc.mutate(f"{INSTANCE}/tables/{letters}", b"b", set_cell("g", b"y", b"old", 1000))
    (row,) = query(f"SELECT g['y'] AS y FROM `{letters}`(with_history => TRUE) WHERE _key = 'b'")
    assert [cell["value"] for cell in row["y"]] == [b"why", b"old"]
    assert row["y"][1]["timestamp"] == datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)


def test_parameters(query, letters):
    rows = query(
        f"SELECT _key FROM `{letters}` WHERE _key >= @from LIMIT @most",
        **{"from": (b"b", None), "most": (1, SqlType.Int64())},
    )
    assert rows == [{"_key": b"b"}]
    (row,) = query("SELECT @a AS a, @none AS n", a=([1, None], SqlType.Array(SqlType.Int64())),
                   none=(None, SqlType.String()))  # fmt: skip
    assert row == {"a": [1, None], "n": None}


def test_groups_and_orders(query, letters):
    rows = query(
        f"SELECT g['y'] IS NULL AS missing, COUNT(*) AS n, MAX(f['x']) AS most FROM `{letters}` "
        "GROUP BY missing ORDER BY n DESC"
    )
    assert [(row["missing"], row["n"]) for row in rows] == [(True, 2), (False, 1)]
    assert rows[0]["most"] == (300).to_bytes(8, "big")


def test_errors_before_and_after(query, letters):
    with pytest.raises(InvalidArgument, match=r"Unrecognized name: nosuch \[at 1:8\]"):
        query(f"SELECT nosuch FROM `{letters}`")
    with pytest.raises(InvalidArgument, match="Table not found: nowhere"):
        query("SELECT * FROM nowhere")
    with pytest.raises(OutOfRange, match="division by zero"):
        query("SELECT 1 / 0 AS x")


def test_a_logical_view_is_queried_by_its_name(query, letters, admin, client, rpc):
    name = f"{INSTANCE}/logicalViews/v{letters}"
    admin.instances.create_logical_view(
        parent=INSTANCE,
        logical_view_id=f"v{letters}",
        logical_view={"query": f"SELECT _key, f['x'] AS x FROM `{letters}` WHERE _key > 'a'"},
    ).result()
    try:
        assert [row["_key"] for row in query(f"SELECT * FROM `v{letters}`")] == [b"b", b"c"]
        assert query(f"SELECT COUNT(*) AS n FROM `v{letters}` WHERE _key = 'a'") == [{"n": 0}]
    finally:
        admin.instances.delete_logical_view(name=name)


def test_a_logical_view_in_pipe_syntax(query, letters, admin):
    name = f"{INSTANCE}/logicalViews/w{letters}"
    admin.instances.create_logical_view(
        parent=INSTANCE,
        logical_view_id=f"w{letters}",
        logical_view={"query": f"FROM `{letters}` |> WHERE _key > 'a' |> SELECT _key"},
    ).result()
    try:
        assert query(f"SELECT * FROM `w{letters}`") == [{"_key": b"b"}, {"_key": b"c"}]
    finally:
        admin.instances.delete_logical_view(name=name)


def test_a_view_is_asked_with_its_parameters(query, letters, admin, rpc):
    name = f"{INSTANCE}/logicalViews/p{letters}"
    admin.instances.create_logical_view(
        parent=INSTANCE,
        logical_view_id=f"p{letters}",
        logical_view={
            "query": f"SELECT _key FROM `{letters}` "
            "WHERE STARTS_WITH(_key, CAST(VIEW_PARAMETERS('from') AS BYTES))"
        },
    ).result()
    try:
        prepared = prepare(rpc, f"SELECT * FROM `p{letters}`")
        answer = execute(rpc, prepared, view_parameters={"from": {"string_value": "b"}})
        assert [value.bytes_value for value in values_of(answer)] == [b"b"]
        with pytest.raises(RpcError) as error:
            execute(rpc, prepared, view_parameters={"From": {"string_value": "b"}})
        assert error.value.code() == StatusCode.INVALID_ARGUMENT
        assert "view_parameters does not contain key 'from'" in error.value.details()
    finally:
        admin.instances.delete_logical_view(name=name)


# --- messages ---


def test_the_first_batch_resets_and_the_last_message_is_a_token(rpc, letters):
    prepared = prepare(rpc, f"SELECT _key FROM `{letters}`")
    (column,) = prepared.metadata.proto_schema.columns
    assert column.name == "_key" and "bytes_type" in column.type_
    batch, end = execute(rpc, prepared)
    assert batch.results.reset and not end.results.reset
    assert [value.bytes_value for value in values_of([batch])] == [b"a", b"b", b"c"]
    assert end.results.resume_token and not end.results.proto_rows_batch.batch_data


def test_no_rows_are_an_empty_batch(rpc, letters):
    batch, end = execute(rpc, prepare(rpc, f"SELECT _key FROM `{letters}` WHERE _key = 'z'"))
    assert batch.results.reset and values_of([batch]) == []
    assert end.results.resume_token


def test_each_row_comes_once_whoever_breaks_off(rpc, make_table):
    """Large rows, so that there are several batches; after each a client goes on by its token."""
    name = make_table()
    keys = [b"k%02d" % number for number in range(20)]
    rpc.mutate_rows(name, [(key, [set_cell("f", b"q", bytes(400_000), 1000)]) for key in keys])
    table = name.rsplit("/", 1)[-1]
    prepared = prepare(rpc, f"SELECT _key, f['q'] AS q FROM `{table}` LIMIT 18")
    seen, token = [], b""
    for _ in range(20):
        responses = execute(rpc, prepared, resume_token=token)
        first = responses[0]
        seen += [value.bytes_value for value in values_of([first])[::2]]
        token = first.results.resume_token
        if len(responses) == 1:
            break
        assert token
    assert seen == keys[:18]
    assert values_of(execute(rpc, prepared, resume_token=token)) == []


def test_what_is_sorted_has_one_token_at_its_end(rpc, make_table):
    name = make_table()
    cells = [set_cell("f", b"q", bytes(400_000), 1000)]
    rows = [(b"k%02d" % number, cells) for number in range(12)]
    rpc.mutate_rows(name, rows)
    table = name.rsplit("/", 1)[-1]
    text = f"SELECT f['q'] AS q, _key FROM `{table}` ORDER BY f['q'], _key DESC"
    responses = execute(rpc, prepare(rpc, text))
    assert len(responses) > 2
    assert [bool(each.results.resume_token) for each in responses][:-1] == [False] * (
        len(responses) - 1
    )
    assert [value.bytes_value for value in values_of(responses)[1::2]] == sorted(
        (key for key, _ in rows), reverse=True
    )


def test_a_query_that_was_not_prepared_brings_its_metadata(rpc):
    request = types.ExecuteQueryRequest(
        instance_name=INSTANCE,
        query="SELECT @n + 1 AS m",
        proto_format={},
        params={"n": {"int_value": 4, "type_": {"int64_type": {}}}},
    )
    metadata, batch, _ = list(rpc.data.execute_query(request))
    assert metadata.metadata.proto_schema.columns[0].name == "m"
    assert values_of([batch])[0].int_value == 5


def test_requests_that_are_none(rpc):
    prepared = prepare(rpc, "SELECT @a AS a", a={"bytes_type": {}})
    with fails_with(StatusCode.INVALID_ARGUMENT, "params does not contain key 'a'"):
        execute(rpc, prepared)
    with fails_with(StatusCode.INVALID_ARGUMENT, "params 'a' has type string_type but expected"):
        execute(rpc, prepared, params={"a": {"string_value": "x", "type_": {"string_type": {}}}})
    with fails_with(StatusCode.INVALID_ARGUMENT, "params 'a' has type string_type but expected"):
        execute(rpc, prepared, params={"a": {"string_value": "x", "type_": {"bytes_type": {}}}})
    with fails_with(StatusCode.INVALID_ARGUMENT, "data_format must not be set"):
        execute(rpc, prepared, params={"a": {"bytes_value": b"x"}}, proto_format={})
    for untyped in ({"bytes_value": b"x"}, {"bytes_value": b"x", "type_": {}}, {}):
        with fails_with(StatusCode.INVALID_ARGUMENT, "params 'a' has no type"):
            execute(rpc, prepared, params={"a": untyped})
    with fails_with(StatusCode.INVALID_ARGUMENT, "Exactly one of query and prepared_query"):
        execute(rpc, types.PrepareQueryResponse())
    with fails_with(StatusCode.INVALID_ARGUMENT, "Invalid prepared query. Please retry"):
        execute(rpc, types.PrepareQueryResponse(prepared_query=b"garbage, and long enough"))


def test_a_query_whose_family_is_gone_has_expired(rpc, make_table):
    name = make_table(("f", "g"))
    table = name.rsplit("/", 1)[-1]
    of_f = prepare(rpc, f"SELECT f FROM `{table}`")
    of_g = prepare(rpc, f"SELECT g FROM `{table}`")
    rpc.modify_families(name, {"id": "f", "drop": True})
    with pytest.raises(RpcError) as error:
        execute(rpc, of_f)
    assert error.value.code() == StatusCode.FAILED_PRECONDITION
    assert "The prepared query has expired" in error.value.details()
    details = dict(error.value.trailing_metadata())["grpc-status-details-bin"]
    failure = error_details_pb2.PreconditionFailure()
    assert status_pb2.Status.FromString(details).details[0].Unpack(failure)
    assert failure.violations[0].type == "PREPARED_QUERY_EXPIRED"
    assert values_of(execute(rpc, of_g)) == []


def test_a_prepared_query_keeps_its_columns(rpc, make_table):
    name = make_table(("f",))
    rpc.mutate(name, b"k", set_cell("f", b"q", b"v", 1000))
    prepared = prepare(rpc, f"SELECT * FROM `{name.rsplit('/', 1)[-1]}`")
    rpc.modify_families(name, {"id": "a", "create": {}})
    assert len(values_of(execute(rpc, prepared))) == 2


def test_queries_beside_each_other(rpc, letters):
    """More than there are threads, each with its own result."""
    prepared = prepare(rpc, f"SELECT COUNT(*) + @n AS m FROM `{letters}`", n={"int64_type": {}})
    results = {}

    def run(number):
        parameter = {"int_value": number, "type_": {"int64_type": {}}}
        (value,) = values_of(execute(rpc, prepared, params={"n": parameter}))
        results[number] = value.int_value

    threads = [threading.Thread(target=run, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 3 + number for number in range(24)}


def test_memory_is_bounded(fresh_server, connect, make_table):
    server = fresh_server("--query-memory", "1MB")
    rpc = connect(server.host)
    name = rpc.create_table("t", ("f",))
    cells = [set_cell("f", b"q", bytes(100_000), 1000)]
    rows = [(b"k%02d" % number, cells) for number in range(20)]
    rpc.mutate_rows(name, rows)
    prepared = prepare(rpc, "SELECT f['q'] AS q FROM t ORDER BY f['q']")
    with fails_with(StatusCode.RESOURCE_EXHAUSTED, "--query-memory"):
        execute(rpc, prepared)
    assert len(values_of(execute(rpc, prepare(rpc, "SELECT _key FROM t ORDER BY _key")))) == 20


def test_a_plan_is_explained(rpc, letters):
    text = f"SELECT f['x'] AS x FROM `{letters}` WHERE _key = @k"
    prepared = explain(rpc, text, "plan", k={"bytes_type": {}})
    parameter = {"bytes_value": b"b", "type_": {"bytes_type": {}}}
    responses = execute(rpc, prepared, params={"k": parameter})
    assert [value.string_value for value in values_of(responses)] == [
        'PROJECT f[b"x"] AS x',
        "  FILTER (_key = @k)",
        f"    SCAN {letters}",
        '      reads: _key, f[b"x"]',
        '      keys: b"b"',
    ]
    assert responses[-1].results.resume_token


def test_a_query_is_analyzed(rpc, letters):
    prepared = explain(rpc, f"SELECT COUNT(*) AS n FROM `{letters}` WHERE _key > 'a'", "analyze")
    lines = [value.string_value for value in values_of(execute(rpc, prepared))]
    assert lines[0] == "PROJECT $1 AS n"
    assert lines[-4].strip() == 'keys: [b"a\\x00", )'
    assert lines[-2] == "read: 2 rows, 2 cells"
    assert lines[-1].startswith("result: 1 rows in ")


def given(lines):
    """[(operator, rows that it gave, seconds)] of an analysis, the last operator first."""
    gave = re.compile(r"gave: (\d+) rows in (\d+\.\d{6}) s")
    found, operator = [], None
    for line in map(str.strip, lines):
        word = re.match(r"[A-Z]+", line)
        operator = word[0] if word else operator
        if told := gave.fullmatch(line):
            found.append((operator, int(told[1]), float(told[2])))
    return found


def test_an_analysis_says_what_each_operator_gave_and_took(rpc, letters):
    text = f"SELECT _key AS k FROM `{letters}` WHERE f['x'] IS NOT NULL ORDER BY k DESC LIMIT 2"
    for _ in range(2):  # the second time from what was kept of the first
        prepared = explain(rpc, text, "analyze")
        lines = [value.string_value for value in values_of(execute(rpc, prepared))]
        found = given(lines)
        rows = {operator: count for operator, count, _ in found}
        read, whole = re.match(r"read: (\d+) rows", lines[-2]), lines[-1].split()
        assert rows["SCAN"] == int(read[1]) and found[0][1] == int(whole[1]) <= 2
        seconds = [took for _, _, took in found]
        assert min(seconds) >= 0 and 0 < sum(seconds) <= float(whole[4]) + 0.001
    plan = [value.string_value for value in values_of(execute(rpc, explain(rpc, text, "plan")))]
    assert given(plan) == []


def test_only_plans_and_analyses_are_explained(rpc, letters):
    with pytest.raises(RpcError) as error:
        explain(rpc, f"SELECT 1 FROM `{letters}`", "everything")
    assert error.value.code() == StatusCode.INVALID_ARGUMENT


def test_no_row_has_an_empty_key(query, letters):
    """Asked for alone it was a read of one row, whose key was copied from nowhere: UBSan saw it in
    a run of tests/differential."""
    assert query(f"SELECT _key FROM `{letters}` WHERE _key = ''") == []
    assert len(query(f"SELECT _key FROM `{letters}` WHERE _key IN ('', 'a')")) == 1
