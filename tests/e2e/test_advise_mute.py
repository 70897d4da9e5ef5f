"""Findings that are muted with a reason: kept by the server, shown in each format, not counted."""

import json

from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.datastore import client_of, entity
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import set_cell
from harness.secured import TABLE
from harness.server import run_trestle

NEWEST = admin_types.GcRule(max_num_versions=1)
RULE = "key-time-first"
REASON = 'one day\'s rows are read at once, "as a range"'


def run(host, *arguments):
    return run_trestle("advise", *arguments, "--endpoint", host, timeout=PATIENCE_SECONDS)


def dated(number):
    return b"2024-%02d-%02d#%04d" % (number % 12 + 1, number % 28 + 1, number)


def fill(rpc, table):
    rows = [(dated(i), [set_cell("f", b"q", b"v")]) for i in range(500)]
    assert set(rpc.mutate_rows(table, rows)) == {0}


def bad_table(server, connect, name="events"):
    """A table that breaks one rule."""
    rpc = connect(server.host)
    fill(rpc, rpc.create_table(name, {"f": NEWEST}))
    return rpc


def report(host, *arguments):
    done = run(host, *arguments, "--format", "json")
    return done.returncode, json.loads(done.stdout)


def muted_in(document):
    return {each["rule"]: each["isMuted"] for each in document["findings"]}


def test_a_muted_finding_is_shown_and_counts_for_nothing(fresh_server, connect):
    server = fresh_server()
    bad_table(server, connect)
    bad_table(server, connect, "others")
    assert run(server.host, "events").returncode == 1
    done = run(server.host, "events", "--mute", RULE, "--reason", REASON)
    assert (done.returncode, done.stdout) == (
        0, f"{RULE} is muted for projects/p/instances/i/tables/events\n",
    )  # fmt: skip
    for start_again in False, True:
        if start_again:
            server.kill()
            server.start()
        done = run(server.host, "events")
        assert done.returncode == 0
        assert f"\nmuted: Row keys begin with a time ({RULE})\n" in done.stdout
        assert f"  Muted: {REASON} (20" in done.stdout
        assert done.stdout.endswith("\nnothing else was found\n")
        returned, document = report(server.host, "events")
        assert (returned, muted_in(document)) == (0, {RULE: True})
        [mute] = document["mutes"]
        assert (mute["rule"], mute["reason"], mute["principal"]) == (RULE, REASON, "")
    assert report(server.host, "others")[1]["mutes"] == []
    assert run(server.host, "others").returncode == 1
    assert run(server.host, "events", "--unmute", RULE).returncode == 0
    returned, document = report(server.host, "events")
    assert (returned, muted_in(document), document["mutes"]) == (1, {RULE: False}, [])
    done = run(server.host, "events", "--unmute", RULE)
    assert (done.returncode, "is not muted" in done.stderr) == (1, True)


def test_sarif_has_it_as_a_suppression(fresh_server, connect):
    server = fresh_server()
    bad_table(server, connect)
    run(server.host, "events", "--mute", RULE, "--reason", REASON)
    done = run(server.host, "events", "--format", "sarif", "--fail-on", "info")
    [result] = json.loads(done.stdout)["runs"][0]["results"]
    assert done.returncode == 0
    assert result["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": REASON}
    ]


def test_one_that_hides_nothing_is_shown_too(fresh_server, connect):
    server = fresh_server()
    bad_table(server, connect)
    run(server.host, "events", "--mute", "row-size", "--reason", "photographs\x1b[2J")
    done = run(server.host, "events")
    assert done.returncode == 1
    assert "\nmuted, and not found: row-size: photographs\\x1b[2J (20" in done.stdout


def test_a_database(fresh_server):
    server = fresh_server()
    client = client_of(server.host, "shop")
    client.put(entity(client, "Order", "x"))
    subject = ["--database", "(default)", "--project", "shop"]
    name = "projects/shop/databases/(default)"
    done = run(server.host, *subject, "--mute", "entity-size", "--reason", "they are few")
    assert done.stdout == f"entity-size is muted for {name}\n"
    assert [each["rule"] for each in report(server.host, *subject)[1]["mutes"]] == ["entity-size"]
    Rest(server.host).call("POST", f"/v1/{name}:unmuteAdvice", {"rule": "entity-size"})
    assert report(server.host, *subject)[1]["mutes"] == []


def test_it_comes_and_goes_with_the_table(fresh_server, connect):
    server = fresh_server("--undelete-window", "1h")
    rpc = bad_table(server, connect)
    run(server.host, "events", "--mute", RULE, "--reason", REASON)
    name = "projects/p/instances/i/tables/events"
    rpc.delete_table(name)
    fill(rpc, rpc.create_table("events", {"f": NEWEST}))
    assert report(server.host, "events")[1]["mutes"] == []
    rpc.delete_table(name)


def test_what_makes_no_sense(server, rpc, make_table):
    make_table({"f": NEWEST})
    for arguments in (
        ["t", "--mute", RULE],
        ["t", "--reason", REASON],
        ["t", "--mute", RULE, "--reason", REASON, "--unmute", RULE],
        ["--all", "--mute", RULE, "--reason", REASON],
        ["--rules", "--unmute", RULE],
    ):
        done = run(server.host, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
    for table, rule, reason, words in (
        ("nowhere", RULE, REASON, "Not found"),
        ("nowhere", "no-such-rule", REASON, 'no rule "no-such-rule"'),
    ):
        done = run(server.host, table, "--mute", rule, "--reason", reason)
        assert done.returncode == 1 and words in done.stderr


def test_a_reader_sees_it_and_may_not_change_it(secure, tmp_path):
    audit = tmp_path / "audit.log"
    secured = secure("--audit-log", audit, "--log-format", "logfmt")
    admin = secured.rpc("admin")
    admin.create_table("t", {"f": NEWEST})
    fill(admin, TABLE)
    host = secured.server.host.replace("127.0.0.1", "localhost")
    token = tmp_path / "token"

    def ask(name, *arguments):
        token.write_text(f"{name}\n")
        return run(
            host, "t", *arguments, "--ca", secured.authority.certificate, "--token-file", token
        )  # fmt: skip

    for change in ["--mute", RULE, "--reason", REASON], ["--unmute", RULE]:
        done = ask("reader", *change)
        assert done.returncode == 1 and "bigtable.tables.muteAdvice" in done.stderr
    assert ask("admin", "--mute", RULE, "--reason", "known").returncode == 0
    done = ask("reader")
    assert done.returncode == 0 and "  Muted: known (user:ops@example.com, 20" in done.stdout
    assert ask("admin", "--unmute", RULE).returncode == 0
    lines = [line for line in audit.read_text().splitlines() if "uteAdvice" in line]
    assert len(lines) == 4
    assert "PERMISSION_DENIED" in lines[0] and "user:reader@example.com" in lines[0]
    assert "known" in lines[2] and RULE in lines[2] and "user:ops@example.com" in lines[2]
