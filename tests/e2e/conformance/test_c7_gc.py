"""C7 of docs/reference/conformance.md: garbage collection, in reads and in the background."""

import time
from datetime import timedelta

import pytest
from google.cloud.bigtable_admin_v2 import types
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell
from harness.server import EXTERNAL, Server

KEY = b"k"
HOUR = 3_600_000_000

TWO = types.GcRule(max_num_versions=2)
HOURS = types.GcRule(max_age=timedelta(hours=2, minutes=30))
EITHER = types.GcRule(union={"rules": [TWO, HOURS]})
BOTH = types.GcRule(intersection={"rules": [TWO, HOURS]})


def hours_ago(hours):
    return time.time_ns() // 1_000_000 * 1000 - hours * HOUR


def put(rpc, name, *ages, qualifier=b"q"):
    """A cell for each age in hours."""
    cells = [set_cell("f", qualifier, b"%d" % age, hours_ago(age)) for age in ages]
    rpc.mutate(name, KEY, *cells)


def ages(rpc, name, qualifier=b"q"):
    return [int(cell.value) for cell in rpc.read_row(name, KEY) if cell.qualifier == qualifier]


def test_c7_1_reads_leave_out_what_a_rule_condemns(rpc, make_table):
    """At once, and also under a rule that came after the cells."""
    name = make_table(["f"])
    put(rpc, name, 0, 1, 2)
    assert ages(rpc, name) == [0, 1, 2]
    rpc.modify_families(name, {"id": "f", "update": types.ColumnFamily(gc_rule=TWO)})
    assert ages(rpc, name) == [0, 1]


@pytest.fixture(scope="module")
def lax(tmp_path_factory):
    """A server whose reads may show what is still there; it collects each second."""
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    directory = tmp_path_factory.mktemp("lax")
    server = Server(directory, ["--gc-on-read=false", "--gc-interval", "1s"]).start()
    yield server
    server.close()


def test_c7_2_the_background_collects_in_bounded_time(lax, connect):
    """Without traffic but for the reads that look for it."""
    rpc = connect(lax.host)
    name = rpc.create_table("collected", {"f": BOTH})
    put(rpc, name, 0, 1, 2, 3, 4)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while ages(rpc, name) != [0, 1, 2]:
        assert time.monotonic() < deadline, "still there"


def test_c7_3_max_num_versions_keeps_the_newest_of_each_column(rpc, make_table):
    name = make_table({"f": TWO})
    put(rpc, name, 3, 1, 2, 0)
    put(rpc, name, 9, 7, 8, qualifier=b"other")
    put(rpc, name, 5, qualifier=b"one")
    assert ages(rpc, name) == [0, 1]
    assert ages(rpc, name, b"other") == [7, 8]
    assert ages(rpc, name, b"one") == [5]


def test_c7_4_max_age_takes_what_is_older(rpc, make_table):
    name = make_table({"f": HOURS})
    put(rpc, name, 0, 1, 2, 3, 4)
    assert ages(rpc, name) == [0, 1, 2]
    put(rpc, name, 3, qualifier=b"old")
    assert ages(rpc, name, b"old") == []


def test_c7_4_a_row_of_old_cells_is_not_there(rpc, make_table):
    name = make_table({"f": HOURS})
    put(rpc, name, 3)
    assert rpc.read(name) == []
    assert rpc.check_and_mutate(name, KEY, true=[set_cell("f", b"q", b"v")]) is False


@pytest.mark.parametrize(
    ("rule", "expected"), [(EITHER, [0, 1]), (BOTH, [0, 1, 2])], ids=["union", "intersection"]
)
def test_c7_5_rules_of_rules(rpc, make_table, rule, expected):
    """A union condemns what any of its rules does, an intersection what all of them do."""
    name = make_table({"f": rule})
    put(rpc, name, 0, 1, 2, 3, 4)
    assert ages(rpc, name) == expected
    put(rpc, name, 3, 4, qualifier=b"old")
    assert ages(rpc, name, b"old") == ([] if rule is EITHER else [3, 4])


def test_c7_5_nested(rpc, make_table):
    """(older than 2.5 h and beyond the newest) or beyond the 3 newest"""
    newest = types.GcRule(max_num_versions=1)
    inner = types.GcRule(intersection={"rules": [HOURS, newest]})
    three = types.GcRule(max_num_versions=3)
    name = make_table({"f": types.GcRule(union={"rules": [inner, three]})})
    put(rpc, name, 0, 1, 2, 3)
    put(rpc, name, 3, 4, qualifier=b"old")
    assert ages(rpc, name) == [0, 1, 2]
    assert ages(rpc, name, b"old") == [3]
