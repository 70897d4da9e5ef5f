"""`trestle repair` of a directory that a former program damaged (tests/data/damage): what it would
repair, what it repairs, also after kills, and what is right afterwards."""

import datetime
import hashlib
import re
import signal
import subprocess
from pathlib import Path

import pytest
from google.cloud.datastore.query import PropertyFilter
from harness.datastore import client_of, entity
from harness.server import Server, binary, run_trestle
from repair.make import ENTITIES, FIXTURES, NUMBERS, PROJECT

LIBRARY = Path(binary()).resolve().parent / "tests/crash/powercut/libpowercut.so"
DATABASE = f"projects/{PROJECT}/databases/(default)"
TOO_MANY = ENTITIES * (NUMBERS + 1) + 9  # with `version`; of three pairs b, and two composite rows
MISSING = ENTITIES * NUMBERS
HARMLESS = ENTITIES * (NUMBERS + 2) + 6  # of the first versions; all but the numbers ended twice
UTC = datetime.timezone.utc


@pytest.fixture
def damaged(tmp_path):
    """The directory with `data`."""
    archive = FIXTURES / "886dd37-indexes.tar.gz"
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    return tmp_path


def repair(*arguments, **options):
    done = run_trestle("repair", *arguments, **options)
    print(done.stdout, done.stderr)
    assert "Sanitizer" not in done.stderr
    return done


def contents(directory):
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def assert_sound(data):
    seen = run_trestle("doctor", data)
    assert seen.returncode == 0, seen.stderr
    assert "projects/damaged/databases/sound: 1 tablets, 30 rows, 30 cells" in seen.stdout
    again = repair(data, "--in-place")
    assert again.returncode == 0
    assert "nothing to repair" in again.stdout


def totals(words):
    removed, wrote, corrected = words
    return (
        f"{DATABASE}: {removed} {TOO_MANY} index rows that no entity has\n"
        f"{DATABASE}: {wrote} {MISSING} index rows that were missing\n"
        f"{DATABASE}: {corrected} 1 index rows with wrong types\n"
    )


# --- what clients see ---


def ids(client, kind, *filters, **options):
    query = client.query(kind=kind, filters=[PropertyFilter(*each) for each in filters])
    return [found.key.id for found in query.fetch(**options)]


def check_queries(host):
    client = client_of(host, PROJECT)
    everybody = list(range(1, ENTITIES + 1))
    for number in (0, 5, NUMBERS - 1):
        assert ids(client, "Numbers", ("n", "=", number)) == everybody
    assert ids(client, "Numbers", ("n", "=", 1005)) == []
    assert ids(client, "Numbers", ("version", "=", 1)) == []
    typed = client.query(kind="Typed", projection=["text"])
    assert [each["text"] for each in typed.fetch()] == ["text"]
    pairs = client.query(kind="Pair", ancestor=client.key("Pair", "parent"), order=["a", "-b"])
    pairs.projection = ["a", "b"]
    assert [(each["a"], each["b"]) for each in pairs.fetch()] == [(0, 2), (1, 2), (2, 2)]
    client.close()


def check_writes(host):
    """What is written later counts."""
    client = client_of(host, PROJECT)
    client.put(entity(client, "Numbers", 1, n=[1005]))
    client.delete(client.key("Numbers", 2))
    assert ids(client, "Numbers", ("n", "=", 1005)) == [1]
    assert ids(client, "Numbers", ("n", "=", 5)) == list(range(3, ENTITIES + 1))
    client.close()


# --- tests ---


def test_without_in_place_it_says_what_it_would_do(damaged):
    before = contents(damaged)
    done = repair(damaged / "data")
    assert done.returncode == 1
    assert totals(["would remove", "would write", "would correct"]) in done.stdout
    assert len(re.findall("^would remove: table .*, key ", done.stdout, re.MULTILINE)) == 5
    assert len(re.findall("^would correct: table .*, key ", done.stdout, re.MULTILINE)) == 1
    assert f"{TOO_MANY + MISSING + 1} index rows to repair; nothing was changed" in done.stdout
    assert contents(damaged) == before


def test_it_repairs_what_the_doctor_names(damaged):
    seen = run_trestle("doctor", damaged / "data")
    assert seen.returncode == 1
    damages = TOO_MANY + MISSING + 1
    assert f"{damages} damages found\n{damages} of them are of index rows: " in seen.stderr
    assert f"harmless: table {DATABASE}: {HARMLESS} cells of what index rows were" in seen.stdout
    assert "harmless: table projects/damaged/databases/sound" not in seen.stdout
    done = repair("--in-place", damaged / "data")
    assert done.returncode == 0
    assert totals(["removed", "wrote", "corrected"]) in done.stdout
    assert f"{damages} index rows repaired" in done.stdout
    assert_sound(damaged / "data")


def test_queries_are_right_afterwards(damaged):
    assert repair("--in-place", damaged / "data").returncode == 0
    server = Server(damaged)
    for _ in range(2):
        check_queries(server.start().host)
        server.stop()
    check_writes(server.start().host)
    server.close()
    assert_sound(damaged / "data")


def test_what_was_is_right_afterwards(damaged):
    """Ten minutes after the damage was done, as of five minutes after it."""
    written = (damaged / "data/000004.log").stat().st_mtime
    offset = round(written + 600 - datetime.datetime.now(UTC).timestamp())
    env = {"LD_PRELOAD": str(LIBRARY), "POWERCUT_CLOCK": str(offset)}
    then = datetime.datetime.fromtimestamp(written + 300, UTC)
    everybody = list(range(1, ENTITIES + 1))
    assert repair("--in-place", damaged / "data", env=env).returncode == 0
    server = Server(damaged, env=env).start()
    client = client_of(server.host, PROJECT)
    assert ids(client, "Numbers", ("n", "=", 5), read_time=then) == everybody
    assert ids(client, "Numbers", ("n", "=", 1005), read_time=then) == []
    assert ids(client, "Numbers", ("version", "=", 1), read_time=then) == []
    client.close()
    server.close()


@pytest.mark.parametrize("lines", [1, 5, 6, 11])
def test_a_kill_in_the_middle(damaged, lines):
    """After so many of the rows that it names, which are the first ones of each kind."""
    command = [binary(), "repair", "--in-place", str(damaged / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(lines):
            assert b", key " in process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    done = repair("--in-place", damaged / "data")
    assert done.returncode == 0
    assert_sound(damaged / "data")


def test_a_sound_directory_is_not_touched(fresh_server):
    server = fresh_server()
    client = client_of(server.host, "p")
    client.put_multi([entity(client, "K", i, n=i, tags=["a", "b"]) for i in range(1, 50)])
    client.delete(client.key("K", 7))
    client.close()
    server.stop()
    before = contents(server.data)
    done = repair(server.data, "--in-place")
    assert done.returncode == 0
    assert done.stdout == f"{server.data}: nothing to repair\n"
    assert "harmless" not in run_trestle("doctor", server.data).stdout
    assert contents(server.data) == before


@pytest.mark.parametrize("flags", [[], ["--in-place"]])
def test_a_running_server_refuses_it(damaged, flags):
    server = Server(damaged).start()
    done = repair(damaged / "data", *flags)
    assert done.returncode == 1
    assert "in use" in done.stderr or "another process" in done.stderr
    assert "repaired" not in done.stdout
    server.close()


def test_what_it_is_not_given(tmp_path):
    for arguments in ([], ["a", "b"], ["--force", "a"]):
        assert repair(*arguments).returncode == 2
    done = repair(tmp_path / "none", "--in-place")
    assert done.returncode == 1
    assert "is not a data directory" in done.stderr
    assert not (tmp_path / "none").exists()


def flip(path):
    """A byte in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.fixture
def unreadable(damaged):
    """A directory with damaged indexes in which a table file is damaged, too."""
    data = damaged / "data"
    server = Server(damaged, ["--write-buffer", "4MB"]).start()  # less than the log: to tables
    server.stop()
    flip(max(data.glob("*.sst"), key=lambda path: path.stat().st_size))
    return data


def test_what_cannot_be_read_is_named(unreadable):
    """The other database is looked at all the same."""
    done = repair(unreadable)
    assert done.returncode == 1
    assert f"left: table {DATABASE}: " in done.stderr
    assert done.stderr.endswith(" is left, named above\n")
    assert "databases/sound: " not in done.stderr
    lost, last = done.stdout.splitlines()
    assert lost.startswith("would lose: large cells of rows ") and DATABASE in lost
    assert last.endswith("nothing was changed (--in-place does it)")


def test_what_cannot_be_read_is_given_up(unreadable):
    """And the indexes are made of what is left."""
    done = repair(unreadable, "--in-place")
    assert done.returncode == 0
    assert "lost: large cells of rows " in done.stdout
    assert_sound(unreadable)
