"""Rows of damaged table files come back from a whole backup: as they were in it, and nothing else
changes (docs/operating/repair.md)."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import grpc
import pytest
from google.cloud.datastore.query import PropertyFilter
from grpc import StatusCode
from harness.damage import flip, tables_with
from harness.datastore import client_of, entity
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc, delete_row, fails_with, set_cell
from harness.server import EXTERNAL, Server, binary, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

ROWS = 1000
LARGE_EACH = 8  # has a large cell
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
        write(rpc, self.then, HIT, range(0, ROWS, LARGE_EACH), size=70_000)
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


def lost_line(line):
    table, first, end, words = line.split("\t")
    assert table == HIT
    first, end = (text.encode().decode("unicode_escape").encode("latin-1") for text in (first, end))
    return [n for n in range(ROWS) if first <= key(n) < end], words


def lost_of(path):
    """The numbers of the rows that a repair has named, and its words."""
    (line,) = path.read_text().splitlines()
    return lost_line(line)


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
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "mine").write_text("kept")
    trial = run("repair", data, "--from", place, "--scratch", scratch)
    assert [each.name for each in scratch.iterdir()] == ["mine"]
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
    assert "nothing to repair" in run("repair", data, "--from", place).stdout
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
    # It says that it lacks rows.
    made = run("backup", "create", place, "--data-dir", data)
    assert made.returncode == 1
    name = made.stdout.split(":")[0]
    done = run("repair", data, "--from", place, "--backup", name, "--in-place")
    assert done.returncode == 1 and "out of service when the backup was made" in done.stderr
    assert not (data / "lost.tsv").exists()
    newest = run("repair", data, "--from", place, "--in-place")
    assert newest.returncode == 1 and "has no whole backup of this server" in newest.stderr


# --- large cells alone ---

LARGE_AT = range(3_000_000, 6_000_000, 1_000_000)  # in the largest file, behind its records


@pytest.mark.parametrize("way", ["stopped", "running"])
def test_large_cells_alone_come_back(former, damaged, tmp_path, way):
    """Nothing was done with them since, so nothing is lost."""
    flip(damaged.hit_file, 400_000)  # and back
    largest = max(damaged.data.glob("*.sst"), key=lambda path: path.stat().st_size)
    for at in LARGE_AT:
        flip(largest, at)
    lost = tmp_path / "lost"
    if way == "stopped":
        where = [damaged.data]
    else:
        where = ["--endpoint", damaged.start().host]
        rpc = Rpc(damaged.host)
        for n in range(0, ROWS, LARGE_EACH):  # until each block has been met
            with contextlib.suppress(grpc.RpcError):
                rpc.read_row(HIT, key(n))
        rpc.close()
    done = run("repair", *where, "--from", former.place, "--in-place", "--lost", lost)
    assert done.returncode == 0
    lines = [line.split("\t")[3] for line in lost.read_text().splitlines()]
    assert len(lines) == len(LARGE_AT)
    for words in lines:
        assert words.startswith("large cells of rows from ")
        assert f"; 1 large cell comes from the whole backup {former.first}, of 20" in words
    if way == "stopped":
        damaged.start()
    rpc = Rpc(damaged.host)
    check_came_back(former, rpc, [])
    rpc.close()
    damaged.stop()
    assert run("doctor", damaged.data).returncode == 0


# --- with an archive ---


def test_nothing_is_lost_with_an_archive(tmp_path):
    """A data directory that was restored to the last moment has all of it, large cells, too."""
    places, archive = tmp_path / "places", tmp_path / "archive"
    archive.mkdir()
    server = Server(tmp_path, SETTINGS)
    rpc, now = Rpc(server.start().host), {}
    rpc.create_table("hit")
    write(rpc, now, HIT, range(ROWS))
    rpc.close()
    server.stop()
    server.arguments += ["--archive", str(archive), "--backup-places", str(places)]
    rpc = Rpc(server.start().host)  # which flushes
    backup("create", places, "--endpoint", server.host)
    write(rpc, now, HIT, range(0, ROWS, 3))
    write(rpc, now, HIT, range(1, ROWS, 8), size=20_000)
    for number in range(2, ROWS, 7):
        rpc.mutate(HIT, key(number), delete_row())
        now.pop(key(number), None)
    rpc.close()
    server.stop()
    hit_file = tables_with(server.data, key(0))[0]
    flip(hit_file, 400_000)
    restored = tmp_path / "restored"
    backup("restore", places, "--archive", archive, "--to", restored, "--table", HIT)
    wrong = run("repair", server.data, "--from", restored, "--backup", "x")
    assert wrong.returncode != 0 and "has neither backups nor a key" in wrong.stderr
    done = run("repair", server.data, "--from", restored, "--in-place")
    assert done.returncode == 0
    gone, words = lost_of(server.data / "lost.tsv")
    assert len(gone) >= 3 and f"from the data directory {restored}: " in words
    rpc = Rpc(server.start().host)
    assert rows_of(rpc) == now
    rpc.close()
    server.close()
    assert run("doctor", restored).returncode == 0


# --- of a server that runs ---


def text_field(number, text):
    """Of a message, as it goes over the wire."""
    size = len(text.encode())
    assert size < 1 << 14
    return bytes([number << 3 | 2, size & 0x7F | 0x80, size >> 7]) + text.encode()


def repair_slowly(channel, place):
    """A call of RepairTable that is under way."""
    call = channel.unary_unary("/trestle.insight.v1.Insight/RepairTable")
    return call.future(text_field(1, HIT) + text_field(4, str(place)))


def wait_until(is_so):
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    assert is_so()


def meet(server):
    """The damaged block is found after the read that meets it has failed."""
    rpc = Rpc(server.host)
    with contextlib.suppress(grpc.RpcError):
        rpc.read(HIT)
    wait_until(lambda: server.metric("damaged_ranges") == 1)
    return rpc


def out_of_service(host):
    ranges = Rest(host).call("GET", "/v1/servers/self/damagedRanges").get("ranges", [])
    for each in ranges:
        del each["findTime"]
    return ranges


def test_one_at_a_time(former, damaged):
    """While it gets the table's files all else goes on, but for another repair of the table, and
    another from a backup. Who goes away ends it, and so does a kill; nothing has changed."""
    damaged.arguments += ["--backup-rate", "100KB"]
    rest = Rest(damaged.start().host)
    rpc = meet(damaged)
    before = out_of_service(damaged.host)
    channel = grpc.insecure_channel(damaged.host)
    call = repair_slowly(channel, former.place)
    scratch = damaged.data / "repairing"
    wait_until(scratch.exists)
    said = rest.call("POST", f"/v1/{HIT}:repair", {}, expect=400)
    assert said["error"]["status"] == "FAILED_PRECONDITION"
    assert f"{HIT} is being repaired" in said["error"]["message"]
    from_there = {"place": str(former.place), "validateOnly": True}
    said = rest.call("POST", f"/v1/{HIT}:repair", from_there, expect=400)
    assert "one at a time" in said["error"]["message"]
    written = {}
    write(rpc, written, rpc.create_table("other"), range(10))
    write(rpc, written, HIT, [ROWS - 1])
    assert not call.done()
    call.cancel()
    wait_until(lambda: not scratch.exists())
    assert out_of_service(damaged.host) == before
    assert rest.call("POST", f"/v1/{HIT}:repair", {"validateOnly": True})["lost"]
    call = repair_slowly(channel, former.place)
    wait_until(scratch.exists)
    damaged.kill()
    channel.close()
    damaged.start()
    assert not scratch.exists() and out_of_service(damaged.host) == before
    rpc.close()


def test_a_running_server_gets_them_back(former, damaged, tmp_path):
    audit, lost = tmp_path / "audit", tmp_path / "lost"
    damaged.arguments += ["--audit-log", str(audit)]
    rest = Rest(damaged.start().host)
    rpc = meet(damaged)
    before = out_of_service(damaged.host)
    where = ["--endpoint", damaged.host, "--lost", lost]
    for place, words in (
        (tmp_path / "elsewhere", "is in none of the server's --backup-places"),
        (former.places / "none", f"{former.places}/none"),
    ):
        done = run("repair", *where, "--from", place, "--in-place")
        assert done.returncode == 1 and words in done.stderr
    assert run("repair", *where, "--backup", "x").returncode == 2
    both = {"place": str(former.place), "acceptOldData": True}
    assert "exclude" in rest.call("POST", f"/v1/{HIT}:repair", both, expect=400)["error"]["message"]
    trial = run("repair", *where, "--from", former.place)
    assert trial.returncode == 1 and re.search(r"would lose: .* \d+ rows come from", trial.stdout)
    assert "1 range to take from a backup" in trial.stdout
    assert not lost.exists() and out_of_service(damaged.host) == before

    done = run("repair", *where, "--from", former.place, "--in-place")
    assert done.returncode == 0
    gone, words = lost_of(lost)
    assert 3 <= len(gone) <= 16
    assert f"; {len(gone)} rows come from the whole backup {former.first}, of 20" in words
    assert "is there again" in words and words in done.stdout
    check_came_back(former, rpc, gone)
    assert damaged.metric("damaged_ranges") == 0
    assert not (damaged.data / "repairing").exists()
    check_audit(audit, str(former.place), words)
    rpc.close()
    damaged.stop()
    assert run("doctor", damaged.data).returncode == 0


def check_audit(path, place, words):
    """The table and the place in each line, what came from there in the last one."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    repairs = [line for line in lines if line["method"] == "RepairTable"]
    assert {line["resource"] for line in repairs} == {HIT}
    read = [line["changes"][0] for line in repairs]
    assert {change["action"] for change in read} == {"READ_BACKUP"}
    assert read[-1]["place"] == place and f"{place.rsplit('/', 1)[0]}/none" in {
        change["place"] for change in read
    }
    assert [line["changes"][1:] for line in repairs] == [[]] * (len(repairs) - 1) + [
        [{"action": "FILL", "rows": words}]
    ]


# --- killed ---


def kill_repair(command, lines, scratch):
    """After so many lines of what it gives up; 0: when it has begun to get the table's files."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if lines == 0:
            wait_until(lambda: scratch.exists() or process.poll() is not None)
        for _ in range(lines):
            assert process.stdout.readline().startswith(b"lost: ")
        process.send_signal(signal.SIGKILL)


def test_a_kill_in_the_middle(former, damaged):
    """Of a command that has three ranges to fill, three times; run again it ends as if it had not
    been killed."""
    for at in (900_000, 1_400_000):
        flip(damaged.hit_file, at)
    scratch = damaged.data.parent / "data.repairing"
    where = ["repair", str(damaged.data), "--from", str(former.place), "--in-place"]
    for lines in (0, 1, 1):
        kill_repair([binary(), *where], lines, scratch)
    assert run(*where).returncode == 0
    assert not scratch.exists()
    named = (damaged.data / "lost.tsv").read_text().splitlines()
    gone = {n for line in named for n in lost_line(line)[0]}
    assert len(set(named)) == 3 and len(gone) >= 9
    rpc = Rpc(damaged.start().host)
    check_came_back(former, rpc, gone)
    rpc.close()


# --- a Datastore database ---

ENTITIES = 400


class Entities:
    """A stopped server with a database, a backup of it, and entities that have changed since."""

    def __init__(self, place):
        self.places = place / "places"
        self.server = Server(place, [*SETTINGS, "--backup-places", str(self.places)])
        self.blobs = [os.urandom(5000) for _ in range(ENTITIES)]
        self.write(range(ENTITIES), 0)
        flush(self.server)
        self.name = backup("create", self.places, "--data-dir", self.server.data)
        self.write(range(0, ENTITIES, 4), 1000)
        self.path = max(self.server.data.glob("*.sst"), key=lambda each: each.stat().st_size)

    def write(self, numbers, more):
        client = client_of(self.server.start().host, "p")
        for at in range(0, len(numbers), 100):
            client.put_multi([
                entity(client, "K", 1 + n, n=n + more, blob=self.blobs[n], exclude=["blob"])
                for n in numbers[at : at + 100]
            ])  # fmt: skip
        client.close()
        self.server.stop()

    def check(self, is_as_of_now):
        """The entities, and what their index says of each of them, as it is and was."""
        client = client_of(self.server.start().host, "p")
        found = {each.key.id - 1: each["n"] for each in client.query(kind="K").fetch()}
        assert sorted(found) == list(range(ENTITIES))
        for i, n in found.items():
            assert n == (i + 1000 if i % 4 == 0 else i) or (n == i and not is_as_of_now)
        query = client.query(kind="K", order=["n"])
        query.keys_only()
        assert [each.key.id - 1 for each in query.fetch()] == sorted(found, key=found.get)
        for i in list(found)[::40]:
            query = client.query(kind="K")
            query.add_filter(filter=PropertyFilter("n", "=", found[i]))
            assert [each.key.id - 1 for each in query.fetch()] == [i]
        client.close()
        self.server.stop()


def database_repair(entities, way, lost):
    where = ["--from", entities.places, "--in-place", "--lost", lost]
    if way == "stopped":
        return run("repair", entities.server.data, *where)
    host = entities.server.start().host
    client = client_of(host, "p")
    query = client.query(kind="K", order=["n"])
    query.keys_only()
    for each in (client.query(kind="K"), query):
        with contextlib.suppress(Exception):  # the damage is met
            list(each.fetch())
    client.close()
    wait_until(lambda: entities.server.metric("damaged_ranges") > 0)
    done = run("repair", "--endpoint", host, *where)
    assert entities.server.metric("damaged_ranges") == 0
    entities.server.stop()
    return done


@pytest.mark.parametrize("way", ["stopped", "running"])
@pytest.mark.parametrize("hit", ["entities", "index rows"])
def test_a_database_gets_them_back(tmp_path, way, hit):
    """Its indexes fit afterwards: those of the backup are of entities as they were then."""
    entities = Entities(tmp_path)
    flip(entities.path, entities.path.stat().st_size // 2 if hit == "entities" else 100)
    done = database_repair(entities, way, tmp_path / "lost")
    assert done.returncode == 0 and f"from the whole backup {entities.name}" in done.stdout
    assert "index rows repaired" not in done.stdout  # before the rows were in service
    assert run("doctor", entities.server.data).returncode == 0
    entities.check(is_as_of_now=hit == "index rows")
    entities.server.close()
