"""What an update does that reads a large value first.

Found by the suite of Google's client for Node: CheckAndMutateRow of a row with a value of 5 MB was
RESOURCE_EXHAUSTED, "out of memory". A value that lies outside its row's record is copied into the
memory of the call, which had room for one megabyte. Releases before did not even say so: without
room the value was taken for an empty one, so that predicates were judged by that, and an append to
five megabytes left what was appended alone."""

import pytest
from google.cloud.bigtable_v2 import types
from harness.rpc import set_cell

LARGE = bytes(range(256)) * 20_000  # 5 MB
NOTE = [set_cell("f", b"note", b"yes", 1000)]


@pytest.fixture
def table(rpc, table_name):
    rpc.mutate(table_name, b"row", set_cell("f", b"large", LARGE, 1000))
    rpc.mutate(table_name, b"row", set_cell("f", b"small", b"s", 1000))
    return table_name


@pytest.mark.parametrize(("predicate", "matches"), [
    ({"pass_all_filter": True}, True),
    ({"value_range_filter": {"start_value_closed": b"\x00\x01\x02"}}, True),
    ({"chain": {"filters": [{"column_qualifier_regex_filter": b"large"},
                            {"value_range_filter": {"start_value_closed": LARGE[:9000]}}]}}, True),
    ({"chain": {"filters": [{"column_qualifier_regex_filter": b"large"},
                            {"value_regex_filter": b""}]}}, False),
])  # fmt: skip
def test_a_predicate_sees_all_of_it(rpc, table, predicate, matches):
    seen = rpc.check_and_mutate(table, b"row", types.RowFilter(predicate), true=NOTE)
    assert seen == matches


def test_what_is_appended_comes_behind_it(rpc, table):
    rule = types.ReadModifyWriteRule(
        family_name="f", column_qualifier=b"large", append_value=b"end"
    )
    [answered] = rpc.read_modify_write(table, b"row", rule)
    assert answered.value == LARGE + b"end"
    [(_, cells)] = rpc.read(table)
    [newest] = [cell for cell in cells if cell.qualifier == b"large"][:1]
    assert newest.value == LARGE + b"end"
