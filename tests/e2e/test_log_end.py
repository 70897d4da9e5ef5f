"""What a start and the doctor say of a write-ahead log that has lost its end, or all of it: loss of
what was synced keeps the server from starting, unless it may salvage; a torn write is told."""

import contextlib
import re
import shutil

import pytest
from harness.rest import Rest, b64
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs a server of its own")
TABLE = "projects/p/instances/i/tables/t"


@contextlib.contextmanager
def running(place, arguments=()):
    """Started, and stopped in an orderly way."""
    server = Server(place, arguments)
    try:
        yield server.start()
        server.stop()
    finally:
        server.close()


def ask(server, verb, path, body=None):
    status, text = Rest(server.host).ask(verb, path, body)
    assert status == 200, text
    return text


def write(server, key, size=4):
    cell = {"familyName": "f", "columnQualifier": "cQ==", "value": "A" * size,
            "timestampMicros": "0"}  # fmt: skip
    body = {"entries": [{"rowKey": key, "mutations": [{"setCell": cell}]}]}
    ask(server, "POST", f"/v2/{TABLE}:mutateRows", body)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A directory of a server that has stopped, with all that it has in its log."""
    place = tmp_path_factory.mktemp("stopped")
    with running(place, ["--auto-create", "on"]) as server:
        table = {"tableId": "t", "table": {"columnFamilies": {"f": {}}}}
        ask(server, "POST", "/v2/projects/p/instances/i/tables", table)
        for key in ("YQ==", "Yg==", "Yw=="):
            write(server, key)
    return place


@pytest.fixture
def copied(stopped, tmp_path):
    shutil.copytree(stopped / "data", tmp_path / "data")
    return tmp_path


def newest_log(place):
    return max((log for log in (place / "data").glob("*.log") if log.stat().st_size > 0))


def flip(log):
    damaged = bytearray(log.read_bytes())
    damaged[-5] ^= 1
    log.write_bytes(damaged)


def cut(log):
    log.write_bytes(log.read_bytes()[:-5])


LOSSES = [
    (flip, r"write-ahead log \d+\.log is damaged at byte \d+, and was synced up to byte \d+"),
    (cut, r"write-ahead log \d+\.log ends at byte \d+, but was synced up to byte \d+"),
    (lambda log: log.unlink(), r"write-ahead log \d+\.log is gone, of which \d+ bytes were synced"),
]


def check(place, *arguments):
    """What `serve --check` says, which changes nothing, and its exit status."""
    before = {path: path.read_bytes() for path in (place / "data").iterdir() if path.is_file()}
    done = run_trestle("serve", "--check", "--data-dir", place / "data", "--listen", "127.0.0.1:0",
                       *arguments)  # fmt: skip
    after = {path: path.read_bytes() for path in (place / "data").iterdir() if path.is_file()}
    assert before == after
    return done.returncode, done.stdout + done.stderr


UNREAD = "note: the catalog and rows are not read: serve brings back first what is to be salvaged\n"
ROWS_UNREAD = (
    "note: rows are not read: serve starts with damaged ones, which `trestle doctor` tells\n"
)
NOTHING = "nothing is wrong: serve would start\n"


def check_both(place, words):
    """A start would be refused in these words, and not with --salvage."""
    code, said = check(place)
    assert code == 1 and re.search("wrong: --data-dir: .*" + words, said), said
    assert check(place, "--salvage") == (0, UNREAD + NOTHING)


@pytest.mark.parametrize(("damage", "words"), LOSSES, ids=["flip", "cut", "gone"])
def test_a_loss_is_named_and_salvaged(copied, damage, words):
    damage(newest_log(copied))
    seen = run_trestle("doctor", copied / "data")
    assert seen.returncode == 1
    assert re.search("damage: " + words, seen.stderr), seen.stderr
    assert TABLE in seen.stderr  # who wrote at that time
    assert "the last synced commit was at 20" in seen.stderr
    check_both(copied, words)
    with pytest.raises(RuntimeError, match=words):
        Server(copied).start()
    with running(copied, ["--salvage"]) as server:
        log = server.stderr_path.read_text()
        assert re.search("what the log had is lost.*" + words, log)
        assert "keyspaces" not in server.get("/readyz")[1]
        assert "a salvage is not finished" not in log
    with running(copied) as server:  # once is enough
        ask(server, "GET", "/v2/projects/p/instances/i/tables")
    assert run_trestle("doctor", copied / "data").returncode == 0


def test_a_torn_write_is_told_once(copied):
    """Bytes behind the end, of which nobody was told that they are on the disk."""
    with open(newest_log(copied), "ab") as log:
        log.write(b"torn" * 30)
    words = r"the log ends at byte \d+; up to 100 ms of acknowledged writes before the stop may be "
    words += r"missing: of \d+\.log 120 bytes were dropped behind that, with 0 whole commits"
    seen = run_trestle("doctor", copied / "data")
    assert seen.returncode == 3
    assert re.search(words, seen.stdout), seen.stdout
    with running(copied) as server:
        assert len(re.findall(words, server.stderr_path.read_text())) == 1
    assert run_trestle("doctor", copied / "data").returncode == 0


def test_after_an_orderly_stop_there_is_nothing_to_tell(copied):
    seen = run_trestle("doctor", copied / "data")
    assert (seen.returncode, seen.stderr) == (0, "")
    (copied / "data/SYNCED").unlink()
    assert "the file SYNCED is missing" in run_trestle("doctor", copied / "data").stderr


def test_rows_whose_table_was_lost_are_kept_until_somebody_decides(tmp_path):
    """Its rows were in tables, its name in the log."""
    other = "projects/p/instances/i/tables/recovered"
    with running(tmp_path, ["--auto-create", "on", "--write-buffer", "4MB"]) as server:
        table = {"tableId": "t", "table": {"columnFamilies": {"f": {}}}}
        ask(server, "POST", "/v2/projects/p/instances/i/tables", table)
        for i in range(100):
            write(server, b64(b"row%d" % i), 1_000_000)
            if server.metric("store_flushes_total") > 0:
                break
    for log in (tmp_path / "data").glob("*.log"):
        log.unlink()
    with running(tmp_path, ["--salvage"]) as server:
        assert server.get("/readyz")[1].startswith("degraded\nsalvaged: 1 keyspaces have rows but")
        assert "a keyspace has rows but no table" in server.stderr_path.read_text()
    seen = run_trestle("doctor", tmp_path / "data")
    words = r"keyspace (\d+) was kept by a start with --salvage, has no table, and has \d+ rows"
    keyspace = re.search("damage: " + words, seen.stderr)[1]
    assert seen.returncode == 1
    claim = [tmp_path / "data", "--claim", f"{keyspace}={other}"]
    assert run_trestle("repair", *claim).returncode == 1  # it says what it would do
    assert run_trestle("repair", *claim[:2], f"{keyspace}=t").returncode == 2
    assert run_trestle("repair", tmp_path / "data", "--drop", "77", "--in-place").returncode == 1
    seen = run_trestle("repair", *claim, "--in-place")
    assert (seen.returncode, f"is now table {other}, with 1 families" in seen.stdout) == (0, True)
    with running(tmp_path) as server:
        assert server.get("/readyz") == (200, "ok\n")
        rows = ask(server, "POST", f"/v2/{other}:readRows", {})
        assert "f1" in rows
    assert "keyspace" not in run_trestle("doctor", tmp_path / "data").stderr


def manifest(data):
    return data / (data / "CURRENT").read_text().strip()


LISTS = [
    (lambda data: (data / "CURRENT").unlink(), "the file CURRENT is missing, or damaged"),
    (lambda data: manifest(data).unlink(), "MANIFEST-[0-9]+ is missing"),
    (lambda data: flip(manifest(data)), "MANIFEST-[0-9]+ is damaged, or ends, at byte"),
    (lambda data: cut(manifest(data)), "MANIFEST-[0-9]+ is damaged, or ends, at byte"),
    (lambda data: (data / "FORMAT").unlink(), "the file FORMAT is missing"),
    (lambda data: (data / "FORMAT").write_text("x"), "the file FORMAT is damaged"),
]


@pytest.mark.parametrize(
    ("damage", "words"), LISTS,
    ids=["no-current", "no-manifest", "flip", "cut", "no-format", "format"],
)  # fmt: skip
def test_the_lists_of_what_there_is_are_brought_back(copied, damage, words):
    assert check(copied) == (0, ROWS_UNREAD + NOTHING)
    damage(copied / "data")
    check_both(copied, words)
    seen = run_trestle("doctor", copied / "data")
    assert (seen.returncode, "--salvage" in seen.stderr) == (1, True), seen.stderr
    assert re.search(words, seen.stderr), seen.stderr
    with pytest.raises(RuntimeError, match=words + ".*--salvage"):
        Server(copied).start()
    with running(copied, ["--salvage"]) as server:
        rows = ask(server, "POST", f"/v2/{TABLE}:readRows", {})
        assert rows.count("commitRow") == 3
        write(server, "ZA==")
    assert run_trestle("doctor", copied / "data").returncode == 0


def test_a_server_that_is_another_one_says_so(copied):
    """IDENTITY is none: the doctor and the start say so. The former one is taken again."""
    data = copied / "data"
    was = (data / "IDENTITY").read_text()
    (data / "IDENTITY").write_text("../../etc/passwd\n")
    seen = run_trestle("doctor", data)
    assert seen.returncode == 1 and "damage: the file IDENTITY is missing" in seen.stderr
    left = run_trestle("repair", str(data))
    assert left.returncode == 1 and f": it was {was.strip()}\n1 thing is left" in left.stderr
    with running(copied, []) as server:
        assert "the file IDENTITY is missing, or is none: the server gets" in server.stderr()
        assert (data / "IDENTITY").read_text() not in ("", was)
    (data / "IDENTITY").write_text(was)
    assert run_trestle("doctor", data).returncode == 0
    with running(copied, []) as server:
        shown = ask(server, "GET", "/v1/servers/self/metrics")
        assert was.strip() in shown and (data / "IDENTITY").read_text() == was


def test_a_flipped_digit_makes_another_server_which_is_told(copied):
    """Once by the doctor and the start; and so is the way back."""
    data = copied / "data"
    with running(copied, []) as server:
        assert "another server" not in server.stderr()
    was = (data / "IDENTITY").read_text()
    other = ("1" if was[0] == "0" else "0") + was[1:]
    (data / "IDENTITY").write_text(other)
    seen = run_trestle("doctor", data)
    assert seen.returncode == 1 and "damage: the file IDENTITY names another" in seen.stderr
    for arguments in ((), ("--in-place",)):
        left = run_trestle("repair", str(data), *arguments)
        assert left.returncode == 1 and "left: the file IDENTITY names another" in left.stderr
    assert f": it was {was.strip()}\n" in seen.stderr
    with running(copied, []) as server:
        assert "the file IDENTITY named another server" in server.stderr()
        assert f"was={was.strip()} is={other.strip()}" in server.stderr()
    assert run_trestle("doctor", data).returncode == 0
    (data / "IDENTITY").write_text(was)
    assert run_trestle("doctor", data).returncode == 0
    with running(copied, []) as server:
        assert server.stderr().count("named another server") == 1
