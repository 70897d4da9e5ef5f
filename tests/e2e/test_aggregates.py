"""Aggregate families: cells that are folded from what was added to them.

The answers to what does not fit are those that production was recorded to give."""

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.counts import merge
from harness.rpc import ADMIN_SECONDS, INSTANCE, Cell, delete_row, fails_with, set_cell

KEY = b"k"
INVALID = StatusCode.INVALID_ARGUMENT.value[0]


def int64(number):
    return number.to_bytes(8, "big", signed=True)


def aggregate(kind):
    int64_type = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
    return admin_types.ColumnFamily(
        value_type={"aggregate_type": {"input_type": int64_type, kind: {}}}
    )


@pytest.fixture
def sums(rpc, new_table_id):
    """A table with the families sum, min, max, and the plain family f."""
    families = {
        "sum": aggregate("sum"),
        "min": aggregate("min_"),  # as the package calls what Python reserves
        "max": aggregate("max_"),
        "f": admin_types.ColumnFamily(),
    }
    request = admin_types.CreateTableRequest(
        parent=INSTANCE, table_id=new_table_id(), table={"column_families": families}
    )
    name = rpc.admin.create_table(request, timeout=ADMIN_SECONDS).name
    yield name
    rpc.delete_table(name)


def add(family, number, qualifier=b"q", timestamp=1000):
    return types.Mutation(
        add_to_cell={
            "family_name": family,
            "column_qualifier": {"raw_value": qualifier},
            "timestamp": {"raw_timestamp_micros": timestamp},
            "input": {} if number is None else {"int_value": number},
        }
    )


def value(rpc, name, family):
    (cell,) = [cell for cell in rpc.read_row(name, KEY) if cell.family == family]
    return int.from_bytes(cell.value, "big", signed=True)


@pytest.mark.parametrize(
    ("family", "numbers", "expected"),
    [
        ("sum", [5], 5),
        ("sum", [5, -7, 3], 1),
        ("sum", [2**63 - 1, 1], -(2**63)),
        ("min", [5, -7, 3], -7),
        ("max", [5, -7, 3], 5),
        ("max", [-5, -7], -5),
    ],
)
def test_folding(rpc, sums, family, numbers, expected):
    for number in numbers:
        rpc.mutate(sums, KEY, add(family, number))
    assert value(rpc, sums, family) == expected


def test_several_adds_in_one_request(rpc, sums):
    rpc.mutate(sums, KEY, *(add("sum", number) for number in range(100)))
    assert value(rpc, sums, "sum") == sum(range(100))


def test_columns_and_timestamps_are_cells_of_their_own(rpc, sums):
    places = [(b"a", 1000), (b"a", 2000), (b"b", 1000)]
    for qualifier, timestamp in places * 3:
        rpc.mutate(sums, KEY, add("sum", 1, qualifier, timestamp))
    assert rpc.read_row(sums, KEY) == [
        Cell("sum", b"a", 2000, int64(3)),
        Cell("sum", b"a", 1000, int64(3)),
        Cell("sum", b"b", 1000, int64(3)),
    ]


def test_nothing_added_is_zero_added(rpc, sums):
    rpc.mutate(sums, KEY, add("sum", None))
    assert value(rpc, sums, "sum") == 0
    rpc.mutate(sums, KEY, add("min", 456))
    rpc.mutate(sums, KEY, add("min", None))
    assert value(rpc, sums, "min") == 0


def test_a_deletion_starts_anew(rpc, sums):
    rpc.mutate(sums, KEY, add("sum", 5))
    rpc.mutate(sums, KEY, delete_row())
    assert rpc.read(sums) == []
    rpc.mutate(sums, KEY, add("sum", 3))
    assert value(rpc, sums, "sum") == 3
    rpc.mutate(sums, KEY, add("sum", 100), delete_row(), add("sum", 1))
    assert value(rpc, sums, "sum") == 1


def test_merging_states(rpc, sums):
    rpc.mutate(sums, KEY, merge("sum", int64(7)))
    rpc.mutate(sums, KEY, add("sum", 1))
    rpc.mutate(sums, KEY, merge("sum", int64(-3)))
    assert value(rpc, sums, "sum") == 5


@pytest.mark.parametrize("state", [None, b""])
def test_merging_nothing_changes_nothing(rpc, sums, state):
    rpc.mutate(sums, KEY, merge("sum", state))
    assert rpc.read(sums) == []
    rpc.mutate(sums, KEY, add("sum", 2))
    rpc.mutate(sums, KEY, merge("sum", state))
    assert value(rpc, sums, "sum") == 2


MISFITS = {
    "a cell set in an aggregate": set_cell("sum", b"q", int64(1), 1000),
    "an add to a plain family": add("f", 1),
    "a state of 3 bytes": merge("sum", b"abc"),
    "a state of 9 bytes": merge("sum", b"abcdefghi"),
}


@pytest.mark.parametrize("misfit", MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_the_type(rpc, sums, misfit):
    words = f"Error while mutating the row 'k' ({sums}) : Column family type mismatch"
    with fails_with(StatusCode.INVALID_ARGUMENT, words):
        rpc.mutate(sums, KEY, misfit)


@pytest.mark.parametrize("misfit", MISFITS.values(), ids=MISFITS)
def test_one_misfit_fails_every_entry(rpc, sums, misfit):
    fine = [set_cell("f", b"q", b"v")]
    codes = rpc.mutate_rows(sums, [(b"a", fine), (b"b", [misfit]), (b"c", fine)])
    assert codes == [INVALID] * 3
    assert rpc.read(sums) == []


def wrong_kinds():
    add_bytes, merge_number = add("sum", 1), merge("sum", None)
    add_bytes.add_to_cell.input = {"bytes_value": int64(1)}
    merge_number.merge_to_cell.input = {"int_value": 1}
    return {"an add of bytes": add_bytes, "a merge of a number": merge_number}


@pytest.mark.parametrize("wrong", wrong_kinds().values(), ids=wrong_kinds())
def test_input_of_the_wrong_kind_fails_the_call(rpc, sums, wrong):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(sums, KEY, wrong)
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate_rows(sums, [(b"a", [set_cell("f", b"q", b"v")]), (b"b", [wrong])])
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.check_and_mutate(sums, KEY, true=[wrong], false=[set_cell("f", b"q", b"v")])
    assert rpc.read(sums) == []


def test_types_are_looked_at_in_the_branch_taken_only(rpc, sums):
    misfit = MISFITS["an add to a plain family"]
    assert rpc.check_and_mutate(sums, KEY, true=[misfit], false=[add("sum", 1)]) is False
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.check_and_mutate(sums, KEY, true=[misfit], false=[add("sum", 1)])
    assert value(rpc, sums, "sum") == 1


@pytest.mark.parametrize("timestamp", [-1, 1001])
def test_timestamps_of_adds_are_given(rpc, sums, timestamp):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.mutate(sums, KEY, add("sum", 1, timestamp=timestamp))


def test_read_modify_write_is_refused(rpc, sums):
    rule = types.ReadModifyWriteRule(
        family_name="sum", column_qualifier=b"q", increment_amount=1
    )
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.read_modify_write(sums, KEY, rule)
