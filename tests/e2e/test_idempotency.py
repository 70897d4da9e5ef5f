"""Idempotency tokens: an addition that is sent again, because nobody knows whether it arrived, is
added once."""

import datetime
import itertools
import os

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with, set_cell

NUMBERS = itertools.count(1)
PROMISED = datetime.timedelta(minutes=15)


def new_token():
    return b"%d-%07d" % (os.getpid(), next(NUMBERS))


def add_one():
    return types.Mutation(
        add_to_cell={
            "family_name": "sum",
            "column_qualifier": {"raw_value": b"q"},
            "timestamp": {"raw_timestamp_micros": 0},
            "input": {"int_value": 1},
        }
    )


def sums_table(rpc, table_id):
    sum_type = admin_types.Type(
        aggregate_type={"input_type": {"int64_type": {}}, "sum": {}}
    )
    families = {"sum": admin_types.ColumnFamily(value_type=sum_type), "f": {}}
    return rpc.create_table(table_id, (), column_families=families)


@pytest.fixture
def sums(rpc, new_table_id):
    name = sums_table(rpc, new_table_id())
    yield name
    rpc.delete_table(name)


def add(rpc, table, key=b"k", **idempotency):
    rpc.mutate(table, key, add_one(), idempotency=idempotency or None)


def sum_of(rpc, table, key=b"k"):
    cells = rpc.read_row(table, key)
    return int.from_bytes(cells[0].value, "big") if cells else 0


def entries(*rows):
    return [
        {"row_key": key, "mutations": [add_one()], "idempotency": {"token": token}}
        for key, token in rows
    ]


def mutate_rows(rpc, table, rows):
    request = types.MutateRowsRequest(table_name=table, entries=rows)
    return {
        entry.index: entry.status.code
        for response in rpc.data.mutate_rows(request, timeout=PATIENCE_SECONDS)
        for entry in response.entries
    }


def test_an_addition_that_comes_again_adds_once(rpc, sums):
    token = new_token()
    for _ in range(3):
        add(rpc, sums, token=token)
    assert sum_of(rpc, sums) == 1


def test_additions_without_a_token_all_add(rpc, sums):
    add(rpc, sums)
    add(rpc, sums)
    assert sum_of(rpc, sums) == 2


def test_other_tokens_rows_and_tables_are_other_writes(rpc, sums, new_table_id):
    token = new_token()
    add(rpc, sums, token=token)
    add(rpc, sums, token=new_token())
    add(rpc, sums, b"l", token=token)
    other = sums_table(rpc, new_table_id())
    add(rpc, other, token=token)
    assert (sum_of(rpc, sums), sum_of(rpc, sums, b"l"), sum_of(rpc, other)) == (2, 1, 1)
    rpc.delete_table(other)


def test_entries_of_mutate_rows(rpc, sums):
    """The same request twice, within which one entry repeats another, and after a MutateRow."""
    first, second = new_token(), new_token()
    add(rpc, sums, b"a", token=first)
    rows = entries((b"a", first), (b"b", second), (b"b", second), (b"b", first))
    assert mutate_rows(rpc, sums, rows) == dict.fromkeys(range(4), 0)
    assert mutate_rows(rpc, sums, rows) == dict.fromkeys(range(4), 0)
    assert (sum_of(rpc, sums, b"a"), sum_of(rpc, sums, b"b")) == (1, 2)


def test_a_repetition_changes_nothing_at_all(rpc, sums):
    """Not even what setting it twice would not hurt: the request was done."""
    token = {"token": new_token()}
    rpc.mutate(sums, b"k", set_cell("f", b"q", b"1", 0), idempotency=token)
    rpc.mutate(sums, b"k", set_cell("f", b"q", b"2", 0))
    rpc.mutate(sums, b"k", set_cell("f", b"q", b"1", 0), idempotency=token)
    assert [cell.value for cell in rpc.read_row(sums, b"k")] == [b"2"]


def test_a_write_that_was_refused_may_be_tried_again(rpc, sums):
    token = new_token()
    unknown = set_cell("no-such-family", b"q", b"v")
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(sums, b"k", add_one(), unknown, idempotency={"token": token})
    add(rpc, sums, token=token)
    assert sum_of(rpc, sums) == 1


@pytest.mark.parametrize("token", [b"", b"1234567"])
def test_a_token_has_eight_bytes(rpc, sums, token):
    with fails_with(StatusCode.INVALID_ARGUMENT, "at least 8"):
        rpc.mutate(sums, b"k", add_one(), idempotency={"token": token})
    with fails_with(StatusCode.INVALID_ARGUMENT, "at least 8"):
        mutate_rows(rpc, sums, entries((b"k", new_token()), (b"k", token)))
    assert sum_of(rpc, sums) == 0


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def test_what_began_too_long_ago_is_refused(rpc, sums):
    token = new_token()
    long_ago = now() - PROMISED - datetime.timedelta(seconds=5)
    with fails_with(StatusCode.FAILED_PRECONDITION, "start_time"):
        add(rpc, sums, token=token, start_time=long_ago)
    rows = entries((b"k", token), (b"l", token))
    rows[0]["idempotency"]["start_time"] = long_ago
    assert mutate_rows(rpc, sums, rows) == {0: StatusCode.FAILED_PRECONDITION.value[0], 1: 0}
    assert (sum_of(rpc, sums), sum_of(rpc, sums, b"l")) == (0, 1)


def test_what_began_lately_or_says_nothing_is_taken(rpc, sums):
    a_minute_less = now() - PROMISED + datetime.timedelta(minutes=1)
    in_an_hour = now() + datetime.timedelta(hours=1)
    for start_time in (a_minute_less, in_an_hour, types.Idempotency().start_time):
        add(rpc, sums, token=new_token(), start_time=start_time)
    assert sum_of(rpc, sums) == 3


def test_a_kill_forgets_no_token(fresh_server, connect):
    server = fresh_server()
    rpc = connect(server.host)
    table = sums_table(rpc, "t")
    token, rows = new_token(), entries(*((b"%03d" % i, new_token()) for i in range(200)))
    add(rpc, table, token=token)
    assert set(mutate_rows(rpc, table, rows).values()) == {0}
    assert server.metric("idempotency_tokens") == 201
    for _ in range(2):
        server.kill()
        rpc = connect(server.start().host)
        assert server.metric("idempotency_tokens") == 201
        add(rpc, table, token=token)
        assert set(mutate_rows(rpc, table, rows).values()) == {0}
        assert sum_of(rpc, table) == 1
        assert [sum_of(rpc, table, b"%03d" % i) for i in range(200)] == [1] * 200
    server.stop()
    server.check_data("201 idempotency tokens")
