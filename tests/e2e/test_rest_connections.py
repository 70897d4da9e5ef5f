"""What REST has of its connections: HTTP/2 beside gRPC, TLS, who the client is, and what happens to
requests when the server drains or the client does not read."""

import contextlib
import json
import re
import signal
import socket
import ssl

import pytest
from google.cloud.bigtable_v2.types import bigtable as data_types
from harness.certificates import Authority
from harness.http2 import Http2
from harness.rest import WAYS, Rest, b64
from harness.rpc import INSTANCE, set_cell
from harness.tokens import token_line

ROWS, ROW_BYTES = 100, 100_000


def fill(rpc, name):
    """10 MB, more than any buffer on the way takes."""
    for first in range(0, ROWS, 20):
        keys = [b"%04d" % number for number in range(first, first + 20)]
        rows = [(key, [set_cell("f", b"q", bytes(ROW_BYTES))]) for key in keys]
        assert set(rpc.mutate_rows(name, rows)) == {0}


def rows_of(text):
    return [chunk["rowKey"] for message in json.loads(text) for chunk in message["chunks"]
            if "rowKey" in chunk]  # fmt: skip


def connect_to(host):
    address, port = host.rsplit(":", 1)
    return socket.create_connection((address, int(port)), 60)


@pytest.fixture
def http2(server):
    connection = Http2(server.host)
    yield connection
    connection.close()


# --- HTTP/2 ---


def test_grpc_and_rest_on_one_connection(http2, table_name):
    """A request goes by its content type and its path."""
    mutations = [set_cell("f", b"q", b"v")]
    request = data_types.MutateRowRequest.serialize(
        data_types.MutateRowRequest(table_name=table_name, row_key=b"k", mutations=mutations)
    )
    grpc_headers = {"content-type": "application/grpc", "te": "trailers"}
    message = b"\0" + len(request).to_bytes(4, "big") + request
    for _ in range(3):
        path = "/google.bigtable.v2.Bigtable/MutateRow"
        assert http2.ask("POST", path, message, grpc_headers).headers["grpc-status"] == "0"
        read = http2.ask("POST", f"/v2/{table_name}:readRows", b"{}")
        assert read.headers["content-type"] == "application/json; charset=UTF-8"
        assert rows_of(read.body) == [b64(b"k")]
    assert http2.ask("POST", "/google.bigtable.v2.Bigtable/MutateRow", b"{}").status == 415
    unknown = http2.ask("POST", f"/v2/{table_name}:readRows", message, grpc_headers)
    assert unknown.headers["grpc-status"] == "12"


def test_many_requests_at_once(http2, table_name):
    streams = [http2.start("GET", f"/v2/{table_name}") for _ in range(50)]
    for stream in reversed(streams):
        answer = http2.wait(stream)
        assert (answer.status, json.loads(answer.body)["name"]) == (200, table_name)


def test_pages(http2):
    assert http2.ask("GET", "/livez").body == b"ok\n"
    head = http2.ask("HEAD", "/metrics")
    assert (head.status, head.body) == (200, b"")
    assert http2.ask("POST", "/livez").status == 405
    assert http2.ask("GET", "/nothing").status == 404
    assert http2.ask("OPTIONS", "*").status == 404


def test_a_body_that_is_too_large(http2, table_name):
    """It says so and is refused at once; or it does not, and is refused when it gets there."""
    path = f"/v2/{table_name}:mutateRow"
    told = http2.start("POST", path, {"content-length": str(1 << 40)}, ends=False)
    assert http2.wait(told).status == 413
    untold = http2.start("POST", path, ends=False)
    http2.send(untold, bytes((64 << 20) + 1))
    assert http2.wait(untold).status == 413
    assert http2.ask("GET", "/livez").status == 200


def test_headers_that_are_too_many(http2):
    many = http2.ask("GET", "/livez", headers={f"x-{i}": "v" for i in range(200)})
    assert many.status == 431


def test_a_client_that_does_not_read(fresh_server, connect):
    """Its answer waits; others are served, and nothing of it is lost."""
    server = fresh_server("--threads", "1")
    rpc = connect(server.host)
    name = rpc.create_table("t", ("f",), ())
    fill(rpc, name)
    with contextlib.closing(Http2(server.host, reads=False)) as slow:
        stream = slow.start("POST", f"/v2/{name}:readRows")
        answer = slow.answers[stream]
        while len(answer.body) < 65535:  # a whole window
            slow.read()
        assert len(rows_of(Rest(server.host).ask("POST", f"/v2/{name}:readRows")[1])) == ROWS
        slow.reads = True
        for where in stream, None:
            slow.h2.increment_flow_control_window((1 << 31) - 1 - 65535, where)
        slow.flush()
        assert slow.wait(stream).is_whole
        assert len(rows_of(answer.body)) == ROWS


def test_a_client_that_resets_its_request(fresh_server, connect):
    """Its call is cancelled: the server has no calls then."""
    server = fresh_server("--threads", "1")
    rpc = connect(server.host)
    name = rpc.create_table("t", ("f",), ())
    fill(rpc, name)
    with contextlib.closing(Http2(server.host, reads=False)) as client:
        for _ in range(5):
            stream = client.start("POST", f"/v2/{name}:readRows")
            while not client.answers[stream].headers:
                client.read()
            client.h2.reset_stream(stream)
            client.flush()
        while server.metric("rpcs_running") > 0:
            pass
        client.start("POST", f"/v2/{name}:readRows")
    while server.metric("rpcs_running") > 0:
        pass


# --- the server drains ---


@pytest.fixture
def full_server(fresh_server, connect):
    """A server with 10 MB in a table, and the table's path."""
    server = fresh_server("--drain-timeout", "60s")
    rpc = connect(server.host)
    name = rpc.create_table("t", ("f",), ())
    fill(rpc, name)
    rpc.close()
    return server, f"/v2/{name}"


def test_a_drain_lets_answers_end(full_server):
    """Those of both versions that run, however long; connections that wait for a request are closed
    at once."""
    server, table = full_server
    request = f"POST {table}:readRows HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"
    old, idle = connect_to(server.host), connect_to(server.host)
    new = Http2(server.host, reads=False)
    with old, contextlib.closing(new), idle:
        idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
        old.sendall(request.encode())
        text = old.recv(1000)
        stream = new.start("POST", f"{table}:readRows")
        while not new.answers[stream].headers:
            new.read()
        server.signal(signal.SIGTERM)
        assert idle.recv(1000) == b""
        while not new.is_leaving:
            new.read()
        while more := old.recv(1 << 20):
            text += more
        assert text.endswith(b"\r\n0\r\n\r\n")
        new.reads = True
        for where in stream, None:
            new.h2.increment_flow_control_window((1 << 31) - 1 - 65535, where)
        new.flush()
        assert len(rows_of(new.wait(stream).body)) == ROWS
    assert server.wait() == 0


def test_a_drain_lets_a_request_come_in(fresh_server):
    """One that has begun is answered, and told that the connection ends."""
    server = fresh_server("--drain-timeout", "60s")
    body = b'{"tableId": "t"}'
    head = (
        f"POST /v2/{INSTANCE}/tables HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with connect_to(server.host) as client, connect_to(server.host) as idle:
        client.sendall(head.encode())
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(1000)
        server.signal(signal.SIGTERM)
        assert idle.recv(1000) == b""
        client.sendall(body)
        answer = b""
        while more := client.recv(1000):
            answer += more
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nConnection: close\r\n" in answer
    assert server.wait() == 0


# --- TLS, and who somebody is ---


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def secured(fresh_server, authority, tmp_path, request):
    """A server with TLS and access control: alice has a certificate, bob a token."""
    certificate, key = authority.issue("server", "/CN=localhost")
    (tmp_path / "tokens").write_text(token_line("bobs", "user:bob@example.com"))
    (tmp_path / "tokens").chmod(0o600)
    viewers = ["cert:CN=alice", "user:bob@example.com"]
    policy = {
        "projects/p": {"bindings": [{"role": "roles/bigtable.viewer", "members": viewers}]},
        "*": {"bindings": [{"role": "roles/bigtable.viewer", "members": ["cert:CN=alice"]}]},
    }
    (tmp_path / "policy").write_text(json.dumps(policy))
    (tmp_path / "policy").chmod(0o600)
    return fresh_server(
        "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.certificate,
        "--tls-client-certs", "optional", "--auth", "on", "--auth-tokens", tmp_path / "tokens",
        "--auth-policy", tmp_path / "policy", *getattr(request, "param", ()),
    )  # fmt: skip


def tls_context(authority, name=None):
    context = ssl.create_default_context(cafile=authority.certificate)
    if name is not None:
        context.load_cert_chain(*authority.issue(name, f"/CN={name}"))
    return context


@pytest.mark.parametrize("way", WAYS)
def test_who_somebody_is(secured, authority, way):
    """The certificate, unless there is a token; the audit log has the client's address."""
    path, token = f"/v2/{INSTANCE}/tables", {"Authorization": "Bearer bobs"}
    nobody = Rest(secured.host, way, tls_context(authority))
    alice = Rest(secured.host, way, tls_context(authority, "alice"))
    mallory = Rest(secured.host, way, tls_context(authority, "mallory"))
    for _ in range(2):  # they share a connection inside the server, which remembers nobody
        status, headers, _ = nobody.ask_for_all("GET", path)
        assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="Trestle"')
        assert alice.ask("GET", path)[0] == 200
        assert mallory.ask("GET", path)[0] == 403
        assert mallory.ask("GET", path, headers=token)[0] == 200
        assert nobody.ask("GET", path, headers=token)[0] == 200
        assert alice.ask("GET", path, headers={"Authorization": "Bearer x"})[0] == 401
        forged = {"trestle-client-subject-bin": b64(b"CN=alice"), "trestle-client-address": "x"}
        assert nobody.ask("GET", path, headers=forged)[0] == 401
    log = secured.stderr()
    for principal in '"cert:CN=alice"', '"cert:CN=mallory"', "user:bob@example.com":
        assert f" principal={principal} " in log
    audited = [line for line in log.splitlines() if "msg=audit" in line]
    assert all(" peer=127.0.0.1:" in line for line in audited)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("secured", [[], ["--metrics-auth"]], indirect=True, ids=["open", "closed"])
def test_who_may_see_pages(secured, authority, way):
    is_closed = "--metrics-auth" in secured.arguments
    nobody = Rest(secured.host, way, tls_context(authority))
    alice = Rest(secured.host, way, tls_context(authority, "alice"))
    token = {"Authorization": f"Bearer {(secured.data / 'admin-token').read_text().strip()}"}
    bob, stranger = {"Authorization": "Bearer bobs"}, {"Authorization": "Bearer x"}
    assert nobody.ask("GET", "/livez")[0] == nobody.ask("GET", "/readyz")[0] == 200
    status, _, page = alice.ask_for_all("GET", "/metrics")
    assert status == 200
    # Names of tables and directories are not for everybody.
    assert ('trestle_table_bytes{table="other"} 0' in page) == is_closed
    assert ("trestle_place_free_bytes" in page) <= is_closed
    assert re.search(r'^trestle_certificate_expiry_timestamp_seconds\{listener=', page, re.M)
    assert nobody.ask("GET", "/metrics", headers=token)[0] == 200
    assert nobody.ask("GET", "/metrics", headers=bob)[0] == (403 if is_closed else 200)
    for headers in {}, stranger:
        status, fields, page = nobody.ask_for_all("GET", "/metrics", headers=headers)
        assert status == (401 if is_closed else 200)
        assert ("www-authenticate" in fields) == is_closed
        assert ("trestle_" in page) != is_closed
