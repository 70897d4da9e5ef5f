"""Slow requests: what the log and ListSlowRequests say of them. Every request is slow here, or none
is, so that no time is looked at; 20 a second are described, and no test asks more."""

import json

import pytest
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.datastore import Raw, fresh_client
from harness.rpc import INSTANCE, Rpc, fails_with, set_cell
from harness.secured import POLICY, TABLE
from harness.sql import begin, execute, prepare

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = ("traceparent", f"00-{TRACE}-b7ad6b7169203331-01")
EVERY = ("--slow-request", "1us")
DATA = "google.bigtable.v2.Bigtable"


@pytest.fixture
def host(fresh_server):
    return fresh_server(*EVERY, "--log-format", "json")


@pytest.fixture
def rpc(host):
    stubs = Rpc(host.host)
    yield stubs
    stubs.close()


def listed(server, page_size=1000):
    status, body = server.get(f"/v1/servers/self/slowRequests?pageSize={page_size}")
    assert status == 200, body
    return json.loads(body)


def find(server, method):
    """The latest of a method."""
    requests = listed(server)["requests"]
    return next(each for each in requests if each["method"].endswith(f"/{method}"))


def lines(server):
    """The log's lines about slow requests."""
    found = [json.loads(line) for line in server.stderr().splitlines() if line.startswith("{")]
    return [each for each in found if each["msg"] == "slow request"]


def test_a_read(host, rpc):
    table = rpc.create_table("t")
    rpc.mutate_rows(table, [(b"key%d" % i, [set_cell("f", b"q", b"v")]) for i in range(5)])
    request = types.ReadRowsRequest(
        table_name=table,
        app_profile_id="batch",
        rows={
            "row_keys": [b"key0", b"k\xff\\"],
            "row_ranges": [{"start_key_closed": b"key1", "end_key_open": b"key4"}],
        },
        filter={"chain": {"filters": [
            {"row_key_regex_filter": b"key[13]"}, {"cells_per_column_limit_filter": 1},
        ]}},
        rows_limit=2,
    )  # fmt: skip
    list(rpc.data.read_rows(request, metadata=[TRACEPARENT]))
    found = find(host, "ReadRows")
    assert found["method"] == f"{DATA}/ReadRows"
    assert found["resource"] == table
    assert found["appProfile"] == "batch"
    assert found["traceId"] == TRACE
    assert found["rows"] == "2"
    assert int(found["rowsSeen"]) >= 2
    assert int(found["answerBytes"]) > 0
    assert "code" not in found and "principal" not in found
    assert found["plan"].splitlines() == [
        r'2 keys: "key0", "k\xff\\"',
        '1 range: from "key1" before "key4"',
        'filter: (key matches "key[13]", then 1 cells a column)',
        "limit: 2 rows",
    ]


def test_the_line_of_the_log(host, rpc):
    table = rpc.create_table("t")
    cell = set_cell("f", b"q", b"v")
    rpc.mutate_rows(table, [(b"a", [cell, cell]), (b"b", [cell])])
    (line,) = [each for each in lines(host) if each["method"].endswith("/MutateRows")]
    assert line["level"] == "warn"
    assert line["resource"] == table
    assert line["plan"] == '2 entries: "a", "b"; 3 mutations'
    assert (line["rows"], line["status"]) == (2, "OK")
    assert line["duration_us"] >= 1
    assert host.metric("slow_requests_total") >= 2


def test_writes_do_not_show_values(host, rpc):
    table = rpc.create_table("t")
    rpc.mutate(table, b"row", set_cell("f", b"q", b"secret"))
    rpc.check_and_mutate(
        table, b"row", {"value_regex_filter": b"secret"}, true=[set_cell("f", b"q", b"secret")]
    )
    increment = types.ReadModifyWriteRule(
        family_name="f", column_qualifier=b"n", increment_amount=1
    )
    rpc.read_modify_write(table, b"row", increment)
    plans = {each["method"]: each["plan"] for each in listed(host)["requests"] if "plan" in each}
    assert plans[f"{DATA}/MutateRow"] == '1 key: "row"\n1 mutation\n'
    assert plans[f"{DATA}/CheckAndMutateRow"] == (
        '1 key: "row"\nfilter: value matches a pattern\n1 mutation if it passes, else 0\n'
    )
    assert plans[f"{DATA}/ReadModifyWriteRow"] == '1 key: "row"\n1 rule\n'
    assert "secret" not in json.dumps(listed(host)) and "secret" not in host.stderr()


def test_a_query_and_its_plan(host, rpc):
    table = rpc.create_table("t")
    rpc.mutate_rows(table, [(b"key%d" % i, [set_cell("f", b"q", b"v")]) for i in range(5)])
    text = "SELECT _key FROM t WHERE _key > 'key1' LIMIT 2"
    execute(rpc, prepare(rpc, text))
    found = find(host, "ExecuteQuery")
    assert found["resource"] == INSTANCE
    assert found["rows"] == "2"
    query, *plan = found["plan"].splitlines()
    assert query == text
    assert any("key1" in line for line in plan), plan
    assert any(line.startswith("read: ") for line in plan), plan
    assert find(host, "PrepareQuery")["plan"] == text + "\n"


def test_a_query_of_datastore(host):
    database = Raw(fresh_client(host.host))
    tasks = [database.entity("Task", i, done=i % 2) for i in (1, 2)]
    database.commit(*[{"upsert": task} for task in tasks])
    done = {"property": {"name": "done"}, "op": "EQUAL", "value": {"integer_value": 1}}
    database.query(
        kind=[{"name": "Task"}], filter={"property_filter": done}, limit={"value": 10}
    )
    assert find(host, "Commit")["plan"] == "2 mutations: Task 1, Task 2\nno transaction\n"
    found = find(host, "RunQuery")
    assert found["plan"].splitlines()[:3] == ["kind: Task", "filter: done = ...", "limit: 10"]
    assert any(line.startswith("index: (done ASC") for line in found["plan"].splitlines())
    assert found["rows"] == "1"


def test_errors_have_their_code(host, rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.get_table(f"{INSTANCE}/tables/missing")
    found = find(host, "GetTable")
    assert found["code"] == StatusCode.NOT_FOUND.value[0]
    assert found["resource"] == f"{INSTANCE}/tables/missing"


def test_the_latest_come_first_and_as_many_as_asked(host, rpc):
    rpc.create_table("one")
    rpc.create_table("two")
    answer = listed(host)
    assert answer["threshold"] == "0.000001s"
    times = [each["startTime"] for each in answer["requests"]]
    assert times == sorted(times, reverse=True)
    assert len(listed(host, 1)["requests"]) == 1
    status, _ = host.get("/v1/servers/self/slowRequests?pageSize=-1")
    assert status == 400
    status, _ = host.get("/v1/servers/other/slowRequests")
    assert status == 404


def test_fast_requests_leave_no_trace(fresh_server, connect):
    server = fresh_server("--slow-request", "1d")
    connect(server.host).create_table("t")
    assert listed(server) == {"threshold": "86400s"}
    assert server.metric("slow_requests_total") == 0


def test_it_can_be_off(fresh_server, connect):
    server = fresh_server("--slow-request", "0")
    connect(server.host).create_table("t")
    assert listed(server) == {}


def test_who_sent_it(secure):
    secured = secure(*EVERY, policy=POLICY)
    admin = secured.rpc("admin")
    admin.create_table("t")
    secured.rpc("alice").mutate(TABLE, b"a", set_cell("f", b"q", b"v"))
    with fails_with(StatusCode.PERMISSION_DENIED):
        secured.rpc("stranger").mutate(TABLE, b"a", set_cell("f", b"q", b"v"))
    plain = secured.server.stderr()
    assert "principal=user:alice@example.com" in plain
    assert "principal=user:stranger@example.com" in plain
    assert "principal=user:ops@example.com" in plain


def test_a_client_that_stops_reading(host, rpc):
    """A call that is given up is told of like any other."""
    table = rpc.create_table("t")
    rpc.mutate_rows(
        table, [(b"%03d" % i, [set_cell("f", b"q", bytes(512 << 10))]) for i in range(40)]
    )
    stream = begin(rpc, prepare(rpc, "SELECT * FROM t"))
    next(iter(stream))
    stream.cancel()
    rpc.get_table(table)  # behind it, on the same connection
    host.stop()
    told = [each for each in lines(host) if each["method"].endswith("/ExecuteQuery")]
    assert [each["status"] for each in told] == ["CANCELLED"]
