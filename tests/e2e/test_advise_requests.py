"""What requests show the advisor, and what they cannot: since when, a load that is over, heat that
is counted too coarsely."""

import datetime
import json
import time

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.datastore import client_of, entity
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import set_cell
from harness.server import run_trestle

NEWEST = admin_types.GcRule(max_num_versions=1)
INSTANCE = "projects/p/instances/i"
WORDS = "amber basil cedar delta ember fable grove hazel ivory jade koala lemon maple".split()


def user(number):
    """A key that no rule has anything to say about."""
    return f"{WORDS[number % 13]}-{WORDS[number // 13 % 13]}-{number}".encode()


def write(rpc, table, numbers, key=user):
    rows = [(key(i), [set_cell("f", b"q", b"v")]) for i in numbers]
    for first in range(0, len(rows), 5000):
        assert set(rpc.mutate_rows(table, rows[first : first + 5000])) == {0}


def report(host, *arguments):
    done = run_trestle(
        "advise", *arguments, "--endpoint", host, "--format", "json", timeout=PATIENCE_SECONDS
    )
    return json.loads(done.stdout)


def rules(document):
    return {each["rule"]: each for each in document["findings"]}


def test_since_when(fresh_server, connect):
    """What is wrong with the keys is not told then, and a hot row only since it was one."""
    server = fresh_server("--heat-window", "1s")
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST})
    write(rpc, table, range(3000), lambda i: b"2024-%02d-%02d#%04d" % (i % 12 + 1, i % 28 + 1, i))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "cell-rewrites" not in (found := rules(report(server.host, "t", "--since", "1h"))):
        assert time.monotonic() < deadline
        write(rpc, table, [7] * 3000)
    assert set(found) <= {"cell-rewrites", "hot-key", "hot-range", "ramp"}
    assert "times or more since 20" in found["cell-rewrites"]["evidence"]
    assert "key-time-first" in rules(report(server.host, "t"))
    time.sleep(2.5)  # the windows in which it was hot are over
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert rules(report(server.host, "t", "--since", now)) == {}
    answer = Rest(server.host).call("GET", f"/v1/{INSTANCE}:advise?tables=t&sinceTime={now}")
    assert "findings" not in answer["tables"][0]


def test_what_requests_did_since_when(fresh_server, connect):
    """What is counted of a table's scans, and of the queries of a database."""
    server = fresh_server()
    rpc, client = connect(server.host), client_of(server.host, "p")
    table = rpc.create_table("t", {"f": NEWEST})
    write(rpc, table, range(1000))
    client.put_multi([entity(client, "Order", user(i).decode()) for i in range(450)])
    database = ("--database", "(default)", "--project", "p")
    for _ in range(25):
        rpc.read(table, filter={"value_regex_filter": b"nowhere"})
        list(client.query(kind="Order").fetch(limit=5, offset=420))
    for asked, rule in (("t",), "filtered-scans"), (database, "query-offsets"):
        assert set(rules(report(server.host, *asked, "--since", "1h"))) == {rule}
        time.sleep(1.1)  # a time is told in seconds
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert rules(report(server.host, *asked, "--since", now)) == {}


@pytest.mark.parametrize("since", ["", "yesterday", "0", "-5m", "2999-01-01T00:00:00Z"])
def test_since_is_a_time_that_has_passed(since):
    done = run_trestle("advise", "t", "--since", since)
    assert (done.returncode, done.stdout) == (2, "")


def test_heat_that_is_too_coarse_says_so(fresh_server, connect):
    """In the first second a table has one range, by which nothing hot could be told: the map, the
    report and the API say so. The next one has more."""
    server = fresh_server()
    rpc, rest = connect(server.host), Rest(server.host)
    words = "Requests were counted by too few ranges of keys to tell which part of it is hot."
    deadline = time.monotonic() + PATIENCE_SECONDS
    for number in range(1000):
        name = f"t{number:03d}"
        write(rpc, rpc.create_table(name, {"f": NEWEST}), range(5000))
        [advice] = rest.call("GET", f"/v1/{INSTANCE}:advise?tables={name}")["tables"]
        document = report(server.host, name)
        signs = rest.call("GET", f"/v1/{INSTANCE}/tables/{name}:heat").get("signs", [])
        told = {sign["kind"]: sign["sentence"] for sign in signs}
        if advice.get("note") and document["note"] and "FEW_RANGES" in told:
            break
        assert time.monotonic() < deadline
    assert advice["note"] == document["note"] == words
    assert told["FEW_RANGES"].startswith("Too few ranges: 100 % of the rows that were asked for")
    done = run_trestle("advise", name, "--endpoint", server.host)
    assert f"\n{words}\n" in done.stdout or not report(server.host, name)["note"]
    while report(server.host, name)["note"]:
        assert time.monotonic() < deadline
        write(rpc, f"{INSTANCE}/tables/{name}", range(5000))


@pytest.mark.long
@pytest.mark.parametrize("order", [None, user])
def test_a_load_that_is_over_is_information(fresh_server, connect, order):
    """While it goes on, and in the minute of its end, it is a warning. In the order of keys it was
    a write frontier, too, and a table is none for having been loaded so."""
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc = connect(server.host)
    table = rpc.create_table("t", {"f": NEWEST})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := rules(report(server.host, "t"))).keys() & {"ramp", "bulk-load"}:
        assert time.monotonic() < deadline
        write(rpc, table, sorted(range(20000), key=order))
    while "bulk-load" not in (found := rules(report(server.host, "t"))):
        assert found["ramp"]["severity"] == "warning"
        assert time.monotonic() < deadline + 60
        time.sleep(1)
    assert found["bulk-load"]["severity"] == "info" and "ramp" not in found
    assert not found.keys() & {"hot-range", "hot-key"}
