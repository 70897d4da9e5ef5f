"""Makes a fixture of tests/data/formats (README.md there):

    PYTHONPATH=tests .venv/bin/python tests/formats/make.py TRESTLE NAME

It starts the program TRESTLE, writes by REST something of every kind that is stored, lists it,
kills the server so that its log is not flushed, and packs what it left as NAME.tar.gz, with the
listing in it. Whoever raises FORMAT makes one with the program as it was before, and never makes an
old one anew: the test is what users' directories are.
"""

import base64
import json
import os
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from formats.listing import Asker, list_backups, list_bigtable, list_datastore
from harness.server import ROOT, Server

FIXTURES = ROOT / "tests/data/formats"
INSTANCE = "projects/p/instances/i"
CLUSTER = f"{INSTANCE}/clusters/c"
TABLE = f"{INSTANCE}/tables/rows"
DATASTORE = "ds"
KINDS = ["Task", "Note"]
SETTINGS = ["--spill-threshold", "1KB", "--write-buffer", "4MB", "--balance=false"]


def b64(text):
    return base64.b64encode(text.encode()).decode()


def finish(asker, operation, version="v2"):
    while not operation.get("done"):
        operation = asker.ask("GET", f"/{version}/{operation['name']}")
        time.sleep(0.02)
    assert "error" not in operation, operation
    return operation


# --- Bigtable ---


def aggregate(kind):
    number = {"int64Type": {"encoding": {"bigEndianBytes": {}}}}
    return {"valueType": {"aggregateType": {"inputType": number, kind: {}}}}


FAMILIES = {
    "plain": {},
    "two": {"gcRule": {"maxNumVersions": 2}},
    "some": {
        "gcRule": {"intersection": {"rules": [{"maxNumVersions": 3}, {"maxAge": "1s"}]}}
    },
    "sum": aggregate("sum"),
    "min": aggregate("min"),
    "max": aggregate("max"),
    "people": aggregate("hllppUniqueCount"),
}


def set_cell(family, qualifier, value, timestamp=1000):
    cell = {"familyName": family, "columnQualifier": b64(qualifier), "value": b64(value)}
    return {"setCell": cell | {"timestampMicros": str(timestamp)}}


def add(family, number):
    return {
        "addToCell": {
            "familyName": family,
            "columnQualifier": {"rawValue": b64("n")},
            "timestamp": {"rawTimestampMicros": "1000"},
            "input": {"intValue": str(number)},
        }
    }


def write(asker, table, rows):
    entries = [{"rowKey": b64(key), "mutations": changes} for key, changes in rows.items()]
    for message in asker.ask("POST", f"/v2/{table}:mutateRows", {"entries": entries}):
        for entry in message["entries"]:
            assert not entry.get("status", {}).get("code"), entry


def drop(asker, table, prefix):
    asker.ask("POST", f"/v2/{table}:dropRowRange", {"rowKeyPrefix": b64(prefix)})


def narrow_rows(prefix, count):
    return {f"{prefix}{i:03}": [set_cell("plain", "q", f"{prefix} {i}")] for i in range(count)}


def wide_row(start):
    """Over the spill threshold, many times."""
    return [set_cell("plain", f"{i:04}", f"wide {i} " * 8) for i in range(start, start + 100)]


def versions(family, count):
    return [set_cell(family, "v", f"version {i}", 1000 * i) for i in range(1, count + 1)]


def aggregates(numbers):
    return [add(family, n) for n in numbers for family in ("sum", "min", "max", "people")]


def write_early_rows(asker, table):
    write(asker, table, narrow_rows("a", 150) | narrow_rows("m", 50) | narrow_rows("x", 50))
    write(asker, table, {"wide": wide_row(0), "wider": wide_row(0)})
    write(asker, table, {"versions": versions("two", 5) + versions("some", 5)})
    write(asker, table, {f"counts{i}": aggregates(range(i, i + 5)) for i in range(3)})


def write_late_rows(asker, table):
    """On what is in tables: changes, deletions, dropped ranges."""
    write(asker, table, {"wide": wide_row(50), "counts1": aggregates([7, -7])})
    delete = {"deleteFromFamily": {"familyName": "plain"}}
    column = {"deleteFromColumn": {"familyName": "plain", "columnQualifier": b64("q")}}
    write(asker, table, {"wider": [delete, set_cell("two", "after", "deletion")]})
    write(asker, table, {"m007": [column], "x001": [{"deleteFromRow": {}}]})
    drop(asker, table, "a05")
    write(asker, table, narrow_rows("a05", 2) | narrow_rows("z", 20))
    drop(asker, table, "z01")
    write(asker, table, {"versions": versions("two", 7)})


def create_resources(asker):
    view = {
        "subsetView": {
            "rowPrefixes": [b64("m")],
            "familySubsets": {"plain": {"qualifierPrefixes": [""]}},
        }
    }
    path = f"/v2/{TABLE}/authorizedViews?authorizedViewId=middle"
    finish(asker, asker.ask("POST", path, view))
    query = {"query": "SELECT _key, plain['q'] AS q FROM `rows`"}
    path = f"/v2/{INSTANCE}/logicalViews?logicalViewId=logical"
    finish(asker, asker.ask("POST", path, query))
    query = {"query": "SELECT _key, COUNT(*) AS n FROM `rows` GROUP BY _key"}
    path = f"/v2/{INSTANCE}/materializedViews?materializedViewId=materialized"
    finish(asker, asker.ask("POST", path, query))
    profile = {"description": "of the fixture", "singleClusterRouting": {"clusterId": "c"}}
    asker.ask("POST", f"/v2/{INSTANCE}/appProfiles?appProfileId=single", profile)
    members = ["user:reader@example.com"]
    policy = {"bindings": [{"role": "roles/bigtable.reader", "members": members}]}
    asker.ask("POST", f"/v2/{TABLE}:setIamPolicy", {"policy": policy})


def create_table(asker, table_id, **fields):
    table = {"columnFamilies": FAMILIES}
    body = {"tableId": table_id, "table": table, **fields}
    asker.ask("POST", f"/v2/{INSTANCE}/tables", body)
    return f"{INSTANCE}/tables/{table_id}"


def back_up(asker, backup, table):
    expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 80 * 24 * 3600))
    body = {"sourceTable": table, "expireTime": expiry}
    finish(asker, asker.ask("POST", f"/v2/{CLUSTER}/backups?backupId={backup}", body))


def restore(asker, table_id, backup):
    body = {"tableId": table_id, "backup": f"{CLUSTER}/backups/{backup}"}
    finish(asker, asker.ask("POST", f"/v2/{INSTANCE}/tables:restore", body))


def fill_bigtable(asker):
    """Returns the rows of the backup."""
    cluster = {"location": "projects/p/locations/local", "serveNodes": 1}
    body = {"parent": "projects/p", "instanceId": "i", "instance": {"displayName": "i"}}
    body["clusters"] = {"c": cluster}
    finish(asker, asker.ask("POST", "/v2/projects/p/instances", body))
    create_table(asker, "rows", initialSplits=[{"key": b64("m")}, {"key": b64("w")}])
    write_early_rows(asker, TABLE)
    drop(asker, TABLE, "a02")
    create_resources(asker)
    back_up(asker, "backup", TABLE)  # which flushes
    backed_up = asker.rows(f"/v2/{TABLE}")
    restore(asker, "restored", "backup")
    drop(asker, f"{INSTANCE}/tables/restored", "a1")
    deleted = create_table(asker, "deleted")
    write(asker, deleted, narrow_rows("d", 5))
    asker.ask("DELETE", f"/v2/{deleted}")
    write_late_rows(asker, TABLE)
    return backed_up


# --- Datastore ---

TASKS_BY_PRIORITY = {
    "kind": [{"name": "Task"}],
    "filter": {
        "propertyFilter": {
            "property": {"name": "done"}, "op": "EQUAL", "value": {"booleanValue": False},
        }
    },
    "order": [{"property": {"name": "priority"}, "direction": "DESCENDING"}],
}  # fmt: skip


def key_of(*path):
    parts = [{"kind": kind, "name": name} for kind, name in zip(path[::2], path[1::2], strict=True)]
    return {"partitionId": {"projectId": DATASTORE}, "path": parts}


def task(i):
    tags = [{"stringValue": f"tag{j}"} for j in range(i % 3)]
    text = {"stringValue": f"text {i} " * 300, "excludeFromIndexes": True}
    properties = {
        "done": {"booleanValue": i % 2 == 0},
        "priority": {"integerValue": str(i % 7)},
        "tags": {"arrayValue": {"values": tags}},
    }
    return properties | ({"text": text} if i % 10 == 0 else {})


def commit(asker, mutations):
    body = {"mode": "NON_TRANSACTIONAL", "mutations": mutations}
    asker.ask("POST", f"/v1/projects/{DATASTORE}:commit", body)


def upserts(tasks):
    return [
        {"upsert": {"key": key_of("Task", f"t{i:02}"), "properties": task(i)}} for i in tasks
    ]


def fill_datastore(asker):
    commit(asker, upserts(range(40)))
    properties = [
        {"name": "done", "direction": "ASCENDING"},
        {"name": "priority", "direction": "DESCENDING"},
    ]
    index = {"kind": "Task", "ancestor": "NONE", "properties": properties}
    path = f"/v1/projects/{DATASTORE}/indexes"
    finish(asker, asker.ask("POST", path, index), "v1")
    commit(asker, upserts(range(35, 50)))
    commit(asker, [{"delete": key_of("Task", "t03")}])
    note = {"text": {"stringValue": "below a task"}}
    commit(asker, [{"upsert": {"key": key_of("Task", "t01", "Note", "n"), "properties": note}}])


# --- all of it ---


def list_all(host):
    asker = Asker(host)
    return {
        **list_bigtable(asker, INSTANCE),
        "backups": list_backups(asker, INSTANCE),
        "datastore": list_datastore(asker, DATASTORE, KINDS, [TASKS_BY_PRIORITY]),
    }


def refusal(directory):
    """What this program says of a directory of the next format; nothing is changed."""
    marker = directory / "data/FORMAT"
    as_it_was = marker.read_text()
    marker.write_text(f"trestle {int(as_it_was.split()[1]) + 1}\n")
    try:
        Server(directory).start()
    except RuntimeError as error:
        return str(error).splitlines()[-1]
    finally:
        marker.write_text(as_it_was)
    raise AssertionError("it was not refused")


def make(directory):
    """Leaves data, backups and listing.json there."""
    server = Server(directory, [*SETTINGS, "--backup-dir", directory / "backups"]).start()
    try:
        asker = Asker(server.host)
        backed_up = fill_bigtable(asker)
        fill_datastore(asker)
        listing = list_all(server.host) | {"backed_up": backed_up}
    finally:
        server.kill()
    listing["refusal"] = refusal(directory)
    text = json.dumps(listing, indent=1, sort_keys=True) + "\n"
    (directory / "listing.json").write_text(text)


def main(program, name):
    os.environ["TRESTLE_BINARY"] = program
    with tempfile.TemporaryDirectory() as directory:
        make(Path(directory))
        with tarfile.open(FIXTURES / f"{name}.tar.gz", "w:gz") as archive:
            for part in "data", "backups", "listing.json":
                archive.add(Path(directory) / part, part)


if __name__ == "__main__":
    main(*sys.argv[1:])
