"""Backups that a server makes of parts of itself, each by a schedule of its own."""

import datetime
import re
import time

import pytest
from harness.datastore import client_of, entity
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import set_cell
from harness.server import EXTERNAL, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
INSTANCE = "projects/p/instances/i"
TABLE = f"{INSTANCE}/tables/t"
NEWEST = "whole_backup_newest_timestamp_seconds"


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def backup(*arguments, code=0):
    done = run_trestle("backup", *map(str, arguments))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code == 2 else done.stdout


def of_scope(server, family):
    """{scope: value}"""
    page = server.get("/metrics")[1]
    found = re.findall(rf'^trestle_{family}{{scope="([^"]*)"}} (\d+)$', page, re.MULTILINE)
    return {scope: int(value) for scope, value in found}


def scheduled(place, scope):
    """The names of those that schedules have made of it; "": of all."""
    lines = run_trestle("backup", "list", str(place)).stdout.splitlines()
    found = [line for line in lines if "  scheduled, " in line]
    parts = {line.split()[0]: line.partition("  only ")[2] for line in found}
    return [name for name, part in parts.items() if part == scope]


def degraded_by(server):
    """{reason: text}"""
    lines = server.get("/readyz")[1].splitlines()[1:]
    return dict(line.split(": ", 1) for line in lines)


def test_a_table_and_an_instance_come_back_out_of_theirs(tmp_path, fresh_server, administer,
                                                         connect):  # fmt: skip
    """Each is kept by its own number; what somebody asked for stays, and all of it restores."""
    place = tmp_path / "whole"
    place.mkdir()
    server = fresh_server("--backup-places", str(place))
    admin = administer(server.host)
    instance = admin.create_instance("i")
    admin.create_table(instance, "t")
    admin.create_table(instance, "u")
    rpc = connect(server.host)
    rpc.mutate_rows(TABLE, [(b"row", [set_cell("f", b"q", b"value", 1000)])])
    by_hand = backup("create", place, "--table", TABLE, "--endpoint", server.host).split(":")[0]
    server.arguments += ["--backup-keep", "1", "--backup-scopes", f"{TABLE}=1s/2,{INSTANCE}=1s"]
    server.restart()
    wait_until(lambda: server.metric("whole_backups_made_total") > 8)  # they take turns
    server.stop()
    assert len(scheduled(place, TABLE)) in (2, 3)  # the stop may have come before the expiry
    assert len(scheduled(place, INSTANCE)) in (1, 2)
    assert scheduled(place, "") == []
    listed = backup("list", place)
    assert by_hand in listed
    assert backup("verify", place).count(": whole\n") == len(listed.splitlines())

    server.arguments = ["--backup-places", str(place)]
    server.start()
    rpc = connect(server.host)
    for scope, kind, new, table in (
        (TABLE, "--table", f"{INSTANCE}/tables/v", f"{INSTANCE}/tables/v"),
        (INSTANCE, "--instance", f"{INSTANCE}2", f"{INSTANCE}2/tables/t"),
    ):
        name = scheduled(place, scope)[-1]
        backup("restore", place, name, kind, scope, "--as", new, "--endpoint", server.host)
        rows = {key: cells[0].value for key, cells in rpc.read(table)}
        assert rows == {b"row": b"value"}


def test_a_part_that_is_not_there_is_told_and_holds_nobody_up(tmp_path, fresh_server, administer,
                                                              connect):  # fmt: skip
    """Not yet, and no more: a table and a database of Datastore, beside a schedule of all."""
    place = tmp_path / "whole"
    place.mkdir()
    database = "projects/p/databases/(default)"
    server = fresh_server(
        "--backup-places", str(place), "--backup-schedule", "1s", "--backup-keep", "0",
        "--backup-scopes", f"{TABLE}=1s/3,{database}=1d/4",
    )  # fmt: skip
    show = ("schedule", "--endpoint", server.host)
    wait_until(lambda: of_scope(server, "scheduled_backup_overdue") == {
        "all": 0, TABLE: 1, database: 1})  # fmt: skip
    text = degraded_by(server)["whole_backup_overdue"]
    assert text == (f"the newest scheduled backup in {place} of {TABLE}: none; there is no table "
                    f"{TABLE}; of {database}: none; there is no database {database}")  # fmt: skip
    line = rf'msg="a whole backup has failed" .* cause="there is no table {TABLE}" scope={TABLE}\n'
    assert re.search(line, server.stderr())
    wait_until(lambda: len(scheduled(place, "")) > 2)
    lines = backup(*show, code=1).splitlines()
    assert re.fullmatch(rf"all: each 1s into {place}, keeps all, newest 20\S+Z, next 20\S+Z",
                        lines[0])  # fmt: skip
    assert re.fullmatch(
        rf"{TABLE}: each 1s into {place}, keeps 3, newest none, next 20\S+Z, overdue: "
        rf"there is no table {TABLE}",
        lines[1],
    )
    assert lines[2].startswith(f"{database}: each 1d into {place}, keeps 4, newest none, next ")
    assert of_scope(server, "scheduled_backup_failures_total")["all"] == 0
    assert of_scope(server, "scheduled_backup_failures_total")[TABLE] > 0

    client = client_of(server.host, "p")
    client.put(entity(client, "Kind", 1, a=1))
    server.restart()  # what has failed is tried again at once
    show = ("schedule", "--endpoint", server.host)
    wait_until(lambda: of_scope(server, "scheduled_backup_overdue").get(database) == 0
               and scheduled(place, database) != [])  # fmt: skip
    admin = administer(server.host)
    admin.create_table(admin.create_instance("i"), "t")
    wait_until(lambda: degraded_by(server) == {})
    assert len(backup(*show).splitlines()) == 3
    assert scheduled(place, TABLE) != []
    admin.tables.delete_table(name=TABLE)
    wait_until(lambda: f"of {TABLE}: 20" in degraded_by(server).get("whole_backup_overdue", ""))
    assert "there is no table" in degraded_by(server)["whole_backup_overdue"]
    made = len(scheduled(place, ""))
    wait_until(lambda: len(scheduled(place, "")) > made)


def test_what_a_restart_finds_is_not_made_again(tmp_path, fresh_server, connect):
    place = tmp_path / "whole"
    place.mkdir()
    server = fresh_server("--backup-places", str(place))
    name = connect(server.host).create_table("t")
    server.arguments = ["--backup-places", str(place), "--backup-scopes", f"{name}=1d"]
    server.restart()
    family = "scheduled_backup_newest_timestamp_seconds"
    wait_until(lambda: of_scope(server, family)[name] > 0)
    first = of_scope(server, family)[name]
    (line,) = backup("schedule", "--endpoint", server.host).splitlines()
    told = re.search(r"newest (\S+), next (\S+)$", line)
    newest, due = (datetime.datetime.fromisoformat(told[i]) for i in (1, 2))
    assert due - newest == datetime.timedelta(days=1)
    server.restart()
    wait_until(lambda: of_scope(server, family)[name] > 0)
    assert of_scope(server, family)[name] == first
    assert len(scheduled(place, name)) == 1
    assert server.metric("whole_backups_made_total") == 0


def test_a_server_without_schedules_says_so(server):
    done = run_trestle("backup", "schedule", "--endpoint", server.host)
    assert done.returncode == 1
    assert "the server makes no whole backups by itself" in done.stderr


def test_a_list_that_is_none_is_refused(tmp_path):
    """By `serve`, before it makes anything, and by its --check, in the same words."""
    usual = ["--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0"]
    places = ["--backup-places", tmp_path / "whole"]
    for parts, why in (
        (f"{TABLE}=daily", f'{TABLE}: "daily" is not a period from 1s to 365d'),
        (f"{TABLE}=1h/many", f'{TABLE}: "many" is not a number of backups to keep, '
         "from 0 to 100000"),
        ("t=1h", None),
        (f"{TABLE}=1h,{TABLE}=2h", f"{TABLE} is there twice"),
    ):  # fmt: skip
        refused = run_trestle("serve", *usual, *places, "--backup-scopes", parts)
        assert refused.returncode == 2 and "--backup-scopes: " in refused.stderr, refused.stderr
        checked = run_trestle("serve", "--check", *usual, *places, "--backup-scopes", parts)
        wrong = [line for line in checked.stdout.splitlines() if line.startswith("wrong: ")]
        assert checked.returncode == 1
        assert wrong[0].removeprefix("wrong: ") in refused.stderr
        assert why is None or wrong[0] == f"wrong: --backup-scopes: {why}"
    lonely = run_trestle("serve", *usual, "--backup-scopes", f"{TABLE}=1h")
    assert "--backup-scopes: needs backup-places beside it" in lonely.stderr
    assert list(tmp_path.iterdir()) == []


def remembered(server):
    path = "/v1/servers/self/metricHistory?since=3600s&lines=whole_backup_newest_seconds"
    lines = Rest(server.host).call("GET", path).get("lines", [])
    return lines[0]["values"][-1] if lines else 0


def test_the_newest_is_known_after_a_start_if_it_was_made_by_hand(tmp_path, fresh_server):
    place = tmp_path / "place"
    place.mkdir()
    server = fresh_server("--backup-places", str(place), "--backup-schedule", "1d")
    wait_until(lambda: server.metric(NEWEST) > 0)
    of_schedule = server.metric(NEWEST)
    time.sleep(2)  # it is told in seconds
    backup("create", place, "--endpoint", server.host)
    by_hand = server.metric(NEWEST)
    assert by_hand > of_schedule
    wait_until(lambda: remembered(server) == by_hand)
    server.restart()
    assert server.metric(NEWEST) == by_hand
    wait_until(lambda: of_scope(server, "scheduled_backup_newest_timestamp_seconds")["all"] > 0)
    assert server.metric(NEWEST) == by_hand
