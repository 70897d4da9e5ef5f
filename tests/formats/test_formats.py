"""Directories and backups that former programs left (tests/data/formats) are what they were: each
row, entity and resource is compared with the listing that the former program itself gave.

Its log had not been flushed when it was killed."""

import json
import subprocess

import pytest
from formats.listing import Asker
from formats.make import CLUSTER, FIXTURES, INSTANCE, list_all, narrow_rows, restore, write
from harness.server import Server, run_trestle

NAMES = sorted(path.name.removesuffix(".tar.gz") for path in FIXTURES.glob("*.tar.gz"))
NAMES = [name for name in NAMES if not name.endswith("-whole")]  # test_whole_formats.py


@pytest.fixture(params=NAMES)
def left(request, tmp_path):
    """The directory with `data`, `backups` and `listing.json`."""
    archive = FIXTURES / f"{request.param}.tar.gz"
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    return tmp_path


@pytest.fixture
def start(left):
    """Starts the present program on that directory; a second time it stops it first."""
    # However old the backup is.
    arguments = ["--backup-dir", left / "backups", "--backup-expiry=false"]
    server = Server(left, arguments)

    def begin():
        return server.restart() if server.process else server.start()

    yield begin
    server.close()


def listing(left):
    """(what there was, the rows of the backup)"""
    found = json.loads((left / "listing.json").read_text())
    found.pop("refusal", None)
    return found, found.pop("backed_up")


def compare(found, expected, path=""):
    """Of a difference the place; pytest would show a megabyte."""
    if not (isinstance(found, dict) and isinstance(expected, dict)):
        assert found == expected, path
        return
    assert found.keys() == expected.keys(), path
    for name in expected:
        compare(found[name], expected[name], f"{path} > {name}")


def test_a_fixture_is_there():
    former = "886dd37 ebf41b9 e83f5c53 c9bd4414 d8087326 b2720161 3adadb47 c1e66437 aedd3ef6"
    assert set(former.split()) <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "of_next"),
    [
        ("e83f5c53", 3),
        ("c9bd4414", 4),
        ("d8087326", 5),
        ("b2720161", 6),
        ("3adadb47", 7),
        ("c1e66437", 8),
        ("aedd3ef6", 9),
    ],
)
def test_a_former_program_refuses_todays_directory(name, of_next, tmp_path):
    """What it said of one of the next format, when the fixture was made."""
    format_of_today = 9
    archive = FIXTURES / f"{name}.tar.gz"
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    refusal = json.loads((tmp_path / "listing.json").read_text())["refusal"]
    assert f"has format {of_next}; this program knows formats up to {of_next - 1}" in refusal
    server = Server(tmp_path, ["--backup-dir", tmp_path / "backups"])
    server.start()
    server.close()
    assert (tmp_path / "data/FORMAT").read_text() == f"trestle {format_of_today}\n"


def test_all_of_it_is_there(left, start):
    expected, _ = listing(left)
    for _ in range(2):  # the second time from what the first one has made of it
        compare(list_all(start().host), expected)


def test_its_backup_is_restored(left, start):
    asker = Asker(start().host)
    restore(asker, "again", "backup")
    compare(asker.rows(f"/v2/{INSTANCE}/tables/again"), listing(left)[1])


def test_it_is_written_to(left, start):
    asker = Asker(start().host)
    expected = listing(left)[0]["tables"]
    for name in expected:
        if "authorizedViews" not in name:
            write(asker, name, narrow_rows("new", 5))
    asker = Asker(start().host)
    for name, table in expected.items():
        rows = asker.rows(f"/v2/{name}")
        added = 0 if "authorizedViews" in name else 5
        assert len(rows) == len(table["rows"]) + added
        compare({key: rows[key] for key in table["rows"]}, table["rows"], name)


def test_the_doctor_finds_nothing(left):
    for arguments in ([left / "data"], ["--backup-dir", left / "backups"]):
        seen = run_trestle("doctor", *arguments)
        assert seen.returncode == 0, seen.stdout + seen.stderr


def test_a_lost_table_shows(left, start):
    """That the comparison can fail."""
    asker = Asker(start().host)
    asker.ask("POST", f"/v2/{INSTANCE}/tables/rows:dropRowRange", {"rowKeyPrefix": "bTAw"})
    with pytest.raises(AssertionError, match="tables/rows > rows"):
        compare(list_all(start().host), listing(left)[0])


def test_a_format_of_tomorrow_is_refused_in_words(left):
    """As today's program speaks of the next format, that of a fixture did of ours."""
    marker = left / "data/FORMAT"
    as_it_was = marker.read_text()
    marker.write_text("trestle 1000\n")
    with pytest.raises(RuntimeError, match="has format 1000; this program knows formats up to"):
        Server(left).start()
    marker.write_text(as_it_was)
    assert run_trestle("doctor", left / "data").returncode == 0


def test_backups_are_named_as_they_were(left, start):
    backups = Asker(start().host).all_of(f"/v2/{CLUSTER}/backups", "backups")
    assert [each["name"] for each in backups] == [*listing(left)[0]["backups"]]
