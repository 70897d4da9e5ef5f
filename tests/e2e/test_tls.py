"""Mutual TLS, and certificates that change while the server runs."""

import os
import signal
import time

import grpc
import pytest
from grpc import StatusCode
from harness.certificates import Authority
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with


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

    intact = cert.read_bytes()
    cert.write_bytes(b"no certificate\n")
    tell()
    wait_until(lambda: "cannot read files again" in server.stderr())
    assert serves(old)
    cert.write_bytes(intact)
    tell()
    wait_until(lambda: "files read again" in server.stderr())

    fresh_cert, fresh_key = new.issue("server", "/CN=localhost")
    os.replace(fresh_key, key)
    os.replace(fresh_cert, cert)
    tell()
    wait_until(lambda: serves(new))
    assert not serves(old)
    assert before.read(name) == []
