"""DropRowRange: by prefix, and the whole table."""

import time

import pytest
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, fails_with, set_cell

KEYS = [b"a", b"a\0", b"ab", b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\xff", b"\xff\xff\x01"]


@pytest.fixture
def filled(rpc, table_name):
    put(rpc, table_name, KEYS)
    return table_name


def put(rpc, name, keys):
    assert set(rpc.mutate_rows(name, [(key, [set_cell("f", b"q", b"v")]) for key in keys])) == {0}


def keys(rpc, name):
    return [key for key, _ in rpc.read(name)]


@pytest.mark.parametrize("prefix", [b"a", b"a\xff", b"ab", b"\xff", b"\xff\xff", b"nothing", b"b"])
def test_prefix(rpc, filled, prefix):
    rpc.drop_row_range(filled, prefix=prefix)
    assert keys(rpc, filled) == sorted(key for key in KEYS if not key.startswith(prefix))


def test_everything(rpc, filled):
    rpc.drop_row_range(filled, everything=True)
    assert keys(rpc, filled) == []
    put(rpc, filled, [b"new"])
    assert keys(rpc, filled) == [b"new"]


def test_through_the_classic_client(rpc, instance, filled):
    table = instance.table(filled.rsplit("/", 1)[-1])
    table.drop_by_prefix(b"a")
    assert keys(rpc, filled) == sorted(key for key in KEYS if not key.startswith(b"a"))
    table.truncate()
    assert keys(rpc, filled) == []


def test_rows_written_after_it_stay(rpc, filled):
    """With timestamps older than what was dropped."""
    rpc.drop_row_range(filled, prefix=b"a")
    rpc.mutate(filled, b"ab", set_cell("f", b"q", b"again", 1000))
    assert [cell.value for cell in rpc.read_row(filled, b"ab")] == [b"again"]


def test_over_tablets(rpc, make_table):
    name = make_table(splits=[b"b", b"d", b"d3", b"f"])
    every = [b"%c%d" % (letter, i) for letter in b"abcdefg" for i in range(6)]
    put(rpc, name, every)
    rpc.drop_row_range(name, prefix=b"d")
    assert keys(rpc, name) == [key for key in every if not key.startswith(b"d")]
    rpc.drop_row_range(name, everything=True)
    assert keys(rpc, name) == []
    assert [key for key, _ in rpc.sample_row_keys(name)] == [b"b", b"d", b"d3", b"f", b""]


def test_many_rows(rpc, table_name):
    put(rpc, table_name, [b"%s/%05d" % (tenant, i) for tenant in (b"x", b"y") for i in range(5000)])
    rpc.drop_row_range(table_name, prefix=b"x/")
    assert len(rpc.read(table_name)) == 5_000


def test_space_comes_back_in_the_background(rpc, table_name):
    """Of packed and of spilled cells: what a sample says of sizes goes down to what is left."""
    value = bytes(range(256)) * 4

    def size():
        return rpc.sample_row_keys(table_name)[-1][1]

    for first in range(0, 10_000, 2_000):
        batch = [(b"x/%05d" % i, [set_cell("f", b"q", value)]) for i in range(first, first + 2_000)]
        assert set(rpc.mutate_rows(table_name, batch)) == {0}
    for qualifier in (b"1", b"2", b"3"):
        rpc.mutate(table_name, b"x/large", set_cell("f", qualifier, value * 1024))
    rpc.mutate(table_name, b"y", set_cell("f", b"q", value))
    assert size() > 8 << 20
    rpc.drop_row_range(table_name, prefix=b"x/")
    until = time.monotonic() + PATIENCE_SECONDS
    while size() > 1 << 20 and time.monotonic() < until:
        pass
    assert size() <= 1 << 20
    assert keys(rpc, table_name) == [b"y"]


def test_neither(rpc, filled):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.drop_row_range(filled)
    assert len(keys(rpc, filled)) == len(KEYS)


def test_empty_prefix(rpc, filled):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.drop_row_range(filled, prefix=b"")
    assert len(keys(rpc, filled)) == len(KEYS)


def test_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.drop_row_range(f"{INSTANCE}/tables/no-such-table", prefix=b"a")
