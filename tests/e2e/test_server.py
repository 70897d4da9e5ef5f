"""The server as an operator meets it: settings, addresses, health, TLS, start and stop."""

import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess

import grpc
import pytest
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, RowDecoder, fails_with, set_cell
from harness.server import http_get, run_trestle

DATA_SERVICE = "google.bigtable.v2.Bigtable"
ADMIN_SERVICE = "google.bigtable.admin.v2.BigtableTableAdmin"


# --- settings ---


def refused(*arguments, env=None):
    """The one line that `trestle serve ARGUMENTS` refuses with."""
    done = run_trestle("serve", *arguments, env=env)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_help():
    for arguments in (["--help"], ["serve", "--help"]):
        done = run_trestle(*arguments)
        assert done.returncode == 0
        assert done.stderr == ""
    assert "--data-dir" in done.stdout
    assert "TRESTLE_DATA_DIR" in done.stdout


def test_version():
    done = run_trestle("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("trestle ")


def test_unknown_command():
    done = run_trestle("srve")
    assert done.returncode == 2
    assert "srve" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--no-such-setting", "1"], "no-such-setting"),
        (["--durability", "maybe"], "durability"),
        (["--cache", "much"], "cache"),
        (["--listen", "nowhere"], "listen"),
        (["--listen", "127.0.0.1:99999"], "listen"),
        (["--listen", "0.0.0.0:0"], "insecure"),
        (["--tls-cert", "/dev/null"], "tls"),
        (["stray"], "stray"),
    ],
)
def test_settings_that_are_refused(tmp_path, arguments, names):
    assert names in refused("--data-dir", tmp_path / "data", *arguments)
    assert not (tmp_path / "data").exists()


def test_environment_that_is_refused(tmp_path):
    line = refused("--data-dir", tmp_path / "data", env={"TRESTLE_DURABILITY": "maybe"})
    assert "TRESTLE_DURABILITY" in line


def test_config_file_that_is_refused(tmp_path):
    config = tmp_path / "trestle.conf"
    config.write_text("cache = 64MB\nno-such-setting = 1\n")
    line = refused("--config", config)
    assert "trestle.conf:2" in line
    assert "no-such-setting" in line
    assert str(tmp_path / "missing.conf") in refused("--config", tmp_path / "missing.conf")


def test_config_file_that_is_read(fresh_server, tmp_path):
    config = tmp_path / "trestle.conf"
    config.write_text("# how logs look\nlog-format = json\n")
    server = fresh_server("--config", config)
    server.stop()
    lines = [json.loads(line) for line in server.stderr().splitlines()]
    assert lines
    assert all({"time", "level", "msg"} <= set(line) for line in lines)


def test_log_is_logfmt(fresh_server):
    server = fresh_server()
    server.stop()
    lines = server.stderr().splitlines()
    assert lines
    assert all(line.startswith("time=") and " level=" in line for line in lines)


def test_durability_async_keeps_what_a_kill_of_the_process_leaves(fresh_server, connect):
    server = fresh_server("--durability", "async")
    rpc = connect(server.host)
    name = rpc.create_table("t")
    for i in range(100):
        rpc.mutate(name, b"%03d" % i, set_cell("f", b"q", b"v"))
    server.kill()
    server.start()
    assert len(connect(server.host).read(name)) == 100


# --- the data directory ---


def test_second_server_on_a_directory(fresh_server, connect):
    server = fresh_server()
    done = run_trestle("serve", "--listen", "127.0.0.1:0", "--data-dir", server.data)
    assert done.returncode not in (0, -signal.SIGABRT, -signal.SIGSEGV)
    assert str(server.data) in done.stderr
    assert connect(server.host).create_table("still-alive")


def test_data_directory_that_is_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("not a directory")
    done = run_trestle("serve", "--listen", "127.0.0.1:0", "--data-dir", path)
    assert done.returncode > 0
    assert str(path) in done.stderr


def test_data_directory_is_for_its_owner(fresh_server):
    server = fresh_server()
    assert stat.S_IMODE(os.stat(server.data).st_mode) & 0o077 == 0


def test_address_in_use(fresh_server, tmp_path):
    server = fresh_server()
    done = run_trestle("serve", "--listen", server.host, "--data-dir", tmp_path / "other")
    assert done.returncode > 0
    assert server.host in done.stderr


# --- health ---


def test_http_pages(server):
    assert server.get("/livez")[0] == 200
    assert server.get("/readyz")[0] == 200
    assert server.get("/no-such-page")[0] == 404


def test_metrics(server, rpc, table_name):
    rpc.mutate(table_name, b"k", set_cell("f", b"q", b"v"))
    status, page = server.get("/metrics")
    assert status == 200
    samples = [line for line in page.splitlines() if line and not line.startswith("#")]
    assert samples
    for line in samples:
        name, value = line.rsplit(" ", 1)
        float(value)
        assert name.startswith(("trestle_", "process_"))
    assert "MutateRow" in page
    told = re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE)
    listed = run_trestle("serve", "--metrics-markdown").stdout
    rows = re.findall(r"^\| `(\w+)(?:\{.*\})?` \| (\w+) \|", listed, re.MULTILINE)
    # Without TLS there is no certificate; there are no peers; space is asked for after a start, and
    # advice a minute later; no schedule is set, no stream is read, and another test may have left a
    # view or not.
    missing = set(rows) - set(told)
    assert {name for name, _ in missing} <= {
        "trestle_advice_waiting",
        "trestle_certificate_expiry_timestamp_seconds", "trestle_place_free_bytes",
        "trestle_peer_clock_ahead_seconds", "trestle_peer_heard_timestamp_seconds",
        "trestle_replication_delay_seconds", "trestle_replication_parked",
        "trestle_replication_changes_total", "trestle_replication_bytes_total",
        "trestle_replication_latency_seconds", "trestle_replication_queue_bytes",
        "trestle_replication_parked_total",
        "trestle_table_backup_failures_total", "trestle_whole_backup_failures_by_cause_total",
        "trestle_scheduled_backup_newest_timestamp_seconds",
        "trestle_scheduled_backup_failures_total", "trestle_scheduled_backup_overdue",
        "trestle_table_change_stream_readers", "trestle_table_change_stream_lag_seconds",
        "trestle_table_change_stream_left_seconds", "trestle_table_change_log_bytes",
        "trestle_view_bytes", "trestle_view_intermediate_bytes", "trestle_view_excluded_rows",
        "trestle_view_changes_total", "trestle_view_lag_seconds", "trestle_view_user_errors_total",
        "trestle_view_system_errors_total",
    }  # fmt: skip
    assert sorted(told) == sorted(set(rows) - missing)


def test_metrics_of_the_store(server, rpc, table_name):
    def now(name):
        page = server.get("/metrics")[1]
        return int(re.search(rf"^trestle_{name} (\d+)$", page, re.MULTILINE)[1])

    syncs, written = now("store_syncs_total"), now("store_written_bytes_total")
    rpc.mutate(table_name, b"k", set_cell("f", b"q", b"v" * 10000))
    assert now("store_syncs_total") > syncs
    assert now("store_written_bytes_total") >= written + 10000
    assert now("store_write_buffer_bytes") > 0
    assert now("store_log_bytes") > 0


def test_grpc_health(rpc):
    stub = health_pb2_grpc.HealthStub(rpc.channel)
    serving = health_pb2.HealthCheckResponse.SERVING
    for service in ("", DATA_SERVICE, ADMIN_SERVICE):
        request = health_pb2.HealthCheckRequest(service=service)
        assert stub.Check(request, timeout=PATIENCE_SECONDS).status == serving
    with fails_with(StatusCode.NOT_FOUND):
        request = health_pb2.HealthCheckRequest(service="no.such.Service")
        stub.Check(request, timeout=PATIENCE_SECONDS)


def test_reflection(rpc):
    stub = reflection_pb2_grpc.ServerReflectionStub(rpc.channel)
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=DATA_SERVICE),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="no.such.Symbol"),
    ]
    listing, found, missing = stub.ServerReflectionInfo(iter(requests), timeout=PATIENCE_SECONDS)
    services = {service.name for service in listing.list_services_response.service}
    assert {DATA_SERVICE, ADMIN_SERVICE, "grpc.health.v1.Health"} <= services
    assert found.file_descriptor_response.file_descriptor_proto
    assert missing.error_response.error_code == StatusCode.NOT_FOUND.value[0]


# --- RPCs that are not there, and one that says so politely ---


def call_raw(rpc, method, request=b""):
    return rpc.channel.unary_unary(method)(request, timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "method",
    [
        f"/{DATA_SERVICE}/NoSuchMethod",
        "/no.such.Service/Method",
        f"/{DATA_SERVICE}/OpenTable",
        f"/{ADMIN_SERVICE}/SnapshotTable",
        "/google.bigtable.admin.v2.BigtableInstanceAdmin/NoSuchMethod",
    ],
)
def test_methods_that_are_not_there(rpc, method):
    with fails_with(StatusCode.UNIMPLEMENTED):
        call_raw(rpc, method)


def test_sessions_are_switched_off(rpc):
    """The client library has no message for this answer: ClientConfiguration with an empty
    session_configuration (field 2: a load of 0) and stop_polling (field 3: true)."""
    instance = INSTANCE.encode()
    request = b"\x0a" + bytes([len(instance)]) + instance
    answer = call_raw(rpc, f"/{DATA_SERVICE}/GetClientConfiguration", request)
    assert answer in (b"\x12\x00\x18\x01", b"\x18\x01\x12\x00", b"\x18\x01")


# --- deadlines and compression ---


def test_gzip(connect, server, make_table, rpc):
    name = make_table()
    value = b"compressible " * 10_000
    request = types.MutateRowRequest(
        table_name=name, row_key=b"k", mutations=[set_cell("f", b"q", value, 1000)]
    )
    rpc.data.mutate_row(request, timeout=PATIENCE_SECONDS, compression=grpc.Compression.Gzip)
    assert rpc.read_row(name, b"k")[0].value == value


def test_deadline_of_a_scan_that_nobody_reads(rpc, table_name):
    for i in range(20):
        rpc.mutate(table_name, b"%02d" % i, set_cell("f", b"q", bytes(1_000_000)))
    request = types.ReadRowsRequest(table_name=table_name)
    stream = rpc.data.read_rows(request, timeout=0.5)
    next(stream)
    assert stream.code() == StatusCode.DEADLINE_EXCEEDED
    assert len(rpc.read(table_name, rows_limit=2)) == 2


# --- stopping ---


def test_sigterm_lets_running_calls_finish(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t")
    value = b"x" * 100_000
    for i in range(200):
        rpc.mutate(name, b"%04d" % i, set_cell("f", b"q", value))
    stream = rpc.read_stream(name)
    decoder = RowDecoder(is_reversed=False)
    first = types.ReadRowsResponse.pb(next(iter(stream)))
    server.signal(signal.SIGTERM)
    count = sum(decoder.take(chunk) is not None for chunk in first.chunks)
    for response in map(types.ReadRowsResponse.pb, stream):
        count += sum(decoder.take(chunk) is not None for chunk in response.chunks)
    assert count == 200
    assert server.wait() == 0
    server.check_log()


def test_sigterm_stops_an_idle_server_at_once(fresh_server, connect):
    """With a client connected that does nothing: nobody would wait for the drain's limit."""
    server = fresh_server("--drain-timeout", "1d")
    connect(server.host).create_table("t")
    server.stop()


def test_sigint_stops_too(fresh_server):
    server = fresh_server()
    server.signal(signal.SIGINT)
    assert server.wait() == 0


def test_requests_after_sigterm_are_turned_away(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t")
    server.stop()
    with fails_with(StatusCode.UNAVAILABLE):
        rpc.read(name)


def test_sd_notify(fresh_server, tmp_path):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(path))
        notified.settimeout(60)
        server = fresh_server(env={"NOTIFY_SOCKET": str(path)})
        assert b"READY=1" in notified.recv(4096)
        server.stop()
        assert b"STOPPING=1" in notified.recv(4096)


def test_few_file_descriptors(fresh_server, connect):
    """1,024 are enough, over many connections and tables."""
    server = fresh_server("--open-files", "256")
    limits = (1024, 1024)
    subprocess.run(
        ["prlimit", "--pid", str(server.process.pid), f"--nofile={limits[0]}:{limits[1]}"],
        check=True,
    )
    names = [connect(server.host).create_table(f"t{i}") for i in range(50)]
    rpc = connect(server.host)
    for name in names:
        rpc.mutate(name, b"k", set_cell("f", b"q", b"v"))
        assert len(rpc.read(name)) == 1


# --- TLS ---


@pytest.fixture
def certificate(tmp_path):
    """(certificate, key): PEM files for localhost and 127.0.0.1."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", key, "-out", cert,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


def test_tls(fresh_server, connect, certificate):
    cert, key = certificate
    server = fresh_server("--tls-cert", cert, "--tls-key", key)
    credentials = grpc.ssl_channel_credentials(cert.read_bytes())
    rpc = connect(server.host, credentials)
    name = rpc.create_table("t")
    value = bytes(range(256)) * 8_000
    rpc.mutate(name, b"k", set_cell("f", b"q", value, 1000))
    assert rpc.read_row(name, b"k")[0].value == value
    context = ssl.create_default_context(cafile=str(cert))
    assert http_get(f"https://{server.host}/livez", context)[0] == 200
    status, body = http_get(f"https://{server.host}/v2/{name}", context)
    assert status == 200
    assert f'"name": "{name}"' in body


def test_plain_text_to_a_tls_port(fresh_server, connect, certificate):
    cert, key = certificate
    server = fresh_server("--tls-cert", cert, "--tls-key", key)
    with fails_with(StatusCode.UNAVAILABLE):
        connect(server.host).create_table("t")
    credentials = grpc.ssl_channel_credentials(cert.read_bytes())
    assert connect(server.host, credentials).create_table("t")


def test_tls_key_of_another_certificate(certificate, tmp_path):
    cert, _ = certificate
    other = tmp_path / "other.pem"
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "RSA", "-out", other], check=True, capture_output=True
    )
    assert "tls" in refused("--data-dir", tmp_path / "d", "--tls-cert", cert, "--tls-key", other)
