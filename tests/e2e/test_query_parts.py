"""Aggregates of a table that is large enough to be read in parts, by several threads."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.cloud.bigtable_v2 import types
from grpc import RpcError, StatusCode
from harness.rpc import INSTANCE, set_cell
from harness.sql import begin, execute, explain, prepare, values_of

ROWS, VALUE = 400, 40_000  # 16 MB


@pytest.fixture(scope="module")
def numbers():
    return [(number * 7919) % 1000 - 300 for number in range(ROWS)]


@pytest.fixture
def large(rpc, make_table, numbers):
    """Rows of f:n, a number, and of a text; in four tablets. Gives the table's id."""
    name = make_table(splits=[b"row100", b"row150", b"row300"])
    for at in range(0, ROWS, 50):
        rpc.mutate_rows(name, [
            (b"row%03d" % row, [
                set_cell("f", b"n", numbers[row].to_bytes(8, "big", signed=True), 1000),
                set_cell("f", b"text", bytes([row % 251]) * VALUE, 1000),
            ])
            for row in range(at, at + 50)
        ])  # fmt: skip
    return name.rsplit("/", 1)[-1]


def plan_of(rpc, text):
    return "\n".join(value.string_value for value in values_of(execute(rpc, text)))


def test_it_is_read_in_parts_and_comes_to_the_same(rpc, large, numbers):
    text = (
        "SELECT COUNT(*) AS n, SUM(TO_INT64(f['n'])) AS s, AVG(TO_INT64(f['n'])) AS a, "
        f"MIN(_key) AS l, MAX(LENGTH(f['text'])) AS m FROM `{large}`"
    )
    plan = plan_of(rpc, explain(rpc, text, "plan"))
    (parts,) = re.findall(r"in (\d+) parts of the table, by several threads", plan)
    assert 2 <= int(parts) <= 64
    count, total, average, least, length = values_of(execute(rpc, prepare(rpc, text)))
    assert (count.int_value, total.int_value) == (ROWS, sum(numbers))
    assert average.float_value == pytest.approx(sum(numbers) / ROWS)
    assert (least.bytes_value, length.int_value) == (b"row000", VALUE)
    read = plan_of(rpc, explain(rpc, text, "analyze"))
    assert f"read: {ROWS} rows" in read
    gave = re.findall(r"gave: (\d+) rows in ([\d.]+) s", read)
    assert [int(rows) for rows, _ in gave] == [1, 1, ROWS], read  # PROJECT, AGGREGATE, SCAN
    assert all(float(seconds) > 0 for _, seconds in gave), read  # the threads' are counted


def test_groups_come_in_the_order_of_keys(rpc, large, numbers):
    text = f"SELECT TO_INT64(f['n']) AS k, ANY_VALUE(_key) AS r FROM `{large}` GROUP BY k"
    values = values_of(execute(rpc, prepare(rpc, text)))
    firsts = {}
    for row, number in enumerate(numbers):
        firsts.setdefault(number, b"row%03d" % row)
    found = [(k.int_value, r.bytes_value) for k, r in zip(values[::2], values[1::2], strict=True)]
    assert found == list(firsts.items())


def test_a_range_is_divided_too(rpc, large, numbers):
    text = (
        f"SELECT SUM(TO_INT64(f['n'])) AS s FROM `{large}` "
        "WHERE _key BETWEEN 'row010' AND 'row389'"
    )
    assert "parts of the table" in plan_of(rpc, explain(rpc, text, "plan"))
    (total,) = values_of(execute(rpc, prepare(rpc, text)))
    assert total.int_value == sum(numbers[10:390])


def test_the_first_row_that_fails_is_told_of(rpc, large):
    """Of rows 50 and 390 the first, though others may have read the last before."""
    text = (
        "SELECT SUM(CAST(CASE _key WHEN b'row050' THEN 'first' WHEN b'row390' THEN 'last' "
        f"ELSE '1' END AS INT64)) AS n FROM `{large}`"
    )
    for _ in range(5):
        with pytest.raises(RpcError) as error:
            execute(rpc, prepare(rpc, text))
        assert "first" in error.value.details()


def test_many_at_once_and_some_that_are_given_up(rpc, large, numbers):
    """Threads that help leave for others' turns; a query that ends waits for those that help."""
    text = f"SELECT SUM(TO_INT64(f['n'])) AS s, MAX(f['text']) AS m FROM `{large}`"
    prepared = prepare(rpc, text)

    def ask(number):
        stream = begin(rpc, prepared)
        if number % 3 == 0:
            stream.cancel()
            return None
        return values_of(list(stream))[0].int_value

    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(ask, range(36)))
    assert [answer for answer in answers if answer is not None] == [sum(numbers)] * 24
    assert values_of(execute(rpc, prepared))[0].int_value == sum(numbers)


def test_a_deadline_ends_it(rpc, large):
    prepared = prepare(
        rpc,
        "SELECT COUNTIF(REGEXP_CONTAINS(f['text'], b'(a|b|c)*d')) AS n "
        f"FROM `{large}`, UNNEST(GENERATE_ARRAY(1, 10000))",
    )
    request = types.ExecuteQueryRequest(
        instance_name=INSTANCE, prepared_query=prepared.prepared_query
    )
    with pytest.raises(RpcError) as error:
        list(rpc.data.execute_query(request, timeout=0.5))
    assert error.value.code() == StatusCode.DEADLINE_EXCEEDED
