"""Queries that want too much: deep, long, endless. Each gets its error or its rows, within the
deadline of the call, while another client is served and memory is bounded."""

import itertools
import threading
import time
from pathlib import Path

import grpc
import pytest
from google.api_core.exceptions import InvalidArgument
from google.cloud.bigtable_v2 import types
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, Rpc, delete_row, set_cell
from raw import Raw
from raw import message as framed
from watch import MB

OK = grpc.StatusCode.OK
INVALID = grpc.StatusCode.INVALID_ARGUMENT
RANGE = grpc.StatusCode.OUT_OF_RANGE
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
CANCELLED = grpc.StatusCode.CANCELLED
DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED

DEEP = "nested too deeply"
STEPS = "steps of work for one row"
MEMORY = "--query-memory"
TEXT = "REPEAT('a', 1000000)"
MANY = "UNNEST(GENERATE_ARRAY(1, 1000000))"
FEWER = "UNNEST(GENERATE_ARRAY(1, 100000))"
ENDLESS = f"SELECT COUNT(*) FROM {FEWER} a, {FEWER} b, {FEWER} c"


@pytest.fixture
def rpc(victim):
    rpc = Rpc(victim.host)
    yield rpc
    rpc.close()


def prepare(rpc, text, timeout=PATIENCE_SECONDS, **kinds):
    request = types.PrepareQueryRequest(
        instance_name=INSTANCE, query=text, proto_format={}, param_types=kinds
    )
    return rpc.data.prepare_query(request, timeout=timeout)


def execute(rpc, prepared, timeout=PATIENCE_SECONDS, **fields):
    request = types.ExecuteQueryRequest(
        instance_name=INSTANCE, prepared_query=prepared.prepared_query, **fields
    )
    return rpc.data.execute_query(request, timeout=timeout)


def values(responses):
    found = []
    for response in responses:
        batch = response.results.proto_rows_batch.batch_data
        found += types.ProtoRows.deserialize(batch).values
    return found


def ends(rpc, text, timeout=PATIENCE_SECONDS):
    """(code, message) of the query, which is read to its end."""
    try:
        for _ in execute(rpc, prepare(rpc, text), timeout):
            pass
    except grpc.RpcError as error:
        return error.code(), error.details()
    return OK, ""


def nested(count, before, middle, after=""):
    return "SELECT " + before * count + middle + after * count


def many(separator, count, each="1"):
    return separator.join(each.format(number) for number in range(count))


# --- deep ---

DEEP_QUERIES = {
    "parentheses": nested(10_000, "(", "1", ")"),
    "case": nested(5000, "CASE WHEN TRUE THEN ", "1", " END"),
    "if": nested(5000, "IF(TRUE, ", "1", ", 0)"),
    "arrays": nested(5000, "[", "1", "]"),
    "structs": nested(5000, "STRUCT(", "1", ")"),
    "calls": nested(5000, "ABS(", "1", ")"),
    "safe calls": nested(5000, "SAFE.ABS(", "1", ")"),
    "not": nested(10_000, "NOT ", "TRUE"),
    "minus": nested(10_000, "- ", "1"),
    "tilde": nested(10_000, "~", "1"),
    "subscripts": "SELECT [1]" + "[0]" * 10_000,
    "lambdas": nested(3000, "ARRAY_TRANSFORM([1], x -> ", "1", ")"),
    "subqueries": "SELECT * FROM (" * 5000 + "SELECT 1" + ")" * 5000,
    "array types": "SELECT CAST(NULL AS " + "ARRAY<STRUCT<" * 5000 + "INT64" + ">>" * 5000 + ")",
    "plus": "SELECT " + many(" + ", 100_000),
    "concatenations": "SELECT " + many(" || ", 100_000, "'a'"),
}


@pytest.mark.parametrize("name", DEEP_QUERIES)
def test_deep_nesting_is_refused(victim, rpc, name):
    with victim.attacked():
        code, words = ends(rpc, DEEP_QUERIES[name])
        assert code == INVALID and (DEEP in words or "Syntax error" in words), (code, words)


def test_json_is_as_deep_as_it_likes(victim, rpc):
    """Deeper than 1,000 it has nothing at any path."""
    with victim.attacked():
        for path in "$[0]", "$" + "[0]" * 50_000, "$" + ".a" * 50_000:
            for document in "REPEAT('[', 1000000)", "REPEAT('{\"a\":', 100000)":
                assert ends(rpc, f"SELECT JSON_QUERY({document}, '{path}')") == (OK, "")


def test_joins_beyond_a_number(victim, rpc):
    with victim.attacked():
        joined = "".join(f", UNNEST([1]) a{number}" for number in range(1, 5000))
        code, words = ends(rpc, "SELECT COUNT(*) FROM UNNEST([1]) a0" + joined)
        assert code == INVALID and "A join of so many is not supported" in words


def test_views_over_views(victim, rpc, admin_of_victim):
    """A query may go through eight in one another, and so may the query of a ninth."""
    with victim.attacked():
        for number in range(9):
            below = "victim" if number == 0 else f"deep{number - 1}"
            admin_of_victim(f"deep{number}", f"SELECT * FROM `{below}`")
            code, words = ends(rpc, f"SELECT * FROM `deep{number}`")
            assert code == (OK if number < 8 else INVALID), (number, code, words)
        with pytest.raises(InvalidArgument, match="too deeply"):
            admin_of_victim("deep9", "SELECT * FROM deep8")


@pytest.fixture
def admin_of_victim(victim):
    """A function that makes a logical view."""
    from harness.admin import Admin

    admin = Admin(victim.host)

    def make(name, query):
        admin.instances.create_logical_view(
            parent=INSTANCE, logical_view_id=name, logical_view={"query": query}
        ).result()

    return make


# --- long ---

# What is flat works, or says which limit there is.
LONG_QUERIES = {
    "and": ("SELECT " + many(" AND ", 100_000, "TRUE"), OK, ""),
    "or": ("SELECT _key FROM victim WHERE " + many(" OR ", 30_000, "_key = '{}'"), OK, ""),
    "concat": ("SELECT CONCAT(" + many(", ", 100_000, "'a'") + ")", OK, ""),
    "coalesce": ("SELECT COALESCE(" + many(", ", 100_000, "NULL") + ")", OK, ""),
    "in": ("SELECT _key FROM victim WHERE _key IN (" + many(",", 100_000, "'{}'") + ")", OK, ""),
    "in numbers": ("SELECT 5 IN (" + many(",", 100_000, "{}") + ")", OK, ""),
    "array": ("SELECT [" + many(",", 300_000) + "]", OK, ""),
    "case": ("SELECT CASE 5 " + many(" ", 50_000, "WHEN 1 THEN 2") + " END", OK, ""),
    "pipes": ("FROM victim " + "|> WHERE TRUE " * 10_000, OK, ""),
    "extends": ("FROM victim " + "|> EXTEND 1 AS a " * 10_000, EXHAUSTED, "too many parts"),
    "columns": ("SELECT " + many(",", 100_000), INVALID, "more than 10000 columns"),
    "named": ("SELECT " + many(",", 60_000, "1 AS a{}"), INVALID, "more than 10000 columns"),
    "families": (
        "SELECT 1 FROM victim GROUP BY " + many(",", 60_000, "f['{}']"),
        EXHAUSTED,
        "more than 5000 columns of the table's families",
    ),
    "fields": (
        "SELECT STRUCT(" + many(", ", 20_000, "s.a{}") + ") FROM (SELECT STRUCT("
        + many(", ", 20_000, "1 AS a{}") + ") AS s)",
        EXHAUSTED,
        STEPS,
    ),
    "stars": (
        f"SELECT *{',*' * 1000} FROM (SELECT *{',*' * 1000} FROM victim)",
        INVALID,
        "more than 10000 columns",
    ),
    "text": ("SELECT '" + "a" * 10_000_000 + "'", INVALID, "more than the 1048576"),
    "literal": ("SELECT '" + "a" * 1_000_000 + "'", OK, ""),
    "digits": ("SELECT " + "1" * 1_000_000, INVALID, "Invalid integer literal"),
    "exponent": ("SELECT 1e" + "1" * 1_000_000, INVALID, "Invalid floating point literal"),
    "fraction": ("SELECT 0." + "0" * 1_000_000 + "1", OK, ""),
    "name": ("SELECT " + "a" * 1_000_000, INVALID, "Unrecognized name"),
    "table": ("SELECT * FROM `" + "a" * 1_000_000 + "`", INVALID, "Table not found"),
    "comments": ("/**/" * 200_000 + "SELECT 1", OK, ""),
    "comments in comments": ("/*" * 200_000 + "SELECT 1", INVALID, "Syntax error"),
    "constants": ("SELECT " + many(",", 9_000, f"LENGTH({TEXT})"), EXHAUSTED, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_QUERIES)
def test_long_queries_work_or_say_the_limit(victim, rpc, name):
    text, wanted, words = LONG_QUERIES[name]
    with victim.attacked(megabytes=320):
        code, message = ends(rpc, text)
        assert code == wanted and words in message, (code, message)


# --- much work for one row ---

WORK = {
    "lambdas": (
        "SELECT ARRAY_TRANSFORM(GENERATE_ARRAY(1, 9000), x -> "
        "ARRAY_LENGTH(ARRAY_FILTER(GENERATE_ARRAY(1, 9000), y -> x > y)))",
        EXHAUSTED,
        STEPS,
    ),
    "like": (f"SELECT {TEXT} LIKE CONCAT('%', REPEAT('a', 500000), 'b')", EXHAUSTED, STEPS),
    "like of percents": (f"SELECT {TEXT} LIKE REPEAT('%', 1000000)", OK, ""),
    "like of parts": (f"SELECT {TEXT} LIKE REPEAT('%a', 500000) || 'b'", OK, ""),
    "trim": (f"SELECT TRIM({TEXT}, CONCAT(REPEAT('b', 999990), 'a'))", EXHAUSTED, STEPS),
    "instr": (f"SELECT INSTR({TEXT}, REPEAT('a', 500000), 1, 400000)", EXHAUSTED, STEPS),
    "instr from behind": (
        f"SELECT INSTR({TEXT}, REPEAT('a', 500000) || 'b', -1)", EXHAUSTED, STEPS,
    ),
    "includes": (
        "SELECT ARRAY_INCLUDES_ALL(GENERATE_ARRAY(1, 900000), GENERATE_ARRAY(1, 900000))",
        EXHAUSTED,
        STEPS,
    ),
    "marks": (
        "SELECT NORMALIZE(CONCAT('a', REPEAT('\\u0300\\u0316', 240000)))", EXHAUSTED, STEPS,
    ),
    "elements": (
        "SELECT FORMAT_TIMESTAMP(REPEAT('%c', 500000), TIMESTAMP '2020-01-01')", EXHAUSTED, STEPS,
    ),
    "repetitions": ("SELECT REGEXP_CONTAINS('a', '((a{100}){100}){100}')", RANGE, "repetition"),
    "groups": ("SELECT REGEXP_CONTAINS('a', REPEAT('(', 500000))", RANGE, "missing )"),
    "alternatives": ("SELECT REGEXP_CONTAINS('a', REPEAT('a|b*', 250000))", RANGE, "too large"),
    "regex": (
        f"SELECT REGEXP_CONTAINS({TEXT}, '[ab]{{0,300}}[ac]{{0,300}}[ad]{{0,300}}b')",
        EXHAUSTED,
        "too large for a text",
    ),
    "backtracking": (f"SELECT REGEXP_CONTAINS({TEXT}, '(x+x+)+y')", OK, ""),
    "replacing": (f"SELECT REGEXP_REPLACE({TEXT}, 'a', 'aaaaaaaaaaaaaaaaa')", RANGE, "1MB"),
    "repeat": ("SELECT REPEAT('a', 1000000000000)", RANGE, "1MB"),
    "lpad": ("SELECT LPAD('a', 1000000000000000, 'xy')", RANGE, "1MB"),
    "width": ("SELECT FORMAT('%1000000000d', 1)", RANGE, "width"),
    "precision": ("SELECT FORMAT('%.1000000000f', 1.5)", RANGE, "precision"),
    "array": ("SELECT GENERATE_ARRAY(1, 1000000000000)", EXHAUSTED, "1000000000000 elements"),
    "array of all": (
        "SELECT GENERATE_ARRAY(-9223372036854775807, 9223372036854775807)", EXHAUSTED, "elements",
    ),
    "fractions": ("SELECT GENERATE_ARRAY(0.0, 1e300, 1e-300)", EXHAUSTED, "elements"),
    "doubling": (
        f"FROM (SELECT '{'a' * 1000}' AS x) " + "|> SELECT CONCAT(x, x) AS x " * 30, EXHAUSTED, "",
    ),
    "billion laughs": (
        "FROM (SELECT GENERATE_ARRAY(1, 1000) AS x) " + "|> SELECT ARRAY_TRANSFORM(GENERATE_ARRAY("
        "1, 1000), i -> STRUCT(x)) AS x " * 6 + "|> SELECT TO_JSON_STRING(x)",
        EXHAUSTED,
        "A value of the query is larger than 256 MB",
    ),
    "wide row": (
        f"SELECT {many(', ', 4000, 'x')} FROM (SELECT GENERATE_ARRAY(1, 100000) AS x)",
        EXHAUSTED,
        "A row of the result is larger",
    ),
    "pieces": (f"SELECT ARRAY_LENGTH(SPLIT({TEXT}, ''))", OK, ""),
    "time": (
        "SELECT TIMESTAMP_ADD(TIMESTAMP '9999-12-31', INTERVAL 9223372036854775807 DAY)",
        RANGE,
        "overflow",
    ),
    "file": ("SELECT TIMESTAMP('2020-01-01', '../../../etc/passwd')", RANGE, "Invalid time zone"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_work_for_one_row_is_bounded(victim, rpc, name):
    text, wanted, words = WORK[name]
    with victim.attacked(megabytes=640):
        code, message = ends(rpc, text)
        assert code == wanted and words in message, (code, message)


# --- much to keep ---

PAIRS = f"FROM {MANY} a, {MANY} b"
KEPT = {
    "texts": f"SELECT STRING_AGG({TEXT}) FROM {MANY}",
    "values": f"SELECT ARRAY_AGG(a + b) {PAIRS}",
    "arrays": f"SELECT ARRAY_CONCAT_AGG(GENERATE_ARRAY(1, 1000000)) FROM {MANY}",
    "groups": f"SELECT a * 1000000 + b AS k, COUNT(*) {PAIRS} GROUP BY k",
    "distinct": f"SELECT COUNT(*) FROM (SELECT DISTINCT a * 1000000 + b {PAIRS})",
    "distinct values": f"SELECT COUNT(DISTINCT a * 1000000 + b) {PAIRS}",
    "windows": f"SELECT SUM(a) OVER () {PAIRS}",
    "sort": f"SELECT a {PAIRS} ORDER BY b",
    "quantiles": "SELECT APPROX_QUANTILES(x, 1000000000) FROM UNNEST([1, 2, 3]) x",
}
# Those that take longest; the others always.
LONG_KEPT = ("distinct", "groups", "distinct values", "values")


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=[pytest.mark.long] * (k in LONG_KEPT)) for k in KEPT]
)
def test_what_is_kept_is_bounded(victim, rpc, name):
    with victim.attacked(megabytes=640):
        code, message = ends(rpc, KEPT[name])
        assert code == EXHAUSTED and MEMORY in message, (code, message)


def test_sketches_that_are_none(victim, rpc):
    with victim.attacked():
        for sketch in "b'garbage'", f"CAST({TEXT} AS BYTES)", "b'\\x08\\x70\\x10\\xff'":
            code, message = ends(rpc, f"SELECT HLL_COUNT.MERGE(x) FROM UNNEST([{sketch}]) x")
            assert code == RANGE and "sketch" in message


@pytest.mark.long
def test_a_row_of_many_versions_is_unpacked(victim, rpc):
    with victim.attacked(megabytes=256):
        for start in range(0, 50_000, 10_000):
            cells = [set_cell("g", b"q", b"v", 1000 * (start + i + 1)) for i in range(10_000)]
            rpc.mutate(victim.table, b"many", *cells)
        text = "UNPACK((SELECT g['q'] AS q FROM victim(with_history => TRUE) WHERE _key = 'many'))"
        (count,) = values(execute(rpc, prepare(rpc, f"SELECT COUNT(*) FROM {text}")))
        assert count.int_value == 50_000
        rpc.mutate(victim.table, b"many", delete_row())


# --- endless ---


@pytest.mark.parametrize(
    "text",
    [
        ENDLESS,
        f"SELECT a FROM {MANY} a, {MANY} b LIMIT 5 OFFSET 1000000000000",
        f"SELECT DISTINCT MOD(a, 5) AS k FROM {MANY} a, {MANY} b ORDER BY k",
        f"SELECT COUNT(*) OVER (ORDER BY a ROWS BETWEEN 40000 PRECEDING AND 40000 FOLLOWING) "
        f"FROM {FEWER} a LIMIT 1",
    ],
    ids=["count", "offset", "distinct", "window"],
)
def test_an_endless_query_ends_with_its_call(victim, rpc, text):
    """By its deadline, and by being cancelled; then its thread is there for others."""
    with victim.attacked(megabytes=512):
        prepared = prepare(rpc, text)
        with pytest.raises(grpc.RpcError) as error:
            list(execute(rpc, prepared, timeout=2))
        assert error.value.code() == DEADLINE
        calls = [execute(rpc, prepared) for _ in range(8)]
        threading.Timer(0.5, lambda: [call.cancel() for call in calls]).start()
        for call in calls:
            with pytest.raises(grpc.RpcError) as error:
                list(call)
            assert error.value.code() == CANCELLED
        assert ends(rpc, "SELECT 1") == (OK, "")
        nobody_runs(victim)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT ARRAY_LENGTH(REGEXP_EXTRACT_ALL({TEXT}, '(?:a.*b)|a'))",
        f"SELECT REGEXP_REPLACE({TEXT}, '(?:a.*b)|a', 'c')",
    ],
    ids=["extract", "replace"],
)
def test_an_expression_that_reads_all_for_each_match(victim, rpc, text):
    """No count of steps foresees it: it ends by the processor time that it takes."""
    with victim.attacked():
        code, message = ends(rpc, text)
        assert code == EXHAUSTED and "of processor time for one row" in message, (code, message)


def nobody_runs(victim):
    """No thread of the queries' is at work: their processor time stands still."""
    for _ in range(PATIENCE_SECONDS):
        before = query_ticks(victim)
        time.sleep(1)
        if query_ticks(victim) - before <= 10:
            return
    raise AssertionError("a query that was cancelled goes on")


def query_ticks(victim):
    ticks = 0
    for task in Path(f"/proc/{victim.pid()}/task").iterdir():
        if (task / "comm").read_text().startswith("query"):
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks


def test_endless_queries_leave_turns_to_others(victim, rpc):
    """There are four threads; the bystander reads and writes meanwhile, and queries are answered,
    by whomever they are asked."""
    with victim.attacked(megabytes=512):
        prepared = prepare(rpc, ENDLESS)
        calls = [execute(rpc, prepared, timeout=300) for _ in range(12)]
        for _ in range(5):
            assert ends(rpc, "SELECT _key FROM victim LIMIT 1") == (OK, "")
        for call in calls:
            call.cancel()
        nobody_runs(victim)


def test_queries_that_wait_hold_so_much_memory(victim, rpc):
    """Each holds 72 MB while others have their turn: those that would be too much are ended, and
    no others."""
    with victim.attacked(megabytes=2048):
        prepared = prepare(rpc, f"SELECT COUNT(*) FROM {MANY} a, {MANY} b, {MANY} c")
        one_ended = threading.Event()
        calls = [execute(rpc, prepared) for _ in range(30)]
        for call in calls:
            call.add_callback(one_ended.set)
        assert one_ended.wait(PATIENCE_SECONDS)
        for call in calls:
            call.cancel()
        codes = [call.code() for call in calls]
        assert set(codes) == {EXHAUSTED, CANCELLED}, codes
        nobody_runs(victim)


# --- parameters ---


def parameter(kind, value):
    return {"type_": kind, **value}


def run_text(rpc, text, params):
    request = types.ExecuteQueryRequest(
        instance_name=INSTANCE, query=text, proto_format={}, params=params
    )
    try:
        list(rpc.data.execute_query(request, timeout=PATIENCE_SECONDS))
    except grpc.RpcError as error:
        return error.code(), error.details()
    return OK, ""


STRING, INT = {"string_type": {}}, {"int64_type": {}}


def test_parameters_of_wrong_types(victim, rpc):
    wrong = [
        (INT, {"string_value": "x"}),
        (STRING, {"int_value": 5}),
        ({"array_type": {"element_type": INT}}, {"int_value": 5}),
        ({"struct_type": {"fields": [{"field_name": "a", "type_": INT}]}}, {"array_value": {}}),
        ({"date_type": {}}, {"date_value": {"year": 2020, "month": 13, "day": 45}}),
        ({"timestamp_type": {}}, {"timestamp_value": {"seconds": 1 << 60}}),
        ({"map_type": {"key_type": STRING, "value_type": INT}}, {"int_value": 1}),
        ({}, {"int_value": 1}),
    ]
    with victim.attacked():
        for kind, value in wrong:
            code, message = run_text(rpc, "SELECT @p", {"p": parameter(kind, value)})
            assert code == INVALID, (kind, value, code, message)


def test_10000_parameters(victim, rpc):
    names = [f"p{number}" for number in range(10_000)]
    with victim.attacked(megabytes=256):
        text = "SELECT " + " + ".join(f"@{name}" for name in names[:500])
        params = {name: parameter(INT, {"int_value": 1}) for name in names}
        assert run_text(rpc, text, params) == (OK, "")


def test_a_string_parameter_of_100_mb(victim, rpc):
    with victim.attacked(megabytes=768):
        params = {"p": parameter(STRING, {"string_value": "a" * (100 * MB)})}
        assert run_text(rpc, "SELECT LENGTH(@p)", params) == (OK, "")


def field(number, body):
    size, out = len(body), bytearray([number << 3 | 2])
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size]) + body


@pytest.mark.parametrize("kind", [3, 7], ids=["array", "struct"])
def test_types_10000_deep(victim, rpc, attack, kind):
    type_ = field(5, b"")
    for _ in range(10_000):
        type_ = field(kind, field(1, type_ if kind == 3 else field(2, type_)))
    with victim.attacked():
        raw = attack()
        entry = field(6, field(1, b"p") + field(2, type_))
        request = field(1, INSTANCE.encode()) + field(3, b"SELECT @p") + field(4, b"") + entry
        stream = raw.open("PrepareQuery")
        raw.upload(stream, [framed(request)])
        outcome = raw.outcome(stream)
        assert outcome.status == INVALID.value[0], outcome


# --- tokens ---


def test_prepared_queries_that_are_none(victim, rpc):
    """Cut anywhere, with any bit turned, of another instance's making: none is a query."""
    text = "SELECT _key, f['q'] FROM victim WHERE _key = CAST(@k AS BYTES)"
    token = prepare(rpc, text, k=STRING).prepared_query
    parameters = {"k": parameter(STRING, {"string_value": "k"})}
    turned = [
        token[: bit // 8] + bytes([token[bit // 8] ^ 1 << bit % 8]) + token[bit // 8 + 1 :]
        for bit in range(0, 8 * len(token), 3)
    ]
    cut = [token[:size] for size in range(1, len(token), 7)]
    garbage = [b"x", bytes(1000), b"\xff" * 100_000, token * 2, token + b"x"]
    with victim.attacked():
        for wrong in itertools.chain(turned, cut, garbage):
            with pytest.raises(grpc.RpcError) as error:
                list(execute(rpc, types.PrepareQueryResponse(prepared_query=wrong),
                             params=parameters))  # fmt: skip
            assert error.value.code() == INVALID, error.value
        good = types.PrepareQueryResponse(prepared_query=token)
        assert len(values(execute(rpc, good, params=parameters))) == 2


def test_resume_tokens_that_are_none(victim, rpc):
    """A token only says where to go on: garbage is refused, or is a place like another."""
    prepared = prepare(rpc, "SELECT _key FROM victim")
    with victim.attacked():
        for wrong in b"garbage", bytes(100), b"\xff" * 1000, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a":
            with pytest.raises(grpc.RpcError) as error:
                list(execute(rpc, prepared, resume_token=wrong))
            assert error.value.code() == INVALID, error.value
        for place in b"\x0a\x01\xff", b"\x0a\x04\x00\x00\x00\x00", b"\x10\xff\xff\xff\xff\x0f":
            list(execute(rpc, prepared, resume_token=place))


def test_clients_that_vanish_take_their_queries_along(victim, rpc):
    with victim.attacked(megabytes=512):
        token = prepare(rpc, ENDLESS).prepared_query
        request = field(1, INSTANCE.encode()) + field(9, token)
        for _ in range(8):
            raw = Raw(victim.host)
            raw.call("ExecuteQuery", request)
            raw.ping()
            raw.close()
        assert ends(rpc, "SELECT 1") == (OK, "")
        nobody_runs(victim)
