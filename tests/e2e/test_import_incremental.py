"""`trestle import dynamodb` of incremental exports: deletes, replays, exports out of order."""

import subprocess

import pytest
from harness.dynamo_exports import ALL_TYPES, change_line, write_export, write_incremental
from harness.importer import Importer
from harness.killing import kill_some_times
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

# The full export is of 2024-11-08T10:00:00Z; the windows follow it.
FULL_US = 1731060000000000
WINDOWS = [
    ("2024-11-08T10:00:00Z", "2024-11-08T11:00:00Z"),
    ("2024-11-08T11:00:00Z", "2024-11-08T12:00:00Z"),
]
MINUTE_US = 60 * 1000 * 1000


@pytest.fixture
def importer(rpc, server, tmp_path, new_table_id):
    return Importer(rpc, server.host, tmp_path, new_table_id())


def key(name):
    return {"Id": ("S", name)}


def item(name, **attributes):
    return {**key(name), **{each: ("S", value) for each, value in attributes.items()}}


def values(importer):
    """{row key: {column: value}}, without times."""
    return {
        row.decode(): {
            name.removeprefix("item:"): value.decode() for name, (_, value) in cells.items()
        }
        for row, cells in importer.rows().items()
    }


def write_all(root, form="json"):
    """A full export and two incremental ones; what the rows must be at the end."""
    names = ("changed", "gone", "kept", "back")
    write_export(root / "full", [[item(name, a="full", b="full") for name in names]])
    at = FULL_US + MINUTE_US
    write_incremental(root, "1", *WINDOWS[0], [
        change_line(
            key("changed"), at + 123, item("changed", a="one", c="one"), item("changed"), form
        ),
        change_line(key("gone"), at, form=form),
        change_line(key("back"), at, form=form),
        change_line(key("new"), at, item("new", a="one"), form=form),
    ], form)  # fmt: skip
    at += 60 * MINUTE_US
    write_incremental(root, "2", *WINDOWS[1], [
        change_line(key("changed"), at, item("changed", c="two"), form=form),
        change_line(key("back"), at, item("back", z="two"), form=form),
        change_line(key("never"), at, form=form),
    ], form)  # fmt: skip
    return {
        "changed": {"c": "two"}, "kept": {"a": "full", "b": "full"}, "back": {"z": "two"},
        "new": {"a": "one"},
    }  # fmt: skip


@pytest.mark.parametrize("form", ["json", "ion"])
def test_exports_are_applied_in_order(importer, tmp_path, form):
    expected = write_all(tmp_path / "exports", form)
    out = importer.run_well(tmp_path / "exports", "--verify", "full")
    assert out == "11 items read, 11 written, 0 rejected\n11 rows compared, 0 different\n"
    assert values(importer) == expected
    written = importer.rows()[b"changed"]["item:c"][0]
    assert written == FULL_US + 61 * MINUTE_US


def test_a_sample_is_of_the_rows_as_they_end(importer, tmp_path):
    write_all(tmp_path / "exports")
    out = importer.run_well(tmp_path / "exports")
    assert out == "11 items read, 11 written, 0 rejected\n6 rows compared, 0 different\n"


def test_a_replay_changes_nothing(importer, tmp_path):
    expected = write_all(tmp_path / "exports")
    for _ in range(2):
        importer.run_well(tmp_path / "exports", "--verify", "full")
        assert values(importer) == expected


def test_an_older_export_does_not_undo_a_newer_one(importer, tmp_path):
    root = tmp_path / "exports"
    expected = write_all(root)
    importer.run_well(root)
    out = importer.run_well(root / "1", "--verify", "full")
    assert out == "4 items read, 4 written, 0 rejected\n4 rows compared, 0 different\n"
    assert values(importer) == expected


def test_every_type_is_replaced(importer, tmp_path):
    root = tmp_path / "exports"
    write_export(root / "full", [[{**key("k"), **ALL_TYPES}]])
    left = dict(list(ALL_TYPES.items())[::2])
    change = change_line(key("k"), FULL_US + 1000, {**key("k"), **left})
    write_incremental(root, "1", *WINDOWS[0], [change])
    importer.run_well(root, "--lossless", "--verify", "full")
    assert set(importer.rows()[b"k"]) == {f"item:{name}" for name in [*left, "Id"]}


def test_what_differs_is_found(importer, tmp_path, rpc):
    """A row that is there although it should be gone, and a cell too much in another: written after
    the changes, at times before them, which a conditional change would pass over again."""
    root = tmp_path / "exports"
    write_all(root)
    running = importer.start(
        root, "--rate", 5, "--verify", "full", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0, err
    assert b"0 different" in out
    late = FULL_US + 600 * MINUTE_US
    for name in ("gone", "changed"):
        rpc.mutate(importer.table, name.encode(), set_cell("item", b"a", b"x", late))
    done = importer.run(root, "--verify", "full")
    assert done.returncode == 1
    assert "2 different" in done.stdout


def test_windows_that_leave_a_gap_are_refused(importer, tmp_path):
    root = tmp_path / "exports"
    write_export(root / "full", [[item("k")]])
    write_incremental(root, "2", *WINDOWS[1], [change_line(key("k"), FULL_US)])
    done = importer.run(root)
    assert done.returncode == 1
    assert "there is a time that neither has" in done.stderr


@pytest.mark.parametrize("options", [["--timestamp", "a"], ["--compat", "google"]])
def test_cells_need_the_times_of_their_writes(importer, tmp_path, options):
    root = tmp_path / "exports"
    write_all(root)
    done = importer.run(root, *options)
    assert done.returncode == 1
    assert "need cells that have the times of their writes" in done.stderr


def test_a_killed_import_of_changes_goes_on(importer, tmp_path):
    """Three kills; rows that were changed several times, deleted, and brought back."""
    root = tmp_path / "exports"
    names = [f"k{number:04}" for number in range(1500)]
    write_export(root / "full", [[item(name, a="full") for name in names]])
    at = FULL_US + MINUTE_US
    write_incremental(root, "1", *WINDOWS[0], [
        change_line(key(name), at, None if number % 3 == 0 else item(name, b="one"))
        for number, name in enumerate(names)
    ])  # fmt: skip
    at += 60 * MINUTE_US
    write_incremental(root, "2", *WINDOWS[1], [
        change_line(key(name), at, None if number % 4 == 0 else item(name, c="two"))
        for number, name in enumerate(names) if number % 2 == 0
    ])  # fmt: skip
    checkpoint = tmp_path / f"{importer.table_id}.checkpoint"
    kill_some_times(importer.command(root), tmp_path, checkpoint, 3)
    out = importer.run_well(root, "--verify", "full")
    assert out == "3750 items read, 3750 written, 0 rejected\n3750 rows compared, 0 different\n"
    expected = {}
    for number, name in enumerate(names):
        if number % 2 == 0:
            expected[name] = None if number % 4 == 0 else {"c": "two"}
        else:
            expected[name] = None if number % 3 == 0 else {"b": "one"}
    assert values(importer) == {name: row for name, row in expected.items() if row is not None}
