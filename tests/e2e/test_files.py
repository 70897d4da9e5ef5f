"""`trestle import` and `trestle export` of CSV, JSON lines and Avro: what goes out comes back; who
is killed goes on; what is wrong is named, and alone."""

import base64
import csv
import gzip
import json
import random
import struct
import subprocess

import pytest
from harness.avro_files import BIGTABLE_ROW, read_rows, write_file
from harness.counts import add, create_counts
from harness.drops import VALUE, drop_meanwhile, fill_and_drop, fill_before
from harness.killing import kill_some_times
from harness.patience import PATIENCE_SECONDS
from harness.proxy import HoldingProxy
from harness.rpc import set_cell
from harness.server import binary

MS = 1000
WHEN = 1500000000000000
KINDS = ["csv", "jsonl", "avro"]


class Files:
    """The commands, in a directory of their own."""

    def __init__(self, rpc, host, directory):
        self.rpc, self.host, self.directory = rpc, host, directory

    def command(self, *words):
        return [binary(), *map(str, words), "--endpoint", self.host]

    def run(self, *words, **options):
        return subprocess.run(
            self.command(*words), cwd=self.directory, capture_output=True, timeout=PATIENCE_SECONDS,
            **{"text": True, **options},
        )  # fmt: skip

    def run_well(self, *words, **options):
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self, table_id):
        """{key: [(family, qualifier, timestamp, value)]}"""
        found = self.rpc.read(f"projects/p/instances/i/tables/{table_id}")
        return {key: [tuple(cell[:4]) for cell in cells] for key, cells in found}

    def rejects(self, table_id):
        text = (self.directory / f"{table_id}.rejects.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def files(rpc, server, tmp_path):
    return Files(rpc, server.host, tmp_path)


def decode_base64(text):
    return base64.b64decode(text, validate=True)


def id_of(table):
    return table.split("/")[-1]


def fill(rpc, table, count, seed=1):
    """Keys, qualifiers and values of all bytes, of text with all that CSV and JSON escape; cells of
    several versions; empty ones."""
    chance = random.Random(seed)
    texts = [
        b"", b'say "so"', b"a,b;c", b"line\nline\r\n", "\u00e9\U0001f600".encode(), b"\\n\0",
        b"x" * 300,
    ]  # fmt: skip
    rows = []
    for number in range(count):
        key = chance.choice([b"k", b'"', b"\xff", b"a,b\n"]) + b"%06d" % number
        cells = [
            set_cell(
                chance.choice(["f", "g"]),
                chance.choice([*texts, chance.randbytes(3)]),
                chance.choice([*texts, chance.randbytes(chance.randrange(60))]),
                MS * chance.randrange(10**12),
            )
            for _ in range(chance.randrange(1, 8))
        ]
        rows.append((key, cells))
    for first in range(0, count, 500):
        assert set(rpc.mutate_rows(table, rows[first : first + 500])) == {0}


# --- there and back ---


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_out_comes_back(files, rpc, make_table, new_table_id, kind, ending):
    table = make_table({"f": None, "g": None}, [b"\x80", b"k0004"])
    fill(rpc, table, 1500)
    out, again = f"rows.{kind}{ending}", new_table_id()
    told = files.run_well("export", kind, id_of(table), out, "--verify", "full")
    assert told == (
        "1500 rows read, 1500 written, 0 rejected\n1500 rows in the file, the same as were read\n"
        "1500 rows compared, 0 different\n"
    )
    assert sorted(path.name for path in files.directory.iterdir()) == [out]
    told = files.run_well(
        "import", kind, out, "--table", again, "--families", "f,g", "--verify", "full"
    )
    assert told == (
        "1500 rows read, 1500 written, 0 rejected\n1500 rows compared, 0 different\n"
    )
    assert files.rows(again) == files.rows(id_of(table))
    second = f"again.{kind}{ending}"
    files.run_well("export", kind, again, second, "--quiet")
    if kind != "avro":
        opened = gzip.open if ending else open
        with opened(files.directory / out) as a, opened(files.directory / second) as b:
            assert a.read() == b.read()


def test_csv_is_read_by_others(files, rpc, make_table):
    table = make_table({"f": None, "g": None})
    fill(rpc, table, 300)
    files.run_well("export", "csv", id_of(table), "rows.csv")
    found = {}
    with open(files.directory / "rows.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            decode = decode_base64 if row["encoding"] == "base64" else str.encode
            qualifier, value = decode(row["qualifier"]), decode(row["value"])
            cell = (row["family"], qualifier, int(row["timestamp"]), value)
            found.setdefault(decode(row["row_key"]), []).append(cell)
    assert found == files.rows(id_of(table))


def test_json_is_read_by_others(files, rpc, make_table):
    table = make_table({"f": None, "g": None})
    fill(rpc, table, 300)
    files.run_well("export", "jsonl", id_of(table), "rows.jsonl")

    def decode(value):
        return value.encode() if isinstance(value, str) else decode_base64(value["base64"])

    found = {}
    for line in (files.directory / "rows.jsonl").read_text().split("\n")[:-1]:
        row = json.loads(line)
        found[decode(row["key"])] = [
            (cell["family"], decode(cell["qualifier"]), cell["timestamp"], decode(cell["value"]))
            for cell in row["cells"]
        ]
    assert found == files.rows(id_of(table))


def test_avro_is_read_by_others(files, rpc, make_table):
    table = make_table({"f": None, "g": None})
    fill(rpc, table, 300)
    files.run_well("export", "avro", id_of(table), "rows.avro")
    assert dict(read_rows(files.directory / "rows.avro")) == files.rows(id_of(table))


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_of_others_is_read(files, new_table_id, codec):
    rows = [
        {"key": b"k%d\xff" % i, "cells": [
            {"family": "f", "qualifier": b"q", "timestamp": MS * i, "value": b"\0v" * i}]}
        for i in range(1, 100)
    ]  # fmt: skip
    blocks = [rows[:1], rows[1:60], rows[60:]]
    write_file(files.directory / "in.avro", BIGTABLE_ROW, blocks, codec)
    table_id = new_table_id()
    files.run_well("import", "avro", "in.avro", "--table", table_id, "--families", "f")
    assert files.rows(table_id) == {
        row["key"]: [tuple(cell.values()) for cell in row["cells"]] for row in rows
    }


def test_aggregates_keep_their_states(files, rpc, new_table_id):
    """Twice, because what is merged twice must count once."""
    table, again = create_counts(rpc, new_table_id()), create_counts(rpc, new_table_id())
    for number in range(20):
        rpc.mutate(table, b"a", add("strings", f"s{number % 7}"), add("sum", number))
    files.run_well("export", "csv", id_of(table), "rows.csv")
    for _ in range(2):
        files.run_well("import", "csv", "rows.csv", "--table", id_of(again))
    assert files.rows(id_of(again)) == files.rows(id_of(table))


def test_a_part_of_it(files, rpc, make_table):
    table = make_table({"f": None, "g": None})
    for number in range(30):
        cells = [set_cell("f", b"q%d" % (number % 3), b"%d" % at, MS * at) for at in range(3)]
        rpc.mutate(table, b"k%02d" % number, *cells, set_cell("g", b"q1", b"g", MS))

    def exported(*options):
        files.run_well("export", "avro", id_of(table), "part.avro", *options)
        return dict(read_rows(files.directory / "part.avro"))

    every = files.rows(id_of(table))
    assert exported("--prefix", "k1") == {k: v for k, v in every.items() if k[:2] == b"k1"}
    assert list(exported("--start", "k07", "--end", "k1")) == [b"k07", b"k08", b"k09"]
    newest = exported("--versions", "1", "--family", "f")
    assert newest == {k: [("f", v[0][1], 2 * MS, b"2")] for k, v in every.items()}
    columns = exported("--columns", "a=f:q2,b=g:q1", "--prefix", "k0")
    names = {cell[:2] for cells in columns.values() for cell in cells}
    assert names == {("f", b"q2"), ("g", b"q1")}
    assert len(columns) == 10
    filtered = exported("--filter", '{"familyNameRegexFilter": "g"}')
    assert filtered == {k: [("g", b"q1", MS, b"g")] for k in every}


def test_standard_input_and_output(files, rpc, make_table, new_table_id):
    table, again = make_table({"f": None, "g": None}), new_table_id()
    fill(rpc, table, 100)
    data = files.run_well("export", "jsonl", id_of(table), "-", "--gzip", text=False)
    assert len(gzip.decompress(data).splitlines()) == 100
    told = files.run_well(
        "import", "jsonl", "-", "--table", again, "--families", "f,g", input=data, text=False
    )
    assert told.startswith(b"100 rows read, 100 written, 0 rejected\n")
    assert files.rows(again) == files.rows(id_of(table))


# --- cbt's files, and records of fields ---

CBT = ',f,,g\n,a,"b,c",d\nr1,1,,3\nr2,"x ""y""\nz",2@1000,\nr3,,@5000,w@soon\n'


def test_cbt_files_are_read(files, new_table_id):
    (files.directory / "in.csv").write_text(CBT)
    table_id = new_table_id()
    words = ["import", "csv", "in.csv", "--families", "f,g", "--time", WHEN, "--table"]
    files.run_well(*words, table_id)
    assert files.rows(table_id) == {
        b"r1": [("f", b"a", WHEN, b"1"), ("g", b"d", WHEN, b"3")],
        b"r2": [("f", b"a", WHEN, b'x "y"\nz'), ("f", b"b,c", WHEN, b"2@1000")],
        b"r3": [("f", b"b,c", WHEN, b"@5000"), ("g", b"d", WHEN, b"w@soon")],
    }
    table_id = new_table_id()
    files.run_well(*words, table_id, "--value-timestamps")
    rows = files.rows(table_id)
    assert rows[b"r2"][1] == ("f", b"b,c", 1000, b"2")
    assert rows[b"r3"] == [("f", b"b,c", 5000, b""), ("g", b"d", WHEN, b"w@soon")]


def test_wide_files_go_both_ways(files, rpc, make_table, new_table_id):
    table = make_table({"f": None, "g": None})
    for number in range(20):
        cells = [set_cell("g", b"n", struct.pack(">q", number - 5), WHEN)]
        if number % 2:
            cells.append(set_cell("f", b"t", b'"%d",\n' % number, WHEN))
        rpc.mutate(table, b"k%02d" % number, *cells, set_cell("f", b"other", b"o", WHEN))
    columns = ["--columns", "text=f:t,n=g:n"]
    wanted = {
        key: [cell for cell in cells if cell[1] != b"other"]
        for key, cells in files.rows(id_of(table)).items()
    }
    for kind in ("csv", "jsonl"):
        again = new_table_id()
        told = files.run_well(
            "export", kind, id_of(table), "wide", "--form", "fields", *columns, "--types", "n=int64"
        )
        assert told == (
            "20 rows read, 20 written, 0 rejected\n20 rows in the file, the same as were read\n"
            "20 rows compared, 0 different\n"
        )
        files.run_well(
            "import", kind, "wide", "--table", again, "--row-key", "{row_key}", *columns,
            "--types", "n=int64", "--time", WHEN, "--verify", "full",
        )  # fmt: skip
        assert files.rows(again) == wanted
    assert (files.directory / "wide").read_text().splitlines()[0] == '{"row_key":"k00","n":-5}'
    again = new_table_id()
    files.run_well(
        "export", "csv", id_of(table), "cbt.csv", "--form", "cbt", *columns, "--value-timestamps"
    )
    files.run_well(
        "import", "csv", "cbt.csv", "--table", again, "--families", "f,g", "--value-timestamps"
    )
    assert files.rows(again) == wanted


def test_fields_with_types_and_times(files, new_table_id):
    (files.directory / "in.csv").write_text(
        "\ufeffcustomer;order;price;name;photo;at;note\r\n"
        'c1;1;2.5;"Tea; black";AP8=;2017-07-14T02:40:00Z;\r\n'
        "c2;258;-1;Milk;;1500000000123;\"two\r\nlines\"\r\n"
    )
    table_id = new_table_id()
    files.run_well(
        "import", "csv", "in.csv", "--table", table_id, "--delimiter", ";", "--verify", "full",
        "--row-key", "{customer}#{order:int64}", "--family", "f", "--timestamp", "at",
        "--types", "price=double,photo=base64,order=int64",
    )  # fmt: skip
    later = WHEN + 123 * MS
    assert files.rows(table_id) == {
        b"c1#" + struct.pack(">q", 1): [
            ("f", b"name", WHEN, b"Tea; black"), ("f", b"photo", WHEN, b"\0\xff"),
            ("f", b"price", WHEN, struct.pack(">d", 2.5))],
        b"c2#" + struct.pack(">q", 258): [
            ("f", b"name", later, b"Milk"), ("f", b"note", later, b"two\r\nlines"),
            ("f", b"price", later, struct.pack(">d", -1))],
    }  # fmt: skip


def test_objects_with_a_template(files, new_table_id):
    lines = [
        {"id": 7, "n": 1.5, "yes": True, "none": None, "list": [1, {"a": "b"}], "text": "\u00e9\n"},
        {"id": "x", "text": ""},
    ]
    text = "\n".join(json.dumps(each) for each in lines)
    table_id = new_table_id()
    told = files.run_well(
        "import", "jsonl", "-", "--table", table_id, "--row-key", "u/{id}", "--family", "f",
        "--time", WHEN, input=text,
    )  # fmt: skip
    assert told.startswith("2 rows read, 2 written, 0 rejected\n")
    rows = files.rows(table_id)
    assert rows[b"u/7"] == [
        ("f", b"list", WHEN, b'[1, {"a": "b"}]'), ("f", b"n", WHEN, b"1.5"),
        ("f", b"text", WHEN, "\u00e9\n".encode()), ("f", b"yes", WHEN, b"true"),
    ]  # fmt: skip
    assert rows[b"u/x"] == [("f", b"text", WHEN, b"")]


def test_avro_records_with_a_template(files, new_table_id):
    schema = {"type": "record", "name": "R", "fields": [
        {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]},
        {"name": "price", "type": "double"}, {"name": "raw", "type": "bytes"},
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sizes", "type": {"type": "map", "values": "int"}},
    ]}  # fmt: skip
    objects = [
        {"id": -3, "name": (1, "Tea"), "price": 0.1, "raw": b"\0\xff", "kind": "B",
         "tags": ["a", "b"], "sizes": {"x": 1}},
        {"id": 4, "name": (0, None), "price": 2.0, "raw": b"", "kind": "A",
         "tags": [], "sizes": {}},
    ]  # fmt: skip
    write_file(files.directory / "in.avro", schema, [objects])
    table_id = new_table_id()
    files.run_well(
        "import", "avro", "in.avro", "--table", table_id, "--row-key", "{id}", "--family", "f",
        "--types", "price=double", "--time", WHEN,
    )  # fmt: skip
    found = files.rows(table_id)
    assert {key: {cell[1]: cell[3] for cell in cells} for key, cells in found.items()} == {
        b"-3": {b"name": b"Tea", b"price": struct.pack(">d", 0.1), b"raw": b"\0\xff", b"kind": b"B",
                b"tags": b'["a","b"]', b"sizes": b'{"x":1}'},
        b"4": {b"price": struct.pack(">d", 2.0), b"raw": b"", b"kind": b"A", b"tags": b"[]",
               b"sizes": b"{}"},
    }  # fmt: skip


# --- what is wrong ---


def reasons(files, table_id):
    return [(each["file"], each["line"], each["reason"]) for each in files.rejects(table_id)]


def test_wrong_records_are_named_and_alone(files, new_table_id):
    large = "x" * 20000
    (files.directory / "one.csv").write_text(
        f'id,n,text\n1,5,fine\n2,five,x\n3,6\n"4"x,1,y\n,1,y\n{large},1,y\n7,,\n8,8,fine\n'
    )
    (files.directory / "two.csv").write_text('id,n,text\n9,9,fine\n10,"1,never closed\n')
    table_id = new_table_id()
    done = files.run(
        "import", "csv", "one.csv", "two.csv", "--table", table_id, "--row-key", "{id}",
        "--family", "f", "--types", "n=int64",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.startswith("10 rows read, 3 written, 7 rejected: see ")
    assert sorted(files.rows(table_id)) == [b"1", b"8", b"9"]
    assert reasons(files, table_id) == [
        ("one.csv", 3, "the field n is no integer of 64 bits"),
        ("one.csv", 4, "there are 2 fields, and 3 in the header"),
        ("one.csv", 5, "something stands behind the closing quote of a field"),
        ("one.csv", 6, "the field id, of the row key, is not there"),
        ("one.csv", 7, "the row key has 20000 bytes, more than 4096"),
        ("one.csv", 8, "there is no value beside the row key"),
        ("two.csv", 3, "the file ends within quotes"),
    ]
    assert files.rejects(table_id)[0]["record"] == "2,five,x"


def test_wrong_objects_are_named_and_alone(files, new_table_id):
    def row(key, **cell):
        cell = {"family": "f", "qualifier": "q", "timestamp": 0, "value": "v", **cell}
        return json.dumps({"key": key, "cells": [cell]})

    lines = [
        row("a"), row("b", value=5), row("c", timestamp=1), row("d", family="none"), "{", "",
        row("e", qualifier="q" * 17000), row("f", value={"base64": "?"}), '{"key":"g","cells":[]}',
        row("h"),
    ]  # fmt: skip
    (files.directory / "in.jsonl").write_text("\n".join(lines))
    table_id = new_table_id()
    done = files.run("import", "jsonl", "in.jsonl", "--table", table_id, "--families", "f")
    assert done.returncode == 1
    assert list(files.rows(table_id)) == [b"a", b"h"]
    found = {line: reason for _, line, reason in reasons(files, table_id)}
    assert sorted(found) == [2, 3, 4, 5, 7, 8, 9]
    assert found[2] == f"byte {lines[1].index('5}') + 1}: a string is expected"
    assert found[3] == "the timestamp 1 of q is not of whole milliseconds since 1970"
    assert "family not found" in found[4]
    assert "17000 bytes, more than 16384" in found[7]
    assert found[9] == "byte 23: the row has no cells"
    records = {each["line"]: each["record"] for each in files.rejects(table_id)}
    assert records == {line: lines[line - 1] for line in found}


def test_a_row_of_many_requests_is_refused_once(files, new_table_id):
    """And nothing of it is sent behind the part that is refused. What is larger than 4 MB is not
    kept."""
    wide = {"key": "wide", "cells": [
        {"family": "none" if i == 0 else "f", "qualifier": f"{i:06}", "timestamp": 0, "value": "v"}
        for i in range(120_000)
    ]}  # fmt: skip
    cell = {"family": "f", "qualifier": "q", "timestamp": 0, "value": "v"}
    lines = [json.dumps(wide), json.dumps({"key": "next", "cells": [cell]})]
    (files.directory / "in.jsonl").write_text("\n".join(lines))
    table_id = new_table_id()
    done = files.run("import", "jsonl", "in.jsonl", "--table", table_id, "--families", "f")
    assert done.returncode == 1
    assert done.stdout.startswith("2 rows read, 1 written, 1 rejected: see ")
    assert list(files.rows(table_id)) == [b"next"]
    [reject] = files.rejects(table_id)
    assert reject["line"] == 1 and "family not found" in reject["reason"]
    assert "record" not in reject


def test_a_row_is_not_half_written(files, new_table_id):
    (files.directory / "in.csv").write_text(
        "row_key,family,qualifier,timestamp,value\n"
        "a,f,q,0,v\nb,f,q,0,v\nb,f,r,soon,v\nb,f,s,0,v\nc,f,q,0,v\n"
    )
    table_id = new_table_id()
    done = files.run("import", "csv", "in.csv", "--table", table_id, "--families", "f")
    assert done.returncode == 1
    assert list(files.rows(table_id)) == [b"a", b"c"]
    assert reasons(files, table_id) == [
        ("in.csv", 3, "line 4: the timestamp is no number of microseconds")
    ]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_gzip_that_ends_too_early(files, rpc, make_table, new_table_id, kind):
    """What is before is written, the file is named; when it is mended, the import goes on."""
    table, again = make_table({"f": None, "g": None}), new_table_id()
    fill(rpc, table, 3000)
    path = files.directory / f"rows.{kind}.gz"
    files.run_well("export", kind, id_of(table), path.name)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    words = ["import", kind, path.name, "--table", again, "--families", "f,g", "--verify", "full"]
    done = files.run(*words)
    assert done.returncode == 1
    assert f"trestle import: {path.name}:" in done.stderr
    assert "the gzip data end too early" in done.stderr
    path.write_bytes(whole)
    files.run_well(*words)
    assert files.rows(again) == files.rows(id_of(table))


def test_damaged_avro_is_named_with_its_block(files, new_table_id):
    cell = {"family": "f", "qualifier": b"q", "timestamp": 0, "value": b"v"}
    rows = [{"key": b"k%d" % i, "cells": [cell]} for i in range(10)]
    path = files.directory / "in.avro"
    write_file(path, BIGTABLE_ROW, [rows[:5], rows[5:]])
    whole = path.read_bytes()
    words = ["import", "avro", "in.avro", "--families", "f", "--table"]
    for damaged, said in [
        (whole[:-1], "in.avro: block 2: the file ends too early"),
        (whole[:-1] + b"?", "in.avro: block 2: its end is not where its size says"),
        (whole[:20], "in.avro: the header: the file ends too early"),
        (b"key,value\n", "in.avro: this is no Avro object container file"),
        (whole.replace(b"\x08null", b"\x08zstd"), "codec is zstd; only null and"),
    ]:
        path.write_bytes(damaged)
        done = files.run(*words, new_table_id())
        assert done.returncode == 1
        assert said in done.stderr


def write_doubles(files):
    """Of 3,000 records 30 have a key that is there already, in another file for some. Five have the
    key of the very first."""
    lines = [f"k{number:05},{number}" for number in range(2970)]
    for number in range(30):
        double = f"k{0 if number < 5 else number * 50:05},again{number}"
        lines.insert(1500 + 49 * number, double)
    (files.directory / "one.csv").write_text("\n".join(["key,n", *lines[:2000]]) + "\n")
    (files.directory / "two.csv").write_text("\n".join(["key,n", *lines[2000:]]) + "\n")
    return ["one.csv", "two.csv"], lines


IMPORT_DOUBLES = ["--row-key", "{key}", "--family", "f"]


@pytest.mark.parametrize("verify", ["sample", "full"])
def test_records_of_one_row_are_rejected_with_both_places(files, new_table_id, verify):
    table_id = new_table_id()
    sources, lines = write_doubles(files)
    words = ["import", "csv", *sources, "--table", table_id, *IMPORT_DOUBLES, "--verify", verify]
    done = files.run(*words)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3000 rows read, 2970 written, 30 rejected" in done.stdout
    assert "0 different" in done.stdout
    rows = files.rows(table_id)
    assert len(rows) == 2970
    assert all(int(key[1:]) == int(cells[0][3]) for key, cells in rows.items())
    firsts, rejects = {}, []
    for number, line in enumerate(lines):
        file, at = ("one.csv", number + 2) if number < 2000 else ("two.csv", number - 1998)
        key = line.split(",")[0]
        if key in firsts:
            words = "%s, %s:%d (with --duplicates last the later one counts)"
            reason = words % (f"one before it has the row key {key}", *firsts[key])
            rejects.append({"file": file, "line": at, "reason": reason})
        firsts.setdefault(key, (file, at))
    assert files.rejects(table_id) == rejects


@pytest.mark.parametrize("verify", ["sample", "full"])
def test_or_the_last_of_them_counts(files, new_table_id, verify):
    table_id = new_table_id()
    sources, lines = write_doubles(files)
    told = files.run_well(
        "import", "csv", *sources, "--table", table_id, *IMPORT_DOUBLES,
        "--duplicates", "last", "--verify", verify,
    )  # fmt: skip
    assert "3000 rows read, 3000 written, 0 rejected" in told
    assert ", 0 different" in told
    last = dict(line.split(",") for line in lines)
    rows = files.rows(table_id)
    assert {key.decode(): cells[0][3].decode() for key, cells in rows.items()} == last


@pytest.mark.parametrize("verify", ["sample", "full"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_version_that_a_later_one_replaces_is_not_missed(files, new_table_id, verify, order):
    """A table that is made keeps one version: the older of two records' cells is not there."""
    table_id = new_table_id()
    lines = ["a,old,1700000000", "a,new,1700000001"][::order]
    (files.directory / "versions.csv").write_text("\n".join(["key,v,at", *lines]) + "\n")
    told = files.run_well("import", "csv", "versions.csv", "--table", table_id, "--timestamp", "at",
                          *IMPORT_DOUBLES, "--verify", verify)  # fmt: skip
    assert "2 rows read, 2 written, 0 rejected" in told
    assert "2 rows compared, 0 different" in told
    assert [cell[3] for cell in files.rows(table_id)[b"a"]] == [b"new"]


def test_what_makes_no_doubles(files, new_table_id):
    """Other timestamps are other cells; records of cells are parts of rows."""
    table_id = new_table_id()
    lines = [json.dumps({"key": "a", "n": n, "at": 1000 + n}) for n in range(3)]
    (files.directory / "times.jsonl").write_text("\n".join([*lines, lines[1]]) + "\n")
    done = files.run("import", "jsonl", "times.jsonl", "--table", table_id, "--timestamp", "at",
                     "--families", "g", *IMPORT_DOUBLES)  # fmt: skip
    assert done.returncode == 1
    assert "4 rows read, 3 written, 1 rejected" in done.stdout
    assert "times.jsonl:2 (with" in files.rejects(table_id)[0]["reason"]
    record = '{"key":"a","cells":[{"family":"g","qualifier":"%s","timestamp":1000,"value":"x"}]}\n'
    (files.directory / "cells.jsonl").write_text(record % "q" + record % "r")
    files.run_well("import", "jsonl", "cells.jsonl", "--table", table_id)
    assert len(files.rows(table_id)[b"a"]) == 3


def test_rows_that_a_form_cannot_hold(files, rpc, make_table):
    table = make_table()
    rpc.mutate(table, b"a", set_cell("f", b"q", struct.pack(">q", 5), MS))
    rpc.mutate(table, b"b", set_cell("f", b"q", b"five", MS))
    rpc.mutate(table, b"c", set_cell("f", b"q", b"", MS))
    done = files.run(
        "export", "csv", id_of(table), "out.csv", "--form", "fields", "--columns", "q=f:q",
        "--types", "q=int64",
    )  # fmt: skip
    assert done.returncode == 1
    assert (files.directory / "out.csv").read_text() == "row_key,q\na,5\n"
    assert [each["reason"] for each in files.rejects("out.csv")] == [
        "the value of q has 4 bytes, and its type 8",
        "the value of q is empty, which this form cannot say",
    ]


@pytest.mark.parametrize(
    "words, said",
    [
        (["import", "csv"], "the sources come first"),
        (["import", "csv", "x.csv"], "--table is missing"),
        (["import", "csv", "x.csv", "--table", "t", "--row-key", "{a}"], "--family is missing"),
        (["import", "csv", "x.csv", "--table", "t", "--row-key", "{a", "--family", "f"], "brace"),
        (["import", "csv", "x.csv", "--table", "t", "--types", "a=int64"], "need --row-key"),
        (["import", "jsonl", "x", "--table", "t", "--form", "cbt"], "the form cbt is one of CSV"),
        (["import", "csv", "x", "--table", "t", "--delimiter", "ab"], "--delimiter is one byte"),
        (["import", "csv", "x", "--table", "t", "--time", "noon"], "noon is no time"),
        (["import", "csv", "-", "--table", "t", "--verify", "full"], "which - cannot be"),
        (["export", "csv", "t"], "the table comes first, and then the file"),
        (
            ["export", "csv", "t", "x", "--form", "fields", "--columns", "o:price"],
            "o:price has no family: NAME=FAMILY:QUALIFIER says one, as price=o:price, or --family",
        ),
        (["export", "avro", "t", "x", "--form", "fields"], "in the form cells alone"),
        (["export", "csv", "t", "x", "--types", "a=hex"], "--types is for the form fields"),
        (["export"], "as what?"),
        (["import"], "what from?"),
        (["export", "excel", "--help"], 'no kind "excel": dynamodb, csv, jsonl, avro, parquet'),
        (["import", "excel", "--help"], 'no kind "excel": dynamodb, csv, jsonl, avro'),
        (["import", "--table", "t", "csv"], 'no kind "--table"'),
    ],
)
def test_options_that_make_no_sense(files, words, said):
    done = subprocess.run(
        [binary(), *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 2 and said in done.stderr


def test_help_lists_the_kinds():
    for command in ("import", "export"):
        done = subprocess.run(
            [binary(), command, "--help"], capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert all(f"  {kind} " in done.stdout for kind in ("dynamodb", "csv", "jsonl", "avro"))


def test_what_is_not_there(files, rpc, make_table, new_table_id):
    done = files.run("import", "csv", "nothing.csv", "--table", new_table_id())
    assert done.returncode == 1 and "nothing.csv" in done.stderr
    (files.directory / "in.csv").write_text(CBT)
    done = files.run("import", "csv", "in.csv", "--table", "nothing")
    assert done.returncode == 1 and "there is no table nothing: --families" in done.stderr
    done = files.run("export", "csv", "nothing", "out.csv")
    assert done.returncode == 1 and "nothing" in done.stderr
    done = files.run("export", "csv", id_of(make_table()), "no/such/out.csv")
    assert done.returncode == 1 and "no/such/out.csv" in done.stderr
    done = files.run("export", "parquet", "t", "out.parquet")
    assert done.returncode == 1 and "Parquet is not written" in done.stderr
    assert [path.name for path in files.directory.iterdir()] == ["in.csv"]


# --- rows that are dropped ---


def values_in(path):
    """{key: value} of an export as JSON, of cells whose keys and short values are text."""
    lines = map(json.loads, path.read_text().splitlines())
    return {row["key"].encode(): row["cells"][0]["value"].encode() for row in lines}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_were_dropped_are_not_exported(files, rpc, make_table, new_table_id, kind):
    table, again = make_table(), new_table_id()
    left = fill_and_drop(rpc, table)
    told = files.run_well("export", kind, id_of(table), "rows", "--verify", "full")
    assert told.startswith("4 rows read, 4 written, 0 rejected\n")
    files.run_well("import", kind, "rows", "--table", again, "--families", "f,g")
    assert {key: cells[0][3] for key, cells in files.rows(again).items()} == left


def test_rows_that_are_dropped_meanwhile_are_not_exported(files, rpc, make_table):
    table = make_table()
    before = fill_before(rpc, table)
    words = ["export", "jsonl", id_of(table), "rows", "--streams", 1, "--verify", "full"]
    with drop_meanwhile(rpc, table, files.host) as (files.host, drop):
        running = subprocess.Popen(
            files.command(*words), cwd=files.directory, stdout=subprocess.PIPE, text=True
        )
        drop()
        said, _ = running.communicate(timeout=PATIENCE_SECONDS)
    count = len(before) + 1
    assert running.returncode == 0 and f"{count} rows compared, 0 different\n" in said
    found = values_in(files.directory / "rows")
    assert found == {**dict.fromkeys(before, VALUE), b"z5": b"new"}


# --- who is killed goes on ---


def kill_it(files, words, checkpoint, times):
    return kill_some_times(files.command(*words), files.directory, checkpoint, times)


@pytest.mark.parametrize("kind, ending", [("csv", ""), ("jsonl", ".gz"), ("avro", "")])
def test_killed_exports_and_imports_go_on(files, rpc, make_table, new_table_id, kind, ending):
    table, again = make_table({"f": None, "g": None}, [b"a", b"k002"]), new_table_id()
    fill(rpc, table, 6000)
    out, whole = f"out.{kind}{ending}", files.directory / f"whole.{kind}{ending}"
    words = ["export", kind, id_of(table), out, "--verify", "full"]
    checkpoint = files.directory / f"{out}.checkpoint"
    done = kill_it(files, words, checkpoint, 2)
    assert not (files.directory / out).exists()
    with open(files.directory / f"{out}.part", "ab") as part:
        part.write(b"what no checkpoint knows")
    told = files.run(*words)
    assert told.returncode == 0, told.stderr
    assert f"{done} rows are done" in told.stderr
    assert told.stdout == (
        "6000 rows read, 6000 written, 0 rejected\n6000 rows in the file, the same as were read\n"
        "6000 rows compared, 0 different\n"
    )
    files.run_well("export", kind, id_of(table), whole.name, "--verify", "none")
    if kind == "avro":
        assert read_rows(files.directory / out) == read_rows(whole)
    else:
        opened = gzip.open if ending else open
        with opened(files.directory / out) as a, opened(whole) as b:
            assert a.read() == b.read()

    words = ["import", kind, out, "--table", again, "--families", "f,g", "--verify", "full"]
    checkpoint = files.directory / f"{again}.checkpoint"
    done = kill_it(files, words, checkpoint, 2)
    told = files.run(*words)
    assert told.returncode == 0, told.stderr
    assert f"{done} rows are done" in told.stderr
    assert told.stdout == (
        "6000 rows read, 6000 written, 0 rejected\n6000 rows compared, 0 different\n"
    )
    assert files.rows(again) == files.rows(id_of(table))


@pytest.mark.parametrize("out", ["out.csv", "out.jsonl.gz", "out.avro"])
def test_an_export_killed_while_it_is_verified(files, rpc, make_table, out):
    """The file is in its place by then: it is verified again, not made anew."""
    table = make_table({"f": None, "g": None}, [b"k002"])
    fill(rpc, table, 500)
    words = ["export", out.split(".")[1], id_of(table), out, "--verify", "full"]
    path = files.directory / out
    proxy = HoldingProxy(files.host, path.exists)
    try:
        files.host = proxy.host
        running = subprocess.Popen(files.command(*words), cwd=files.directory)
        assert proxy.holds.wait(PATIENCE_SECONDS)
        running.kill()
        running.wait(PATIENCE_SECONDS)
        proxy.release()
        before = path.stat().st_ino, path.read_bytes()
        told = files.run(*words)
    finally:
        proxy.close()
    assert told.returncode == 0, told.stderr
    assert "500 rows are done" in told.stderr
    assert told.stdout == (
        "500 rows read, 500 written, 0 rejected\n500 rows in the file, the same as were read\n"
        "500 rows compared, 0 different\n"
    )
    assert (path.stat().st_ino, path.read_bytes()) == before
    assert list(files.directory.iterdir()) == [path]


def test_a_checkpoint_is_of_its_options(files, rpc, make_table):
    table = make_table()
    fill_one = [(b"k%04d" % i, [set_cell("f", b"q", b"v", MS)]) for i in range(6000)]
    rpc.mutate_rows(table, fill_one)
    words = ["export", "csv", id_of(table), "out.csv"]
    kill_it(files, words, files.directory / "out.csv.checkpoint", 1)
    done = files.run(*words, "--prefix", "k1")
    assert done.returncode == 1 and "of other options" in done.stderr


def test_a_dry_run_writes_nothing(files, rpc, make_table):
    table = make_table({"f": None, "g": None})
    fill(rpc, table, 50)
    told = files.run_well("export", "csv", id_of(table), "out.csv", "--dry-run")
    assert told == "50 rows read, 50 fine, 0 rejected\n"
    assert list(files.directory.iterdir()) == []
