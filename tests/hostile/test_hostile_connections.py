"""Connections that never get to a request, or take for ever; and bytes that are no HTTP/2."""

import contextlib
import errno
import os
import select
import socket
import struct

import grpc
import pytest
from harness.http2 import Http2
from harness.patience import PATIENCE_SECONDS
from harness.rpc import Rpc, fails_with, set_cell
from harness.server import Server, run_trestle
from raw import PREFACE, frame

OLD_PROTOCOLS = {
    "zeroes": bytes(10_000),
    "a TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(512),
    "SSH": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    "a preface with a typing error": b"PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n" + bytes(1000),
    "HTTP/0.9": b"GET /\r\n",
    "no method": b"\r\n\r\n\r\n" * 1000,
    "random bytes": os.urandom(100_000),
    "a line without an end": b"GET /" + b"a" * 10_000_000,
    "a header without an end": b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 10_000_000,
    "headers without an end": b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 1_000_000,
    "a body nobody wants": b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
    + b"a" * 10_000_000,
    "chunks": b"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"ffffffffffffffff\r\n" + bytes(100_000),
    "two lengths": b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 5\r\n"
    + b"\r\naaaaa",
    "a negative length": b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "a NUL in a header": b"GET /livez HTTP/1.1\r\nHo\x00st: x\r\n\r\n",
    "an upgrade to HTTP/2": b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings"
    b"\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n",
    "a path upwards": b"GET /../../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
}  # fmt: skip


def connect(victim):
    address, port = victim.host.rsplit(":", 1)
    return socket.create_connection((address, int(port)), PATIENCE_SECONDS)


def end_sending(client):
    """Its peer may have reset the connection already."""
    try:
        client.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise


def exchange(victim, data):
    """Everything that the server says until it closes, after the client has said its last word."""
    with connect(victim) as client:
        said = b""
        try:
            client.sendall(data)
            end_sending(client)
            while piece := client.recv(65536):
                said += piece
        except ConnectionError:
            pass
        return said


@pytest.mark.parametrize("data", OLD_PROTOCOLS.values(), ids=OLD_PROTOCOLS)
def test_bytes_that_are_no_http2(victim, data):
    """The connection ends; at most a page of HTTP/1.1 comes back, and it has no secrets."""
    with victim.attacked():
        said = exchange(victim, data)
        assert said == b"" or said.startswith(b"HTTP/1.1 ")
        assert b"root:" not in said
        assert len(said) < 65536


def test_health_is_answered_meanwhile(victim):
    with victim.attacked():
        clients = [connect(victim) for _ in range(100)]
        for client in clients:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
        assert victim.server.get("/livez")[0] == 200
        for client in clients:
            client.close()


def test_more_idle_http1_connections_than_there_are_places(victim):
    """They are turned away or served, and gRPC does not notice."""
    with victim.attacked(megabytes=128):
        clients = [connect(victim) for _ in range(400)]
        for client in clients:
            with contextlib.suppress(ConnectionError):
                client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
        for client in clients:
            client.close()
    assert any(is_healthy(victim) for _ in range(1000))


def is_healthy(victim):
    """False also if there is no place."""
    try:
        return victim.server.get("/livez")[0] == 200
    except OSError:
        return False


def is_closed_by_server(client):
    client.settimeout(PATIENCE_SECONDS)
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("said", [b"", PREFACE[:1], PREFACE[:-1]], ids=["", "one byte", "most"])
def test_half_open_connections_are_closed(victim, said):
    """300 clients that never say which protocol they speak."""
    with victim.attacked():
        clients = [connect(victim) for _ in range(300)]
        for client in clients:
            client.sendall(said)
        assert all(map(is_closed_by_server, clients))


def test_slow_loris(victim):
    """A preface byte by byte, each in the time that a bystander needs for its requests."""
    with victim.attacked() as bystander:
        clients = [connect(victim) for _ in range(50)]
        for i in range(len(PREFACE) - 1):
            for client in clients:
                client.sendall(PREFACE[i : i + 1])
            bystander.is_served()
        assert all(map(is_closed_by_server, clients))


def test_slow_preface_is_no_crime(victim, attack):
    with victim.attacked():
        raw = attack(preface=b"")
        for i in range(len(PREFACE)):
            raw.write(PREFACE[i : i + 1])
        raw.write(frame(4, 0, 0, b""))
        assert raw.ping()


def test_frame_that_never_ends(victim, attack):
    """Connections that stop within a frame hold little, and no one up."""
    with victim.attacked(megabytes=128):
        for i in range(200):
            raw = attack()
            raw.write(frame(0, 0, 1, bytes(16000))[: 9 + i])


def test_connections_that_are_reset(victim):
    """RST instead of FIN, at all stages."""
    linger = struct.pack("ii", 1, 0)
    beginnings = [b"", PREFACE[:5], PREFACE, PREFACE + frame(4, 0, 0, b""), b"GET / HTTP/1.1\r\n"]
    with victim.attacked():
        for said in beginnings * 60:
            client = connect(victim)
            client.sendall(said)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            client.close()


def test_connection_that_is_shut_down_at_one_end(victim, attack):
    """The client has said all it will say, and still gets its answer."""
    with victim.attacked():
        raw = attack()
        raw.ping()
        stream = raw.call("NoSuchMethod", b"")
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.outcome(stream).status == 12


def test_more_connections_than_allowed(tmp_path):
    """Those within the limit are served, those beyond are closed at once."""
    server = Server(tmp_path, ["--max-connections", "20"]).start()
    try:
        rpc = Rpc(server.host)
        name = rpc.create_table("t")
        address, port = server.host.rsplit(":", 1)
        clients = [socket.create_connection((address, int(port))) for _ in range(100)]
        closed, _, _ = select.select(clients, [], [], PATIENCE_SECONDS)
        assert all(client.recv(1) == b"" for client in closed)
        assert rpc.read(name) == []
        assert sum(is_closed_by_server(client) for client in clients) == 100
        assert rpc.read(name) == []
        rpc.close()
        for client in clients:
            client.close()
    finally:
        server.close()


def test_an_operator_of_a_full_server(tmp_path):
    """From loopback there are a few places more, but not for data."""
    server = Server(tmp_path, ["--max-connections", "4"]).start()
    rpc, opened = None, []
    try:
        opened = [Http2(server.host) for _ in range(4)]
        assert server.get("/readyz") == (200, "ok\n")
        status = run_trestle("status", "--endpoint", server.host, "--interval", "100ms")
        assert status.returncode == 0, status.stderr
        rpc = Rpc(server.host)
        name = rpc.create_table("t")
        with fails_with(grpc.StatusCode.RESOURCE_EXHAUSTED, "max-connections"):
            rpc.mutate(name, b"k", set_cell("f", b"q", b"v", 1000))
        assert server.metric("connections_reserved_total") >= 3
        address, port = server.host.rsplit(":", 1)
        opened += [socket.create_connection((address, int(port))) for _ in range(40)]
        assert any(is_closed_by_server(client) for client in opened[-1:])
        assert "as many as max-connections" in server.stderr()
    finally:
        for each in opened:
            each.close()
        if rpc is not None:
            rpc.close()
        server.close()
