"""`trestle export dynamodb`: items that were imported losslessly, as an export again."""

import base64
import gzip
import hashlib
import json
import subprocess
import time

import pytest
from harness.dynamo_exports import ALL_TYPES, edge_items, item_json, random_items, write_export
from harness.importer import Importer
from harness.killing import kill_some_times
from harness.patience import PATIENCE_SECONDS
from harness.proxy import HoldingProxy
from harness.rpc import set_cell
from harness.server import binary
from test_import_dynamodb import SAMPLE


class Exporter(Importer):
    def export_command(self, directory, *options):
        return [
            binary(), "export", "dynamodb", self.table_id, str(directory), "--endpoint", self.host,
            *map(str, options),
        ]  # fmt: skip

    def export(self, directory, *options):
        return subprocess.run(
            self.export_command(directory, *options), cwd=self.directory, capture_output=True,
            text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    def export_well(self, directory, *options):
        done = self.export(directory, *options)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


@pytest.fixture
def exporter(rpc, server, tmp_path, new_table_id):
    return Exporter(rpc, server.host, tmp_path, new_table_id())


def canonical(value):
    """Sets have no order, numbers have one form."""
    [(kind, inner)] = value.items()
    if kind in ("SS", "BS"):
        inner = sorted(inner)
    elif kind == "N":
        inner = number(inner)
    elif kind == "NS":
        inner = sorted(map(number, inner))
    elif kind == "L":
        inner = [canonical(each) for each in inner]
    elif kind == "M":
        inner = {name: canonical(each) for name, each in inner.items()}
    return {kind: inner}


def number(text):
    import decimal

    return str(decimal.Decimal(text).normalize(decimal.Context(prec=40)))


def items_of(paths, key):
    """{key: item}, read without Trestle."""
    items = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for text in lines:
                item = json.loads(text)["Item"]
                assert json.dumps(item[key]) not in items
                items[json.dumps(item[key])] = canonical({"M": item})
    return items


def read_export(directory, key):
    """The same of a directory, whose manifests are held against it."""
    summary = json.loads((directory / "manifest-summary.json").read_text())
    lines = (directory / "manifest-files.json").read_text().splitlines()
    paths, count = [], 0
    for each in map(json.loads, lines):
        path = directory / each["dataFileS3Key"]
        md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False)
        assert each["md5Checksum"] == base64.b64encode(md5.digest()).decode()
        assert each["etag"] == md5.hexdigest()
        count += each["itemCount"]
        paths.append(path)
    for name in ("files", "summary"):
        md5 = hashlib.md5((directory / f"manifest-{name}.json").read_bytes(), usedforsecurity=False)
        checksum = (directory / f"manifest-{name}.checksum").read_text()
        assert checksum == base64.b64encode(md5.digest()).decode()
    items = items_of(paths, key)
    assert summary["itemCount"] == count == len(items)
    assert not list(directory.glob("**/*.part"))
    return items


@pytest.mark.skipif(not SAMPLE.exists(), reason="the sample export is not beside this checkout")
def test_the_sample_comes_back_item_by_item(exporter, tmp_path):
    exporter.partition_key = "Username"
    exporter.run_well(SAMPLE, "--lossless")
    out = exporter.export_well(tmp_path / "out", "--verify", "full")
    assert out == (
        "3335 rows read, 3335 written, 0 rejected\n"
        "3335 items read again from the files: the same\n"
        "3335 items read again from the table: the same\n"
    )
    assert read_export(tmp_path / "out", "Username") == items_of([SAMPLE], "Username")


@pytest.mark.parametrize("form", ["json", "ion"])
def test_every_type_and_edge_comes_back(exporter, tmp_path, form):
    items = [*edge_items(), *random_items(300)]
    if form == "ion":
        as_json = tmp_path / "as-json"
        write_export(as_json, [items])
    paths = write_export(tmp_path / "in", [items[:100], items[100:]], form)
    exporter.run_well(tmp_path / "in", "--lossless", "--verify", "full")
    exporter.export_well(tmp_path / "out", "--verify", "full")
    if form == "ion":
        paths = list((as_json / "data").iterdir())
    assert read_export(tmp_path / "out", "Id") == items_of(paths, "Id")
    # What came out goes in again, and out.
    again = Exporter(exporter.rpc, exporter.host, tmp_path, exporter.table_id + "x")
    again.run_well(tmp_path / "out", "--lossless", "--verify", "full")
    again.export_well(tmp_path / "out2")
    assert read_export(tmp_path / "out2", "Id") == items_of(paths, "Id")


def test_items_in_two_families_come_back(exporter, tmp_path):
    end = str(int(time.time()) + 5000)
    items = [{"Id": ("S", "a"), "End": ("N", end)}, {"Id": ("S", "b"), "v": ("N", "1")}]
    paths = write_export(tmp_path / "in", [items])
    exporter.run_well(
        tmp_path / "in", "--lossless", "--ttl-attribute", "End", "--ttl-family", "brief:3h"
    )
    exporter.export_well(tmp_path / "out")
    assert read_export(tmp_path / "out", "Id") == items_of(paths, "Id")


def test_a_killed_export_goes_on(exporter, tmp_path):
    items = list(random_items(6000))
    paths = write_export(tmp_path / "in", [items])
    exporter.run_well(tmp_path / "in", "--lossless")
    checkpoint = tmp_path / f"{exporter.table_id}.checkpoint"
    command = exporter.export_command(tmp_path / "out")
    before = kill_some_times(command, tmp_path, checkpoint, 2)
    assert before < 6000
    assert not (tmp_path / "out/manifest-summary.json").exists()
    done = exporter.export(tmp_path / "out", "--verify", "full")
    assert done.returncode == 0, done.stderr
    assert f"{before} rows are done" in done.stderr
    assert done.stdout.startswith("6000 rows read, 6000 written, 0 rejected\n")
    assert read_export(tmp_path / "out", "Id") == items_of(paths, "Id")


def test_an_export_killed_at_its_beginning_goes_on(exporter, tmp_path):
    """It has a directory with something in it by then, and no row."""
    items = list(random_items(50))
    paths = write_export(tmp_path / "in", [items])
    exporter.run_well(tmp_path / "in", "--lossless")
    out = tmp_path / "out"
    checkpoint = tmp_path / f"{exporter.table_id}.checkpoint"
    proxy = HoldingProxy(exporter.host, checkpoint.exists)
    try:
        exporter.host = proxy.host
        running = subprocess.Popen(exporter.export_command(out), cwd=tmp_path)
        assert proxy.holds.wait(PATIENCE_SECONDS)
        running.kill()
        running.wait(PATIENCE_SECONDS)
        proxy.release()
        assert json.loads(checkpoint.read_text())["records"] == 0
        assert list(out.iterdir()) != []
        exporter.export_well(out, "--verify", "full")
    finally:
        proxy.close()
    assert read_export(out, "Id") == items_of(paths, "Id")


@pytest.mark.parametrize("count", [0, 300])
def test_an_export_killed_while_it_is_verified(exporter, tmp_path, count):
    """It is whole by then: it is verified again, not made anew."""
    items = list(random_items(count))
    paths = write_export(tmp_path / "in", [items])
    exporter.run_well(tmp_path / "in", "--lossless")
    out = tmp_path / "out"
    proxy = HoldingProxy(exporter.host, (out / "manifest-summary.checksum").exists)
    try:
        exporter.host = proxy.host
        command = exporter.export_command(out, "--verify", "full")
        running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
        assert proxy.holds.wait(PATIENCE_SECONDS)
        running.kill()
        running.wait(PATIENCE_SECONDS)
        proxy.release()
        data = out / "data/part-00000.json.gz"
        before = data.stat().st_ino
        done = exporter.export(out, "--verify", "full")
    finally:
        proxy.close()
    assert done.returncode == 0, done.stderr
    assert f"{count} rows are done" in done.stderr
    assert done.stdout == (
        f"{count} rows read, {count} written, 0 rejected\n"
        f"{count} items read again from the files: the same\n"
        f"{count} items read again from the table: the same\n"
    )
    assert data.stat().st_ino == before
    assert read_export(out, "Id") == items_of(paths, "Id")


def test_rows_that_hold_no_item_are_rejected(exporter, tmp_path):
    items = [{"Id": ("S", "k"), **ALL_TYPES}]
    write_export(tmp_path / "in", [items])
    exporter.run_well(tmp_path / "in", "--lossless")
    exporter.rpc.mutate(exporter.table, b"other", set_cell("item", b"q", b"text"))
    done = exporter.export(tmp_path / "out")
    assert done.returncode == 1
    assert done.stdout.startswith("2 rows read, 1 written, 1 rejected: see ")
    [reject] = exporter.rejects()
    assert reject["reason"].startswith("the column q holds no attribute: ")
    assert json.loads(gzip.open(tmp_path / "out/data/part-00000.json.gz").read())[
        "Item"
    ].keys() == item_json(items[0]).keys()


def test_a_directory_that_has_something_in_it_is_left_alone(exporter, tmp_path):
    exporter.rpc.create_table(exporter.table_id, families=("item",))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("")
    done = exporter.export(tmp_path / "out")
    assert done.returncode == 1
    assert "there is something in " in done.stderr
    assert exporter.export(tmp_path / "out", "--dry-run").returncode == 0


def test_an_empty_table_is_an_export(exporter, tmp_path):
    exporter.rpc.create_table(exporter.table_id, families=("item",))
    exporter.export_well(tmp_path / "out", "--verify", "full")
    assert read_export(tmp_path / "out", "Id") == {}


def test_options_that_make_no_sense(exporter, tmp_path):
    done = exporter.export("--table")
    assert done.returncode == 2
    assert "table and directory come first" in done.stderr
    assert "Not found: projects/p/instances/i/tables/" in exporter.export(tmp_path / "out").stderr
