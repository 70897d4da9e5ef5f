"""Rows of damaged table files come back from a whole backup: as they were in it, and nothing else
changes (docs/operating/repair.md)."""

import os
import re
import shutil

import pytest
from grpc import StatusCode
from harness.damage import flip, tables_with
from harness.rpc import Rpc, delete_row, fails_with, set_cell
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

ROWS = 1000
INSTANCE = "projects/p/instances/i"
HIT = f"{INSTANCE}/tables/hit"
# With a buffer this small what the log has is flushed at the next start.
SETTINGS = ["--write-buffer", "4MB", "--disk-reserve", "1MB"]


def key(number):
    return b"k%05d" % number


def write(rpc, model, table, numbers, size=2500):
    values = {key(n): os.urandom(size) for n in numbers}
    for at in range(0, len(values), 100):
        some = list(values.items())[at : at + 100]
        changes = [(k, [set_cell("f", b"q", v, 1000)]) for k, v in some]
        assert set(rpc.mutate_rows(table, changes)) == {0}
    model |= values


def rows_of(rpc, table=HIT):
    return {k: cells[0].value for k, cells in rpc.read(table)}


def run(*arguments):
    done = run_trestle(*arguments)
    print(done.stdout, done.stderr)
    assert "Sanitizer" not in done.stderr
    return done


def backup(*arguments):
    done = run("backup", *arguments)
    assert done.returncode == 0
    return done.stdout.split(":")[0]


def flush(server):
    server.start()
    server.stop()


class Former:
    """A stopped server, a whole backup of it, and what has changed since."""

    def __init__(self, place):
        self.places = place / "places"
        self.places.mkdir()
        self.place = self.places / "whole"
        self.then = {}
        self.server = Server(place, SETTINGS)
        self.server.start()
        rpc = Rpc(self.server.host)
        rpc.create_table("hit")
        write(rpc, self.then, HIT, range(ROWS))
        write(rpc, self.then, HIT, range(0, ROWS, 8), size=70_000)
        rpc.close()
        self.server.stop()
        flush(self.server)
        self.first = backup("create", self.place, "--data-dir", self.server.data)
        self.data = self.server.data
        self.now = dict(self.then)
        self.change()

    def change(self):
        self.server.start()
        rpc = Rpc(self.server.host)
        write(rpc, self.now, HIT, range(0, ROWS, 3))
        for number in range(1, ROWS, 7):
            rpc.mutate(HIT, key(number), delete_row())
            del self.now[key(number)]
        rpc.close()
        self.server.stop()


@pytest.fixture(scope="module")
def former(tmp_path_factory):
    return Former(tmp_path_factory.mktemp("former"))


@pytest.fixture
def damaged(tmp_path, former):
    """A copy of it, with a damaged block among the rows of the backup."""
    server = Server(tmp_path, [*SETTINGS, "--backup-places", str(former.places)])
    shutil.copytree(former.data, server.data)
    path = tables_with(server.data, key(0))[0]
    flip(path, 400_000)
    server.hit_file = path
    yield server
    server.close()


def lost_of(path):
    """The numbers of the rows that a repair has named, and its words."""
    (line,) = path.read_text().splitlines()
    table, first, end, words = line.split("\t")
    assert table == HIT
    first, end = (text.encode().decode("unicode_escape").encode("latin-1") for text in (first, end))
    return [n for n in range(ROWS) if first <= key(n) < end], words


def check_came_back(former, rpc, gone):
    """Those rows are what they were, all others what they are."""
    model = {k: v for k, v in former.now.items() if int(k[1:]) not in gone}
    model |= {key(n): former.then[key(n)] for n in gone}
    found = rows_of(rpc)
    assert sorted(found) == sorted(model)
    assert found == model


def test_a_directory_gets_them_back(former, damaged, tmp_path):
    data, place, bad = damaged.data, tmp_path / "place", tmp_path / "bad"
    later = former.first
    while later == former.first:  # within the same second
        later = backup("create", bad, "--data-dir", data)  # it has the damage, too
    for each in (bad, former.place):
        shutil.copytree(each, place, dirs_exist_ok=True)
    before = {each.name: each.read_bytes() for each in data.iterdir() if each.is_file()}
    trial = run("repair", data, "--from", place)
    assert trial.returncode == 1 and re.search(r"would lose: .* \d+ rows come from", trial.stdout)
    assert {each.name: each.read_bytes() for each in data.iterdir() if each.is_file()} == before
    assert not (data.parent / "data.repairing").exists()
    named = run("repair", data, "--from", place, "--backup", later, "--in-place")
    assert named.returncode == 1 and "left: " in named.stderr and "lost:" not in named.stdout
    assert not (data / "lost.tsv").exists()

    done = run("repair", data, "--from", place, "--in-place")
    assert done.returncode == 0
    gone, words = lost_of(data / "lost.tsv")
    assert 3 <= len(gone) <= 16
    assert f"; {len(gone)} rows come from the whole backup {former.first}, of 20" in words
    assert "is there again" in words and words in done.stdout
    damaged.start()
    rpc = Rpc(damaged.host)
    check_came_back(former, rpc, gone)
    written = {}
    write(rpc, written, HIT, gone)
    assert {k: v for k, v in rows_of(rpc).items() if k in written} == written
    rpc.close()
    damaged.stop()
    assert "nothing to mend" in run("repair", data, "--from", place).stdout
    assert run("doctor", data).returncode == 0


def test_a_backup_made_when_they_were_out_of_service_gives_nothing(damaged, tmp_path):
    data, place = damaged.data, tmp_path / "place"
    damaged.start()
    rpc = Rpc(damaged.host)
    with fails_with(StatusCode.DATA_LOSS, damaged.hit_file.name):
        rpc.read(HIT)
        rpc.read(HIT)
    rpc.close()
    damaged.stop()
    # Of a directory that knows of the damage.
    assert "left: " in run("repair", data, "--from", tmp_path, "--in-place").stderr
    name = backup("create", place, "--data-dir", data)
    done = run("repair", data, "--from", place, "--backup", name, "--in-place")
    assert done.returncode == 1 and "out of service when the backup was made" in done.stderr
    assert not (data / "lost.tsv").exists()
    newest = run("repair", data, "--from", place, "--in-place")
    assert newest.returncode == 1 and "has no whole backup of this server" in newest.stderr
