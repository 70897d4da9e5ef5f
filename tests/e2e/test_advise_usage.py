"""What the schema advisor says of requests: the server has counted them, and a client cannot."""

import json

from google.cloud.bigtable_admin_v2 import types as admin_types
from harness.advice import advice_document
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import set_cell
from harness.server import run_trestle

NEWEST = admin_types.GcRule(max_num_versions=1)
TOWNS = "amber birch cedar daisy elder fern grove hazel ivory jade".split()


def look(host, table):
    """What the server finds, by rule."""
    instance, table_id = table.split("/tables/")
    answer = Rest(host).call("GET", f"/v1/{instance}:advise?tables={table_id}")
    return {each["rule"]: each for each in advice_document(answer["tables"][0])["findings"]}


def look_as_client(host, table):
    done = run_trestle(
        "advise", table.split("/")[-1], "--endpoint", host, "--format", "json", "--by", "client",
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    return {each["rule"] for each in json.loads(done.stdout)["findings"]}


def key_of(number):
    return f"{TOWNS[number % 10]}-{TOWNS[number // 10 % 10]}-{TOWNS[number // 100]}/note".encode()


def fill(rpc, families=("f",)):
    table = rpc.create_table("t", dict.fromkeys(families, NEWEST))
    rows = []
    for i in range(1000):
        cells = [set_cell(family, b"town", b"%d" % (i % 7)) for family in families]
        rows.append((key_of(i * 391 % 1000), cells))
    assert set(rpc.mutate_rows(table, rows)) == {0}
    return table


def by_value(value):
    return {"chain": {"filters": [
        {"family_name_regex_filter": "f"}, {"column_qualifier_regex_filter": b"town"},
        {"value_regex_filter": value},
    ]}}  # fmt: skip


def test_scans_that_throw_most_away(fresh_server, connect):
    """Told with the column, and after a start as well. Ranges of which all is wanted are not."""
    server = fresh_server()
    rpc = connect(server.host)
    table = fill(rpc)
    for i in range(30):
        first, end = key_of(i * 10), key_of(i * 10) + b"\xff"
        rpc.read(table, rows={"row_ranges": [{"start_key_closed": first, "end_key_open": end}]})
    assert "filtered-scans" not in look(server.host, table)
    for _ in range(30):
        assert rpc.read(table, filter=by_value(b"nowhere")) == []
    found = look(server.host, table)["filtered-scans"]
    assert "30 ReadRows of ranges by the default app profile read 30000 rows and answered 0" in (
        found["evidence"]
    )
    assert "by values of f:town" in found["evidence"]
    statement = found["evidence"].partition("This view would have them in order: ")[2]
    done = run_trestle("sql", "--endpoint", server.host, "-e", statement)
    assert done.returncode == 0, done.stderr
    assert found["severity"] == "warning"
    assert found["better"][0]["better"].startswith("<value of f:town>#")
    assert "filtered-scans" not in look_as_client(server.host, table)
    server.restart()
    assert "filtered-scans" in look(server.host, table)


def test_counters_that_are_read_to_be_written(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    table = fill(rpc, ("f", "n"))
    rule = {"family_name": "n", "column_qualifier": b"views", "increment_amount": 1}
    for i in range(300):
        rpc.read_modify_write(table, key_of(i), rule)
    assert "read-modify-writes" not in look(server.host, table)
    for i in range(300):
        rpc.read_modify_write(table, key_of(i), rule)
    assert "n:views" in look(server.host, table)["read-modify-writes"]["evidence"]


def test_columns_that_are_read_together(fresh_server, connect):
    """Of two families: told. One of them at a time is not."""
    server = fresh_server()
    rpc = connect(server.host)
    table = fill(rpc, ("f", "g"))

    def of(*families):
        return {"interleave": {"filters": [
            {"column_range_filter": {
                "family_name": family, "start_qualifier_closed": b"town",
                "end_qualifier_closed": b"town",
            }} for family in families
        ]}}  # fmt: skip

    for i in range(220):
        rpc.read_row(table, key_of(i), filter=of("fg"[i % 2], "fg"[i % 2]))
    assert "columns-apart" not in look(server.host, table)
    for i in range(260):
        rpc.read_row(table, key_of(i), filter=of("f", "g"))
    assert "f:town and g:town" in look(server.host, table)["columns-apart"]["evidence"]
