"""`trestle copy --follow`: a table that changes meanwhile, kills on all sides, a switch-over. Then
both tables are equal, cell by cell.

TRESTLE_FOLLOW_SECONDS   how long the long test writes (default 30)
TRESTLE_FOLLOW_RATE      rows a second (default 1000)
TRESTLE_FOLLOW_KILLS     how many (default 6)
"""

import json
import os
import random
import re
import time

import grpc
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from harness.change_streams import DAY, Reader, stream_config, update_stream
from harness.following import (
    MS,
    POSITIONS,
    Changes,
    Follow,
    StayingServer,
    Writers,
    add_to,
    create_followed,
    delete_column,
    delete_family,
    expect_same,
    position,
    wait_for_changes,
)
from harness.killing import records_done
from harness.patience import PATIENCE_SECONDS
from harness.rpc import Rpc, delete_row, set_cell
from harness.secured import account_key
from harness.server import EXTERNAL

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
SECONDS = float(os.environ.get("TRESTLE_FOLLOW_SECONDS", "30"))
RATE = float(os.environ.get("TRESTLE_FOLLOW_RATE", "1000"))
KILLS = int(os.environ.get("TRESTLE_FOLLOW_KILLS", "6"))
NAME = "projects/p/instances/i/tables/t"


class Pair:
    """Two servers, and a copier between them."""

    def __init__(self, directory, servers, source_options=()):
        self.directory, self.servers = directory, servers
        self.source = self.start("source", *source_options)
        self.target = self.start("target")
        self.opened = []
        self.source_rpc, self.target_rpc = self.rpc(self.source), self.rpc(self.target)
        self.follow = Follow(self.source.host, self.target.host, directory)

    def start(self, name, *options):
        (self.directory / name).mkdir()
        server = StayingServer(self.directory / name, options)
        self.servers.append(server)
        return server.start()

    def rpc(self, server):
        self.opened.append(Rpc(server.host))
        return self.opened[-1]

    def renew(self):
        """Stubs of before a kill wait until they try again."""
        self.source_rpc, self.target_rpc = self.rpc(self.source), self.rpc(self.target)

    def expect_same(self):
        return expect_same(self.source_rpc, self.target_rpc)

    def close(self):
        self.follow.close()
        for each in self.opened:
            each.close()


@pytest.fixture
def make_pair(tmp_path, own_servers):
    made = []

    def make(*source_options):
        made.append(Pair(tmp_path, own_servers, source_options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def fill(rpc, count=200, seed=5, rows=500):
    changes = Changes(seed, rows)
    for _ in range(0, count, 200):
        rpc.mutate_rows(NAME, changes.rows_of(200))


def kill_something(pair, chance):
    """The copier, the source or the target; it is there again at once."""
    what = chance.choice(["copier", "source", "target"])
    if what == "copier":
        pair.follow.kill()
        pair.follow.start()
    else:
        server = getattr(pair, what)
        server.kill()
        server.start()
        pair.renew()
    return what


def follow_through_kills(pair, kills, seconds, seed, **load):
    """Writers, a copy that begins among them, kills; then they end, and it catches up."""
    chance = random.Random(seed)
    with Writers(pair.source.host, NAME, seed=seed, **load) as writers:
        pair.follow.start()
        killed = []
        for _ in range(kills):
            time.sleep(seconds / kills * chance.uniform(0.5, 1.5))
            killed.append(kill_something(pair, chance))
        done = position(pair.target_rpc)["changes"]
        wait_for_changes(pair.follow, pair.target_rpc, done + 1)
    pair.follow.stop()
    written = writers.written()
    began = time.monotonic()
    said = pair.follow.catch_up()
    print(f"killed: {', '.join(killed)}")
    print(f"{written} rows written, caught up in {time.monotonic() - began:.1f} s: {said}")
    return written


def test_all_kinds_of_changes_through_kills(make_pair):
    """Splits by load meanwhile, and each side is killed once."""
    pair = make_pair("--split-load", "50", "--merge-after", "1s")
    create_followed(pair.source_rpc, splits=[b"h", b"p"])
    fill(pair.source_rpc)
    chance = random.Random(20261129)
    with Writers(pair.source.host, NAME):
        pair.follow.start()
        wait_for_changes(pair.follow, pair.target_rpc, 100)
        for server in (pair.source, pair.target):
            time.sleep(chance.uniform(0.2, 1))
            server.kill()
            server.start()
            pair.renew()
        done = position(pair.target_rpc)["changes"]
        wait_for_changes(pair.follow, pair.target_rpc, done + 100)
        pair.follow.kill()
        done = position(pair.target_rpc)["changes"]
        pair.follow.start()
        wait_for_changes(pair.follow, pair.target_rpc, done + 100)
    pair.follow.stop()
    assert "; stopped: the row t of the target's table trestle-follow" in pair.follow.said()
    pair.follow.catch_up()
    assert pair.expect_same() > 100


def kill_while_it_copies(pair):
    """When a checkpoint says that rows are there."""
    fill(pair.source_rpc, 8000, rows=100_000)
    pair.follow.start("--rate", 1000)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while records_done(pair.directory / "t.checkpoint") == 0:
        assert time.monotonic() < deadline, pair.follow.said()
        time.sleep(0.05)
    pair.follow.kill()
    assert position(pair.target_rpc)["copying"]


def test_a_copy_that_is_killed_goes_on_copying(make_pair):
    """Its place was taken before: what changes before it begins again is replayed behind the rows,
    also what is deleted of rows that are copied already."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    kill_while_it_copies(pair)
    keys = [key for key, _ in pair.target_rpc.read(NAME)]
    for key in keys[::2]:
        pair.source_rpc.mutate(NAME, key, delete_row())
    fill(pair.source_rpc, 600, seed=9)
    said = pair.follow.catch_up()
    assert not position(pair.target_rpc)["copying"]
    assert "rows read" in said
    pair.expect_same()


def changes_of(said):
    return int(re.search(r"(\d+) changes followed", said)[1])


def test_what_is_done_is_not_done_again(make_pair):
    """A position is behind what is written, and it moves."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    fill(pair.source_rpc)
    assert "\n0 changes followed, all up to " in pair.follow.catch_up()
    fill(pair.source_rpc, seed=6)
    assert changes_of(pair.follow.catch_up()) == changes_of(pair.follow.catch_up()) > 40
    pair.expect_same()


def test_the_position_in_a_file(make_pair):
    pair = make_pair()
    create_followed(pair.source_rpc)
    fill(pair.source_rpc)
    state = pair.directory / "where"
    pair.follow.options = ("--state", state)
    pair.follow.catch_up()
    fill(pair.source_rpc, seed=6)
    done = changes_of(pair.follow.catch_up())
    assert json.loads(state.read_text())["changes"] == done > 40
    pair.expect_same()
    with pytest.raises(grpc.RpcError):
        pair.target_rpc.read(POSITIONS)


def test_an_aggregate_counts_once(make_pair):
    """Adds, and deletions between them, that are told again and again: the position is put back."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    pair.source_rpc.mutate(NAME, b"k", add_to("sum", b"q", 1, MS))
    pair.follow.catch_up()
    there = json.dumps(position(pair.target_rpc)).encode()
    pair.source_rpc.mutate(NAME, b"k", add_to("sum", b"q", 10, MS), add_to("sum", b"r", 5, MS))
    pair.source_rpc.mutate(NAME, b"k", delete_column("sum", b"q", MS, 2 * MS))
    pair.source_rpc.mutate(NAME, b"k", add_to("sum", b"q", 100, MS), add_to("max", b"q", 7, MS))
    pair.source_rpc.mutate(NAME, b"k", delete_family("max"))
    for _ in range(3):
        pair.target_rpc.mutate(POSITIONS, b"t", set_cell("f", b"position", there, 0))
        pair.follow.catch_up()
        pair.expect_same()
    (cell,) = [c for c in pair.target_rpc.read_row(NAME, b"k") if c.qualifier == b"q"]
    assert int.from_bytes(cell.value, "big") == 100


def test_only_some_rows(make_pair):
    pair = make_pair()
    create_followed(pair.source_rpc)
    fill(pair.source_rpc)
    pair.follow.options = ("--prefix", "c")
    pair.follow.catch_up()
    fill(pair.source_rpc, 600, seed=7)
    pair.follow.catch_up()
    wanted = {"row_ranges": [{"start_key_closed": b"c", "end_key_open": b"d"}]}
    assert pair.target_rpc.read(NAME) == pair.source_rpc.read(NAME, rows=wanted)


def collect(pair, *options):
    """Both tables, whose rules are said to be the same or not, until the source has collected, and
    that was followed: versions that the target has, its own rule left out."""
    rpc = pair.source_rpc
    for version in range(1, 4):
        rpc.mutate(NAME, b"k", set_cell("f", b"q", b"%d" % version, version * MS))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while changes_of(pair.follow.catch_up(*options)) < 4:
        assert time.monotonic() < deadline
    keep_all = {"id": "f", "update": {"gc_rule": admin_types.GcRule(max_num_versions=9)}}
    pair.target_rpc.modify_families(NAME, keep_all)
    return [int(cell.value) for cell in pair.target_rpc.read_row(NAME, b"k")]


@pytest.mark.parametrize(
    "kept_there, options, versions",
    [(1, [], [3, 2, 1]), (1, ["--with-gc"], [3]), (5, [], [3])],
)
def test_what_the_source_has_collected(make_pair, kept_there, options, versions):
    """Left out where the target has the same rule, and does it in its own time."""
    pair = make_pair("--gc-interval", "1s")
    rule, other = (admin_types.GcRule(max_num_versions=n) for n in (1, kept_there))
    pair.source_rpc.create_table("t", {"f": rule}, change_stream_config=stream_config())
    pair.target_rpc.create_table("t", {"f": other})
    pair.follow.catch_up()
    assert collect(pair, *options) == versions


def test_a_collection_can_be_written_as_it_is_told(make_pair):
    """Its range ended a microsecond behind the newest cell, which no request may name."""
    pair = make_pair("--gc-interval", "1s")
    rpc, rule = pair.source_rpc, admin_types.GcRule(max_num_versions=1)
    rpc.create_table("t", {"f": rule}, change_stream_config=stream_config())
    with Reader(rpc, NAME).begun() as reader:
        for version in range(1, 3):
            rpc.mutate(NAME, b"k", set_cell("f", b"q", b"v", version * MS))
        collection = reader.changes(3)[-1]
    assert collection.cluster == ""
    rpc.mutate(NAME, b"k", *collection.mutations)


def test_a_source_without_a_stream(make_pair):
    pair = make_pair()
    create_followed(pair.source_rpc, change_stream_config=None)
    fill(pair.source_rpc)
    done = pair.follow.run("--until-caught-up")
    assert done.returncode == 1
    assert "the table t has no change stream: --stream-retention 7d switches it on" in done.stderr
    assert not pair.source_rpc.get_table(NAME).change_stream_config
    pair.follow.catch_up("--stream-retention", "2d")
    there = pair.source_rpc.get_table(NAME).change_stream_config.retention_period
    assert there.total_seconds() == 2 * DAY
    pair.expect_same()


def test_a_target_that_has_rows(make_pair):
    """Rows of which nothing is known: what the source has deleted since would stay."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    create_followed(pair.target_rpc)
    pair.target_rpc.mutate(NAME, b"old", set_cell("f", b"q", b"v", MS))
    done = pair.follow.run("--until-caught-up")
    assert done.returncode == 1 and "has rows, and none of them is known" in done.stderr
    pair.target_rpc.mutate(NAME, b"old", delete_row())
    pair.follow.catch_up()


def test_a_target_that_was_deleted_is_copied_anew(make_pair):
    """Whatever position and checkpoint say."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    kill_while_it_copies(pair)
    pair.target_rpc.delete_table(NAME)
    assert "rows read" in pair.follow.catch_up()
    pair.expect_same()


def test_the_way_back(make_pair):
    """Both tables are equal when the application moves: the former one may follow the new one."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    fill(pair.source_rpc)
    pair.follow.catch_up()
    back = Follow(pair.target.host, pair.source.host, pair.directory, "--stream-retention", "1d")
    assert "has rows, and none of them is known" in back.run("--until-caught-up").stderr
    back.catch_up("--changes-only")
    fill(pair.target_rpc, seed=6)
    pair.target_rpc.mutate(NAME, b"back", add_to("sum", b"q", 5, MS))
    back.catch_up("--changes-only")
    assert pair.source_rpc.read_row(NAME, b"back")
    pair.expect_same()


def test_changes_only_is_for_a_table_that_is_there(make_pair):
    pair = make_pair()
    create_followed(pair.source_rpc)
    done = pair.follow.run("--changes-only")
    assert done.returncode == 1 and "the target has no table t" in done.stderr


def test_a_stream_that_was_switched_off_and_on(make_pair):
    """What changed meanwhile is nowhere: it says so, and does not go on."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    fill(pair.source_rpc)
    pair.follow.catch_up()
    update_stream(pair.source_rpc, NAME, None)
    fill(pair.source_rpc, seed=8)
    update_stream(pair.source_rpc, NAME, stream_config())
    done = pair.follow.run("--until-caught-up")
    assert done.returncode == 1, done.stdout


def test_a_family_that_the_target_lacks(make_pair):
    """It comes to a stop there, and goes on when the target has it."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    fill(pair.source_rpc)
    pair.follow.catch_up()
    modification = {"id": "new", "create": {}}
    pair.source_rpc.modify_families(NAME, modification)
    pair.source_rpc.mutate(NAME, b"k", set_cell("new", b"q", b"v", MS))
    done = pair.follow.run("--until-caught-up")
    assert done.returncode == 1 and "the row k is refused" in done.stderr
    pair.target_rpc.modify_families(NAME, modification)
    pair.follow.catch_up()
    pair.expect_same()


def test_another_source(make_pair):
    """A position is of one source, and one target."""
    pair = make_pair()
    create_followed(pair.source_rpc)
    create_followed(pair.source_rpc, table_id="u")
    pair.follow.catch_up()
    other = Follow(pair.source.host, pair.target.host, pair.directory, "--to-table", "t",
                   table_id="u")  # fmt: skip
    done = other.run("--until-caught-up")
    assert done.returncode == 1 and "of something else that was followed" in done.stderr


def test_lag_is_shown(make_pair):
    pair = make_pair()
    create_followed(pair.source_rpc, splits=[b"m"])
    fill(pair.source_rpc)
    pair.follow.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while " s behind, 2 partitions\n" not in pair.follow.said():
        assert time.monotonic() < deadline, pair.follow.said()
        time.sleep(0.1)
    pair.follow.stop()


@pytest.mark.parametrize(
    "options, words",
    [
        (["--follow=false", "--until-caught-up"], "go with --follow"),
        (["--follow=false", "--state", "x"], "go with --follow"),
        (["--follow=false", "--changes-only"], "go with --follow"),
        (["--families", "f"], "excludes --families"),
        (["--versions", "1"], "excludes --families and --versions"),
        (["--verify", "full"], "excludes --dry-run and --verify full"),
        (["--stream-retention", "1h"], "is 1d at least"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, words):
    follow = Follow("127.0.0.1:1", "127.0.0.1:2", tmp_path)
    command = [word for word in follow.command(*options)]
    if "--follow=false" in options:
        command.remove("--follow")
    follow.command = lambda *_: command
    done = follow.run()
    assert done.returncode == 2 and words in done.stderr


# --- a secured server on each side ---

@pytest.fixture
def account(secure, tmp_path):
    """A server that believes a service account's key; the file is as Google hands it out."""
    return account_key(secure, tmp_path), tmp_path / "account.json"


def test_a_secured_source_and_a_secured_target(account, fresh_server, connect, tmp_path):
    """By a service account's key there, and back again."""
    secured, file = account
    host = secured.server.host.replace("127.0.0.1", "localhost")
    plain = fresh_server()
    rpc, other = secured.rpc("admin"), connect(plain.host)
    create_followed(rpc)
    fill(rpc)
    names = ("--from-ca", secured.authority.certificate, "--from-account", file)
    there = Follow(host, plain.host, tmp_path, *names)
    assert "credential" in Follow(host, plain.host, tmp_path, *names[:2]).run().stderr
    there.catch_up()
    fill(rpc, seed=6)
    there.catch_up()
    expect_same(rpc, other)
    back = Follow(plain.host, host, tmp_path, "--to-table", "back", "--stream-retention", "1d",
                  *(word.replace("from-", "") if isinstance(word, str) else word
                    for word in names))  # fmt: skip
    back.catch_up()
    fill(other, seed=7)
    back.catch_up()
    assert rpc.read("projects/p/instances/i/tables/back") == other.read(NAME)


# --- for long ---


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 4 * PATIENCE_SECONDS)
def test_many_writes_and_many_kills(make_pair):
    pair = make_pair("--split-load", "500")
    create_followed(pair.source_rpc, splits=[b"h", b"p"])
    fill(pair.source_rpc, 5000, rows=20_000)
    written = follow_through_kills(
        pair, KILLS, SECONDS, 20261129, count=4, rows=20_000, rate=RATE, lot=100
    )
    pair.renew()
    rows = pair.expect_same()
    print(f"{rows} rows, {written} written")
