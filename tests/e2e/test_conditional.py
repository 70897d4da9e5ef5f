"""CheckAndMutateRow."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from google.api_core import exceptions
from google.cloud.bigtable.data import DeleteAllFromRow, SetCell
from google.cloud.bigtable.data.row_filters import (
    ColumnQualifierRegexFilter,
    RowFilterChain,
    ValueRegexFilter,
)
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import INSTANCE, Cell, fails_with, set_cell

KEY = b"k"
YES = SetCell("f", b"yes", b"", 1000)
NO = SetCell("f", b"no", b"", 1000)


def qualifiers(row):
    return [cell.qualifier for cell in row] if row else []


def check(table, predicate=None, true=None, false=None):
    return table.check_and_mutate_row(
        KEY, predicate, true_case_mutations=true, false_case_mutations=false
    )


def test_without_a_predicate_any_cell_will_do(table):
    assert check(table, true=YES, false=NO) is False
    assert qualifiers(table.read_row(KEY)) == [b"no"]
    assert check(table, true=YES, false=NO) is True
    assert qualifiers(table.read_row(KEY)) == [b"no", b"yes"]


def test_a_deleted_row_has_no_cell(table):
    table.mutate_row(KEY, YES)
    table.mutate_row(KEY, DeleteAllFromRow())
    assert check(table, true=YES, false=NO) is False


@pytest.mark.parametrize(("pattern", "matches"), [(b"v1", True), (b"v", False), (b"v.", True)])
def test_predicate(table, pattern, matches):
    table.mutate_row(KEY, SetCell("f", b"q", b"v1", 1000))
    assert check(table, ValueRegexFilter(pattern), YES, NO) is matches
    assert qualifiers(table.read_row(KEY)) == ([b"q", b"yes"] if matches else [b"no", b"q"])


def test_predicate_of_several_filters(table):
    table.mutate_row(KEY, [SetCell("f", b"a", b"1"), SetCell("f", b"b", b"2")])
    mixed = RowFilterChain([ColumnQualifierRegexFilter(b"a"), ValueRegexFilter(b"2")])
    assert check(table, mixed, YES, NO) is False


def test_the_branch_without_mutations_does_nothing(table):
    assert check(table, true=YES) is False
    assert table.read_row(KEY) is None
    table.mutate_row(KEY, SetCell("f", b"q", b"v"))
    assert check(table, false=NO) is True
    assert qualifiers(table.read_row(KEY)) == [b"q"]


def test_no_mutations_at_all(table):
    with pytest.raises(exceptions.InvalidArgument, match="No mutations provided"):
        check(table)


def test_mutations_apply_in_order(table):
    table.mutate_row(KEY, SetCell("f", b"q", b"v"))
    assert check(table, true=[DeleteAllFromRow(), YES]) is True
    assert qualifiers(table.read_row(KEY)) == [b"yes"]


def test_the_branch_taken_is_all_or_nothing(rpc, table_name):
    bad = [set_cell("f", b"q", b"v"), set_cell("nope", b"q", b"v")]
    with fails_with(StatusCode.NOT_FOUND):
        rpc.check_and_mutate(table_name, KEY, false=bad)
    assert rpc.read(table_name) == []


def test_bad_filter(rpc, table_name):
    bad = types.RowFilter(value_regex_filter=b"(")
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.check_and_mutate(table_name, KEY, bad, true=[set_cell("f", b"q", b"v")])


def test_empty_key(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.check_and_mutate(table_name, b"", true=[set_cell("f", b"q", b"v")])


def test_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.check_and_mutate(f"{INSTANCE}/tables/none", KEY, true=[set_cell("f", b"q", b"v")])


def test_only_one_of_many_takes_the_lock(table, rpc, table_name):
    """Sixteen clients ask at once for a row that only the first may make."""

    def take(owner):
        return not check(table, false=SetCell("f", b"owner", b"%d" % owner, 1000))

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(take, range(16)))
    assert won.count(True) == 1
    winner = b"%d" % won.index(True)
    assert rpc.read_row(table_name, KEY) == [Cell("f", b"owner", 1000, winner)]
