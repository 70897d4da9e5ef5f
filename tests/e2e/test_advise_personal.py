"""Of a table whose keys tell who somebody is nothing that is told shows that: no report in whatever
form, no answer by REST, no line of the log. Who asks for values, and may read the table, sees them.
(The console's pages are in test_console_advice.py.)"""

import base64
import json
import os
import re
import time

import grpc
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.damage import flip, tables
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc, set_cell
from harness.server import EXTERNAL, Server, run_trestle

INSTANCE = "projects/p/instances/i"
NEWEST = admin_types.GcRule(max_num_versions=1)


def key(number):
    """Dated, so that another rule has something to say, too."""
    day = f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}"
    return f"{day}#jo.{number * 7919 % 9973}@example{number}.com".encode()


@pytest.fixture
def people(fresh_server, connect):
    """A server that finds every request slow, with a table of people."""
    server = fresh_server("--slow-request", "1us")
    rpc = connect(server.host)
    table = rpc.create_table("people", {"f": NEWEST})
    rows = [(key(i), [set_cell("f", b"q", b"v")]) for i in range(300)]
    assert set(rpc.mutate_rows(table, rows)) == {0}
    return server, rpc, table


def report(server, *options):
    done = run_trestle(
        "advise", "people", "--endpoint", server.host, *options, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 1, done.stderr
    is_json = "json" in options or "sarif" in options
    return json.dumps(json.loads(done.stdout)) if is_json else done.stdout


@pytest.mark.parametrize("by", ["client", "server"])
def test_nobody_is_shown(people, by):
    server, _, _ = people
    for form in "text", "json", "sarif":
        hidden = report(server, "--by", by, "--format", form)
        assert "<e-mail>" in hidden
        assert "@" not in hidden and "jo." not in hidden
        assert "@example" in report(server, "--by", by, "--format", form, "--show-values")


def test_nobody_is_shown_over_rest(people):
    server, _, _ = people

    def ask(more):
        path = f"/v1/{INSTANCE}:advise?tables=people{more}"
        findings = Rest(server.host).call("GET", path)["tables"][0]["findings"]
        keys = [base64.b64decode(each) for found in findings for each in found["keys"]]
        return json.dumps(findings), b" ".join(keys)

    words, keys = ask("")
    assert "@" not in words and b"@" not in keys and b"<e-mail>" in keys
    _, keys = ask("&show_values=true")
    assert b"@example" in keys


def test_nobody_is_in_the_log(people):
    """Nor in lines about requests for single rows and for ranges, or with patterns, which escape
    some of it; the list of slow requests, which takes a permission, has them."""
    server, rpc, table = people
    rpc.read(table, rows={"row_keys": [key(7)]})
    rpc.read(table, rows={"row_ranges": [{"start_key_closed": key(7), "end_key_open": key(9)}]})
    rpc.mutate(table, key(8), set_cell("f", b"q", b"w"))
    card, account = b".*#4111\\-1111\\-1111\\-1111", b"\\QDE89 3704 0044 0532 0130 00\\E"
    for pattern in re.escape(key(7)), card, account:
        rpc.read(table, filter={"row_key_regex_filter": pattern})
    listed = json.dumps(Rest(server.host).call("GET", "/v1/servers/self/slowRequests"))
    assert "@example7.com" in listed
    log = server.stderr()
    assert log.count("<e-mail>") > 3
    assert "@" not in log and "jo." not in log
    assert "<card>" in log and "1111" not in log
    assert "<iban>" in log and "3704" not in log


def wait_for_line(server, words):
    """The log's lines with these words, once there is one."""
    end = time.monotonic() + PATIENCE_SECONDS
    while words not in server.stderr():
        assert time.monotonic() < end, words
        time.sleep(0.05)
    return [line for line in server.stderr().splitlines() if words in line]


def test_nobody_is_in_lines_of_splits(fresh_server, connect):
    """Which say at which row a tablet was split, or two were put together."""
    server = fresh_server("--split-size", "64KB")
    rpc = connect(server.host)
    table = rpc.create_table("people", {"f": NEWEST})
    for first in range(0, 2000, 100):
        rows = [
            (key(i), [set_cell("f", b"q", os.urandom(500))]) for i in range(first, first + 100)
        ]
        assert set(rpc.mutate_rows(table, rows)) == {0}
    split = wait_for_line(server, "tablet split")
    assert all("#<e-mail>" in line for line in split), split
    assert "@" not in server.stderr()


@pytest.mark.skipif(bool(EXTERNAL), reason="needs a server of its own")
def test_nobody_is_in_lines_of_damage(tmp_path):
    """Nor does health say who is out of service. (The borders of a range are cut off where that
    tells two blocks apart: here behind the address.)"""
    server = Server(tmp_path, ["--disk-reserve", "1MB"]).start()
    rpc = Rpc(server.host)
    table = rpc.create_table("people", {"f": NEWEST})
    for first in range(0, 1000, 100):
        rows = [
            (b"jo.smith@example.com#%05d" % i, [set_cell("f", b"q", os.urandom(2500))])
            for i in range(first, first + 100)
        ]
        assert set(rpc.mutate_rows(table, rows)) == {0}
    rpc.close()
    server.stop()
    server.arguments = ["--write-buffer", "4MB", "--disk-reserve", "1MB"]  # flushes at the start
    server.start()
    server.stop()
    flip(max(tables(server.data), key=lambda path: path.stat().st_size), 400_000)
    server.start()
    rpc = Rpc(server.host)
    with pytest.raises(grpc.RpcError, match="@example"):  # whoever may read the table
        rpc.read(table)
    wait_for_line(server, "out of service")
    told = server.stderr() + server.get("/readyz")[1]
    rpc.close()
    server.close()
    assert told.count("<e-mail>#") >= 4
    assert "@" not in told and "jo." not in told
