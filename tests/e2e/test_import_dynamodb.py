"""`trestle import dynamodb`: exports of all types and both formats, in all three layouts; imports
that are killed; bad input."""

import base64
import gzip
import json
import random
import zlib
from pathlib import Path

import grpc
import pytest
from harness.dynamo_exports import (
    ALL_TYPES,
    b64,
    edge_items,
    item_json,
    line,
    plain,
    random_items,
    write_checksums,
    write_export,
    write_manifest,
)
from harness.importer import Importer
from harness.killing import kill_some_times
from harness.rpc import fails_with
from harness.server import ROOT

EXPORTED_US = 1731060000000000  # as write_export says
SAMPLE = ROOT.parent / "shared/data/dynamodb-export-sample.json.gz"


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


@pytest.mark.parametrize("form", ["json", "ion"])
@pytest.mark.parametrize("layout", [[], ["--lossless"], ["--compat", "google"]])
def test_items_at_the_edges_arrive(importer, tmp_path, form, layout):
    items = [*edge_items(), {"Id": ("S", "all"), **ALL_TYPES}]
    write_export(tmp_path / "export", [items[:4], items[4:]], form)
    out = importer.run_well(tmp_path / "export", *layout, "--verify", "full")
    assert out == (
        f"{len(items)} items read, {len(items)} written, 0 rejected\n"
        f"{len(items)} rows compared, 0 different\n"
    )
    rows = importer.rows()
    assert len(rows) == len(items)
    if layout:
        return
    for item in items[1:]:
        wanted = dict(item)
        check_row(rows[wanted.pop("Id")[1].encode()], wanted)


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
    write_export(tmp_path / "export", [items[:2500], items[2500:4000], [*items[4000:], items[0]]])
    command = importer.command(tmp_path / "export", "--verify", "full")
    checkpoint = tmp_path / f"{importer.table_id}.checkpoint"
    done = kill_some_times(command, tmp_path, checkpoint, 2)
    out = importer.run(tmp_path / "export", "--verify", "full", "--rate", 0)
    assert f"{done} items are done" in out.stderr
    # It remembers the first item, which comes again as the last.
    assert out.returncode == 1
    assert out.stdout == (
        f"8001 items read, 8000 written, 1 rejected: see {importer.table_id}.rejects.jsonl\n"
        "8000 rows compared, 0 different\n"
    )
    assert [each["line"] for each in importer.rejects()] == [4001]
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
        "transfer": "another", "records": 0, "rejected": 0, "bytes": 0, "rejects_bytes": 0,
        "source": {"file": 0, "line": 0, "timestamp_us": 0}}))  # fmt: skip
    done = importer.run(tmp_path / "export")
    assert done.returncode == 1
    assert "is of something else, or of other options: another" in done.stderr
    checkpoint.write_text("{")
    assert "is no JSON; without it all begins anew" in importer.run(
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


def test_what_is_too_large_is_rejected_alone(importer, tmp_path):
    path = tmp_path / "data.json"
    with open(path, "w") as out:
        out.write(line({"Id": ("S", "a"), "v": ("S", "x" * 20_000_000)}))
        out.write(line({"Id": ("S", "b"), "v": ("S", "x" * 70_000_000)}))
        out.write(line({"Id": ("S", "c"), **{f"n{i}": ("N", "1") for i in range(100_001)}}))
        out.write(line({"Id": ("S", "d")}))
    done = importer.run(path, "--verify", "full")
    assert done.returncode == 1
    assert done.stdout.startswith("4 items read, 2 written, 2 rejected")
    assert [(each["line"], each["reason"]) for each in importer.rejects()] == [
        (2, "the line has more than 67108864 bytes"),
        (3, "the item makes more than 100000 cells, which is the most that a row can be written "
            "with"),
    ]  # fmt: skip
    rows = importer.rows()
    assert list(rows) == [b"a", b"d"]
    assert len(rows[b"a"]["item:v"][1]) == 20_000_000


def test_bytes_that_are_no_text_are_kept_as_base64(importer, tmp_path):
    path = tmp_path / "data.json"
    bad = b'{"Item":{"Id":{"S":"\xff"}}}'
    path.write_bytes(bad + b'\n{"Item":{"Id":{"N":"1\xfe"}}}\n')
    assert importer.run(path).returncode == 1
    rejects = importer.rejects()
    assert base64.b64decode(rejects[0]["record_base64"]) == bad
    assert rejects[1]["reason"].endswith("is not UTF-8, or has a bad escape")


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


def test_items_that_would_be_one_row_are_named(importer, tmp_path):
    items = [{"Id": ("S", "k"), "n": ("N", str(i))} for i in range(3)]
    paths = write_export(tmp_path / "export", [items[:2], items[2:]])
    done = importer.run(tmp_path / "export", "--verify", "full")
    assert done.returncode == 1
    assert "3 items read, 1 written, 2 rejected" in done.stdout
    assert "1 rows compared, 0 different\n" in done.stdout
    assert [(each["file"], each["line"], each["reason"]) for each in importer.rejects()] == [
        (str(paths[0]), 2, "one before it has the row key k"),
        (str(paths[1]), 1, "one before it has the row key k"),
    ]
    assert importer.rows() == {b"k": {"item:n": (EXPORTED_US, b"0")}}
    # Nothing is lost: what was rejected is there, and can be imported as something else.
    records = "".join(each["record"] + "\n" for each in importer.rejects())
    (tmp_path / "mended.json").write_text(records)
    out = importer.run_well(tmp_path / "mended.json", "--sort-key", "n")
    assert out.startswith("2 items read, 2 written")
    assert list(importer.rows()) == [b"k", b"k#1", b"k#2"]


def test_a_wrong_md5_is_found_before_anything_is_written(importer, tmp_path):
    paths = write_export(tmp_path / "export", [list(random_items(5)), list(random_items(5, 2))])
    paths[1].write_bytes(gzip.compress(b"".join(line(x).encode() for x in random_items(5, 3))))
    done = importer.run(tmp_path / "export")
    assert done.returncode == 1
    assert f"{paths[1]} has the MD5 " in done.stderr
    with fails_with(grpc.StatusCode.NOT_FOUND):
        importer.rows()


@pytest.mark.parametrize("name", ["manifest-summary", "manifest-files"])
def test_a_manifest_that_is_not_of_its_sum(importer, tmp_path, name):
    """As a manifest is that came damaged, or was edited: before anything is written."""
    export = tmp_path / "export"
    paths = write_export(export, [list(random_items(5))])
    write_checksums(export)
    manifest = export / f"{name}.json"
    manifest.write_text(manifest.read_text() + "\n")
    done = importer.run(export)
    assert done.returncode == 1
    assert f"{manifest} has the MD5 " in done.stderr
    assert f"; {export / name}.checksum says " in done.stderr
    with fails_with(grpc.StatusCode.NOT_FOUND):
        importer.rows()
    write_manifest(export, paths, [5])
    assert importer.run_well(export).startswith("5 items read, 5 written, 0 rejected\n")


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


def test_a_large_truncated_file_loses_nothing_that_is_there(importer, tmp_path):
    """Large enough to be unpacked ahead of what is imported."""
    chance = random.Random(1)
    items = [
        {"Id": ("S", f"{number:06}"), "v": ("S", b64(chance.randbytes(150)))}
        for number in range(20000)
    ]
    [path] = write_export(tmp_path / "export", [items])
    whole = path.read_bytes()
    cut = whole[: len(whole) // 4 * 3]
    text = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(cut)
    assert len(text) > 3_000_000
    path.write_bytes(cut)
    write_manifest(tmp_path / "export", [path], [20000])
    done = importer.run(tmp_path / "export")
    assert done.returncode == 1
    lines = text.count(b"\n")
    assert f"{path}, behind line {lines}: {path}: the gzip data end too early" in done.stderr
    path.write_bytes(whole)
    write_manifest(tmp_path / "export", [path], [20000])
    assert "0 different" in importer.run_well(tmp_path / "export", "--verify", "full")
    assert len(importer.rows()) == 20000


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
        (["--mapping", "m.json"], "--mapping says how items become rows: leave out"),
        (["--ttl-family", "e:30d"], "--ttl-family needs --ttl-attribute"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_options_that_make_no_sense(importer, tmp_path, options, words):
    done = importer.run(tmp_path, *options)
    assert done.returncode == 2
    assert words in done.stderr


def test_what_is_read_once_cannot_be_compared_in_full(importer):
    done = importer.run("-", "--verify", "full")
    assert done.returncode == 2
    assert "--verify full reads the source twice, which - cannot be" in done.stderr


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
