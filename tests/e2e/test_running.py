"""What runs now: the list, ending a request, how much the log tells; by gRPC, REST and `trestle
status`. The console's page is test_console_running.py's."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import grpc
import pytest
from google.api_core.exceptions import Cancelled
from google.cloud.bigtable.data import ReadRowsQuery
from grpc import StatusCode
from harness.console import Caller
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import set_cell
from harness.secured import ADMIN, TABLE
from harness.server import run_trestle

LIST = "/v1/servers/self/runningRequests"
CANCEL = "/v1/servers/self:cancelRequest"
LEVEL = "/v1/servers/self:setLogLevel"
STACKS = "/v1/servers/self/stacks"
PROFILE = "/v1/servers/self/cpuProfile"
READ = "google.bigtable.v2.Bigtable/ReadRows"
WORDS = "The request was cancelled by an administrator"
# More than waits on the way to a client: a window of 16 MB that a slow machine opens, two sockets.
ROWS, VALUE = 120, bytes(512 << 10)


@pytest.fixture
def large(make_table, rpc):
    """A table of the shared server that is not read in one go."""
    name = make_table()
    for number in range(ROWS):
        rpc.mutate(name, b"%03d" % number, set_cell("f", b"q", VALUE, 1000))
    return name


def running(rest, table, headers=None):
    """The requests about the table."""
    found = rest.call("GET", f"{LIST}?pageSize=1000", headers=headers)
    return [each for each in found.get("requests", []) if each.get("resource") == table]


def wait_for(look):
    """What it finds; it must find something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found
    return found


def wait_for_one(rest, table, headers=None):
    """The only request about the table, when it has come to wait for its client."""

    def look():
        found = running(rest, table, headers)
        return len(found) == 1 and found[0]["state"] == "wait_for_client" and found

    return wait_for(look)[0]


def begin(rpc, table):
    """A scan of which the first message has come, and no other is asked for."""
    stream = rpc.read_stream(table)
    assert next(stream).chunks
    return stream


def test_a_scan_is_seen_and_ended(server, rpc, large):
    rest = Rest(server.host)
    stream = begin(rpc, large)
    one = wait_for_one(rest, large)
    assert one["method"] == READ and "principal" not in one
    assert one["address"].startswith("127.0.0.1:")
    assert 0 < int(one["rows"]) < ROWS and int(one["rowsSeen"]) >= int(one["rows"])
    assert int(one["answerBytes"]) > len(VALUE) and int(one["requestBytes"]) > 0
    assert float(one["age"][:-1]) >= 0 and 0 < float(one["timeLeft"][:-1]) < 2 * PATIENCE_SECONDS
    assert not one.get("isCancelled")
    ended = rest.call("POST", CANCEL, {"id": one["id"]})
    assert (ended["id"], ended["resource"]) == (one["id"], large)
    with pytest.raises(grpc.RpcError) as error:
        list(stream)
    assert (error.value.code(), error.value.details()) == (StatusCode.CANCELLED, WORDS)
    wait_for(lambda: running(rest, large) == [])
    refused = rest.call("POST", CANCEL, {"id": one["id"]}, expect=404)
    assert "it may have ended" in refused["error"]["message"]


def keys():
    return [b"%03d" % number for number in range(ROWS)]


def ended_in_the_middle(rest, client, table, **options):
    """A scan of Google's data client, of which one row was taken when somebody ended it."""
    rows = client.get_table("i", table.rsplit("/", 1)[1]).read_rows_stream(
        ReadRowsQuery(), **options
    )
    first = next(rows)
    rest.call("POST", CANCEL, {"id": wait_for_one(rest, table)["id"]})
    return first, rows


def test_googles_client_asks_again_for_the_rest(server, client, large):
    """CANCELLED is among what it asks again for by itself: it gets every row, and each once."""
    first, rows = ended_in_the_middle(Rest(server.host), client, large)
    assert [row.row_key for row in (first, *rows)] == keys()


def test_googles_client_that_does_not_ask_again(server, client, large):
    _, rows = ended_in_the_middle(Rest(server.host), client, large, retryable_errors=())
    with pytest.raises(Cancelled, match=WORDS):
        list(rows)


def test_googles_classic_client(server, instance, large):
    """It is the other one inside."""
    rest = Rest(server.host)
    rows = iter(instance.table(large.rsplit("/", 1)[1]).read_rows())
    first = next(rows)
    rest.call("POST", CANCEL, {"id": wait_for_one(rest, large)["id"]})
    assert [row.row_key for row in (first, *rows)] == keys()


@pytest.mark.skipif(shutil.which("cbt") is None, reason="there is no cbt here")
def test_cbt(server, large, tmp_path):
    rest = Rest(server.host)
    command = ["cbt", "-creds", os.devnull, "-project", "p", "-instance", "i", "read"]
    environment = {**os.environ, "BIGTABLE_EMULATOR_HOST": server.host, "HOME": str(tmp_path)}
    with subprocess.Popen(
        [*command, large.rsplit("/", 1)[1]], env=environment, cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as reader:  # fmt: skip
        one = wait_for_one(rest, large)  # nobody reads what it prints
        rest.call("POST", CANCEL, {"id": one["id"]})
        printed, complained = reader.communicate(timeout=PATIENCE_SECONDS)
        assert reader.returncode != 0 and WORDS.encode() in complained
        assert keys()[-1] not in [line.strip() for line in printed.splitlines()]


def test_a_client_of_rest(server, large):
    """What had been sent by then has been sent; the last element says what happened."""
    rest = Rest(server.host)
    client = http.client.HTTPConnection(server.host, timeout=PATIENCE_SECONDS)
    client.request("POST", f"/v2/{large}:readRows", "{}")
    answer = client.getresponse()
    assert answer.status == 200
    begun = answer.read(1000)
    one = wait_for_one(rest, large)
    assert one["method"] == READ and one["address"].startswith("127.0.0.1:")
    rest.call("POST", CANCEL, {"id": one["id"]})
    last = json.loads(begun + answer.read())[-1]
    assert (last["error"]["status"], last["error"]["message"]) == ("CANCELLED", WORDS)
    client.close()


def test_ids_that_are_none(server):
    rest = Rest(server.host)
    for wrong in ("", "x", "1", "1-", "-1", "1-2-3", " 1-2", "01-2", "1-2 ", f"{10**20}-1"):
        refused = rest.call("POST", CANCEL, {"id": wrong}, expect=400)
        assert "these are like 17-5" in refused["error"]["message"], wrong
    rest.call("POST", CANCEL, {"id": "1000000-1"}, expect=404)
    rest.call("POST", CANCEL.replace("self", "other"), {"id": "1-1"}, expect=404)
    rest.call("GET", f"{LIST}?pageSize=-1", expect=400)
    rest.call("GET", LIST.replace("self", "other"), expect=404)


def test_the_oldest_are_shown(server, rpc, large):
    rest = Rest(server.host)
    streams = [begin(rpc, large) for _ in range(3)]
    found = wait_for(lambda: len(running(rest, large)) == 3 and running(rest, large))
    ages = [float(each["age"][:-1]) for each in found]
    assert ages == sorted(ages, reverse=True)
    first = rest.call("GET", f"{LIST}?pageSize=1")
    assert len(first["requests"]) == 1 and int(first["total"]) >= 4  # this one, too
    assert "silentLoops" not in first and first["loops"] > 1
    for stream in streams:
        stream.cancel()
    wait_for(lambda: running(rest, large) == [])


def test_the_command(server, rpc, large):
    stream = begin(rpc, large)
    rest = Rest(server.host)
    one = wait_for_one(rest, large)

    def waits():
        """The client takes a little more now and then: it does not always wait for that one."""
        listed = run_trestle("status", "--endpoint", server.host, "--running")
        (line,) = [line for line in listed.stdout.splitlines() if large in line]
        cells = [cell.strip() for cell in line.split("|")]
        assert (cells[0], cells[3]) == (one["id"], "ReadRows")
        assert listed.returncode == 0 and " running\n" in listed.stdout
        return cells[2] == "wait_for_client"

    wait_for(waits)
    done = run_trestle(
        "status", "--endpoint", server.host, "--running", "--format", "json", "--watch",
        "--count", "2", "--interval", "100ms",
    )  # fmt: skip
    for text in done.stdout.splitlines():
        assert one["id"] in {each["id"] for each in json.loads(text)["requests"]}
    assert len(done.stdout.splitlines()) == 2
    ended = run_trestle("status", "--endpoint", server.host, "--cancel", one["id"])
    assert ended.returncode == 0
    assert ended.stdout.startswith(f"cancelled {one['id']}: ReadRows of {large} by - from 127.")
    with pytest.raises(grpc.RpcError):
        list(stream)
    again = run_trestle("status", "--endpoint", server.host, "--cancel", one["id"])
    assert again.returncode == 1 and "it may have ended" in again.stderr
    none = run_trestle("status", "--endpoint", server.host, "--cancel", "garbage")
    assert none.returncode == 2 and "is no request's id" in none.stderr
    both = run_trestle("status", "--running", "--cancel", "1-1")
    assert both.returncode == 2 and "one at a time" in both.stderr


# --- its threads ---


def test_stacks(server):
    """Each thread by its name, also that which answers."""
    text = Rest(server.host).call("GET", STACKS)["text"]
    names = {line.split(" (")[0] for line in text.splitlines() if line.endswith(" s of CPU")}
    assert {"trestle", "commit", "http1"} <= names, names
    assert "    get_stacks\n" in text and "    loop_run\n" in text
    done = run_trestle("status", "--endpoint", server.host, "--stacks")
    assert done.returncode == 0 and "    get_stacks\n" in done.stdout


def test_a_profile(server, rpc, large):
    """Who is at work meanwhile is in it; how often, that depends on the machine."""
    rest, is_over = Rest(server.host), threading.Event()

    def read():
        while not is_over.is_set():
            rpc.read(large, rows_limit=1)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        found = wait_for(lambda: look_at_profile(rest))
    finally:
        is_over.set()
        reader.join()
    for line in found["folded"].splitlines():
        stack, count = line.rsplit(" ", 1)
        assert int(count) > 0 and " " not in stack
    assert int(found["samples"]) == sum(
        int(line.rsplit(" ", 1)[1]) for line in found["folded"].splitlines()
    )
    done = run_trestle("status", "--endpoint", server.host, "--profile", "100ms")
    assert done.returncode == 0


def look_at_profile(rest):
    found = rest.call("GET", f"{PROFILE}?duration=0.3s&frequency=1000")
    return ";loop_run;" in found.get("folded", "") and found


def test_profiles_that_are_none(server):
    rest = Rest(server.host)
    for wrong in ("duration=0.05s", "duration=61s", "duration=-1s", "frequency=1001"):
        rest.call("GET", f"{PROFILE}?{wrong}", expect=400)
    for path in (STACKS, PROFILE):
        rest.call("GET", path.replace("self", "other"), expect=404)


# --- with access control ---


class Secured:
    """REST with a token."""

    def __init__(self, secured, token):
        caller = Caller(secured, "HTTP/1.1")
        self.rest = Rest(caller.host, context=caller.context())
        self.headers = {"authorization": f"Bearer {token}"}

    def call(self, verb, path, body=None, **more):
        return self.rest.call(verb, path, body, **{**more, "headers": self.headers})


def test_who_it_is_and_who_may(secure, tmp_path):
    log = tmp_path / "audit.log"
    secured = secure("--audit-log", log, "--audit-data", "1d")
    secured.rpc("admin").create_table("t")
    alice = secured.rpc("alice")
    for number in range(ROWS):
        alice.mutate(TABLE, b"%03d" % number, set_cell("f", b"q", VALUE, 1000))
    stream = begin(alice, TABLE)
    admin, reader = Secured(secured, "admin"), Secured(secured, "reader")
    one = wait_for_one(admin, TABLE)
    assert one["principal"] == "user:alice@example.com"
    for verb, path, body in (
        ("GET", LIST, None),
        ("POST", CANCEL, {"id": one["id"]}),
        ("POST", LEVEL, {"level": "warn"}),
        ("GET", STACKS, None),
        ("GET", PROFILE, None),
    ):
        refused = reader.call(verb, path, body, expect=403)
        assert "Missing IAM permission" in refused["error"]["message"]
    admin.call("POST", CANCEL, {"id": one["id"]})
    with pytest.raises(grpc.RpcError) as error:
        list(stream)
    assert error.value.details() == f"{WORDS} ({ADMIN})"
    check_levels(admin, secured.server)
    assert "    serve_command\n" in admin.call("GET", STACKS)["text"]

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    by = {(line["method"], line["status"]): line for line in lines if line["event"] == "call"}
    cancelled = by["CancelRequest", "OK"]
    assert cancelled["resource"] == f"servers/self/runningRequests/{one['id']}"
    assert cancelled["changes"] == [
        {"action": "CANCEL", "method": READ, "principal": "user:alice@example.com",
         "resource": TABLE, "peer": one["address"]}
    ]  # fmt: skip
    assert by["CancelRequest", "PERMISSION_DENIED"]["principal"] == "user:reader@example.com"
    assert by["SetLogLevel", "PERMISSION_DENIED"]["resource"] == "servers/self"
    assert by["GetStacks", "OK"]["principal"] == ADMIN
    assert by["GetStacks", "PERMISSION_DENIED"]["principal"] == "user:reader@example.com"
    assert by["GetCpuProfile", "PERMISSION_DENIED"]["resource"] == "servers/self"
    levels = [line["changes"] for line in lines if line.get("method") == "SetLogLevel"
              and line["status"] == "OK"]  # fmt: skip
    assert levels[0] == [{"action": "CHANGE", "log_level": "error", "previous": "info"}]
    secured.server.signal(signal.SIGTERM)
    secured.server.wait()
    check_sums(log)


def check_sums(log):
    """Who read and wrote how much: what was under way when the period ended, here by the stop."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    sums = {line["method"]: line for line in lines if line["event"] == "data"}
    assert set(sums) == {"MutateRow", "ReadRows"}
    for line in sums.values():
        assert (line["principal"], line["resource"]) == ("user:alice@example.com", TABLE)
        assert line["service"] == "google.bigtable.v2.Bigtable" and line["period_ms"] > 0
    written, read = sums["MutateRow"], sums["ReadRows"]
    assert (written["calls"], written["failed"]) == (ROWS, 0)
    assert written["request_bytes"] > ROWS * len(VALUE)
    assert (read["calls"], read["failed"]) == (1, 1)  # it was cancelled
    assert 0 < read["rows"] < ROWS and read["answer_bytes"] > len(VALUE)


# --- the log's level ---


def check_levels(admin, server):
    """It holds from the next line on, is told, and is forgotten by the next start."""

    def set_to(level):
        return admin.call("POST", LEVEL, {"level": level})

    def count():
        return server.stderr().count('msg="table created"')

    assert set_to("error") == {
        "level": "error", "previousLevel": "info", "configuredLevel": "info",
    }  # fmt: skip
    before = count()
    admin.call("POST", "/v2/projects/p/instances/i/tables", {"tableId": "silent", "table": {}})
    assert count() == before
    metrics = admin.call("GET", "/v1/servers/self/metrics")
    assert (metrics["logLevel"], metrics["configuredLogLevel"]) == ("error", "info")
    assert set_to("debug")["previousLevel"] == "error"
    admin.call("POST", "/v2/projects/p/instances/i/tables", {"tableId": "loud", "table": {}})
    assert count() == before + 1
    admin.call("POST", LEVEL, {"level": "shrill"}, expect=400)
    assert server.stderr().count('level=info msg="log level set"') == 2


def test_the_level_by_the_command(fresh_server):
    server = fresh_server("--log-level", "warn")

    def status(*arguments):
        return run_trestle("status", "--endpoint", server.host, "--interval", "100ms", *arguments)

    done = status("--log-level", "info")
    assert done.stdout == (
        "the log's level is info, it was warn; the next start makes it warn again\n"
    )
    assert "the log's level was set to info (--log-level warn)\n" in status().stdout
    assert status("--log-level", "loud").returncode == 2
    server.restart()
    assert "the log's level" not in status().stdout
