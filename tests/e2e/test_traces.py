"""Spans by OTLP/HTTP, as a collector gets them."""

import socket
import time

import pytest
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.collector import attributes_of, collecting
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, Rpc, fails_with, set_cell
from harness.server import run_trestle

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
NO_PROXY = {"no_proxy": "*", "NO_PROXY": "*"}
SERVICE = "google.bigtable.v2.Bigtable"
WITHIN, SERVER = 1, 2  # SpanKind
ERROR = 2  # StatusCode


def traceparent(flags):
    return [("traceparent", f"00-{TRACE}-{SPAN}-{flags}")]


@pytest.fixture
def collector():
    with collecting() as running:
        yield running


@pytest.fixture
def traced(fresh_server, collector):
    """A function that starts a server which sends its spans to the collector."""

    def start(*arguments, endpoint=collector.url):
        return fresh_server("--otlp-endpoint", endpoint, *arguments, env=NO_PROXY)

    return start


@pytest.fixture
def call():
    """A function that opens stubs: call(server)."""
    opened = []

    def open_stubs(server):
        opened.append(Rpc(server.host))
        return opened[-1]

    yield open_stubs
    for each in opened:
        each.close()


def test_a_span_for_a_request(traced, call, collector):
    server = traced("--otlp-sample", "0", "--slow-request", "0")
    rpc = call(server)
    table = rpc.create_table("t")
    rpc.mutate_rows(table, [(key, [set_cell("f", b"q", b"v")]) for key in (b"a", b"b")])
    rpc.read(table, metadata=traceparent("01"))
    collector.wait(lambda all: all.spans)
    (span,) = [each for each in collector.spans if each.kind == SERVER]  # no other was sampled
    assert span.trace_id.hex() == TRACE
    assert span.parent_span_id.hex() == SPAN
    assert len(span.span_id) == 8 and span.span_id.hex() != SPAN
    assert span.name == f"{SERVICE}/ReadRows"
    assert span.kind == SERVER
    assert 0 < span.start_time_unix_nano < span.end_time_unix_nano
    assert span.status.code == 0
    found = attributes_of(span)
    assert found.pop("trestle.client_us") >= 0 and found.pop("trestle.answer_bytes") > 0
    assert found.pop("trestle.request_bytes") > 0
    assert found == {
        "rpc.system": "grpc",
        "rpc.service": SERVICE,
        "rpc.method": "ReadRows",
        "rpc.grpc.status_code": 0,
        "trestle.resource": table,
        "trestle.rows": 2,
        "trestle.rows_seen": 2,
    }
    path, headers = collector.requests[0]
    assert path == "/v1/traces"
    assert headers["content-type"] == "application/x-protobuf"
    version = run_trestle("--version").stdout.split()[1]
    assert collector.resources[0] == {"service.name": "trestle", "service.version": version}
    server.stop()


# --- steps ---


def check_steps(collector, request):
    """Its steps come one after the other, within it, and are told as its own: their names."""
    steps = collector.within(request)
    at = request.start_time_unix_nano
    for step in steps:
        assert step.kind == WITHIN and step.trace_id == request.trace_id
        assert at <= step.start_time_unix_nano < step.end_time_unix_nano, step.name
        at = step.end_time_unix_nano
    assert at <= request.end_time_unix_nano
    assert len({step.span_id for step in steps} | {request.span_id}) == len(steps) + 1
    return [step.name for step in steps]


@pytest.fixture
def steps_of(traced, call, collector):
    """A function that has a server do something, and names the steps of each request of a method:
    steps_of(act, "ReadRows", *settings)."""

    def run(act, method, *settings):
        server = traced("--otlp-sample", "1", *settings)
        act(call(server), server)
        server.stop()  # sends what waits
        return [check_steps(collector, request) for request in collector.named(f"/{method}")]

    return run


def test_a_write_tells_its_commit(steps_of):
    def act(rpc, _):
        table = rpc.create_table("t")
        rpc.mutate(table, b"a", set_cell("f", b"q", b"v"))

    (steps,) = steps_of(act, "MutateRow")
    assert steps[-1] == "commit"
    assert set(steps) <= {"receive", "wait_for_lock", "wait_for_commit", "commit"}


def test_many_writes_tell_their_commit(steps_of):
    def act(rpc, _):
        table = rpc.create_table("t")
        rpc.mutate_rows(table, [(b"%d" % i, [set_cell("f", b"q", b"v")]) for i in range(50)])

    (steps,) = steps_of(act, "MutateRows")
    assert "commit" in steps and set(steps) <= {"receive", "commit"}


def test_an_update_tells_what_it_read_and_its_commit(steps_of):
    def act(rpc, _):
        table = rpc.create_table("t")
        rpc.mutate(table, b"a", set_cell("f", b"q", b"v" * (1 << 20)))
        rpc.check_and_mutate(table, b"a", true=[set_cell("f", b"q", b"w")])

    (steps,) = steps_of(act, "CheckAndMutateRow")
    assert steps.index("read") < steps.index("commit")


def test_a_scan_tells_that_it_read(steps_of):
    def act(rpc, _):
        table = rpc.create_table("t")
        rpc.mutate_rows(table, [(b"%d" % i, [set_cell("f", b"q", b"v")]) for i in range(2000)])
        assert len(rpc.read(table)) == 2000

    (steps,) = steps_of(act, "ReadRows")
    assert "read" in steps


def test_a_query_tells_that_it_ran(steps_of):
    def act(rpc, server):
        rpc.create_table("t")
        run_trestle("sql", "--endpoint", server.host, "-e", "SELECT * FROM t").check_returncode()

    assert ["query" in steps for steps in steps_of(act, "ExecuteQuery")] == [True]


def test_a_delay_on_purpose_is_told(steps_of, collector):
    def act(rpc, _):
        rpc.read(rpc.create_table("t"))

    (steps,) = steps_of(act, "ReadRows", "--inject", "ReadRows: delay=20ms")
    assert "delay" in steps
    (delay,) = collector.named("delay")
    assert delay.end_time_unix_nano - delay.start_time_unix_nano >= 20_000_000


def test_a_client_that_does_not_read_is_told(steps_of):
    def act(rpc, server):
        table = rpc.create_table("t")
        for i in range(32):
            rpc.mutate(table, b"%02d" % i, set_cell("f", b"q", bytes(1 << 20)))
        answers = rpc.data.read_rows(types.ReadRowsRequest(table_name=table))
        next(answers)
        before = 0  # until next to nothing is sent any more
        while (sent := server.metric("sent_bytes_total")) - before > 64 << 10:
            before = sent
            time.sleep(0.2)
        assert sum(1 for _ in answers) > 0

    (steps,) = steps_of(act, "ReadRows")
    assert "wait_for_client" in steps


# --- which are traced ---


def test_slow_ones_are_traced_whatever_the_client_says(traced, call, collector):
    rpc = call(traced("--otlp-sample", "0", "--slow-request", "1us"))
    table = rpc.create_table("t")
    rpc.read(table, metadata=traceparent("00"))
    collector.wait(lambda all: all.named("/ReadRows") and all.named("/CreateTable"))
    (read,) = collector.named("/ReadRows")
    (made,) = collector.named("/CreateTable")
    assert read.trace_id.hex() == TRACE
    assert made.trace_id != read.trace_id and len(made.trace_id) == 16
    assert not made.parent_span_id
    assert attributes_of(read)["trestle.slow"] and attributes_of(made)["trestle.slow"]


def test_one_in_so_many(traced, call, collector):
    server = traced("--otlp-sample", "5", "--slow-request", "0")
    rpc = call(server)
    table = rpc.create_table("t")  # the first of five
    for _ in range(20):
        rpc.read(table)
    server.stop()  # sends what waits
    assert [len(collector.named(f"/{name}")) for name in ("CreateTable", "ReadRows")] == [1, 4]


def test_errors(traced, call, collector):
    rpc = call(traced("--otlp-sample", "1"))
    with fails_with(StatusCode.NOT_FOUND):
        rpc.get_table(f"{INSTANCE}/tables/missing")
    with fails_with(StatusCode.UNIMPLEMENTED):
        rpc.channel.unary_unary("/no.such.Service/Method")(b"")
    collector.wait(lambda all: all.named("/GetTable") and all.named("unknown"))
    (missing,) = collector.named("/GetTable")
    (unknown,) = collector.named("unknown")
    assert missing.status.code == 0  # the client's own fault
    assert attributes_of(missing)["rpc.grpc.status_code"] == StatusCode.NOT_FOUND.value[0]
    assert (unknown.status.code, unknown.status.message) == (ERROR, "UNIMPLEMENTED")


def test_requests_by_rest(traced, collector):
    server = traced("--otlp-sample", "1")
    server.get("/v2/projects/p/instances")
    collector.wait(lambda all: all.named("/ListInstances"))


def test_a_path_of_ones_own(traced, call, collector):
    rpc = call(traced("--otlp-sample", "1", endpoint=f"{collector.url}/otlp"))
    rpc.create_table("t")
    collector.wait(lambda all: all.requests)
    assert collector.requests[0][0] == "/otlp"


def test_headers_of_the_collector(traced, call, collector, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("Bearer first\n")
    headers = f"x-tenant=blue, authorization=@{secret}"
    rpc = call(traced("--otlp-sample", "1", "--otlp-headers", headers))
    rpc.create_table("t")
    collector.wait(lambda all: all.requests)
    _, first = collector.requests[0]
    assert (first["x-tenant"], first["authorization"]) == ("blue", "Bearer first")
    assert first["content-type"] == "application/x-protobuf"
    secret.write_text("Bearer second\n")
    count = len(collector.requests)
    rpc.create_table("u")
    collector.wait(lambda all: len(all.requests) > count)
    assert collector.requests[-1][1]["authorization"] == "Bearer second"


def test_a_secret_that_is_gone(traced, call, collector, tmp_path):
    """Nothing is sent without it, and requests go on."""
    secret = tmp_path / "secret"
    secret.write_text("Bearer first")
    server = traced("--otlp-sample", "1", "--otlp-headers", f"authorization=@{secret}")
    secret.unlink()
    call(server).create_table("t")
    wait_until(lambda: server.metric("trace_spans_dropped_total") > 0)
    server.stop()
    assert collector.requests == []
    assert str(secret) in server.stderr()


def test_a_collector_that_refuses(traced, call, collector):
    """The log says so, without the password that is in its URL."""
    collector.answer = 400
    url = collector.url.replace("://", "://user:hunter2@") + "/v1/traces?key=hunter2"
    server = traced("--otlp-sample", "1", endpoint=url)
    rpc = call(server)
    table = rpc.create_table("t")
    collector.wait(lambda all: all.requests)
    rpc.mutate(table, b"a", set_cell("f", b"q", b"v"))
    assert rpc.read(table)
    server.stop()
    assert "spans are lost" in server.stderr()
    assert f"{collector.url}/v1/traces answered 400" in server.stderr()
    assert "hunter2" not in server.stderr()
    path, headers = collector.requests[0]
    assert path.endswith("?key=hunter2") and headers["Authorization"].startswith("Basic ")
    assert collector.spans == []


def test_a_collector_that_comes_back(traced, call, collector):
    collector.answer = 503
    rpc = call(traced("--otlp-sample", "1"))
    rpc.create_table("t")
    collector.wait(lambda all: all.requests)
    collector.answer = 200
    collector.wait(lambda all: all.named("/CreateTable"))


def test_no_collector(fresh_server, call):
    """Nobody listens: requests go on, and their spans are counted as lost."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        server = fresh_server(
            "--otlp-endpoint", f"http://127.0.0.1:{place.getsockname()[1]}", "--otlp-sample", "1",
            env=NO_PROXY,
        )  # fmt: skip
        rpc = call(server)
        table = rpc.create_table("t")
        rpc.mutate(table, b"a", set_cell("f", b"q", b"v"))
        for _ in range(50):
            assert rpc.read(table)
        wait_until(lambda: server.metric("trace_spans_dropped_total") >= 52)
        assert server.metric("trace_spans_sent_total") == 0
        server.stop()


def wait_until(is_so):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("endpoint", ["collector:4318", "ftp://collector", "http://", "https:///x"])
def test_what_is_no_endpoint(endpoint, tmp_path):
    done = run_trestle(
        "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path, "--otlp-endpoint", endpoint
    )
    assert done.returncode != 0
    assert "--otlp-endpoint" in done.stderr and endpoint in done.stderr


def test_a_password_in_what_is_no_endpoint(tmp_path):
    done = run_trestle(
        "serve", "--check", "--data-dir", tmp_path, "--otlp-endpoint", "ftp://u:hunter2@collector"
    )
    assert "--otlp-endpoint: ftp://collector is no http://" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "headers", ["nothing", "=x", "a b=c", "x=", "a=b,", "x=a\x01b", "x=@/missing", "x=@empty"]
)
def test_what_are_no_headers(headers, tmp_path):
    (tmp_path / "empty").write_text("\n")
    headers = headers.replace("@empty", f"@{tmp_path}/empty")
    done = run_trestle(
        "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data",
        "--otlp-endpoint", "http://127.0.0.1:1", "--otlp-headers", headers,
    )  # fmt: skip
    assert done.returncode != 0
    assert "--otlp-headers" in done.stderr or "/missing" in done.stderr
