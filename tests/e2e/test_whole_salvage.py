"""Restoring a whole backup of which the place has a file no more as it was: refused, in words that
say what is harmed and how to get the rest; with --salvage all comes that is whole."""

import hashlib
import os
import re
import shutil

import pytest
from grpc import StatusCode
from harness.damage import CATALOG, flip, tables, tables_of
from harness.rpc import fails_with, set_cell
from harness.server import run_trestle

# With a buffer this small what the log has is in tables' files after the next start.
SMALL = ("--write-buffer", "4MB", "--disk-reserve", "1MB")
OUT = re.compile(r'^out of service: rows from "([^"]+)"(?: to "([^"]+)"| on) of (\S+) are out of '
                 r"service: .*?(\d+\.sst)", re.MULTILINE)  # fmt: skip


def run(*arguments, code):
    done = run_trestle("backup", *map(str, arguments))
    print(done.stdout, done.stderr)
    assert done.returncode == code
    return done.stderr if code and not done.stdout else done.stdout


def text(shown):
    return shown.encode().decode("unicode_escape").encode("latin-1")


class Harmed:
    """A stopped server with two tables, and a whole backup of it in a place."""

    def __init__(self, tmp_path, fresh_server, connect):
        self.place = tmp_path / "places" / "whole"
        self.place.parent.mkdir()
        self.fresh_server, self.connect = fresh_server, connect
        self.server = fresh_server(*SMALL, "--backup-places", str(self.place.parent))
        rpc = connect(self.server.host)
        self.rows = {}
        for name, count in (("hit", 1000), ("sound", 300)):
            rows = {b"k%05d" % number: os.urandom(2500) for number in range(count)}
            changes = [(key, [set_cell("f", b"q", each, 1000)]) for key, each in rows.items()]
            table = rpc.create_table(name)
            assert set(rpc.mutate_rows(table, changes)) == {0}
            self.rows[table] = rows
        self.hit, self.sound = self.rows
        self.server.stop()
        self.server.start()
        self.server.stop()
        run("create", self.place, "--data-dir", self.server.data, code=0)

    def content(self, path):
        return self.place / "files" / hashlib.sha256(path.read_bytes()).hexdigest()

    def largest(self):
        """The data directory's files: first the largest, which is of the table that is hit."""
        return sorted(tables(self.server.data), key=lambda each: -each.stat().st_size)

    def restored(self, directory):
        shutil.rmtree(self.server.data)
        directory.rename(self.server.data)
        self.server.start()
        return self.connect(self.server.host)

    def check(self, rpc, closed):
        """`closed` are refused, all else is there: of many rows some are looked at."""
        assert {k: c[0].value for k, c in rpc.read(self.sound)} == self.rows[self.sound]
        some = set(sorted(closed)[::10]) | set(list(self.rows[self.hit])[::25])
        for key in sorted(some):
            if key in closed:
                with fails_with(StatusCode.DATA_LOSS, "out of service: the table file "):
                    rpc.read_row(self.hit, key)
            else:
                assert rpc.read_row(self.hit, key)[0].value == self.rows[self.hit][key]

    def closed(self, said):
        """The rows that are named, all of the table that is hit."""
        keys = set()
        for first, last, table, _ in OUT.findall(said):
            assert table == self.hit
            keys |= {key for key in self.rows[table]
                     if text(first) <= key <= (text(last) if last else b"\xff")}  # fmt: skip
        return keys


@pytest.fixture
def harmed(tmp_path, fresh_server, connect):
    return Harmed(tmp_path, fresh_server, connect)


def test_it_is_refused_and_what_is_whole_comes_alone(harmed, tmp_path):
    path = harmed.largest()[0]
    content, to = harmed.content(path), tmp_path / "to"
    flip(content, 400_000)
    words = rf"files/{content.name}, which is to be {path.name}: it is damaged: "
    words += rf".* \(it is of {harmed.hit}\)"
    for alone in ((), ("--table", harmed.hit), ("--instance", "projects/p/instances/i")):
        said = run("restore", harmed.place, *alone, "--to", to, code=1)
        assert re.search(rf"{words}\. With --salvage all ", said), said
        assert not to.exists() and not to.with_name("to.restoring").exists()
    said = run("restore", harmed.place, "--table", harmed.sound, "--to", to, code=0)
    assert f"1 table restored into {to}\n" in said
    rpc = harmed.restored(to)
    assert {k: c[0].value for k, c in rpc.read(harmed.sound)} == harmed.rows[harmed.sound]


HARMS = {
    "flipped": lambda content: flip(content, 400_000),
    "cut": lambda content: os.truncate(content, 1_000_000),
    "gone": lambda content: content.unlink(),
}


@pytest.mark.parametrize("how", HARMS)
def test_all_that_is_whole_comes_if_it_is_asked_for(harmed, tmp_path, how):
    HARMS[how](harmed.content(harmed.largest()[0]))
    to = tmp_path / "to"
    said = run("restore", harmed.place, "--salvage", "--to", to, code=1)
    assert f" restored into {to}\n" in said
    closed = harmed.closed(said)
    assert (len(closed) < 20) == (how == "flipped") and closed
    rpc = harmed.restored(to)
    harmed.check(rpc, closed)
    assert harmed.server.metric("damaged_ranges") == len(OUT.findall(said))

    if how != "flipped":
        return
    aside = f"{harmed.hit}-aside"
    online = ("--table", harmed.hit, "--as", aside, "--endpoint", harmed.server.host)
    run("restore", harmed.place, *online, code=1)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read_row(aside, b"k00000")
    said = run("restore", harmed.place, "--salvage", *online, code=1)
    assert "1 range of rows is out of service, since it is in the backup" in said
    assert rpc.read_row(aside, b"k00000")[0].value == harmed.rows[harmed.hit][b"k00000"]
    with fails_with(StatusCode.DATA_LOSS, "in the backup that it was restored from"):
        rpc.read_row(aside, min(closed))
    harmed.server.stop()
    assert run_trestle("repair", harmed.server.data, "--in-place").returncode == 0
    assert run_trestle("doctor", harmed.server.data).returncode == 0


def test_without_the_catalog_rows_come_without_their_names(harmed, tmp_path):
    (harmed.server.data / "SYNCED").unlink()  # so that a salvage writes all to tables
    harmed.server.arguments.append("--salvage")
    harmed.server.start()
    harmed.server.arguments.remove("--salvage")
    harmed.server.stop()
    run("create", harmed.place, "--data-dir", harmed.server.data, code=0)
    path = max(tables_of(harmed.server.data, CATALOG), key=lambda each: each.stat().st_size)
    flip(harmed.content(path), -12, 8)
    to = tmp_path / "to"
    said = run("restore", harmed.place, "--table", harmed.sound, "--salvage", "--to", to, code=1)
    assert f"which is to be {path.name}: it is damaged" in said
    said = run("restore", harmed.place, "--to", to, code=1)
    assert f"which is to be {path.name}: it is damaged" in said
    said = run("restore", harmed.place, "--salvage", "--to", to, code=1)
    assert re.search(r"^lost: .*keyspaces have rows but no table", said, re.MULTILINE), said
    rpc = harmed.restored(to)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read_row(harmed.sound, b"k00000")


def test_of_what_is_whole_nothing_is_salvaged(harmed, tmp_path):
    to = tmp_path / "to"
    said = run("restore", harmed.place, "--salvage", "--to", to, code=0)
    assert "out of service" not in said and "lost" not in said
    harmed.check(harmed.restored(to), ())


def write_more(harmed, rpc, numbers):
    rows = {b"k%05d" % number: os.urandom(2500) for number in numbers}
    for table in (harmed.hit, harmed.sound):
        assert set(rpc.mutate_rows(table, [(key, [set_cell("f", b"q", each, 1000)])
                                           for key, each in rows.items()])) == {0}  # fmt: skip
        harmed.rows[table].update(rows)


@pytest.mark.parametrize("how", ["flipped", "gone"])
def test_with_an_archive_too(harmed, tmp_path, how):
    """All that is whole is as it was last, also rows that were written and made since."""
    archive, to = tmp_path / "archive", tmp_path / "to"
    archive.mkdir()
    harmed.server.arguments += ["--archive", str(archive)]
    harmed.server.start()
    run("create", harmed.place, "--endpoint", harmed.server.host, code=0)
    path = harmed.largest()[0]
    HARMS[how](harmed.content(path))
    rpc = harmed.connect(harmed.server.host)
    write_more(harmed, rpc, [*range(0, 1000, 20), *range(1000, 1050)])
    harmed.server.stop()
    restore = ("restore", harmed.place, "--archive", archive, "--to", to)
    said = run(*restore, code=1)
    assert f"which is to be {path.name}" in said and "With --salvage rows in damaged files" in said
    assert not to.exists()
    said = run(*restore, "--salvage", code=1)
    closed = harmed.closed(said)
    assert (len(closed) < 20) == (how == "flipped") and closed
    rpc = harmed.restored(to)
    harmed.check(rpc, closed)
    assert harmed.server.metric("damaged_ranges") == len(OUT.findall(said))


def test_with_an_archive_nothing_but_tables_may_be_damaged(harmed, tmp_path):
    archive, to = tmp_path / "archive", tmp_path / "to"
    archive.mkdir()
    harmed.server.arguments += ["--archive", str(archive)]
    harmed.server.start()
    run("create", harmed.place, "--endpoint", harmed.server.host, code=0)
    write_more(harmed, harmed.connect(harmed.server.host), range(3))
    harmed.server.stop()
    flip(harmed.content(harmed.server.data / "CURRENT"), 0, 4)
    said = run("restore", harmed.place, "--archive", archive, "--salvage", "--to", to, code=1)
    assert "which is to be CURRENT: it is damaged" in said and not to.exists()


def test_without_the_list_of_tables_it_is_made_of_all_that_are_there(harmed, tmp_path):
    """A manifest and its copy are one content of the place."""
    (manifest,) = (path for path in harmed.server.data.glob("MANIFEST-*") if path.suffix == "")
    content, to = harmed.content(manifest), tmp_path / "to"
    assert harmed.content(manifest.with_name(manifest.name + ".copy")) == content
    flip(content, content.stat().st_size // 2)
    for asked in ((), ("--salvage",)):
        said = run("restore", harmed.place, *asked, "--to", to, code=1)
        assert not to.exists() and not to.with_name("to.restoring").exists()
    assert "nothing is restored. With --salvage --accept-old-data " in said
    assert "trestle repair" not in said  # of a directory that is not there
    said = run("restore", harmed.place, "--accept-old-data", "--to", to, code=2)
    assert "--accept-old-data goes with --salvage" in said

    said = run("restore", harmed.place, "--salvage", "--accept-old-data", "--to", to, code=1)
    assert said.count("lost: ") == 1 and "lost: which tables' files count: " in said
    assert f" restored into {to}\n" in said
    assert not (to / "replaced").exists() and not (to / "old-data").exists()
    assert run_trestle("doctor", str(to)).returncode == 0
    rpc = harmed.restored(to)
    harmed.check(rpc, set())


def test_a_damaged_table_file_without_a_list_is_named(harmed, tmp_path):
    (manifest,) = (path for path in harmed.server.data.glob("MANIFEST-*") if path.suffix == "")
    flip(harmed.content(manifest), 0)
    path, to = harmed.largest()[0], tmp_path / "to"
    harmed.content(path).unlink()
    said = run("restore", harmed.place, "--salvage", "--accept-old-data", "--to", to, code=1)
    assert f"lost: what the table file {path.name} had, and no other file has: it " in said
    rpc = harmed.restored(to)
    assert {k: c[0].value for k, c in rpc.read(harmed.sound)} == harmed.rows[harmed.sound]
    rest = {k: c[0].value for k, c in rpc.read(harmed.hit)}  # a log may have them, too
    assert rest.items() <= harmed.rows[harmed.hit].items()


def create_of(place, *arguments):
    done = run_trestle("backup", "create", *map(str, (place, *arguments)))
    print(done.stdout, done.stderr)
    return done


def test_a_backup_of_rows_that_are_out_of_service_says_so(harmed):
    harmed.largest()[0].unlink()
    place, asked = harmed.place.parent / "later", "1 range of rows is out of service in it"
    for part in ((), ("--table", harmed.hit)):
        done = create_of(place, *part, "--data-dir", harmed.server.data)
        assert done.returncode == 1 and asked in done.stderr
    done = create_of(place, "--table", harmed.sound, "--data-dir", harmed.server.data)
    assert done.returncode == 0 and not done.stderr
    assert run("list", place, code=0).count("  without 1 range of rows\n") == 2
    assert run("verify", place, code=0).count(": whole  without 1 range of rows\n") == 2

    harmed.server.start()
    done = create_of(place, "--endpoint", harmed.server.host)
    assert done.returncode == 1 and asked in done.stderr
    done = create_of(place, "--table", harmed.sound, "--endpoint", harmed.server.host)
    assert done.returncode == 0 and not done.stderr
    said = harmed.server.stderr()
    assert said.count('msg="a whole backup has rows that are out of service"') == 1
    assert run("list", place, code=0).count("  without 1 range of rows\n") == 3
