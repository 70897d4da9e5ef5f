"""C9 of docs/reference/conformance.md: ReadModifyWriteRow."""

import time

import pytest
from google.api_core import exceptions
from google.cloud.bigtable.data import SetCell
from google.cloud.bigtable.data.read_modify_write_rules import AppendValueRule, IncrementRule
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import fails_with, set_cell

KEY = b"k"
FAR = 4_000_000_000_000_000  # a time in the future


def int64(number):
    return number.to_bytes(8, "big", signed=True)


def values(row):
    return [(cell.family, cell.qualifier, cell.value) for cell in row]


def increment(amount):
    return types.ReadModifyWriteRule(
        family_name="f", column_qualifier=b"n", increment_amount=amount
    )


def test_c9_1_only_what_was_modified(table):
    """Of each column its newest cell, which is the new one."""
    table.mutate_row(KEY, [SetCell("f", b"a", b"1", 1000), SetCell("f", b"other", b"1", 1000)])
    rules = [AppendValueRule("f", b"a", b"2"), AppendValueRule("g", b"b", b"new")]
    row = table.read_modify_write_row(KEY, rules)
    assert values(row) == [("f", b"a", b"12"), ("g", b"b", b"new")]
    assert len(table.read_row(KEY).cells) == 4


def test_c9_2_timestamp_is_now(table):
    table.mutate_row(KEY, SetCell("f", b"q", b"old", 1000))
    before = time.time_ns() // 1_000_000 * 1000
    (cell,) = table.read_modify_write_row(KEY, AppendValueRule("f", b"q", b"!"))
    assert before <= cell.timestamp_micros <= time.time_ns() // 1000
    assert cell.timestamp_micros % 1000 == 0


def test_c9_2_or_that_of_a_newer_cell(table):
    table.mutate_row(KEY, SetCell("f", b"q", b"old", FAR))
    (cell,) = table.read_modify_write_row(KEY, AppendValueRule("f", b"q", b"!"))
    assert (cell.timestamp_micros, cell.value) == (FAR, b"old!")
    assert values(table.read_row(KEY)) == [("f", b"q", b"old!")]


def test_c9_3_rules_on_one_cell_build_on_each_other(table):
    rules = [AppendValueRule("f", b"q", b"%d" % number) for number in range(5)]
    assert values(table.read_modify_write_row(KEY, rules)) == [("f", b"q", b"01234")]
    counts = [IncrementRule("f", b"n", 5), IncrementRule("f", b"n", -2)]
    assert values(table.read_modify_write_row(KEY, counts)) == [("f", b"n", int64(3))]


def test_c9_4_what_is_not_there_counts_as_empty(table):
    rules = [AppendValueRule("f", b"q", b"first"), IncrementRule("f", b"n", 7)]
    assert values(table.read_modify_write_row(KEY, rules)) == [
        ("f", b"n", int64(7)), ("f", b"q", b"first"),
    ]  # fmt: skip


def test_c9_5_integers_are_8_bytes_big_endian(table):
    table.mutate_row(KEY, SetCell("f", b"n", int64(-(2**40)), 1000))
    row = table.read_modify_write_row(KEY, IncrementRule("f", b"n", 1))
    assert values(row) == [("f", b"n", int64(1 - 2**40))]


@pytest.mark.parametrize("value", [b"", b"1234567", b"123456789"])
def test_c9_5_nothing_else_can_be_incremented(table, value):
    """And then nothing of the request happens."""
    table.mutate_row(KEY, SetCell("f", b"n", value, 1000))
    with pytest.raises((exceptions.FailedPrecondition, exceptions.InvalidArgument)):
        table.read_modify_write_row(
            KEY, [AppendValueRule("f", b"q", b"x"), IncrementRule("f", b"n", 1)]
        )
    assert values(table.read_row(KEY)) == [("f", b"n", value)]


def test_c9_6_overflow_wraps(rpc, table_name):
    rpc.mutate(table_name, KEY, set_cell("f", b"n", int64(2**63 - 1), 1000))
    (cell,) = rpc.read_modify_write(table_name, KEY, increment(1))
    assert cell.value == int64(-(2**63))
    (cell,) = rpc.read_modify_write(table_name, KEY, increment(-1))
    assert cell.value == int64(2**63 - 1)


def test_c9_7_aggregate_families_are_refused(rpc, table_name):
    int64_type = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
    family = admin_types.ColumnFamily(
        value_type={"aggregate_type": {"input_type": int64_type, "sum": {}}}
    )
    rpc.modify_families(table_name, {"id": "sum", "create": family})
    on_sum = types.ReadModifyWriteRule(
        family_name="sum", column_qualifier=b"n", increment_amount=1
    )
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.read_modify_write(table_name, KEY, on_sum)
