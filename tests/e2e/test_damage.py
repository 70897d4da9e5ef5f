"""Damaged table files: rows that they held are out of service, and nothing else is. Each row of the
damage matrix (docs/operating/repair.md) that is of table files is here, at rest and under load."""

import contextlib
import json
import os
import re
import shutil
import time

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.backups import Backups, finish
from harness.damage import CATALOG, cut, flip, keyspace_of, tables, tables_of, tables_with
from harness.datastore import Raw, client_of
from harness.patience import PATIENCE_SECONDS
from harness.rpc import Rpc, delete_row, fails_with, set_cell
from harness.server import EXTERNAL, Server, run_trestle
from harness.sql import execute, prepare

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

HALF = 1000  # rows of a table file, each of some bytes that do not compress
VALUE_BYTES = 2500
AT_ONCE = 100
INSTANCE = "projects/p/instances/i"
# With a buffer this small what the log has is flushed at the next start.
SETTINGS = ["--write-buffer", "4MB", "--disk-reserve", "1MB"]
HIT, OTHER = f"{INSTANCE}/tables/hit", f"{INSTANCE}/tables/other"


def key(table, number):
    return table.rsplit("/")[-1][:1].encode() + b"%05d" % number


def numbers_of(keys):
    return sorted(int(k[1:]) for k in keys)


def write(rpc, model, table, numbers):
    numbers = list(numbers)
    for at in range(0, len(numbers), AT_ONCE):
        some = {key(table, n): os.urandom(VALUE_BYTES) for n in numbers[at : at + AT_ONCE]}
        changes = [(k, [set_cell("f", b"q", v, 1000)]) for k, v in some.items()]
        assert set(rpc.mutate_rows(table, changes)) == {0}
        model[table] |= some


def read_some(rpc, table, keys):
    """{key: value} of those, or None: something of them is out of service."""
    try:
        rows = rpc.read(table, rows={"row_keys": keys})
    except grpc.RpcError as error:
        assert error.code() == StatusCode.DATA_LOSS, error
        assert table in error.details() and ".sst" in error.details(), error.details()
        return None
    return {k: cells[0].value for k, cells in rows}


def lost(rpc, model, table):
    """The keys that are out of service; all others are as they were written."""
    keys, gone = sorted(model[table]), []
    for at in range(0, len(keys), AT_ONCE):
        some = keys[at : at + AT_ONCE]
        found = read_some(rpc, table, some)
        one_by_one = [some] if found is not None else [[k] for k in some]
        for ask in one_by_one:
            found = read_some(rpc, table, ask)
            if found is None:
                gone += ask
            else:
                assert found == {k: model[table][k] for k in ask if k in model[table]}
    return gone


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """(a directory of a stopped server, what is in it): two tables, each in two files."""
    place = tmp_path_factory.mktemp("sound")
    model = {HIT: {}, OTHER: {}}
    server = Server(place, SETTINGS[2:])
    for half in range(2):
        server.start()
        rpc = Rpc(server.host)
        for table in model:
            if half == 0:
                rpc.create_table(table.rsplit("/")[-1])
            write(rpc, model, table, range(half * HALF, (half + 1) * HALF))
        rpc.close()
        server.stop()
        server.arguments = SETTINGS  # flushes
        server.start()
        server.stop()
        server.arguments = SETTINGS[2:]
    return place / "data", model


class Damaged:
    """A copy of it that is served."""

    def __init__(self, place, sound, *arguments):
        data, model = sound
        self.model = {table: dict(rows) for table, rows in model.items()}
        self.server = Server(place, [*SETTINGS, *arguments])
        shutil.copytree(data, self.server.data)

    def file(self, table, number):
        """The table file that has the row."""
        (path,) = tables_with(self.server.data, key(table, number))
        return path

    def start(self):
        self.server.start()
        self.rpc = Rpc(self.server.host)
        return self

    def restart(self):
        self.rpc.close()
        self.server.stop()
        return self.start()

    def lost(self, table=HIT):
        return numbers_of(lost(self.rpc, self.model, table))

    def health(self):
        status, page = self.server.get("/readyz")
        assert status == 200
        return page

    def wait_for(self, pattern):
        """What `/readyz` says once this is in it."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not re.search(pattern, self.health()) and time.monotonic() < end:
            time.sleep(0.05)
        assert re.search(pattern, self.health())
        return self.health()

    def meet(self):
        """Reads all of the table, up to the damage."""
        with contextlib.suppress(grpc.RpcError):
            self.rpc.read(HIT)
        self.wait_for("damaged_range")

    def check_rest_goes_on(self):
        """All of another table, its backup's files, new tables, the end of tables."""
        assert self.lost(OTHER) == []
        write(self.rpc, self.model, OTHER, range(10))
        new = self.rpc.create_table("new")
        self.rpc.mutate(new, b"k", set_cell("f", b"q", b"v", 1000))
        self.rpc.delete_table(new)
        self.rpc.drop_row_range(OTHER, key(OTHER, 4)[:-1])
        for k in [k for k in self.model[OTHER] if k.startswith(key(OTHER, 4)[:-1])]:
            del self.model[OTHER][k]
        assert self.lost(OTHER) == []

    def drop_and_die(self, *written):
        """Drops the first hundred rows, and writes some of them anew; the file that had them, while
        it is there: the pass that begins at once waits for that over another table."""
        sound = self.server.data.with_name("as-it-was")
        shutil.copytree(self.server.data, sound)
        for _ in range(20):
            file = self.file(HIT, 0)
            self.start()
            self.rpc.drop_row_range(OTHER, everything=True)
            self.rpc.drop_row_range(HIT, b"h000")
            model = {HIT: {}}
            write(self.rpc, model, HIT, written)
            self.rpc.close()
            self.server.kill()
            if file.exists():
                kept = {k: v for k, v in self.model[HIT].items() if not k.startswith(b"h000")}
                self.model = {HIT: kept | model[HIT], OTHER: {}}
                return file
            shutil.rmtree(self.server.data)
            shutil.copytree(sound, self.server.data)
        pytest.fail("the file is gone each time")


@pytest.fixture
def damaged(tmp_path, sound):
    made = Damaged(tmp_path, sound)
    yield made
    made.server.close()


def test_a_damaged_block_takes_its_rows_out_of_service(damaged):
    path = damaged.file(HIT, 0)
    flip(path, 400_000)
    doctor = run_trestle("doctor", damaged.server.data)
    assert doctor.returncode == 1
    assert re.search(f"damage: .*{HIT}.*{path.name}", doctor.stderr)
    damaged.start().meet()
    gone = damaged.lost()
    assert 3 <= len(gone) <= 16 and gone == list(range(gone[0], gone[-1] + 1))
    text = damaged.health()
    assert 'rows from "h' in text and HIT in text and path.name in text
    assert damaged.server.metric("damaged_ranges") == 1
    damaged.check_rest_goes_on()

    inside, rpc = key(HIT, gone[1]), damaged.rpc
    for refused in (
        lambda: rpc.mutate(HIT, inside, set_cell("f", b"q", b"v", 1000)),
        lambda: rpc.check_and_mutate(HIT, inside, true=[delete_row()]),
        lambda: rpc.read_row(HIT, inside),
        lambda: rpc.read(HIT),
    ):
        with fails_with(StatusCode.DATA_LOSS, path.name):
            refused()
    rpc.mutate(HIT, inside, delete_row())
    rpc.mutate(HIT, inside, delete_row(), set_cell("f", b"q", b"v", 1000))
    write(rpc, damaged.model, HIT, [gone[0] - 1, gone[-1] + 1])
    assert damaged.lost() == gone

    damaged.restart()
    assert "damaged_range" in damaged.health()  # before anybody reads
    assert damaged.lost() == gone
    damaged.check_rest_goes_on()


INCREMENT = types.ReadModifyWriteRule(
    family_name="f", column_qualifier=b"n", increment_amount=1)  # fmt: skip
FIRST = {
    "ReadRows": lambda rpc, key: rpc.read_row(HIT, key),
    "a scan": lambda rpc, key: rpc.read(HIT),
    "CheckAndMutateRow": lambda rpc, key: rpc.check_and_mutate(HIT, key, true=[delete_row()]),
    "ReadModifyWriteRow": lambda rpc, key: rpc.read_modify_write(HIT, key, INCREMENT),
    "SQL": lambda rpc, key: select(rpc, key),
}


def select(rpc, key):
    """The row, by a query."""
    execute(rpc, prepare(rpc, f"SELECT f FROM hit WHERE _key = b'{key.decode()}'"))


@pytest.mark.parametrize("what", FIRST)
def test_the_first_call_that_meets_damage_is_told_which_rows(damaged, what):
    """It was told the file and a byte; which rows, only the next one."""
    path = damaged.file(HIT, 0)
    flip(path, 400_000)
    told = run_trestle("repair", damaged.server.data).stdout
    (rows,) = re.findall(rf'rows from "(h\d+)\S*" to "(h\d+)\S*" of {HIT} .*{path.name}', told)
    inside = key(HIT, int(rows[1][1:]) - 1)
    damaged.start()
    with fails_with(StatusCode.DATA_LOSS, f'rows from "{rows[0]}') as failure:
        FIRST[what](damaged.rpc, inside)
    assert HIT in failure.error.details() and path.name in failure.error.details()


FIRST_OF_DATASTORE = {
    "Lookup": lambda raw: raw.lookup(raw.key("K", "a7")),
    "RunQuery": lambda raw: raw.query(kind=[{"name": "K"}]),
}


@pytest.mark.parametrize("what", FIRST_OF_DATASTORE)
def test_the_first_call_of_datastore_is_told_so_too(tmp_path, what):
    server = Server(tmp_path, SETTINGS).start()
    raw = Raw(client_of(server.host, "p"))
    raw.commit(*({"upsert": raw.entity("K", f"a{n}", n=n)} for n in range(50)))
    server.stop()
    (server.data / "SYNCED").unlink()
    server.arguments.append("--salvage")  # what the log has becomes a table
    server.start()
    server.restart()
    server.arguments.remove("--salvage")
    server.stop()
    path = max((each for each in tables(server.data) if keyspace_of(each) != CATALOG),
               key=lambda each: each.stat().st_size)  # fmt: skip
    flip(path, 40, 8)
    server.start()
    with pytest.raises(exceptions.DataLoss) as failure:
        FIRST_OF_DATASTORE[what](Raw(client_of(server.host, "p")))
    said = str(failure.value)
    assert re.search(rf'rows from ".*" .*projects/p/databases/.*{path.name}', said), said
    server.close()


def test_the_doctor_names_all_of_it_and_reads_on(damaged):
    for at in (100_000, 400_000, 1_000_000):
        flip(damaged.file(HIT, 0), at)
    WHOLE["removed"](damaged.file(OTHER, HALF))
    done = run_trestle("doctor", damaged.server.data)
    assert done.returncode == 1
    blocks = re.findall(rf"^damage: rows from .* of {HIT} are out of service: .* the block at",
                        done.stderr, re.MULTILINE)  # fmt: skip
    assert len(blocks) == 3
    assert re.search(rf"^damage: rows from .* of {OTHER} are out of .* is missing", done.stderr,
                     re.MULTILINE)  # fmt: skip
    assert "\n4 damages found" in done.stderr
    rows = {name: int(n) for name, n in re.findall(r"^(\S+): 1 tablets, (\d+) rows", done.stdout,
                                                   re.MULTILINE)}  # fmt: skip
    told = [run_trestle("repair", damaged.server.data).stdout.count(f" of {HIT} ")]
    assert told == [3]
    assert 2 * HALF - 60 <= rows[HIT] < 2 * HALF - 8
    assert HALF <= rows[OTHER] < 2 * HALF


def test_the_doctor_finds_what_a_scan_passes_over(damaged):
    """A block of which all was dropped: no scan reads it, and a compaction would."""
    file = damaged.drop_and_die()
    flip(file, 100_000)
    done = run_trestle("doctor", damaged.server.data)
    assert done.returncode == 1 and "1 damages found" in done.stderr, done.stdout + done.stderr
    found = re.search(rf'^damage: rows from "h000.*" to "h000.*" of {HIT} are out of service: the '
                      rf"table file {file.name} is damaged: .*; all that it had was deleted since$",
                      done.stderr, re.MULTILINE)  # fmt: skip
    assert found, done.stderr
    assert f"{HIT}: 1 tablets, {2 * HALF - 100} rows" in done.stdout  # in no other block
    said = run_trestle("repair", damaged.server.data).stdout
    assert found[0].removeprefix("damage: ") in said
    flip(file, 100_000)
    flip(file, 1_500_000)  # rows that are there
    done = run_trestle("doctor", damaged.server.data)
    assert done.returncode == 1 and "deleted since" not in done.stderr


def test_what_was_deleted_since_is_repaired_without_a_loss(damaged):
    """Taking what other files have as it is, which for once is all that counts."""
    file = damaged.drop_and_die(20)
    expected = damaged.model[HIT]
    flip(file, 100_000)
    done = run_trestle("repair", damaged.server.data, "--in-place", "--accept-old-data")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run_trestle("doctor", damaged.server.data).returncode == 0
    damaged.start()
    assert {k: cells[0].value for k, cells in damaged.rpc.read(HIT)} == expected


def test_what_was_dropped_before_comes_back_by_itself(damaged):
    """The pass that gives back the space begins at once, and finds the block, which nobody has
    read; nothing in it counts any more."""
    file = damaged.file(HIT, 0)
    damaged.start()
    flip(file, 100_000)
    damaged.rpc.drop_row_range(HIT, b"h000")
    for k in [k for k in damaged.model[HIT] if k.startswith(b"h000")]:
        del damaged.model[HIT][k]
    end = time.monotonic() + PATIENCE_SECONDS
    while "rows are in service again" not in damaged.server.stderr() and time.monotonic() < end:
        time.sleep(0.05)
    assert "rows are out of service" in damaged.server.stderr()
    assert "rows are in service again" in damaged.server.stderr()
    assert "damaged_range" not in damaged.health()
    write(damaged.rpc, damaged.model, HIT, range(20, 60, 3))  # some of them where the block was
    assert damaged.lost() == []
    assert len(damaged.rpc.read(HIT)) == len(damaged.model[HIT])
    damaged.restart()
    assert damaged.lost() == []


def test_drop_row_range_ends_it(damaged):
    flip(damaged.file(HIT, 0), 400_000)
    damaged.start().meet()
    gone = damaged.lost()
    prefix = os.path.commonprefix([key(HIT, gone[0]), key(HIT, gone[-1])])
    damaged.rpc.drop_row_range(HIT, prefix)
    for k in [k for k in damaged.model[HIT] if k.startswith(prefix)]:
        del damaged.model[HIT][k]
    assert "damaged_range" not in damaged.health()
    assert damaged.lost() == []
    write(damaged.rpc, damaged.model, HIT, gone)
    assert damaged.lost() == []
    damaged.restart()
    assert "damaged_range" not in damaged.health()
    assert damaged.lost() == []


def test_compactions_that_meet_damage_stop_nothing(damaged):
    flip(damaged.file(HIT, 0), 400_000)
    damaged.start()
    for _ in range(6):  # more than level 0 takes without a compaction
        write(damaged.rpc, damaged.model, HIT, range(HALF, 2 * HALF))
    damaged.wait_for("damaged_range")
    gone = damaged.lost()
    assert 3 <= len(gone) <= 16
    write(damaged.rpc, damaged.model, HIT, range(HALF, 2 * HALF))
    assert damaged.lost() == gone
    damaged.check_rest_goes_on()


WHOLE = {
    "footer": lambda path: flip(path, -12, 8),
    "meta blocks": lambda path: flip(path, -4000, 3800),
    "cut": cut,
    "cut to nothing": lambda path: cut(path, 0),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize(
    "how",
    [pytest.param(how, marks=[pytest.mark.long] * (how not in ("footer", "removed")))
     for how in WHOLE],
)  # fmt: skip
def test_a_file_that_cannot_be_opened_takes_all_its_rows(damaged, how):
    path = damaged.file(HIT, HALF)
    WHOLE[how](path)
    damaged.start().meet()
    gone = damaged.lost()
    # The file ends where the buffer was full: what is behind is in the log.
    assert len(gone) > HALF // 2 and gone == list(range(HALF, gone[-1] + 1))
    text = damaged.health()
    assert path.name in text and f'to "{key(HIT, gone[-1]).decode()}"' in text
    damaged.check_rest_goes_on()
    damaged.restart()
    assert damaged.lost() == gone
    damaged.rpc.delete_table(HIT)


WHOLE_OF_CATALOG = {"block": lambda path: flip(path, 60), "removed": lambda path: path.unlink()}


@pytest.mark.parametrize("how", WHOLE_OF_CATALOG)
def test_damage_of_the_catalog_keeps_the_server_from_starting(damaged, how):
    """Nothing is dropped, though nobody knows which tables there are: with the file all is back.
    (test_damage_catalog.py: without it.)"""
    path = max(tables_of(damaged.server.data, CATALOG), key=lambda each: each.stat().st_size)
    sound = path.read_bytes()
    WHOLE_OF_CATALOG[how](path)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"the catalog is damaged.*{path.name}"):
            damaged.server.start()
    doctor = run_trestle("doctor", damaged.server.data)
    assert doctor.returncode == 1 and path.name in doctor.stdout + doctor.stderr
    told = run_trestle("repair", damaged.server.data)
    assert told.returncode == 1 and path.name in told.stdout
    path.write_bytes(sound)
    damaged.start()
    assert damaged.lost() == damaged.lost(OTHER) == []


# --- repair ---


def repair(*arguments):
    done = run_trestle("repair", *arguments)
    print(done.stdout, done.stderr)
    assert "Sanitizer" not in done.stderr
    return done


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def forget(damaged, gone):
    for number in gone:
        del damaged.model[HIT][key(HIT, number)]


def check_repaired(damaged, gone):
    """What was lost is not there, all else is; and what was lost can be written again."""
    forget(damaged, gone)
    assert "damaged_range" not in damaged.health()
    assert damaged.server.metric("damaged_ranges") == 0
    for _ in range(2):
        assert damaged.lost() == []
        assert [k for k, _ in damaged.rpc.read(HIT)] == sorted(damaged.model[HIT])
        damaged.restart()
        assert "damaged_range" not in damaged.health()
    write(damaged.rpc, damaged.model, HIT, gone)
    assert damaged.lost() == []


def check_that_the_server_tells(server, audit, words):
    """Its log, and the audit log, of what was given up: once, and not of trials."""
    given_up = re.findall(r"are given up.*", server.stderr())
    assert len(given_up) == 1 and "principal=-" in given_up[0]
    assert words.replace("\\", "") in given_up[0].replace("\\", "")
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    repairs = [line for line in lines if line["method"] == "RepairTable"]
    assert [line.get("changes", []) for line in repairs if line.get("changes")] == [
        [{"action": "GIVE_UP", "rows": words}]
    ]
    assert len(repairs) == 4 and all(line["resource"] == HIT for line in repairs)


@pytest.mark.parametrize("how", ["block", "removed"])
def test_repair_of_a_running_server(damaged, tmp_path, how):
    path = damaged.file(HIT, HALF)
    WHOLE[how](path) if how in WHOLE else flip(path, 400_000)
    damaged.server.arguments += ["--audit-log", str(tmp_path / "audit")]
    damaged.start().meet()
    gone = damaged.lost()
    here = ["--endpoint", damaged.server.host]
    where = [*here, "--lost", tmp_path / "lost"]

    trial = repair(*where)
    assert trial.returncode == 1 and "would lose: rows from" in trial.stdout
    assert not (tmp_path / "lost").exists()
    nameless = repair(*here, "--in-place", "--lost", tmp_path / "none" / "lost")
    assert nameless.returncode == 1 and "cannot open" in nameless.stderr
    assert "lost:" not in nameless.stdout and "are given up" not in damaged.server.stderr()
    assert damaged.lost() == gone

    done = repair(*where, "--in-place")
    assert done.returncode == 0 and done.stdout.startswith("lost: ")
    (line,) = (tmp_path / "lost").read_text().splitlines()
    table, first, end, words = line.split("\t")
    assert table == HIT and path.name in words
    assert unescape(first) <= key(HIT, gone[0]) and unescape(end) > key(HIT, gone[-1])
    again = repair("--endpoint", damaged.server.host, "--in-place")
    assert again.returncode == 0 and "nothing is out of service" in again.stdout
    check_that_the_server_tells(damaged.server, tmp_path / "audit", words)
    check_repaired(damaged, gone)


@pytest.mark.parametrize("how", ["block", "footer"])
def test_repair_of_a_directory(damaged, how):
    path = damaged.file(HIT, HALF)
    WHOLE[how](path) if how in WHOLE else flip(path, 400_000)
    data = damaged.server.data
    before = {each.name: each.read_bytes() for each in data.iterdir() if each.is_file()}
    trial = repair(data)
    assert trial.returncode == 1 and f"of {HIT} are out of service" in trial.stdout
    assert {each.name: each.read_bytes() for each in data.iterdir() if each.is_file()} == before

    if how == "block":
        nameless = repair(data, "--in-place", "--lost", data / "none" / "lost")
        assert nameless.returncode == 1 and "cannot open" in nameless.stderr
        assert "lost" not in nameless.stdout
    done = repair(data, "--in-place")
    assert done.returncode == 0 and f"named in {data}/lost.tsv" in done.stdout
    assert (data / "lost.tsv").stat().st_mode & 0o077 == 0
    _, first, end, _ = (data / "lost.tsv").read_text().strip().split("\t")
    damaged.start()
    gone = [n for n in range(2 * HALF) if unescape(first) <= key(HIT, n) < unescape(end)]
    assert len(gone) > HALF // 2 if how == "footer" else 3 <= len(gone) <= 16
    check_repaired(damaged, gone)
    damaged.server.stop()
    assert "nothing to repair" in repair(data, "--in-place").stdout
    damaged.server.start()


def test_old_data_may_be_kept(damaged):
    """Without it a row that was overwritten in the damaged block is gone; with it the old one is
    back."""
    damaged.start()
    old = dict(damaged.model[HIT])
    write(damaged.rpc, damaged.model, HIT, range(HALF))
    new = {k: v for k, v in damaged.model[HIT].items() if v != old[k]}
    damaged.restart()  # flushes
    damaged.server.stop()
    paths = tables_with(damaged.server.data, key(HIT, 0))
    flip(paths[-1], 400_000)
    damaged.start().meet()
    gone = damaged.lost()
    assert gone and all(key(HIT, n) in new for n in gone)
    where = ["--endpoint", damaged.server.host, "--lost", damaged.server.directory / "lost"]
    assert repair(*where, "--in-place", "--accept-old-data").returncode == 0
    damaged.model[HIT] |= {key(HIT, n): old[key(HIT, n)] for n in gone}
    assert damaged.lost() == []


def test_what_proves_good_again_is_not_lost(damaged):
    path = damaged.file(HIT, 0)
    flip(path, 400_000)
    damaged.start().meet()
    gone = damaged.lost()
    flip(path, 400_000)  # and back: it was the memory of the machine
    assert damaged.lost() == gone
    damaged.restart()
    assert damaged.lost() == gone
    names = damaged.server.directory / "lost"
    done = repair("--endpoint", damaged.server.host, "--in-place", "--lost", names)
    assert done.returncode == 0 and "lost:" not in done.stdout
    assert "not given up: rows from" in done.stdout
    assert "are given up" not in damaged.server.stderr()
    named, taken_back = [line.split("\t") for line in names.read_text().splitlines()]
    assert taken_back == [*named[:3], f"not given up: {named[3]}"]
    assert damaged.lost() == []
    assert "damaged_range" not in damaged.health()


def test_a_whole_backup_goes_on_without_a_missing_file(damaged, tmp_path):
    """Of the directory, and of a server that has not met the damage; what is lost is lost there."""
    place = tmp_path / "places" / "whole"
    place.parent.mkdir()
    damaged.server.arguments += ["--backup-places", str(place.parent)]
    path = damaged.file(HIT, HALF)
    path.unlink()
    said = "1 range of rows is out of service in it"
    done = run_trestle("backup", "create", place, "--data-dir", damaged.server.data)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    damaged.start()
    done = run_trestle("backup", "create", place, "--endpoint", damaged.server.host)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    gone = damaged.lost()
    assert len(gone) > HALF // 2
    done = run_trestle("backup", "restore", place, "--to", tmp_path / "restored")
    assert done.returncode == 0, done.stderr
    damaged.rpc.close()
    damaged.server.stop()
    shutil.rmtree(damaged.server.data)
    (tmp_path / "restored").rename(damaged.server.data)
    damaged.start()
    assert damaged.lost() == gone
    assert damaged.lost(OTHER) == []


def test_lost_rows_come_back_from_a_tables_backup(damaged, administer, tmp_path):
    """As repair.md says: restored beside it, exported, and imported after a repair."""
    backups = Backups(administer(damaged.start().server.host), INSTANCE, "trestle")
    backups.create("b", "hit")
    damaged.rpc.close()
    damaged.server.stop()
    flip(damaged.file(HIT, 0), 400_000)
    damaged.start().meet()
    gone = damaged.lost()
    host = damaged.server.host
    backups = Backups(administer(host), INSTANCE, "trestle")
    finish(backups.restore("old", backups.name("b")))
    span = ["--start", key(HIT, gone[0]).decode(), "--end", key(HIT, gone[-1] + 1).decode()]
    asked = ["--endpoint", host]
    exported = run_trestle("export", "avro", "old", tmp_path / "rows.avro", *asked, *span)
    assert exported.returncode == 0, exported.stderr
    lost_file = ["--lost", tmp_path / "lost"]
    assert repair(*asked, "--in-place", *lost_file).returncode == 0
    imported = run_trestle("import", "avro", tmp_path / "rows.avro", *asked, "--table", "hit")
    assert imported.returncode == 0, imported.stderr
    assert damaged.lost() == []


@pytest.mark.long
def test_the_scrub_finds_damage_that_nobody_meets(tmp_path, sound):
    damaged = Damaged(tmp_path, sound, "--scrub-period", "2s")
    try:
        path = damaged.file(HIT, 0)
        flip(path, 400_000)
        damaged.start().wait_for(f"damaged_range.*{path.name}")
        assert damaged.server.metric("scrubbed_bytes_total") > 0
        assert 3 <= len(damaged.lost()) <= 16
    finally:
        damaged.server.close()
