"""What a server remembers of its own metrics: over a kill, by REST, SQL and `trestle status`, in
whole backups, and who may see it. A point comes every ten seconds: what waits for one is few."""

import json
import subprocess
import time

import pytest
from google.api_core.exceptions import InvalidArgument
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import INSTANCE, fails_with, set_cell
from harness.secured import POLICY
from harness.server import binary, run_trestle
from harness.sql import execute, prepare

HISTORY = "/v1/servers/self/metricHistory?since=3600s"
OF_SERVERS = "Access denied. Missing IAM permission: bigtable.metrics.get."
ROWS = 20


def lines_of(answer):
    return {line["name"]: line["values"] for line in answer.get("lines", [])}


def total(answer, line):
    """What was counted in all points."""
    values = lines_of(answer).get(line, [])
    both = zip(values, answer.get("seconds", []), strict=False)
    return sum(value * seconds for value, seconds in both if value != "NaN")


def wait_for(rest, line, count, path=HISTORY):
    """Until so much of it is remembered."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while total(answer := rest.call("GET", path), line) < count - 0.01:
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    return answer


def ask_sql(host, text):
    done = subprocess.run(
        [binary(), "sql", "--endpoint", host, "--format", "csv"],
        input=f"{text};\n", capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.split(",") for line in done.stdout.splitlines()[1:]]


def write_rows(rpc, table):
    for i in range(ROWS):
        rpc.mutate(table, b"%d" % i, set_cell("f", b"q", b"v"))


def test_metrics_are_remembered_over_a_kill(fresh_server, connect):
    server = fresh_server()
    rpc, rest = connect(server.host), Rest(server.host)
    table = rpc.create_table("t")
    assert rest.call("GET", HISTORY).get("trouble", "") == ""
    write_rows(rpc, table)
    before = wait_for(rest, "method/google.bigtable.v2.Bigtable/MutateRow", ROWS)
    server.kill()
    server.start()
    rest = Rest(server.host)
    after = rest.call("GET", HISTORY)
    assert total(after, "method/google.bigtable.v2.Bigtable/MutateRow") == pytest.approx(ROWS, 0.01)
    assert after["times"][: len(before["times"])] == before["times"]
    assert after["retention"] == f"{14 * 86400}s"
    of_table = rest.call("GET", f"/v1/{table}:metricHistory?since=3600s")
    assert total(of_table, "rows_written") == pytest.approx(ROWS, 0.01)
    the_command_tells_it(server.host)
    sql_reads_it(server.host, after)
    nothing_lists_it(rest)
    a_deleted_tables_may_be_read(rest, table)
    without_retention_it_is_gone(server)


def the_command_tells_it(host):
    done = run_trestle("status", "--endpoint", host, "--since", "1h")
    assert done.returncode == 0 and "requests/s" in done.stdout
    assert len(done.stdout.splitlines()) >= 3, done.stdout
    done = run_trestle("status", "--endpoint", host, "--since", "1h", "--format", "json")
    assert "requests" in lines_of(json.loads(done.stdout))
    done = run_trestle("status", "--endpoint", host, "--since", "1h", "--watch")
    assert done.returncode == 2 and "do it once" in done.stderr


def sql_reads_it(host, answer):
    """The numbers that the answer has, which are points of ten seconds folded by three."""
    number = "CAST(CAST(line['{}'] AS STRING) AS FLOAT64)"
    requests, seconds = (number.format(name) for name in ("requests", "seconds"))
    text = (
        f"SELECT SUM({requests} * {seconds}) AS n FROM `system/metrics` "
        f"WHERE STARTS_WITH(_key, b'10s#server#') AND _key < b'10s#server#{answer['endTime'][:19]}'"
    )
    ((found,),) = ask_sql(host, text)
    assert float(found) == pytest.approx(total(answer, "requests"), 0.01)


def nothing_lists_it(rest):
    found = rest.call("GET", f"/v2/{INSTANCE}/tables")
    assert [each["name"].rsplit("/", 1)[1] for each in found["tables"]] == ["t"]
    assert 'table="system' not in rest.ask("GET", "/metrics")[1]
    status, _ = rest.ask("GET", f"/v2/{INSTANCE}/tables/system%2Fmetrics")
    assert status in (400, 404)


def a_deleted_tables_may_be_read(rest, table):
    rest.call("DELETE", f"/v2/{table}")
    of_table = rest.call("GET", f"/v1/{table}:metricHistory?since=3600s")
    assert total(of_table, "rows_written") == pytest.approx(ROWS, 0.01)


def without_retention_it_is_gone(server):
    server.stop()
    server.arguments += ["--metrics-retention", "0"]
    server.start()
    answer = Rest(server.host).call("GET", HISTORY)
    assert "times" not in answer and answer["retention"] == "0s"
    said = run_trestle("status", "--endpoint", server.host, "--since", "1h").stdout
    assert "remembers no metrics" in said


def rounded(value, digits):
    return value if value == "NaN" else float(f"{value:.{digits - 1}e}")


def test_values_have_as_many_digits_as_are_asked_for(fresh_server, connect):
    server = fresh_server()
    rpc, rest = connect(server.host), Rest(server.host)
    table = rpc.create_table("t")
    write_rows(rpc, table)
    wait_for(rest, "method/google.bigtable.v2.Bigtable/MutateRow", 1)
    for name in ("servers/self/metricHistory", f"{table}:metricHistory"):
        path = f"/v1/{name}?since=3600s"
        count, whole, short = 0, {"lines": []}, {}
        while count != len(short.get("times", [])) or not short.get("times"):  # none came between
            whole = rest.call("GET", path)
            count, short = len(whole.get("times", [])), rest.call("GET", f"{path}&digits=3")
        of_all, of_three = lines_of(whole), lines_of(short)
        assert of_all.keys() == of_three.keys() and of_all != of_three
        for line, values in of_all.items():
            assert of_three[line] == [rounded(value, 3) for value in values], line
        for wrong in (-1, 18):
            status, answer = rest.ask("GET", f"{path}&digits={wrong}")
            assert status == 400 and "digits must be from 0 to 17" in answer


def test_whole_backups_have_them(tmp_path, fresh_server, connect):
    place = tmp_path / "places" / "whole"
    place.parent.mkdir()
    server = fresh_server("--backup-places", str(place.parent))
    rpc, rest = connect(server.host), Rest(server.host)
    table = rpc.create_table("t")
    write_rows(rpc, table)
    method = "method/google.bigtable.v2.Bigtable/MutateRow"
    wait_for(rest, method, ROWS)
    made = run_trestle("backup", "create", str(place), "--endpoint", server.host)
    assert made.returncode == 0, made.stderr
    server.stop()
    other = fresh_server()
    other.stop()
    moved = tmp_path / "restored"
    done = run_trestle("backup", "restore", str(place), "--to", str(moved))
    assert done.returncode == 0, done.stderr
    for path in other.data.iterdir():
        path.rename(tmp_path / f"old-{path.name}")
    for path in moved.iterdir():
        path.rename(other.data / path.name)
    other.start()
    answer = Rest(other.host).call("GET", HISTORY)
    assert total(answer, method) == pytest.approx(ROWS, 0.01)


def ask_for_key(rpc):
    return execute(rpc, prepare(rpc, "SELECT _key FROM `system/metrics`"))


def test_who_may_read_them_by_sql(secure):
    """Who may read all tables of an instance may not, without a right to the server's metrics."""
    secured = secure(policy={
        **POLICY,
        INSTANCE: {"bindings": [{"role": "roles/bigtable.reader",
                                 "members": ["user:stranger@example.com"]}]},
    })  # fmt: skip
    secured.rpc("admin").create_table("t")
    with fails_with(StatusCode.PERMISSION_DENIED, OF_SERVERS):
        ask_for_key(secured.rpc("stranger"))
    with fails_with(StatusCode.INVALID_ARGUMENT, "Table not found: system/metrics"):
        ask_for_key(secured.rpc("admin"))  # there is no point yet


def test_views_cannot_read_them(rpc, admin, make_table):
    make_table()
    with pytest.raises(InvalidArgument, match="Views cannot read system/metrics"):
        admin.instances.create_logical_view(
            parent=INSTANCE,
            logical_view_id="of-metrics",
            logical_view={"query": "SELECT _key FROM `system/metrics`"},
        ).result()


def test_questions_that_make_no_sense(server):
    rest = Rest(server.host)
    for query in ("since=0s", "since=-5s", "points=-1", "points=5000"):
        status, text = rest.ask("GET", f"/v1/servers/self/metricHistory?{query}")
        assert status == 400, text
    assert rest.ask("GET", "/v1/servers/other/metricHistory")[0] == 404
    status, text = rest.ask("GET", f"/v1/{INSTANCE}/tables/nosuch:metricHistory")
    assert status == 404 and "nosuch" in text, text


def test_the_root_leads_to_the_console(server):
    status, fields, text = Rest(server.host).ask_for_all("GET", "/")
    assert (status, fields["location"]) == (302, "/console/"), text
    assert Rest(server.host).ask("POST", "/", {})[0] == 405
