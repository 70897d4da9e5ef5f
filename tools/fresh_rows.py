#!/usr/bin/python3
"""Rows for tools/fresh.py, on a machine that has no more than the group `build`: by REST, with
Python's own library. In a network of its own, where the default port is free.

    fresh_rows.py first            `./dev run`, a row, kill -9, the row again
    fresh_rows.py write DIRECTORY  on Debian 12: a server writes there, and is killed
    fresh_rows.py go-on DIRECTORY  on Debian 13: all is there; more is written; it is killed
    fresh_rows.py back DIRECTORY   on Debian 12: all is there

DIRECTORY/model.json has what must be there: of each table its rows, of each row its cells. What is
written has dropped ranges in it, tables that a restore has brought in, and at each end a log that
nobody has flushed.
"""

import base64
import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

HOST = "127.0.0.1:8086"
INSTANCE = "projects/p/instances/i"
CLUSTER = f"{INSTANCE}/clusters/c"
PATIENCE_SECONDS = 900  # nothing takes so long; what hangs does
BATCH = 200


def wake_loopback():
    """In a new network even this is down: SIOCSIFFLAGS with IFF_UP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))


def b64(text):
    return base64.b64encode(text.encode()).decode()


def plain(text):
    return base64.b64decode(text).decode()


def ask(verb, path, body=None):
    connection = http.client.HTTPConnection(HOST, timeout=PATIENCE_SECONDS)
    with contextlib.closing(connection):
        data = None if body is None else json.dumps(body)
        connection.request(verb, path, data, {"content-type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        assert response.status == 200, f"{verb} {path}: {response.status} {text[:500]}"
        return json.loads(text) if text.startswith(("{", "[")) else text


class Server:
    def __init__(self, *words):
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_ready():
            assert self.process.poll() is None, f"it ended with {self.process.returncode}"
            assert time.monotonic() < deadline, "it does not come up"
            time.sleep(0.1)

    def is_ready(self):
        with contextlib.suppress(OSError, AssertionError):
            return bool(ask("GET", "/readyz"))
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_SECONDS) == 0, self.process.returncode


# --- tables ---


def create_table(table, *families):
    body = {"tableId": table, "table": {"columnFamilies": {name: {} for name in families}}}
    ask("POST", f"/v2/{INSTANCE}/tables", body)


def entry_of(key, cells):
    mutations = []
    for column, value in cells.items():
        family, qualifier = column.split(":")
        mutations.append(
            {"setCell": {"familyName": family, "columnQualifier": b64(qualifier),
                         "timestampMicros": "1000", "value": b64(value)}}
        )  # fmt: skip
    return {"rowKey": b64(key), "mutations": mutations}


def write(table, rows):
    entries = [entry_of(key, cells) for key, cells in rows.items()]
    for start in range(0, len(entries), BATCH):
        part = entries[start : start + BATCH]
        said = ask("POST", f"/v2/{INSTANCE}/tables/{table}:mutateRows", {"entries": part})
        results = [each for message in said for each in message["entries"]]
        assert len(results) == len(part), results
        assert not any(each.get("status", {}).get("code") for each in results), results


def read(table):
    """{row key: {family:qualifier: value}}"""
    rows, cells = {}, {}
    key = family = qualifier = None
    value = b""
    for message in ask("POST", f"/v2/{INSTANCE}/tables/{table}:readRows", {}):
        for chunk in message.get("chunks", []):
            key = plain(chunk["rowKey"]) if "rowKey" in chunk else key
            family = chunk.get("familyName", family)
            qualifier = plain(chunk["qualifier"]) if "qualifier" in chunk else qualifier
            value += base64.b64decode(chunk.get("value", ""))
            if not chunk.get("valueSize"):
                cells[f"{family}:{qualifier}"] = value.decode()
                value = b""
            if chunk.get("commitRow"):
                rows[key], cells = cells, {}
    return rows


def drop(table, prefix):
    ask("POST", f"/v2/{INSTANCE}/tables/{table}:dropRowRange", {"rowKeyPrefix": b64(prefix)})


def without(rows, prefix):
    return {key: cells for key, cells in rows.items() if not key.startswith(prefix)}


def finish(operation):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not operation.get("done"):
        assert time.monotonic() < deadline, operation
        operation = ask("GET", f"/v2/{operation['name']}")
        time.sleep(0.05)
    assert "error" not in operation, operation


def back_up(backup, table):
    expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 20 * 24 * 3600))
    body = {"sourceTable": f"{INSTANCE}/tables/{table}", "expireTime": expiry}
    finish(ask("POST", f"/v2/{CLUSTER}/backups?backupId={backup}", body))


def restore(table, backup):
    body = {"tableId": table, "backup": f"{CLUSTER}/backups/{backup}"}
    finish(ask("POST", f"/v2/{INSTANCE}/tables:restore", body))


# --- first: what README's commands do ---


def first(_):
    server = Server("./dev", "run")
    create_table("greetings", "f")
    row = {"hello": {"f:text": "world"}}
    write("greetings", row)
    server.kill()
    server = Server("./dev", "run")
    assert read("greetings") == row, read("greetings")
    server.stop()
    print("a row was written, the server killed, and the row read")


# --- from one Debian to another ---


def some_rows(prefix, count):
    """Most are small, each tenth is wide and spilled, some have long values."""
    rows = {}
    for i in range(count):
        width = 40 if i % 10 == 0 else 3
        cells = {f"f:column-{c:02}": f"{prefix} {i} {c} " * (1 + i % 7 * 8) for c in range(width)}
        rows[f"{prefix}-{i:05}"] = cells | {"g:number": str(i)}
    return rows


class Upgrade:
    """A server on DIRECTORY, and what must be in its tables."""

    def __init__(self, directory):
        self.model_file = directory / "model.json"
        self.tables = json.loads(self.model_file.read_text()) if self.model_file.exists() else {}
        self.data, self.backups = directory / "data", directory / "backups"
        self.server = None

    def start(self):
        self.server = Server(
            "build/trestle", "serve", "--data-dir", self.data, "--backup-dir", self.backups,
            "--write-buffer", "4MB", "--overflow-threshold", "1KB",
        )  # fmt: skip

    def kill(self):
        self.server.kill()
        self.model_file.write_text(json.dumps(self.tables))

    def create(self, table):
        create_table(table, "f", "g")
        self.tables[table] = {}

    def write(self, table, rows):
        write(table, rows)
        self.tables[table].update(rows)

    def drop(self, table, prefix):
        drop(table, prefix)
        self.tables[table] = without(self.tables[table], prefix)

    def back_up(self, backup, table):
        """What the backup has is kept under its own name."""
        back_up(backup, table)
        self.tables[f"={backup}"] = dict(self.tables[table])

    def restore(self, table, backup):
        restore(table, backup)
        self.tables[table] = dict(self.tables[f"={backup}"])

    def compare(self):
        for table, expected in self.tables.items():
            if table.startswith("="):
                continue
            found = read(table)
            assert found.keys() == expected.keys(), (table, len(found), len(expected))
            wrong = [key for key in expected if found[key] != expected[key]]
            assert not wrong, (table, wrong[:5])
            print(f"{table}: {len(found)} rows are as they were written")

    def examine(self):
        for words in [self.data], ["--backup-dir", self.backups]:
            subprocess.run(["build/trestle", "doctor", *words], check=True)


def write_first(directory):
    upgrade = Upgrade(directory)
    upgrade.start()
    cluster = {"location": "projects/p/locations/local", "serveNodes": 1}
    body = {"parent": "projects/p", "instanceId": "i", "instance": {"displayName": "i"},
            "clusters": {"c": cluster}}  # fmt: skip
    finish(ask("POST", "/v2/projects/p/instances", body))
    upgrade.create("kept")
    upgrade.write("kept", some_rows("a", 1000) | some_rows("b", 1000))
    upgrade.drop("kept", "a-002")
    upgrade.back_up("old", "kept")
    upgrade.restore("restored-old", "old")
    upgrade.drop("restored-old", "b-001")
    upgrade.write("restored-old", some_rows("b-0015", 30))
    upgrade.write("kept", some_rows("c", 500))
    upgrade.drop("kept", "b-003")
    upgrade.write("kept", some_rows("b-0035", 20))
    upgrade.compare()
    upgrade.kill()


def go_on(directory):
    upgrade = Upgrade(directory)
    upgrade.examine()
    upgrade.start()
    upgrade.compare()
    upgrade.restore("restored-from-old", "old")
    upgrade.write("kept", some_rows("d", 500))
    upgrade.drop("kept", "c-001")
    upgrade.back_up("new", "kept")
    upgrade.restore("restored-new", "new")
    upgrade.drop("restored-new", "b")
    upgrade.kill()
    upgrade.start()
    upgrade.compare()
    upgrade.write("kept", some_rows("c-0015", 20))
    upgrade.drop("restored-old", "b-0017")
    upgrade.kill()


def back(directory):
    upgrade = Upgrade(directory)
    upgrade.examine()
    upgrade.start()
    upgrade.compare()
    upgrade.restore("restored-from-new", "new")
    upgrade.write("restored-from-new", some_rows("e", 100))
    upgrade.compare()
    upgrade.server.stop()
    upgrade.examine()


STEPS = {"first": first, "write": write_first, "go-on": go_on, "back": back}


def main(step, directory="."):
    os.chdir(Path(__file__).resolve().parent.parent)
    wake_loopback()
    STEPS[step](Path(directory))


if __name__ == "__main__":
    main(*sys.argv[1:])
