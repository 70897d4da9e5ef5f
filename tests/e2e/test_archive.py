"""The archive: a server that is killed now and then, and brought back to moments of its life."""

import datetime
import random
import re
import shutil
import signal
import time

import pytest
from google.cloud.bigtable_v2 import types
from harness.damage import flip
from harness.moved_server import LIBRARY
from harness.patience import PATIENCE_SECONDS
from harness.rpc import delete_row, set_cell
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
KEYS = [b"%c%d" % (letter, number) for letter in b"abc" for number in range(4)]
FAMILIES = {"f": None}
KILLS = 104  # syncs and changes of names of a replay


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def now():
    return datetime.datetime.now(datetime.UTC)


def text_of(moment):
    return moment.isoformat().replace("+00:00", "Z")


def copied(tmp_path, base):
    data = tmp_path / f"restored{len(list(tmp_path.iterdir()))}" / "data"
    shutil.copytree(base, data)
    return data


def replay(tmp_path, base, archive, *until):
    """The base taken on, as a new data directory, and what was said."""
    data = copied(tmp_path, base)
    done = run_trestle("archive", "replay", data, "--from", archive, *until)
    return data, done


@pytest.fixture
def archived(tmp_path, connect):
    """A server with an archive; `.base` copies its directory while it is down."""

    class Archived:
        def __init__(self):
            self.archive = tmp_path / "archive"
            self.archive.mkdir()
            self.places = tmp_path / "places"
            self.places.mkdir()
            self.server = Server(
                tmp_path / "server",
                ["--archive", self.archive, "--backup-places", self.places],
            )
            self.server.directory.mkdir()

        def start(self):
            """After a start versions are up to a second ahead, and moments are told by them."""
            self.server.start()
            wait_until(lambda: self.server.metric("clock_lead_seconds") == 0)
            return connect(self.server.host)

        def base(self):
            self.server.kill()
            shutil.copytree(self.server.data, tmp_path / "base")
            return tmp_path / "base"

        def back_up(self):
            """A whole backup of the server that runs; its name."""
            place = self.places / "whole"
            done = run_trestle("backup", "create", place, "--endpoint", self.server.host)
            assert done.returncode == 0, done.stderr
            return done.stdout.split(":")[0]

        def restore(self, *arguments):
            """A directory of a whole backup and the archive, and what was said."""
            data = tmp_path / f"restored{len(list(tmp_path.iterdir()))}" / "data"
            data.parent.mkdir()
            done = run_trestle("backup", "restore", self.places / "whole", *arguments,
                               "--archive", self.archive, "--to", data)  # fmt: skip
            return data, done

    subject = Archived()
    yield subject
    subject.server.close()


def rows_of(rpc, name):
    return {key: cells[0].value for key, cells in rpc.read(name)}


def rows_in(tmp_path, data, connect, name):
    server = Server(data.parent).start()
    try:
        return rows_of(connect(server.host), name)
    finally:
        server.close()


class Life:
    """Random changes of a table, and what it was after each of them."""

    def __init__(self, rpc, name, seed):
        self.rpc, self.name, self.random = rpc, name, random.Random(seed)
        self.rows, self.moments = {}, []

    def change(self):
        chance = self.random
        key = chance.choice(KEYS)
        kind = chance.choices(["set", "delete", "drop", "many"], [12, 3, 1, 2])[0]
        value = b"%d" % chance.randrange(10**9) + b"." * chance.choice([0, 0, 3000])
        if kind == "set":
            self.rpc.mutate(self.name, key, set_cell("f", b"q", value, 1000))
            self.rows[key] = value
        elif kind == "delete":
            self.rpc.mutate(self.name, key, delete_row())
            self.rows.pop(key, None)
        elif kind == "drop":
            self.rpc.drop_row_range(self.name, prefix=key[:1])
            self.rows = {k: v for k, v in self.rows.items() if k[:1] != key[:1]}
        else:
            self.rpc.mutate_rows(
                self.name, [(k, [set_cell("f", b"q", value, 1000)]) for k in KEYS[:6]]
            )
            self.rows.update(dict.fromkeys(KEYS[:6], value))
        self.moments.append((now(), dict(self.rows)))


def test_a_killed_server_comes_back_as_it_was_at_a_moment(archived, tmp_path, connect):
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    base = archived.base()
    life = Life(archived.start(), name, 5)
    for _ in range(20):
        life.change()
    archived.server.kill()
    life.rpc = archived.start()  # what the first life left is archived by the second
    for _ in range(20):
        life.change()
    deleted = now()
    life.rpc.delete_table(name)
    archived.server.stop()

    listed = run_trestle("archive", "list", archived.archive)
    assert listed.returncode == 0, listed.stderr
    assert re.match(r"[0-9a-f]{16}: \d+ pieces, after .* up to .*\nread: names", listed.stdout)
    verified = run_trestle("archive", "verify", archived.archive)
    assert verified.returncode == 0, verified.stderr
    assert re.fullmatch(
        r"[0-9a-f]{16}:\n  moments: after .* up to .*\n  \d+ pieces, 0 files, \d\.\d MB: whole\n",
        verified.stdout,
    )
    for moment, rows in (life.moments[7], life.moments[33], (deleted, life.rows)):
        data, done = replay(tmp_path, base, archived.archive, "--until", text_of(moment))
        assert done.returncode == 0, done.stderr
        assert re.search(r"\d+ commits out of \d+ pieces", done.stdout)
        assert rows_in(tmp_path, data, connect, name) == rows
        examined = run_trestle("doctor", data)
        assert examined.returncode == 0, examined.stdout + examined.stderr


def test_pieces_that_are_missing_at_an_end_are_found(archived, tmp_path):
    """Of the archive alone nobody can tell: the server knows what it has put, and needs."""
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    archived.back_up()
    archived.server.stop()
    for number in range(3):
        rpc = archived.start()
        rpc.mutate(name, b"k%d" % number, set_cell("f", b"q", b"v", 1000))
        archived.server.stop()  # which puts what waits

    def verify(code, *words):
        done = run_trestle("archive", "verify", archived.archive, "--data-dir",
                           archived.server.data)  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        assert all(word in done.stderr for word in words), done.stderr

    def without(gone, *words):
        for piece in gone:
            piece.rename(tmp_path / piece.name)
        assert run_trestle("archive", "verify", archived.archive).returncode == 0
        verify(1, *words)
        for piece in gone:
            (tmp_path / piece.name).rename(piece)
        verify(0)

    verify(0)
    (stream,) = (archived.archive / "archive").iterdir()
    pieces = sorted(each for each in stream.iterdir() if each.is_file())
    assert len(pieces) >= 4
    without(pieces[-1:], f"piece {len(pieces)} is missing")
    newer = len(pieces) - 1  # the backup was made before the last three stops
    without(pieces[:newer], f"pieces before {newer + 1} are missing, which the whole backup of ")
    stream.rename(tmp_path / "stream")
    verify(1, f"of {stream.name} nothing is left")


def test_what_cannot_be_had_is_refused(archived, tmp_path):
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    base = archived.base()
    rpc = archived.start()
    rpc.mutate(name, b"k", set_cell("f", b"q", b"v", 1000))
    archived.server.stop()
    _, done = replay(tmp_path, base, archived.archive, "--until", "2100-01-01T00:00:00Z")
    assert done.returncode == 1 and "the archive ends with a change of" in done.stderr
    _, done = replay(tmp_path, base, archived.archive, "--until", "2020-01-01T00:00:00Z")
    assert done.returncode == 1 and "take an older one" in done.stderr
    _, done = replay(tmp_path, base, archived.archive, "--until", "yesterday")
    assert done.returncode == 2 and "neither a version nor a time" in done.stderr
    _, done = replay(tmp_path, base, tmp_path / "server")
    assert done.returncode == 1 and "has no archive of the server" in done.stderr


def content_of(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*")
            if path.is_file() and path.name != "LOCK"}  # fmt: skip


def killed_replay(tmp_path, base, archive, moment):
    """The base, after a replay that was killed at that sync, or change of names, and a power cut;
    taken on by the next one."""
    data = copied(tmp_path, base)
    (tmp_path / "kill").write_text(str(moment))
    power = {"LD_PRELOAD": str(LIBRARY), "POWERCUT_ROOT": str(data.parent),
             "POWERCUT_JOURNAL": f"{data.parent}-journal", "POWERCUT_MODE": "lose"}  # fmt: skip
    command = ["archive", "replay", data, "--from", archive]
    killed = run_trestle(*command, env={**power, "POWERCUT_KILL": str(tmp_path / "kill")})
    assert killed.returncode in (-signal.SIGKILL, 0), killed.stderr
    done = run_trestle(*command, env=power)
    is_done = "of a server that kept no archive" in done.stderr  # it was, at that moment
    assert is_done or (done.returncode == 0 and killed.returncode != 0), done.stderr
    return data


def test_a_replay_that_fails_or_is_killed_does_no_harm(archived, tmp_path, connect):
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    base = archived.base()
    life = Life(archived.start(), name, 7)
    for _ in range(8):
        life.change()
    archived.server.stop()
    pieces = sorted(archived.archive.glob("archive/*/*-*"))
    flip(pieces[-1], -40)
    data, done = replay(tmp_path, base, archived.archive)
    assert done.returncode == 1 and "the nearest moments are" in done.stderr
    assert content_of(data) == content_of(base)
    assert [each.name for each in data.parent.iterdir()] == ["data"]
    flip(pieces[-1], -40)

    foreign = data.with_name("data.replaying")
    foreign.mkdir()
    (foreign / "mine").touch()
    done = run_trestle("archive", "replay", data, "--from", archived.archive)
    assert done.returncode == 1 and f"{foreign} is in the way" in done.stderr
    assert (foreign / "mine").exists() and content_of(data) == content_of(base)

    day = random.Random(datetime.date.today().toordinal())
    for moment in (day.randrange(1, KILLS), KILLS - day.randrange(1, 12)):
        data = killed_replay(tmp_path, base, archived.archive, moment)
        assert [each.name for each in data.parent.iterdir()] == ["data"]
        assert rows_in(tmp_path, data, connect, name) == life.rows


def test_a_place_that_is_gone_is_told_and_stops_nobody(archived):
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    server = archived.server
    wait_until(lambda: server.metric("archive_pieces_total") > 0)
    away = archived.archive.rename(archived.archive.with_name("away"))
    rpc.mutate(name, b"k", set_cell("f", b"q", b"v", 1000))
    wait_until(lambda: server.metric("archive_failures_total") > 0)
    assert "the archive cannot go on for now" in server.stderr()
    assert server.metric("archive_waiting_bytes") > 0
    away.rename(archived.archive)
    wait_until(lambda: server.metric("archive_lag_seconds") == 0)
    assert "the archive goes on" in server.stderr()


def test_whole_backups_and_the_archive_give_any_moment(archived, tmp_path, connect):
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    other = rpc.create_table("other", FAMILIES)
    first = archived.back_up()
    life = Life(rpc, name, 11)
    for _ in range(15):
        life.change()
    second = archived.back_up()
    for _ in range(15):
        life.change()
    before = now()
    rpc.mutate(other, b"k", set_cell("f", b"q", b"v", 1000))
    rpc.delete_table(name)
    rpc.mutate(other, b"k", set_cell("f", b"q", b"w", 1000))
    archived.server.stop()
    for base, (moment, rows) in ((first, life.moments[8]), (second, life.moments[22])):
        data, done = archived.restore("--until", text_of(moment))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{base}: ")
        assert re.search(r"from .* to .* \(version \d+\), \d+ commits out of", done.stdout)
        assert rows_in(tmp_path, data, connect, name) == rows
        assert run_trestle("doctor", data).returncode == 0

    data, done = archived.restore("--until", text_of(before), "--table", name)
    assert done.returncode == 0, done.stderr
    server = Server(data.parent).start()
    try:
        rpc = connect(server.host)
        assert rows_of(rpc, name) == life.rows and rows_of(rpc, other) == {}
    finally:
        server.close()

    _, done = archived.restore(second, "--until", text_of(life.moments[8][0]))
    assert done.returncode == 1 and "take an older one" in done.stderr
    data, done = archived.restore("--until", "2020-01-01T00:00:00Z")
    assert done.returncode == 1
    assert f"the oldest from which {archived.archive} goes on is {first}" in done.stderr
    _, done = archived.restore("--until", "2100-01-01T00:00:00Z")
    assert done.returncode == 1 and "the archive ends with a change of" in done.stderr
    assert not data.exists()


def test_a_newest_backup_that_cannot_be_read_is_not_passed_over(archived, tmp_path, connect):
    """An older one may be of an archive that ended long ago: a person is to name it."""
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    rpc.mutate(name, b"k", set_cell("f", b"q", b"old", 1000))
    first = archived.back_up()
    rpc.mutate(name, b"k", set_cell("f", b"q", b"new", 1000))
    second = archived.back_up()
    archived.server.stop()
    flip(archived.places / "whole" / "backups" / second, 40)
    data, done = archived.restore()
    assert done.returncode == 1 and not data.exists()
    assert f"the whole backup {second} cannot be read: " in done.stderr
    assert f"is {first}: name that" in done.stderr
    data, done = archived.restore("--until", "2100-01-01T00:00:00Z")
    assert done.returncode == 1 and second in done.stderr and first in done.stderr
    data, done = archived.restore(first)
    assert done.returncode == 0, done.stderr
    assert rows_in(tmp_path, data, connect, name) == {b"k": b"new"}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_many_lives_and_many_moments(archived, tmp_path, connect, seed):
    rpc = archived.start()
    name = rpc.create_table("t", FAMILIES)
    rpc.read_modify_write(name, b"n", types.ReadModifyWriteRule(
        family_name="f", column_qualifier=b"n", increment_amount=7))  # fmt: skip
    rpc.mutate(name, b"n", delete_row())
    base = archived.base()
    life = Life(None, name, seed)
    for _ in range(6):
        life.rpc = archived.start()
        for _ in range(life.random.randrange(5, 40)):
            life.change()
        archived.server.kill()
    life.rpc = archived.start()
    life.change()
    archived.server.stop()
    for moment, rows in life.random.sample(life.moments[:-1], 8):
        data, done = replay(tmp_path, base, archived.archive, "--until", text_of(moment))
        assert done.returncode == 0, done.stderr
        assert rows_in(tmp_path, data, connect, name) == rows
