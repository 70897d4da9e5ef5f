"""ReadModifyWriteRow: append and increment."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.cloud.bigtable.data import SetCell
from google.cloud.bigtable.data.read_modify_write_rules import AppendValueRule, IncrementRule
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import INSTANCE, fails_with, set_cell

KEY = b"k"


def int64(number):
    return number.to_bytes(8, "big", signed=True)


def increment(qualifier, amount, family="f"):
    return types.ReadModifyWriteRule(
        family_name=family, column_qualifier=qualifier, increment_amount=amount
    )


def append(qualifier, value, family="f"):
    return types.ReadModifyWriteRule(
        family_name=family, column_qualifier=qualifier, append_value=value
    )


def test_increment_from_nothing(table):
    row = table.read_modify_write_row(KEY, IncrementRule("f", b"n", 5))
    assert [(cell.family, cell.qualifier, int(cell)) for cell in row] == [("f", b"n", 5)]
    assert int(table.read_row(KEY).cells[0]) == 5


def test_append_to_nothing_and_to_something(table):
    table.read_modify_write_row(KEY, AppendValueRule("f", b"s", b"ab"))
    row = table.read_modify_write_row(KEY, AppendValueRule("f", b"s", b"cd"))
    assert [cell.value for cell in row] == [b"abcd"]


def test_rules_apply_in_order_on_one_cell(table):
    rules = [IncrementRule("f", b"n", amount) for amount in (1, 10, -4)]
    row = table.read_modify_write_row(KEY, rules)
    assert [int(cell) for cell in row] == [7]
    assert [int(cell) for cell in table.read_row(KEY)] == [7]


def test_answer_has_only_what_changed(rpc, table_name):
    rpc.mutate(table_name, KEY, set_cell("f", b"other", b"v"), set_cell("g", b"other", b"v"))
    cells = rpc.read_modify_write(table_name, KEY, append(b"b", b"x", "g"), increment(b"a", 1))
    assert [(c.family, c.qualifier, c.value) for c in cells] == [
        ("f", b"a", int64(1)),
        ("g", b"b", b"x"),
    ]
    assert len(rpc.read_row(table_name, KEY)) == 4


def test_works_on_the_newest_cell(rpc, table_name):
    old, new = set_cell("f", b"n", int64(1), 1000), set_cell("f", b"n", int64(5), 2000)
    rpc.mutate(table_name, KEY, old, new)
    (cell,) = rpc.read_modify_write(table_name, KEY, increment(b"n", 1))
    assert cell.value == int64(6)
    assert len(rpc.read_row(table_name, KEY)) == 3


def test_timestamp_is_now(rpc, table_name):
    before = time.time_ns() // 1_000_000 * 1000
    (cell,) = rpc.read_modify_write(table_name, KEY, increment(b"n", 1))
    assert before <= cell.timestamp <= time.time_ns() // 1000
    assert cell.timestamp % 1000 == 0


def test_timestamp_is_never_older_than_the_cell(rpc, table_name):
    """Else an increment of a cell from the future would not be seen."""
    future = (time.time_ns() // 1_000_000 + 3_600_000) * 1000
    rpc.mutate(table_name, KEY, set_cell("f", b"n", int64(1), future))
    (cell,) = rpc.read_modify_write(table_name, KEY, increment(b"n", 1))
    assert cell.timestamp >= future
    assert rpc.read_row(table_name, KEY)[0].value == int64(2)


@pytest.mark.parametrize(
    ("start", "amount", "expected"),
    [(2**63 - 1, 1, -(2**63)), (-(2**63), -1, 2**63 - 1), (-5, 3, -2)],
)
def test_increments_wrap(rpc, table_name, start, amount, expected):
    rpc.mutate(table_name, KEY, set_cell("f", b"n", int64(start), 1000))
    (cell,) = rpc.read_modify_write(table_name, KEY, increment(b"n", amount))
    assert cell.value == int64(expected)


@pytest.mark.parametrize("value", [b"", b"7", b"123456789"])
def test_increment_of_what_is_no_integer(rpc, table_name, value):
    rpc.mutate(table_name, KEY, set_cell("f", b"n", value, 1000))
    with fails_with({StatusCode.INVALID_ARGUMENT, StatusCode.FAILED_PRECONDITION}):
        rpc.read_modify_write(table_name, KEY, append(b"s", b"x"), increment(b"n", 1))
    assert len(rpc.read_row(table_name, KEY)) == 1


def test_unknown_family(rpc, table_name):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read_modify_write(table_name, KEY, append(b"s", b"x"), append(b"s", b"x", "nope"))
    assert rpc.read(table_name) == []


def test_no_rules(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.read_modify_write(table_name, KEY)


def test_rule_of_no_kind(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rule = types.ReadModifyWriteRule(family_name="f", column_qualifier=b"q")
        rpc.read_modify_write(table_name, KEY, rule)


def test_empty_key(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.read_modify_write(table_name, b"", increment(b"n", 1))


def test_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read_modify_write(f"{INSTANCE}/tables/none", KEY, increment(b"n", 1))


def test_concurrent_increments_all_count(table):
    def work(_):
        for _ in range(25):
            table.read_modify_write_row(KEY, IncrementRule("f", b"n", 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert int(table.read_row(KEY).cells[0]) == 200


def test_after_a_plain_write(table):
    table.mutate_row(KEY, SetCell("f", b"n", 40))
    row = table.read_modify_write_row(KEY, IncrementRule("f", b"n", 2))
    assert int(row.cells[0]) == 42
