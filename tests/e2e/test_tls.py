"""Mutual TLS, and certificates that change while the server runs."""

import contextlib
import os
import re
import signal
import socket
import ssl
import time

import grpc
import pytest
from cryptography import x509
from grpc import StatusCode
from harness.certificates import Authority
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with
from harness.server import http_get, run_trestle


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def credentials_of(authority, identity=None):
    """Of a client that trusts the authority, and shows a certificate if it has an identity."""
    certificate, key = identity or (None, None)
    return grpc.ssl_channel_credentials(
        authority.certificate.read_bytes(),
        key and key.read_bytes(),
        certificate and certificate.read_bytes(),
    )


def tls_flags(identity, *more):
    return ["--tls-cert", identity[0], "--tls-key", identity[1], *more]


def metrics_of(server, authority):
    context = ssl.create_default_context(cafile=authority.certificate)
    return http_get(f"https://{server.host}/metrics", context)[1]


def end_of(certificate):
    """Of one in PEM: seconds since 1970."""
    parsed = x509.load_pem_x509_certificate(certificate.encode())
    return parsed.not_valid_after_utc.timestamp()


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_certificate_is_required(fresh_server, connect, authority, tmp_path):
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other").issue("client", "/CN=alice")
    server = fresh_server(
        *tls_flags(authority.issue("server", "/CN=localhost")),
        "--tls-client-ca", authority.certificate,
    )  # fmt: skip
    alice = authority.issue("client", "/CN=alice")
    assert connect(server.host, credentials_of(authority, alice)).create_table("t")
    for refused in None, stranger:
        with fails_with(StatusCode.UNAVAILABLE):
            connect(server.host, credentials_of(authority, refused)).create_table("u")
    wait_until(lambda: handshakes(server, "peer did not return a certificate"))
    wait_until(lambda: handshakes(server, "unable to get local issuer certificate"))
    check_the_log(server)


def handshakes(server, error):
    """Lines of the log about those that failed for this."""
    lines = [line for line in server.stderr().splitlines() if "TLS handshake failed" in line]
    found = [line for line in lines if error in line]
    assert all(re.search(r"level=warn .* peer=127\.0\.0\.1:\d+ ", line) for line in found)
    return found


def check_the_log(server):
    """It has who spoke no TLS, or an old one, and not who only came and went; and it is bounded."""
    host, port = server.host.split(":")

    def speak(data):
        with (
            contextlib.suppress(ConnectionError),  # what it has not read resets the connection
            socket.create_connection((host, int(port)), PATIENCE_SECONDS) as plain,
        ):
            plain.sendall(data)
            while data and plain.recv(4096):
                pass

    before = len(handshakes(server, ""))
    speak(b"")
    speak(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    speak(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert len(handshakes(server, "the other side does not speak TLS")) == 2
    speak(TLS_1_1_HELLO)
    assert handshakes(server, "the other side speaks no TLS as new as 1.2")
    assert len(handshakes(server, "")) == before + 3
    told, failures, untold = before + 3, 0, 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while untold == 0:  # until there were more in a second than it tells, and one that said so
        assert time.monotonic() < deadline
        failures += speak_at_once(host, int(port))
        lines = handshakes(server, "")[told:]
        untold = sum(int(re.search(r"untold=(\d+)", line)[1]) for line in lines)
        assert len(lines) + untold <= failures


def speak_at_once(host, port, count=100):
    """As many as `count` that speak no TLS, none of whom waits for another's end: one at a time
    were fewer in a second than are told, where processors are busy. Returns `count`."""
    with contextlib.ExitStack() as stack:
        others = [
            stack.enter_context(socket.create_connection((host, port), PATIENCE_SECONDS))
            for _ in range(count)
        ]
        for other in others:
            with contextlib.suppress(ConnectionError):
                other.sendall(b"GET / HTTP/1.0\r\n\r\n")
        for other in others:
            with contextlib.suppress(ConnectionError):
                while other.recv(4096):
                    pass
    return count


# A ClientHello of version 1.1, with two ciphers of its time.
TLS_1_1_HELLO = (
    b"\x16\x03\x02\x00\x2d\x01\x00\x00\x29\x03\x02" + b"A" * 32 + b"\x00\x00\x02\xc0\x13\x01\x00"
)


def test_a_certificate_is_optional(fresh_server, connect, authority, tmp_path):
    """But one that is shown must be good."""
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other").issue("client", "/CN=alice")
    server = fresh_server(
        *tls_flags(authority.issue("server", "/CN=localhost")),
        "--tls-client-ca", authority.certificate, "--tls-client-certs", "optional",
    )  # fmt: skip
    assert connect(server.host, credentials_of(authority)).create_table("t")
    with fails_with(StatusCode.UNAVAILABLE):
        connect(server.host, credentials_of(authority, stranger)).create_table("u")


def check_advice(server, authority, tmp_path):
    """Who has TLS's options wrong is told which."""
    (tmp_path / "stranger").mkdir()
    for flags, words in [
        ([], "(if it wants TLS: --tls, --ca FILE)"),
        (["--tls"], "(--ca FILE says who may have signed its certificate)"),
        (["--ca", Authority(tmp_path / "stranger").certificate], "(--ca FILE says who may"),
    ]:
        done = run_trestle("status", "--endpoint", server.host, *flags)
        assert (done.returncode, words in done.stderr) == (1, True), done.stderr
    done = run_trestle("status", "--endpoint", server.host, "--ca", authority.certificate)
    assert done.returncode == 0, done.stderr


def test_advice_of_a_server_without_tls(server, authority):
    for flags in (["--tls"], ["--ca", authority.certificate]):
        done = run_trestle("status", "--endpoint", server.host, *flags)
        assert done.returncode == 1
        assert "leave --tls and --ca out" in done.stderr, done.stderr


def test_an_authority_goes_while_the_certificate_cannot_be_read(fresh_server, connect, tmp_path):
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    own, other = Authority(tmp_path / "own", "own"), Authority(tmp_path / "other", "other")
    alice, bob = own.issue("client", "/CN=alice"), other.issue("client", "/CN=bob")
    trusted, (certificate, key) = tmp_path / "trusted.pem", own.issue("server", "/CN=localhost")
    trusted.write_bytes(own.certificate.read_bytes() + other.certificate.read_bytes())
    server = fresh_server(
        *tls_flags((certificate, key)), "--tls-client-ca", trusted,
        "--tls-client-certs", "optional",
    )  # fmt: skip
    name = connect(server.host, credentials_of(own, bob)).create_table("t")

    certificate.write_bytes(b"no certificate\n")
    trusted.write_bytes(own.certificate.read_bytes())
    changed = r'files read again.* what="client authorities" changes="REMOVE authority=CN=other '
    wait_until(lambda: re.search(changed, server.stderr()))
    wait_until(lambda: re.search("cannot read files again.* what=TLS ", server.stderr()))
    assert connect(server.host, credentials_of(own, alice)).read(name) == []
    with fails_with(StatusCode.UNAVAILABLE):
        connect(server.host, credentials_of(own, bob)).read(name)
    page = metrics_of(server, own)
    assert 'trestle_reload_failed{what="tls"} 1' in page
    assert 'trestle_reload_failed{what="tls_client_ca"} 0' in page

    trusted.write_bytes(b"none\n")
    wait_until(lambda: 'reload_failed{what="tls_client_ca"} 1' in metrics_of(server, own))
    assert connect(server.host, credentials_of(own, alice)).read(name) == []


@pytest.mark.parametrize("how", ["signal", "watch"])
def test_a_new_certificate_without_a_restart(fresh_server, connect, tmp_path, how):
    """Old connections go on, new ones see the new certificate; a file that is broken meanwhile
    changes nothing."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    cert, key = old.issue("server", "/CN=localhost")
    server = fresh_server(*tls_flags((cert, key)))
    before = connect(server.host, credentials_of(old))
    name = before.create_table("t")

    def tell():
        if how == "signal":
            server.signal(signal.SIGHUP)

    def serves(authority):
        try:
            return connect(server.host, credentials_of(authority)).read(name) == []
        except grpc.RpcError as error:
            assert error.code() == StatusCode.UNAVAILABLE
            return False

    if how == "signal":
        check_advice(server, old, tmp_path)
    intact = cert.read_bytes()
    cert.write_bytes(b"no certificate\n")
    tell()
    wait_until(lambda: "cannot read files again" in server.stderr())
    assert serves(old)
    assert 'trestle_reload_failed{what="tls"} 1' in metrics_of(server, old)
    cert.write_bytes(intact)
    tell()
    wait_until(lambda: "files read again" in server.stderr())

    fresh_cert, fresh_key = new.issue("server", "/CN=localhost")
    fresh_cert_text = fresh_cert.read_text()
    os.replace(fresh_key, key)
    os.replace(fresh_cert, cert)
    tell()
    wait_until(lambda: serves(new))
    assert re.search(
        r"files read again.* what=TLS changes=\"CHANGE certificate=CN=localhost serial=\w+ "
        r"not_after=20\d\d-", server.stderr()
    )  # fmt: skip
    assert not serves(old)
    assert before.read(name) == []
    page = metrics_of(server, new)
    assert 'trestle_reload_failed{what="tls"} 0' in page
    assert re.search(r'^trestle_reload_failures_total\{what="tls"\} [1-9]', page, re.MULTILINE)
    assert re.search(r'^trestle_reloads_total\{what="tls"\} [1-9]', page, re.MULTILINE)
    expiry = re.search(r"^trestle_certificate_expiry_timestamp_seconds\{.*\} (\S+)$", page, re.M)
    assert float(expiry[1]) == end_of(fresh_cert_text)
