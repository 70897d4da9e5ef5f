"""Fault injection (--inject) against Google's clients: retries that succeed, deadlines that pass,
errors by rate that a seed makes the same again; by gRPC and by REST."""

import time

import grpc
import pytest
from google.api_core.exceptions import DeadlineExceeded
from google.cloud.bigtable.data import BigtableDataClient, ReadRowsQuery, SetCell
from harness.browser import Visitor, chromium
from harness.rest import WAYS, Rest, b64
from harness.rpc import INSTANCE, set_cell
from harness.server import run_trestle

TABLE = f"{INSTANCE}/tables/t"
WORDS = "injected fault: this server was started with --inject"
ROWS = 4000
ROW_BYTES = 1000  # so that an answer is of many messages


@pytest.fixture
def inject(fresh_server, connect):
    """A function that starts a server with these rules: (server, raw RPCs to it, with table t)."""

    def start(rules, *arguments):
        server = fresh_server("--inject", rules, *arguments)
        rpc = connect(server.host)
        rpc.create_table("t")
        return server, rpc

    return start


@pytest.fixture
def open_table(monkeypatch):
    """A function that opens a table of Google's data client: open_table(server, "t", …)."""
    opened = []

    def open_one(server, table_id="t", **options):
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", server.host)
        opened.append(BigtableDataClient(project="p"))
        return opened[-1].get_table("i", table_id, **options)

    yield open_one
    for client in opened:
        client.close()


def codes(rpc, count, table=TABLE):
    """What so many writes one after the other come to."""
    found = []
    for number in range(count):
        try:
            rpc.mutate(table, b"r%d" % number, set_cell("f", b"q", b"v"))
            found.append("OK")
        except grpc.RpcError as error:
            assert error.details() == WORDS
            found.append(error.code().name)
    return found


# --- errors ---


def test_retries_succeed(inject, open_table):
    """Half of all reads and writes fail, and Google's client does not let it be seen."""
    server, _ = inject(
        "seed=1; MutateRow: error=UNAVAILABLE, rate=0.5; MutateRows: error=UNAVAILABLE, rate=0.5;"
        "ReadRows: error=UNAVAILABLE, rate=0.5"
    )
    table = open_table(server)
    for number in range(10):
        table.mutate_row(f"row-{number}", SetCell("f", "q", f"value {number}", 1000))
    for number in range(10):
        row = table.read_row(f"row-{number}")
        assert [cell.value for cell in row.cells] == [b"value %d" % number]
    assert server.metric("injected_faults_total") >= 5


def test_a_stream_that_is_cut_goes_on_where_it_was(inject, open_table):
    """The first two answers break off after some messages; the client asks for the rest."""
    server, rpc = inject("seed=3; ReadRows: error=UNAVAILABLE, after=3, rate=0.6")
    names = [b"row-%05d" % number for number in range(ROWS)]
    value = set_cell("f", b"q", b"x" * ROW_BYTES)
    assert set(rpc.mutate_rows(TABLE, [(name, [value]) for name in names])) == {0}
    read = [row.row_key for row in open_table(server).read_rows(ReadRowsQuery())]
    assert read == names
    assert server.metric("injected_faults_total") == 2  # with this seed


def test_a_seed_repeats_what_happens(inject):
    rules = "MutateRow: error=ABORTED, rate=0.4"
    first, second, other = (codes(inject(f"seed={seed}; {rules}")[1], 60) for seed in (8, 8, 9))
    assert first == second != other
    assert set(first) == {"OK", "ABORTED"}
    assert 10 <= first.count("ABORTED") <= 38


def test_a_seed_that_was_chosen_is_in_the_log(inject):
    server, rpc = inject("MutateRow: error=ABORTED, rate=0.5")
    found = codes(rpc, 40)
    (warning,) = [line for line in server.stderr().splitlines() if "faults are injected" in line]
    assert "level=warn" in warning
    rules = warning.split('inject="')[1].rstrip('"')
    assert rules.startswith("seed=") and rules.endswith("MutateRow: error=ABORTED, rate=0.5")
    assert codes(inject(rules)[1], 40) == found


def test_a_table_alone_suffers(inject):
    server, rpc = inject("MutateRow: error=RESOURCE_EXHAUSTED, table=t")
    other = rpc.create_table("other")
    assert codes(rpc, 2, other) == ["OK"] * 2
    assert codes(rpc, 2) == ["RESOURCE_EXHAUSTED"] * 2
    assert server.metric("injected_faults_total") == 2


@pytest.mark.parametrize("way", WAYS)
def test_rest_suffers_alike(inject, way):
    server, _ = inject("MutateRow: error=UNAVAILABLE; ReadRows: delay=20ms..40ms")
    rest = Rest(server.host, way)
    cell = {"familyName": "f", "columnQualifier": b64(b"q"), "value": b64(b"v")}
    body = {"rowKey": b64(b"r"), "mutations": [{"setCell": cell}]}
    answer = rest.call("POST", f"/v2/{TABLE}:mutateRow", body, expect=503)
    assert answer["error"]["status"] == "UNAVAILABLE" and answer["error"]["message"] == WORDS
    began = time.monotonic()
    assert rest.call("POST", f"/v2/{TABLE}:readRows", {}) == []
    assert time.monotonic() - began >= 0.02
    assert server.metric("injected_faults_total") == 2


# --- delays ---


def test_deadlines_pass_under_delays(inject, open_table):
    server, rpc = inject("ReadRows: delay=30s; MutateRow: delay=100ms")
    table = open_table(
        server, default_read_rows_operation_timeout=0.3, default_read_rows_attempt_timeout=0.3
    )
    began = time.monotonic()
    table.mutate_row("r", SetCell("f", "q", b"v", 1000))
    assert time.monotonic() - began >= 0.1
    with pytest.raises(DeadlineExceeded):
        table.read_row("r")
    assert rpc.get_table(TABLE).name == TABLE  # others have not been kept waiting


def test_what_is_delayed_ends_with_the_server(fresh_server, connect):
    """A stop waits for calls as long as it may, and then takes those that are delayed along."""
    server = fresh_server("--inject", "ReadRows: delay=60s", "--drain-timeout", "100ms")
    rpc = connect(server.host)
    rpc.create_table("t")
    calls = [rpc.read_stream(TABLE) for _ in range(5)]
    while server.metric("injected_faults_total") < len(calls):
        time.sleep(0.01)
    server.stop()
    for call in calls:
        with pytest.raises(grpc.RpcError):
            list(call)


# --- nobody is to be surprised ---


@pytest.mark.parametrize(
    "rules, words",
    [
        ("ReadRow: delay=5ms", 'no method has the name "ReadRow"'),
        ("ReadRows", "a rule is a method, a colon"),
        ("ReadRows: delay=5", "a delay is a time such as 50ms"),
        ("ReadRows: error=BROKEN", "an error is a code of gRPC's"),
        ("ReadRows: error=ABORTED, rate=2", "a rate is a share of the calls"),
        ("seed=1", "there is no rule"),
    ],
)
def test_wrong_rules_are_refused(tmp_path, rules, words):
    done = run_trestle(
        "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data", "--inject", rules
    )
    assert done.returncode == 2
    refusal = done.stderr.splitlines()[-1]
    assert refusal.startswith("trestle serve: --inject: ") and words in refusal


def test_without_it_nothing_is_said(fresh_server):
    server = fresh_server()
    assert "injected" not in server.stderr()
    assert server.metric("injected_faults_total") == 0
    _, session = server.get("/console/session")
    assert "faults" not in session


@pytest.mark.parametrize(("size", "scheme"), [("phone", "light"), ("desktop", "dark")])
def test_the_console_warns_and_goes_on(inject, size, scheme):
    """`*` leaves the service alone by which one looks at the server."""
    server, _ = inject("google.bigtable.v2.Bigtable/*: delay=1ms")
    with chromium() as browser:
        somebody = Visitor(browser, server.host, size=size, scheme=scheme)
        page = somebody.page
        somebody.visit()
        page.get_by_text("Faults are injected.").wait_for()
        somebody.screenshot("inject")
        assert somebody.violations() == [] and somebody.overflow() <= 0
        page.get_by_role("link", name="by these rules").click()
        page.get_by_text("google.bigtable.v2.Bigtable/*: delay=1ms").wait_for()
        assert somebody.violations() == []
        somebody.leave()


def test_star_leaves_those_alone_who_look(fresh_server):
    server = fresh_server("--inject", "*: error=INTERNAL")
    rest = Rest(server.host)
    names = [each["name"] for each in rest.call("GET", "/v1/servers/self/settings")["settings"]]
    assert "inject" in names
    rest.call("GET", "/v2/projects/p/instances", expect=500)
    assert server.get("/readyz")[0] == 200
