"""`trestle advise` as a command: what it looks at, as whom, its exit status, and SARIF for systems
of continuous integration. What its rules find is in test_advise.py."""

import json
import random
import re

from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.sarif import check_sarif
from harness.datastore import client_of, entity
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell
from harness.secured import TABLE
from harness.server import run_trestle

NEWEST = admin_types.GcRule(max_num_versions=1)


def run(host, *arguments):
    return run_trestle("advise", *arguments, "--endpoint", host, timeout=PATIENCE_SECONDS)


def fill(rpc, table, key, value=b"v", rows=1000):
    rows = [(key(i), [set_cell("f", b"q", value)]) for i in range(rows)]
    for first in range(0, len(rows), 100):
        assert set(rpc.mutate_rows(table, rows[first : first + 100])) == {0}


def dated(number):
    return b"2024-%02d-%02d#%04d" % (number % 12 + 1, number % 28 + 1, number)


def scattered(number):
    return b"%04d-user" % (number * 7919 % 3001)


def test_all_of_a_server(fresh_server, connect):
    """Tables of each instance of each project, and databases; of an instance that is named, its
    tables."""
    server = fresh_server()
    rpc = connect(server.host)
    for instance, table in ("projects/p/instances/i", "a"), ("projects/q/instances/j", "b"):
        rpc.create_table(table, {"f": NEWEST}, instance=instance)
    client = client_of(server.host, "shop")
    client.put(entity(client, "Order", "x"))
    names = [
        "projects/p/instances/i/tables/a",
        "projects/q/instances/j/tables/b",
        "projects/shop/databases/(default)",
    ]
    for options, wanted in [
        ([], names),
        (["--by", "client"], names[:2]),
        (["--instance", "j", "--project", "q"], names[1:2]),
    ]:
        done = run(server.host, "--all", "--format", "json", *options)
        assert [each["name"] for each in json.loads(done.stdout)] == wanted
        assert done.returncode in (1, 3)  # the tables are empty


def test_too_little_was_seen(fresh_server, connect):
    """Rows so large that the bytes allowed are used up after a few: nothing was found, and that
    means nothing. What was found in them counts for more."""
    server = fresh_server()
    rpc = connect(server.host)
    value = random.Random(1).randbytes(1 << 20)
    good = rpc.create_table("good", {"f": NEWEST})
    bad = rpc.create_table("bad", {"f": NEWEST, "seventeen_bytes_a": NEWEST})
    for table in good, bad:
        fill(rpc, table, scattered, value, 30)
    fill(rpc, rpc.create_table("small", {"f": NEWEST}), scattered)
    for by in "client", "server":
        done = run(server.host, "good", "--by", by, "--max-bytes", "4MB")
        assert done.returncode == 3
        assert "\ntoo little was seen to say more\n" in done.stdout
        assert "nothing was found" not in done.stdout
        done = run(server.host, "good", "--by", by, "--max-bytes", "4MB", "--format", "json")
        assert (done.returncode, json.loads(done.stdout)["sample"]["isEnough"]) == (3, False)
        done = run(server.host, "small", "--by", by, "--format", "json")
        assert (done.returncode, json.loads(done.stdout)["sample"]["isEnough"]) == (0, True)
        assert run(server.host, "bad", "--by", by, "--max-bytes", "4MB").returncode == 1
    done = run(server.host, "--all", "--format", "sarif", "--max-bytes", "4MB")
    [told, _] = sarif_of(done)["invocations"][0]["toolExecutionNotifications"]
    assert "Too little of projects/p/instances/i/tables/" in told["message"]["text"]


def test_what_is_empty_or_hardly_looked_at(fresh_server, connect):
    """Of that, too, too little is seen for silence to mean something; and no more rows are read
    than was said. Of an instance that is not there nothing at all is said."""
    server = fresh_server()
    rpc = connect(server.host)
    rpc.create_table("empty", {"f": NEWEST})
    fill(rpc, rpc.create_table("good", {"f": NEWEST}), scattered)
    for by in "client", "server":
        assert run(server.host, "empty", "--by", by).returncode == 3
        done = run(
            server.host, "good", "--by", by, "--places", "1", "--rows", "1", "--format", "json"
        )
        assert done.returncode == 3
        assert "reads 1 row at most of good," in done.stderr
        sample = json.loads(done.stdout)["sample"]
        assert (sample["rows"], sample["places"], sample["isEnough"]) == (1, 1, False)
        done = run(server.host, "--all", "--instance", "nosuchinst", "--by", by)
        assert (done.returncode, done.stdout) == (1, "")
        assert "projects/p/instances/nosuchinst" in done.stderr
    assert "reads 1000 rows at most of each of 2 tables," in run(server.host, "--all").stderr
    client = client_of(server.host, "shop")
    client.put(entity(client, "Order", "a"))
    said = run(server.host, "--all").stderr
    assert " and some thousand entities of each of 1 database, at " in said


# --- SARIF ---


def sarif_of(done):
    """The only run of a document, which is as the standard's schema has it, and of which what names
    something names it rightly."""
    document = json.loads(done.stdout)
    check_sarif(document)
    assert document["$schema"].endswith("/sarif-schema-2.1.0.json")
    [found] = document["runs"]
    driver = found["tool"]["driver"]
    assert driver["name"] == "trestle advise" and driver["version"]
    identifiers = [rule["id"] for rule in driver["rules"]]
    assert len(set(identifiers)) == len(identifiers)
    for rule in driver["rules"]:
        assert all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help"))
        assert rule["defaultConfiguration"]["level"] in ("note", "warning", "error")
    for result in found["results"]:
        assert identifiers[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error")
        assert result["message"]["text"]
        [location] = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert location["logicalLocations"][0]["fullyQualifiedName"] == uri
        assert result["partialFingerprints"]["ruleOfTable/v1"] == f"{result['ruleId']} of {uri}"
    assert found["invocations"][0]["executionSuccessful"] is True
    return found


def test_sarif_of_a_server_is_as_the_schema_has_it(fresh_server, connect):
    """Of tables and of a database, with ranges, suggestions and what was muted; where too little
    was seen; and of one table by a client."""
    server = fresh_server()
    rpc = connect(server.host)
    fill(rpc, rpc.create_table("events", {"f": NEWEST}), dated)
    fill(rpc, rpc.create_table("numbers", {"f": NEWEST}), lambda i: b"%08d" % i)
    large = rpc.create_table("large", {"f": NEWEST})
    fill(rpc, large, scattered, random.Random(1).randbytes(1 << 20), 30)
    client = client_of(server.host, "shop")
    client.put_multi([entity(client, "Order/Item", f"2024-{i:03}") for i in range(200)])
    run(server.host, "events", "--mute", "key-time-first", "--reason", "\u00e4 \"quoted\" one")
    found = sarif_of(run(server.host, "--all", "--format", "sarif", "--max-bytes", "4MB"))
    assert {"key-time-first", "key-sequential", "entity-names"} <= {
        result["ruleId"] for result in found["results"]
    }
    assert [result["suppressions"] for result in found["results"] if "suppressions" in result]
    assert found["invocations"][0]["toolExecutionNotifications"]
    sarif_of(run(server.host, "numbers", "--by", "client", "--format", "sarif"))


def test_sarif(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    for name, key in ("events", dated), ("users", scattered), ("days", dated):
        fill(rpc, rpc.create_table(name, {"f": NEWEST}), key)
    done = run(server.host, "events", "--format", "sarif", "--seed", "7")
    assert done.returncode == 1
    [result] = sarif_of(done)["results"]
    assert (result["ruleId"], result["level"]) == ("key-time-first", "warning")
    assert re.fullmatch(
        r"\d+ of \d+ sampled keys begin with a date\. .*Better is \S+ for \S+\.",
        result["message"]["text"],
    )
    done = run(server.host, "users", "--format", "sarif")
    assert (done.returncode, sarif_of(done)["results"]) == (0, [])
    done = run(server.host, "--all", "--format", "sarif")
    results = sarif_of(done)["results"]
    assert {result["partialFingerprints"]["ruleOfTable/v1"] for result in results} == {
        f"key-time-first of projects/p/instances/i/tables/{name}" for name in ("days", "events")
    }
    for options in ["--rules"], []:
        assert run_trestle("advise", *options, "--format", "sarif").returncode == 2


# --- as whom ---


def test_a_reader_may_ask(secure, tmp_path):
    """Who may read the table, and no more than that, is answered; who may not is not."""
    secured = secure()
    admin = secured.rpc("admin")
    admin.create_table("t", {"f": NEWEST})
    fill(admin, TABLE, dated)
    server = secured.server.host.replace("127.0.0.1", "localhost")
    token = tmp_path / "token"

    def ask(name, *subject):
        token.write_text(f"{name}\n")
        return run(
            server, *subject, "--ca", secured.authority.certificate, "--token-file", token
        )  # fmt: skip

    for subject in ["t"], ["--all", "--instance", "i"], ["--all"]:
        done = ask("reader", *subject)
        assert done.returncode == 1 and "key-time-first" in done.stdout, (subject, done.stderr)
    done = ask("stranger", "t")
    assert done.returncode == 1 and done.stdout == ""
    assert "bigtable.tables" in done.stderr
