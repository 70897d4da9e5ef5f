"""Tables of many tablets look like tables of one."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from google.cloud.bigtable.data import ReadRowsQuery, RowMutationEntry, RowRange, SetCell
from google.cloud.bigtable.data.read_modify_write_rules import IncrementRule
from harness.rpc import delete_row, set_cell

SPLITS = [b"%02d" % i for i in range(5, 100, 5)]
KEYS = [b"%02d/%d" % (i, j) for i in range(100) for j in range(3)]


@pytest.fixture
def name(make_table):
    return make_table(splits=SPLITS)


@pytest.fixture
def filled(rpc, name):
    codes = rpc.mutate_rows(name, [(key, [set_cell("f", b"q", key, 1000)]) for key in KEYS])
    assert set(codes) == {0}
    return name


@pytest.fixture
def opened(client, filled):
    with client.get_table("i", filled.rsplit("/", 1)[-1]) as table:
        yield table


def keys_of(rows):
    return [key for key, _ in rows]


def test_scan_crosses_tablets_in_order(rpc, filled):
    assert keys_of(rpc.read(filled)) == KEYS
    assert keys_of(rpc.read(filled, reversed=True)) == KEYS[::-1]


@pytest.mark.parametrize("limit", [1, 14, 15, 16, 150])
def test_limit_crosses_tablets(rpc, filled, limit):
    assert keys_of(rpc.read(filled, rows_limit=limit)) == KEYS[:limit]
    reverse = rpc.read(filled, rows_limit=limit, reversed=True)
    assert keys_of(reverse) == KEYS[::-1][:limit]


@pytest.mark.parametrize(
    ("start", "end"),
    [(b"04", b"06"), (b"05", b"10"), (b"05/0", b"95/2"), (b"", b"05"), (b"95", b"")],
)
def test_ranges_that_touch_the_borders(rpc, filled, start, end):
    row_range = {"start_key_closed": start, "end_key_open": end}
    expected = [key for key in KEYS if start <= key and (not end or key < end)]
    assert keys_of(rpc.read(filled, rows={"row_ranges": [row_range]})) == expected
    reverse = rpc.read(filled, rows={"row_ranges": [row_range]}, reversed=True)
    assert keys_of(reverse) == expected[::-1]


def test_keys_of_many_tablets(rpc, filled):
    wanted = KEYS[::7]
    assert keys_of(rpc.read(filled, rows={"row_keys": wanted[::-1]})) == wanted


def test_a_row_whose_key_is_the_split(rpc, filled):
    rpc.mutate(filled, b"50", set_cell("f", b"q", b"border", 1000))
    assert rpc.read_row(filled, b"50")[0].value == b"border"
    below = {"start_key_closed": b"49/2", "end_key_open": b"50"}
    assert keys_of(rpc.read(filled, rows={"row_ranges": [below]})) == [b"49/2"]
    around = {"start_key_closed": b"49/2", "end_key_closed": b"50/0"}
    assert keys_of(rpc.read(filled, rows={"row_ranges": [around]})) == [b"49/2", b"50", b"50/0"]


def test_requests_to_single_rows(rpc, opened, filled):
    for key in KEYS[::30]:
        assert opened.check_and_mutate_row(key, None, true_case_mutations=SetCell("f", b"c", b"v"))
        row = opened.read_modify_write_row(key, IncrementRule("f", b"n", 1))
        assert int(row.cells[0]) == 1
        assert len(rpc.read_row(filled, key)) == 3


def test_sharded_read(opened):
    samples = opened.sample_row_keys()
    assert [key for key, _ in samples] == [*SPLITS, b""]
    shards = ReadRowsQuery(row_ranges=RowRange(b"12", b"77")).shard(samples)
    rows = opened.read_rows_sharded(shards)
    assert [row.row_key for row in rows] == [key for key in KEYS if b"12" <= key < b"77"]


def test_batches_from_many_threads(rpc, opened, filled):
    def write(number):
        entries = [RowMutationEntry(key, SetCell("g", b"%d" % number, b"v", 1000)) for key in KEYS]
        opened.bulk_mutate_rows(entries)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    rows = rpc.read(filled)
    assert keys_of(rows) == KEYS
    assert {len(cells) for _, cells in rows} == {9}


def test_a_scan_sees_no_row_twice_while_rows_come_and_go(rpc, filled):
    """Rows that nobody touches are all there; no row comes twice (the decoder checks the order)."""
    stable = KEYS[::2]
    moving = KEYS[1::2]

    def churn(_):
        for _ in range(3):
            rpc.mutate_rows(filled, [(key, [delete_row()]) for key in moving])
            rpc.mutate_rows(filled, [(key, [set_cell("f", b"q", b"v")]) for key in moving])

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(churn, None) for _ in range(2)]
        for _ in range(10):
            assert set(stable) <= set(keys_of(rpc.read(filled)))
        for each in running:
            each.result()
