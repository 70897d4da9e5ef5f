"""How a server is, in a word and its reasons: readyz, metrics, `trestle status`, Insight, the
console and the log say the same of each, while it is so and when it is over."""

import datetime
import json
import re
import shutil
import time

import grpc
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode
from harness.certificates import Authority
from harness.console import ask_console
from harness.moved_server import DAY_SECONDS, LIBRARY, MovedServer
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc, fails_with, set_cell
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
OWN_PAGE = {"x-trestle-console": "1", "sec-fetch-site": "same-origin"}
LEVELS = {"ok": 0, "degraded": 1, "no_writes": 2}
REASONS = ["data_gone", "log_gone", "fenced", "old_data", "disk_full", "no_memory",
           "disk_reserve", "damaged_range", "access_unread", "salvaged", "files_gone",
           "log_unrecorded", "clock_ahead", "archive_behind", "archive_gap",
           "change_log_short", "backup_overdue", "whole_backup_overdue", "certificate"]  # fmt: skip
ALL_OF_IT = "16TB"  # a reserve that no disk of a test has


class Told:
    """What each of them says of a server; `more` is for `trestle status`."""

    def __init__(self, server, *more):
        self.server, self.more = server, more

    def page(self):
        return self.server.get("/readyz")

    def ready(self):
        """(HTTP status, level, {reason: text})"""
        status, body = self.page()
        level, *reasons = body.splitlines()
        return status, level, dict(line.split(": ", 1) for line in reasons)

    def metrics(self):
        """(level, reasons, whether it takes writes)"""
        _, page = self.server.get("/metrics")
        values = dict(re.findall(r"^trestle_(\S+) (\d+)$", page, re.MULTILINE))
        there = {name for name in REASONS if values[f'health{{reason="{name}"}}'] == "1"}
        return int(values["health_level"]), there, values["store_healthy"] == "1"

    def status(self):
        """(exit status, text, object)"""
        asked = ["status", "--endpoint", self.server.host, "--interval", "100ms", *self.more]
        text = run_trestle(*asked)
        answer = run_trestle(*asked, "--format", "json")
        assert text.returncode == answer.returncode, text.stderr + answer.stderr
        return text.returncode, text.stdout, json.loads(answer.stdout)["health"]

    def insight(self):
        return Rest(self.server.host).call("GET", "/v1/servers/self/metrics")["health"]

    def console(self):
        status, _, text = ask_console(self.server.host, "HTTP/1.1", "GET", "health", None, OWN_PAGE)
        assert status == 200
        return json.loads(text)

    def log(self, message, reason):
        """The lines of the log about it."""
        pattern = rf'^.* msg="?{message}"? reason={reason} .*$'
        return re.findall(pattern, self.server.stderr(), re.MULTILINE)

    def check(self, level, *reasons):
        """All say this of the server, now."""
        status, word, texts = self.ready()
        assert (status, word) == (503 if level == "no_writes" else 200, level)
        assert set(texts) == set(reasons)
        assert self.server.get("/livez")[0] == 200
        assert self.metrics() == (LEVELS[level], set(reasons), level != "no_writes")
        code, text, health = self.status()
        assert code == (1 if level == "no_writes" else 0)
        assert health["level"] == level
        assert {each["name"] for each in health["reasons"]} == set(reasons)
        told = self.insight()
        assert told["level"] == level.upper()
        console = self.console()
        assert console["level"] == level
        for one, other in zip(told.get("reasons", []), console["reasons"], strict=True):
            assert one["name"] == other["name"] and one["level"] == other["level"].upper()
            assert one["since"][:19] == other["since"][:19]
            assert f"({one['name']}, for " in text
            worst = one["level"] == "NO_WRITES"
            assert ("TAKES NO WRITES: " if worst else "DEGRADED: ") in text
            assert self.log("takes no writes" if worst else "degraded", one["name"])
        return texts


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def write(rpc, name):
    rpc.mutate(name, b"k", set_cell("f", b"q", b"v"))


def test_a_server_in_good_health(fresh_server):
    server = fresh_server()
    told = Told(server)
    assert told.page() == (200, "ok\n")
    assert told.check("ok") == {}
    assert "DEGRADED" not in told.status()[1]
    assert re.search(
        r"msg=starting version=\d+\.\d+\.\d+ pid=\d+ cores=\d+ memory=\d{9,}", server.stderr()
    )


def test_a_disk_without_its_reserve(fresh_server, connect):
    server = fresh_server()
    name = connect(server.host).create_table("t")
    server.stop()
    server.arguments += ["--disk-reserve", ALL_OF_IT]
    rpc = connect(server.start().host)
    told = Told(server)
    with fails_with(StatusCode.RESOURCE_EXHAUSTED):
        write(rpc, name)
    assert rpc.read(name) == []
    texts = told.check("no_writes", "disk_reserve")
    assert re.search(r"writes are refused: \d+ MB are free on the disk of .*data, and 16777216 MB "
                     r"are kept in reserve", texts["disk_reserve"])  # fmt: skip
    (line,) = told.log("takes no writes", "disk_reserve")
    assert "level=error" in line


def after(server, reason, change):
    """Changes the directory below a server, and waits until it has noticed."""
    change()
    told = Told(server)
    wait_until(lambda: reason in told.ready()[2])
    return told


def files_of(directory):
    return sorted((path.name, path.stat().st_size) for path in directory.iterdir())


@pytest.mark.parametrize("how", ["renamed", "emptied", "replaced"])
def test_a_data_directory_that_is_gone(fresh_server, connect, how):
    """Nobody writes; the log says so; what is in its place is left alone, also at the end."""
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t")
    write(rpc, name)
    elsewhere = server.directory / "elsewhere"

    def change():
        if how == "emptied":
            elsewhere.mkdir()
            for path in list(server.data.iterdir()):
                path.rename(elsewhere / path.name)
            return
        server.data.rename(elsewhere)
        if how == "replaced":
            shutil.copytree(elsewhere, server.data)
            (server.data / "999999.sst").write_bytes(b"of another store")

    told = after(server, "data_gone", change)
    assert told.ready()[:2] == (503, "no_writes")
    assert set(told.ready()[2]) == {"data_gone", "fenced"}
    (line,) = told.log("takes no writes", "data_gone")
    assert "level=error" in line and str(server.data) in line
    before = files_of(server.data) if server.data.exists() else None
    with fails_with(StatusCode.UNAVAILABLE):
        write(rpc, name)
    assert len(rpc.read(name)) == 1
    server.stop()
    assert (files_of(server.data) if server.data.exists() else None) == before
    if server.data.exists():
        shutil.rmtree(server.data)
    elsewhere.rename(server.data)
    rpc = connect(server.start().host)
    assert Told(server).ready() == (200, "ok", {})
    assert len(rpc.read(name)) == 1


def test_a_disk_that_fails(tmp_path):
    """A sync that fails: nothing is written any more, also when the disk has come to its senses."""
    broken = tmp_path / "broken"
    server = Server(tmp_path, env={"LD_PRELOAD": str(LIBRARY), "POWERCUT_FAIL": str(broken)})
    try:
        rpc = Rpc(server.start().host)
        name = rpc.create_table("t")
        write(rpc, name)
        broken.touch()
        with pytest.raises(grpc.RpcError):
            write(rpc, name)
        broken.unlink()
        with fails_with(StatusCode.UNAVAILABLE):
            write(rpc, name)
        assert len(rpc.read(name)) == 1
        told = Told(server)
        texts = told.check("no_writes", "fenced")
        assert "the server must be started anew" in texts["fenced"]
        server.kill()
        rpc = Rpc(server.start().host)
        told.check("ok")
        write(rpc, name)
    finally:
        server.close()


@pytest.fixture
def moved(tmp_path):
    """A function that makes a server whose clock can be moved."""
    servers = []

    def start(*arguments):
        servers.append(MovedServer(tmp_path, arguments))
        return servers[-1].start()

    yield start
    for server in servers:
        server.close()


def test_a_clock_that_was_ahead(moved):
    """What it gave while it was ahead is later than now, until the clock has caught up."""
    server = moved()
    rpc = Rpc(server.host)
    name = rpc.create_table("t")
    told = Told(server)
    server.move(3 * 3600)
    write(rpc, name)
    told.check("ok")
    server.move(0)
    texts = told.check("degraded", "clock_ahead")
    assert re.fullmatch(r"server times are 1(79|80) minutes ahead of the wall clock",
                        texts["clock_ahead"])  # fmt: skip
    write(rpc, name)
    server.move(4 * 3600)
    told.check("ok")
    (line,) = told.log("no longer so", "clock_ahead")
    assert "level=info" in line and "seconds=" in line and "health=ok" in line


class TlsTold(Told):
    """The same of a server with TLS, which is asked by clients who trust its authority."""

    def __init__(self, server, authority):
        super().__init__(server)
        self.authority = authority

    def status(self):
        asked = ["status", "--endpoint", self.server.host.replace("127.0.0.1", "localhost"),
                 "--tls", "--ca", self.authority.certificate, "--interval", "100ms"]  # fmt: skip
        return run_trestle(*asked)


def test_a_certificate_near_its_end(moved, tmp_path):
    """Less than a fifth of its life is left; then it has ended; then there is a new one."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "/CN=localhost", days=5)
    server = moved("--tls-cert", certificate, "--tls-key", key)

    def lines(message):
        return Told(server).log(message, "certificate")

    told = TlsTold(server, authority)
    assert "DEGRADED" not in told.status().stdout
    server.move(3 * DAY_SECONDS)
    assert "DEGRADED" not in told.status().stdout
    server.move(5 * DAY_SECONDS - 3600 * 10)
    wait_until(lambda: lines("degraded"))
    seen = told.status()
    assert seen.returncode == 0
    assert re.search(r"DEGRADED: the certificate .*server\.pem ends at 20\S+Z, in 9 hours "
                     r"\(certificate, for ", seen.stdout)  # fmt: skip
    server.move(6 * DAY_SECONDS)
    wait_until(lambda: "has ended at 20" in told.status().stdout)
    server.move(0)
    wait_until(lambda: lines("no longer so"))
    assert "(certificate, for" not in told.status().stdout


def test_a_backup_that_is_overdue(fresh_server, administer, connect):
    """One that the policy wants and that cannot be made."""
    server = fresh_server()
    admin = administer(server.host)
    name = connect(server.host).create_table("t")
    policy = admin_types.Table.AutomatedBackupPolicy(
        retention_period=Duration(seconds=3 * DAY_SECONDS),
        frequency=Duration(seconds=DAY_SECONDS),
        locations=["projects/p/locations/elsewhere"],
    )
    table = admin_types.Table(name=name, automated_backup_policy=policy)
    mask = {"paths": ["automated_backup_policy"]}
    admin.tables.update_table(table=table, update_mask=mask).result()
    server.restart()
    told = Told(server)
    wait_until(lambda: told.ready()[1] == "degraded")
    texts = told.check("degraded", "backup_overdue")
    assert texts["backup_overdue"].endswith(f"{name} has none")
    assert "an automated backup could not begin" in server.stderr()


def test_a_whole_backup_that_is_overdue(tmp_path, fresh_server):
    """A schedule whose place is not there, until it is."""
    place = tmp_path / "share" / "whole"
    place.parent.mkdir()
    server = fresh_server("--backup-places", str(place), "--backup-schedule", "1s")
    told = Told(server)
    wait_until(lambda: told.ready()[1] == "degraded")
    texts = told.check("degraded", "whole_backup_overdue")
    assert f"the newest scheduled backup in {place}: none; " in texts["whole_backup_overdue"]
    assert 'msg="a whole backup has failed"' in server.stderr()
    assert server.metric("whole_backup_failures_total") > 0
    assert not place.exists()
    place.mkdir()
    wait_until(lambda: server.metric("whole_backup_newest_timestamp_seconds") > 0)
    wait_until(lambda: told.ready()[1] == "ok")


def test_what_fails_has_an_end_and_a_line(fresh_server, administer, connect):
    """A backup by hand that comes to nothing, as the directory for backups is gone."""
    server = fresh_server()
    admin = administer(server.host)
    name = connect(server.host).create_table("t")
    directory = server.data / "backups"
    directory.rename(server.data / "elsewhere")
    directory.write_text("no directory")
    cluster = name.replace("/tables/t", "/clusters/trestle")
    expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=7)
    operation = admin.tables.create_backup(
        parent=cluster, backup_id="b", backup={"source_table": name, "expire_time": expires}
    )
    with pytest.raises(Exception):  # noqa: B017
        operation.result()
    answer = Rest(server.host).call("GET", f"/v2/{operation.operation.name}")
    assert answer["done"] and answer["error"]["code"] != 0
    assert answer["metadata"]["startTime"] <= answer["metadata"]["endTime"]
    line = (rf'level=warn msg="an operation has failed" kind=create-backup of={cluster}/backups/b '
            r"operation=\S+ code=UNAVAILABLE cause=")  # fmt: skip
    assert re.search(line, server.stderr())


def test_a_reserve_that_does_not_hold_the_write_buffer(fresh_server):
    """One that was given stays, and is told of; the default is raised."""
    server = fresh_server("--write-buffer", "64MB", "--disk-reserve", "32MB")
    assert "the write buffer is larger than the disk's reserve" in server.stderr()
    server = fresh_server("--write-buffer", "600MB")
    assert re.search(r'level=warn msg="the disk\'s reserve is raised .* disk_reserve=629145600',
                     server.stderr())  # fmt: skip


def test_tables_are_those_of_users(fresh_server, connect):
    server = fresh_server("--heat-window", "1s")
    rpc = connect(server.host)
    name = rpc.create_table("t")
    write(rpc, name)
    wait_until(lambda: server.metric("tablets") > 1)  # the heat's own table is there
    assert server.metric("tables") == 1
    server.restart()
    assert server.metric("tables") == 1
