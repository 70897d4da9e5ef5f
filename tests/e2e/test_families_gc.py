"""Column families and their garbage-collection rules.

Rules hold in reads at once; these tests see the reads. Merges and the background have tests of
their own beside the code."""

import time
from datetime import timedelta

import pytest
from google.cloud.bigtable import column_family
from google.cloud.bigtable_admin_v2 import types
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, Cell, fails_with, set_cell

KEY = b"k"
HOUR = 3_600_000_000


def versions(count):
    return types.GcRule(max_num_versions=count)


def age(**delta):
    return types.GcRule(max_age=timedelta(**delta))


def union(*rules):
    return types.GcRule(union=types.GcRule.Union(rules=rules))


def intersection(*rules):
    return types.GcRule(intersection=types.GcRule.Intersection(rules=rules))


def now():
    return time.time_ns() // 1_000_000 * 1000


def create(name, rule=None):
    return {"id": name, "create": types.ColumnFamily(gc_rule=rule)}


def update(name, rule):
    return {"id": name, "update": types.ColumnFamily(gc_rule=rule)}


def drop(name):
    return {"id": name, "drop": True}


def families(rpc, name):
    return sorted(rpc.get_table(name).column_families)


def times(rpc, name):
    return [cell.timestamp for cell in rpc.read_row(name, KEY)]


# --- modifying ---


def test_create_update_drop_in_one_request(rpc, make_table):
    name = make_table(["a", "b"])
    table = rpc.modify_families(name, create("c"), update("b", versions(3)), drop("a"))
    assert sorted(table.column_families) == ["b", "c"]
    assert families(rpc, name) == ["b", "c"]
    assert rpc.get_table(name).column_families["b"].gc_rule == versions(3)


def test_through_the_classic_client(instance, new_table_id):
    table = instance.table(new_table_id())
    table.create()
    rule = column_family.GCRuleUnion(
        [column_family.MaxVersionsGCRule(2), column_family.MaxAgeGCRule(timedelta(days=5))]
    )
    family = table.column_family("f", gc_rule=rule)
    family.create()
    assert table.list_column_families()["f"].gc_rule == rule
    family.gc_rule = column_family.MaxVersionsGCRule(1)
    family.update()
    assert table.list_column_families()["f"].gc_rule == column_family.MaxVersionsGCRule(1)
    family.delete()
    assert table.list_column_families() == {}
    table.delete()


@pytest.mark.parametrize(
    ("modification", "code"),
    [
        (create("a"), StatusCode.ALREADY_EXISTS),
        (update("nope", versions(1)), StatusCode.NOT_FOUND),
        (drop("nope"), StatusCode.NOT_FOUND),
        (create("bad:name"), StatusCode.INVALID_ARGUMENT),
        (create("x" * 65), StatusCode.INVALID_ARGUMENT),
        ({"id": "a"}, StatusCode.INVALID_ARGUMENT),
        ({"id": "a", "drop": False}, StatusCode.INVALID_ARGUMENT),
    ],
)
def test_all_or_none(rpc, make_table, modification, code):
    name = make_table(["a"])
    with fails_with(code):
        rpc.modify_families(name, create("before"), modification)
    assert families(rpc, name) == ["a"]


def test_modifications_apply_in_order(rpc, make_table):
    name = make_table(["a"])
    rpc.modify_families(name, drop("a"), create("a", versions(7)))
    assert rpc.get_table(name).column_families["a"].gc_rule == versions(7)


def test_modify_of_a_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.modify_families(f"{INSTANCE}/tables/no-such-table", create("f"))


def test_a_dropped_family_is_gone_and_stays_gone(rpc, table_name):
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"old", 1000), set_cell("g", b"q", b"v", 1000))
    rpc.mutate(table_name, b"only f", set_cell("f", b"q", b"old", 1000))
    rpc.modify_families(table_name, drop("f"))
    assert rpc.read(table_name) == [(KEY, [Cell("g", b"q", 1000, b"v")])]
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v"))
    rpc.modify_families(table_name, create("f"))
    assert rpc.read(table_name) == [(KEY, [Cell("g", b"q", 1000, b"v")])]
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"new", 1000))
    assert rpc.read_row(table_name, KEY)[0] == Cell("f", b"q", 1000, b"new")


def test_a_hundred_families(rpc, make_table):
    names = ["family-%03d" % i for i in range(100)]
    name = make_table(names)
    rpc.mutate(name, KEY, *(set_cell(family, b"q", b"v", 1000) for family in reversed(names)))
    assert [cell.family for cell in rpc.read_row(name, KEY)] == names


# --- rules ---


@pytest.mark.parametrize(
    "rule",
    [
        versions(1),
        age(days=7),
        age(milliseconds=1),
        union(versions(2), age(hours=1)),
        intersection(versions(2), union(age(hours=1), versions(9))),
    ],
)
def test_rules_read_back(rpc, make_table, rule):
    name = make_table({"f": rule})
    assert rpc.get_table(name).column_families["f"].gc_rule == rule


def test_no_rule_reads_back_as_none(rpc, make_table):
    name = make_table({"f": None, "g": types.GcRule()})
    for family in rpc.get_table(name).column_families.values():
        assert not family.gc_rule


@pytest.mark.parametrize(
    "rule",
    [
        versions(0),
        versions(-1),
        age(microseconds=999),
        age(seconds=-1),
        union(versions(1), versions(0)),
        union(*[versions(i) for i in range(1, 200)]),
    ],
)
def test_rules_that_are_refused(rpc, new_table_id, rule):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.create_table(new_table_id(), {"f": rule})


def test_max_versions(rpc, make_table):
    name = make_table({"f": versions(2), "g": None})
    cells = [(family, ms) for family in "fg" for ms in (1, 2, 3)]
    rpc.mutate(name, KEY, *(set_cell(family, b"q", b"v", ms * 1000) for family, ms in cells))
    assert times(rpc, name) == [3000, 2000, 3000, 2000, 1000]


def test_max_versions_counts_each_column(rpc, make_table):
    name = make_table({"f": versions(1)})
    cells = [(qualifier, ms) for qualifier in (b"a", b"b") for ms in (1, 2)]
    rpc.mutate(name, KEY, *(set_cell("f", qualifier, b"v", ms * 1000) for qualifier, ms in cells))
    assert times(rpc, name) == [2000, 2000]


def test_max_age(rpc, make_table):
    name = make_table({"f": age(hours=1)})
    fresh, old = now(), now() - 2 * HOUR
    rpc.mutate(name, KEY, set_cell("f", b"q", b"v", fresh), set_cell("f", b"q", b"v", old))
    rpc.mutate(name, b"all old", set_cell("f", b"q", b"v", old))
    assert rpc.read(name) == [(KEY, [Cell("f", b"q", fresh, b"v")])]


def test_union_condemns_by_either(rpc, make_table):
    name = make_table({"f": union(versions(2), age(hours=1))})
    stamps = [now(), now() - HOUR // 2, now() - HOUR // 2 - 1000]
    rpc.mutate(name, KEY, *(set_cell("f", b"q", b"v", stamp) for stamp in stamps))
    rpc.mutate(name, KEY, set_cell("f", b"p", b"v", now() - 2 * HOUR))
    assert times(rpc, name) == stamps[:2]


def test_intersection_condemns_by_both(rpc, make_table):
    name = make_table({"f": intersection(versions(1), age(hours=1))})
    stamps = [now(), now() - HOUR // 2, now() - 2 * HOUR]
    rpc.mutate(name, KEY, *(set_cell("f", b"q", b"v", stamp) for stamp in stamps))
    rpc.mutate(name, KEY, set_cell("f", b"p", b"v", stamps[2]))
    assert times(rpc, name) == [stamps[2], *stamps[:2]]


def test_a_new_rule_holds_for_old_cells(rpc, make_table):
    name = make_table({"f": None})
    rpc.mutate(name, KEY, *(set_cell("f", b"q", b"v", ms * 1000) for ms in (1, 2, 3)))
    assert len(times(rpc, name)) == 3
    rpc.modify_families(name, update("f", versions(1)))
    assert times(rpc, name) == [3000]


def test_a_deletion_does_not_bring_older_versions_back(rpc, make_table):
    """What a rule has condemned may reappear only while it has not been collected; here the newest
    of two is deleted, and the one below was never condemned."""
    name = make_table({"f": versions(2)})
    rpc.mutate(name, KEY, *(set_cell("f", b"q", b"v", ms * 1000) for ms in (2, 3)))
    deletion = {
        "family_name": "f",
        "column_qualifier": b"q",
        "time_range": {"start_timestamp_micros": 3000},
    }
    rpc.mutate(name, KEY, {"delete_from_column": deletion})
    assert times(rpc, name) == [2000]


# --- gc_on_read, for rows that are packed and rows whose cells have records of their own ---

PACKED, SPILLED = b"v", b"v" * 1000


def with_three_versions(rpc, name, rule, value):
    """The rule comes when the versions are there."""
    rpc.create_table(name, {"f": None})
    full = f"{INSTANCE}/tables/{name}"
    for ms in (1, 2, 3):
        rpc.mutate(full, KEY, set_cell("f", b"q", value, ms * 1000))
    assert times(rpc, full) == [3000, 2000, 1000]
    rpc.modify_families(full, update("f", rule))
    return full


def test_reads_show_what_the_rule_leaves_at_once(fresh_server, connect):
    rpc = connect(fresh_server("--overflow-threshold", "256").host)
    rules = {
        "versions": (versions(1), [3000]),
        "age": (age(hours=1), []),
        "union": (union(versions(2), age(days=24_000)), [3000, 2000]),
        "intersection": (intersection(versions(1), union(versions(2), age(hours=1))), [3000]),
    }
    for size, value in [("packed", PACKED), ("spilled", SPILLED)]:
        for kind, (rule, left) in rules.items():
            name = with_three_versions(rpc, f"{kind}-{size}", rule, value)
            assert times(rpc, name) == left, name


@pytest.mark.parametrize("value", [PACKED, SPILLED], ids=["packed", "spilled"])
def test_without_it_reads_show_it_until_it_is_collected(fresh_server, connect, value):
    server = fresh_server(
        "--overflow-threshold", "256", "--gc-on-read=false", "--gc-interval", "1s"
    )
    rpc = connect(server.host)
    name = with_three_versions(rpc, "t", versions(1), value)
    until = time.monotonic() + PATIENCE_SECONDS
    seen = times(rpc, name)
    while seen != [3000] and time.monotonic() < until:
        assert seen == [3000, 2000, 1000]
        seen = times(rpc, name)
    assert seen == [3000]
