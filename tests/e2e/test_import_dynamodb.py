"""`trestle import dynamodb`: exports of all types and both formats, in all three layouts; imports
that are killed; bad input."""

import gzip
import json
import signal
import subprocess
import time
from pathlib import Path

import grpc
import pytest
from harness.dynamo_exports import (
    ALL_TYPES,
    b64,
    item_json,
    line,
    plain,
    random_items,
    write_export,
    write_manifest,
)
from harness.rpc import fails_with
from harness.server import ROOT, binary

EXPORTED_US = 1731060000000000  # as write_export says
SAMPLE = ROOT.parent / "shared/data/dynamodb-export-sample.json.gz"
SECONDS = 120


class Importer:
    """The command on one table, in a directory of its own."""

    def __init__(self, rpc, host, directory, table_id):
        self.rpc, self.host, self.directory, self.table_id = rpc, host, directory, table_id
        self.table = f"projects/p/instances/i/tables/{table_id}"
        self.partition_key = "Id"

    def command(self, source, *options):
        return [
            binary(), "import", "dynamodb", str(source), "--endpoint", self.host,
            "--table", self.table_id, "--partition-key", self.partition_key, *map(str, options),
        ]  # fmt: skip

    def run(self, source, *options):
        return subprocess.run(
            self.command(source, *options), cwd=self.directory, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip

    def run_well(self, source, *options):
        done = self.run(source, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self):
        """{row key: {"family:qualifier": (timestamp, value)}}"""
        return {
            key: {
                f"{cell.family}:{cell.qualifier.decode()}": (cell.timestamp, cell.value)
                for cell in cells
            }
            for key, cells in self.rpc.read(self.table)
        }

    def rejects(self):
        path = self.directory / f"{self.table_id}.rejects.jsonl"
        return [json.loads(text) for text in path.read_text().splitlines()]


@pytest.fixture
def importer(rpc, server, tmp_path, new_table_id):
    return Importer(rpc, server.host, tmp_path, new_table_id())


def text_of(kind, value):
    """What a column holds of the attribute."""
    if kind in ("S", "N"):
        return value.encode()
    if kind == "B":
        return value
    if kind == "BOOL":
        return b"true" if value else b"false"
    if kind == "NULL":
        return b""
    return plain(kind, value)


def check_row(cells, item, family="item", timestamp=EXPORTED_US):
    """Collections are compared as JSON."""
    expected = {f"{family}:{name}": text_of(*value) for name, value in item.items()}
    assert cells.keys() == expected.keys()
    for name, (at, value) in cells.items():
        assert at == timestamp
        wanted = expected[name]
        if isinstance(wanted, bytes):
            assert value == wanted, name
        else:
            assert json.loads(value) == json.loads(json.dumps(wanted)), name


# --- what arrives ---


@pytest.mark.parametrize("form", ["json", "ion"])
def test_every_type_arrives(importer, tmp_path, form):
    items = [{"Id": ("S", f"k{i}"), "Sort": ("N", str(i)), **ALL_TYPES} for i in range(3)]
    write_export(tmp_path / "export", [items[:2], [], items[2:]], form)
    out = importer.run_well(tmp_path / "export", "--sort-key", "Sort", "--verify", "full")
    assert out == (
        "3 items read, 3 written, 0 rejected\n3 rows compared, 0 different\n"
    )
    rows = importer.rows()
    assert list(rows) == [b"k0#0", b"k1#1", b"k2#2"]
    for cells in rows.values():
        check_row(cells, ALL_TYPES)
    assert not list(tmp_path.glob("*.checkpoint"))


def test_lossless_rows_have_all_of_the_item(importer, tmp_path):
    items = [{"Id": ("S", "k"), **ALL_TYPES}]
    write_export(tmp_path / "export", [items])
    importer.run_well(tmp_path / "export", "--lossless")
    cells = importer.rows()[b"k"]
    found = {name.removeprefix("item:"): json.loads(value) for name, (_, value) in cells.items()}
    assert found == item_json(items[0])


def test_googles_layout(importer, tmp_path):
    item = {"Id": ("N", "007"), "n": ("N", "1.50"), "b": ("B", b"\x00\xff"), "u": ("NULL", True),
            "m": ("M", {"a": ("S", "x"), "n": ("M", {"c": ("BOOL", True)}), "z": ("M", {})}),
            "l": ("L", [("N", "1"), ("M", {"k": ("S", "v")})]), "s": ("SS", ["y"])}  # fmt: skip
    write_export(tmp_path / "export", [[item]])
    importer.run_well(tmp_path / "export", "--compat", "google")
    assert importer.rows() == {
        b"7": {
            "cf1:n": (0, b"1.50"), "cf1:b": (0, b64(b"\x00\xff").encode()), "cf1:u": (0, b""),
            "cf1:m.a": (0, b"x"), "cf1:m.n.c": (0, b"true"), "cf1:l": (0, b'[1,{"k":"v"}]'),
            "cf1:s": (0, b'["y"]'),
        }
    }  # fmt: skip


def test_counters_families_and_timestamps(importer, tmp_path, rpc):
    item = {"Id": ("S", "k"), "At": ("N", "1730928816"), "Likes": ("N", "258"),
            "Tags": ("SS", ["a", "b"]), "Spec": ("M", {"cpu": ("N", "4")})}  # fmt: skip
    write_export(tmp_path / "export", [[item]])
    importer.run_well(
        tmp_path / "export", "--counters", "Likes", "--families", "Tags,Spec", "--timestamp", "At"
    )
    at = 1730928816000000
    assert importer.rows()[b"k"] == {
        "Tags:a": (at, b"\0"), "Tags:b": (at, b"\0"), "Spec:cpu": (at, b"4"),
        "item:At": (at, b"1730928816"), "item:Likes": (at, (258).to_bytes(8, "big")),
    }  # fmt: skip


@pytest.mark.skipif(not SAMPLE.exists(), reason="the sample export is not beside this checkout")
@pytest.mark.parametrize("layout", [[], ["--lossless"], ["--compat", "google"]])
def test_the_sample_export(importer, layout):
    importer.partition_key = "Username"
    out = importer.run_well(SAMPLE, "--verify", "full", *layout)
    assert out == (
        "3335 items read, 3335 written, 0 rejected\n3335 rows compared, 0 different\n"
    )


# --- imports that end early ---


def test_a_killed_import_goes_on(importer, tmp_path):
    items = list(random_items(8000))
    write_export(tmp_path / "export", [items[:2500], items[2500:4000], items[4000:]])
    command = importer.command(tmp_path / "export", "--rate", 1000, "--verify", "full")
    checkpoint = tmp_path / f"{importer.table_id}.checkpoint"
    done_before = 0
    for _ in range(2):
        running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and running.poll() is None:
            done = json.loads(checkpoint.read_text())["items"] if checkpoint.exists() else 0
            if done > done_before:
                break
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait(SECONDS)
        done_before = done
    assert done_before > 0
    out = importer.run(tmp_path / "export", "--verify", "full", "--rate", 0)
    assert out.returncode == 0, out.stderr
    assert f"{done_before} items are done" in out.stderr
    assert out.stdout == (
        "8000 items read, 8000 written, 0 rejected\n8000 rows compared, 0 different\n"
    )
    rows = importer.rows()
    assert len(rows) == 8000
    for item in items[::500]:
        wanted = dict(item)
        check_row(rows[wanted.pop("Id")[1].encode()], wanted)
    assert not checkpoint.exists()


def test_a_checkpoint_is_of_one_import(importer, tmp_path):
    write_export(tmp_path / "export", [list(random_items(3))])
    checkpoint = tmp_path / f"{importer.table_id}.checkpoint"
    checkpoint.write_text(json.dumps({
        "import": "another", "file": 0, "line": 0, "items": 0, "rejected": 0, "bytes": 0,
        "rejects_bytes": 0, "timestamp_us": 0}))  # fmt: skip
    done = importer.run(tmp_path / "export")
    assert done.returncode == 1
    assert "is of another import, or of other options: another" in done.stderr
    checkpoint.write_text("{")
    assert "is no JSON; without it the import begins anew" in importer.run(
        tmp_path / "export"
    ).stderr


def test_a_dry_run_writes_nothing(importer, tmp_path):
    write_export(tmp_path / "export", [list(random_items(5))])
    before = sorted(tmp_path.iterdir())
    assert importer.run_well(tmp_path / "export", "--dry-run") == (
        "5 items read, 5 fine, 0 rejected\n"
    )
    assert sorted(tmp_path.iterdir()) == before
    assert importer.run_well(tmp_path / "export").startswith("5 items read, 5 written")


# --- bad input ---


def test_bad_lines_are_kept_with_their_reasons(importer, tmp_path):
    good = [line({"Id": ("S", f"k{i}"), "v": ("N", "1")}) for i in range(3)]
    path = tmp_path / "data.json"
    path.write_text(
        good[0]
        + "{\n"
        + '{"Item":{"Other":{"S":"x"}}}\n'
        + "\n"
        + good[1]
        + '{"Item":{"Id":{"BOOL":true}}}\n'
        + line({"Id": ("S", "x" * 4097)})
        + line({"Id": ("S", "k"), "x" * 16385: ("N", "1")})
        + '{"Item":{"Id":{"S":"k"},"n":{"N":"twelve"}}}\n'
        + '{"Item":{"Id":{"S":"k"},"n":{"N":12}}}\n'
        + good[2].rstrip("\n")
    )
    done = importer.run(path)
    assert done.returncode == 1
    assert done.stdout == (
        f"10 items read, 3 written, 7 rejected: see {importer.table_id}.rejects.jsonl\n"
        "3 rows compared, 0 different\n"
    )
    assert {each["file"] for each in importer.rejects()} == {str(path)}
    assert [(each["line"], each["reason"]) for each in importer.rejects()] == [
        (2, "byte 2: a name and ':' are expected"),
        (3, "the key attribute Id is not there"),
        (6, "the key attribute Id is of type BOOL"),
        (7, "the row key has 4097 bytes, more than 4096"),
        (8, f"the name {'x' * 100}… has 16385 bytes, more than 16384"),
        (9, "byte 42: twelve is no number"),
        (10, "byte 34: a number in quotes is expected"),
    ]
    assert list(importer.rows()) == [b"k0", b"k1", b"k2"]


def test_what_the_server_refuses_is_kept_too(importer, tmp_path, rpc):
    rpc.create_table(importer.table_id, families=("item",))
    path = tmp_path / "data.json"
    path.write_text(
        line({"Id": ("S", "a"), "Tags": ("SS", ["x"])}) + line({"Id": ("S", "b"), "v": ("N", "1")})
    )
    done = importer.run(path, "--families", "Tags")
    assert done.returncode == 1
    assert f"the table {importer.table} has no column family Tags" in done.stderr
    assert importer.rows() == {}


def test_rows_that_fall_together_are_found(importer, tmp_path):
    items = [{"Id": ("S", "k"), "n": ("N", str(i))} for i in range(2)]
    write_export(tmp_path / "export", [items])
    done = importer.run(tmp_path / "export", "--verify", "full")
    assert done.returncode == 1
    assert "2 rows compared, 1 different\n" in done.stdout
    assert ":1: the row is missing, or is another" in done.stderr


def test_a_wrong_md5_is_found_before_anything_is_written(importer, tmp_path):
    paths = write_export(tmp_path / "export", [list(random_items(5)), list(random_items(5, 2))])
    paths[1].write_bytes(gzip.compress(b"".join(line(x).encode() for x in random_items(5, 3))))
    done = importer.run(tmp_path / "export")
    assert done.returncode == 1
    assert f"{paths[1]} has the MD5 " in done.stderr
    with fails_with(grpc.StatusCode.NOT_FOUND):
        importer.rows()


def test_a_truncated_file_is_named_with_its_line(importer, tmp_path):
    items = list(random_items(3000))
    [path] = write_export(tmp_path / "export", [items])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    write_manifest(tmp_path / "export", [path], [3000])
    done = importer.run(tmp_path / "export")
    assert done.returncode == 1
    assert f"{path}, behind line " in done.stderr
    assert "the gzip data end too early" in done.stderr
    # Once the file is whole the import goes on.
    path.write_bytes(whole)
    write_manifest(tmp_path / "export", [path], [3000])
    assert "0 different" in importer.run_well(tmp_path / "export", "--verify", "full")
    assert len(importer.rows()) == 3000


def test_counts_are_held_against_the_manifest(importer, tmp_path):
    paths = write_export(tmp_path / "export", [list(random_items(5))])
    write_manifest(tmp_path / "export", paths, [6])
    done = importer.run(tmp_path / "export")
    assert done.returncode == 1
    assert f"{paths[0]} has 5 items; the manifest says 6" in done.stderr


@pytest.mark.parametrize(
    "options, words",
    [
        (["--lossless", "--compat", "google"], "--lossless and --compat exclude each other"),
        (["--compat", "google", "--sort-key", "s"], "Google's utility knows no sort keys"),
        (["--delimiter", ""], "--delimiter"),
        (["--counters", "a", "--lossless"], "need neither --lossless nor --compat"),
        (["--salts", "1001"], "salts"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_options_that_make_no_sense(importer, tmp_path, options, words):
    done = importer.run(tmp_path, *options)
    assert done.returncode == 2
    assert words in done.stderr


def test_sources_that_are_none(importer, tmp_path):
    assert "cannot read" in importer.run(tmp_path / "none").stderr
    assert "has neither a manifest nor files" in importer.run(tmp_path).stderr


def test_a_server_that_is_not_there(importer, tmp_path):
    path = Path(tmp_path / "data.json")
    path.write_text(line({"Id": ("S", "k")}))
    importer.host = "127.0.0.1:1"
    done = importer.run(path)
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr
