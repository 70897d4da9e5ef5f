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
from grpc import StatusCode
from harness.damage import cut, flip, tables_with
from harness.patience import PATIENCE_SECONDS
from harness.rpc import Rpc, delete_row, fails_with, set_cell
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

HALF = 2500  # rows of a table file, each of 1,000 bytes that do not compress
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
        some = {key(table, n): os.urandom(1000) for n in numbers[at : at + AT_ONCE]}
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


@pytest.fixture
def damaged(tmp_path, sound):
    made = Damaged(tmp_path, sound)
    yield made
    made.server.close()


def test_a_damaged_block_takes_its_rows_out_of_service(damaged):
    path = damaged.file(HIT, 0)
    flip(path, 400_000)
    damaged.start().meet()
    gone = damaged.lost()
    assert 10 <= len(gone) <= 40 and gone == list(range(gone[0], gone[-1] + 1))
    text = damaged.health()
    assert 'rows from "h' in text and HIT in text and path.name in text
    assert damaged.server.metric("damaged_ranges") == 1
    damaged.check_rest_goes_on()

    inside, rpc = key(HIT, gone[5]), damaged.rpc
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
    for _ in range(4):  # more than level 0 takes without a compaction
        write(damaged.rpc, damaged.model, HIT, range(HALF, 2 * HALF))
    damaged.wait_for("damaged_range")
    gone = damaged.lost()
    assert 10 <= len(gone) <= 40
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


@pytest.mark.parametrize("how", WHOLE)
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
    _, first, end, _ = (data / "lost.tsv").read_text().strip().split("\t")
    damaged.start()
    gone = [n for n in range(2 * HALF) if unescape(first) <= key(HIT, n) < unescape(end)]
    assert len(gone) > HALF // 2 if how == "footer" else 10 <= len(gone) <= 40
    check_repaired(damaged, gone)
    damaged.server.stop()
    assert "nothing to mend" in repair(data, "--in-place").stdout
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


@pytest.mark.long
def test_the_scrub_finds_damage_that_nobody_meets(tmp_path, sound):
    damaged = Damaged(tmp_path, sound, "--scrub-period", "2s")
    try:
        path = damaged.file(HIT, 0)
        flip(path, 400_000)
        damaged.start().wait_for(f"damaged_range.*{path.name}")
        assert damaged.server.metric("scrubbed_bytes_total") > 0
        assert 10 <= len(damaged.lost()) <= 40
    finally:
        damaged.server.close()
