"""C8 of docs/reference/conformance.md: SampleRowKeys."""

import pytest
from harness.rpc import set_cell

SPLITS = [b"b", b"m\x00", b"t"]


@pytest.fixture
def split_table(rpc, make_table):
    name = make_table(splits=SPLITS)
    rows = [(b"%c" % byte, [set_cell("f", b"q", b"x" * 1000)]) for byte in range(97, 123)]
    rpc.mutate_rows(name, rows)
    return name


def test_c8_1_initial_splits_come_back(client, split_table):
    with client.get_table("i", split_table.rsplit("/", 1)[-1]) as table:
        samples = table.sample_row_keys()
    assert [key for key, _ in samples] == [*SPLITS, b""]


def test_c8_2_offsets_do_not_fall(rpc, split_table):
    offsets = [offset for _, offset in rpc.sample_row_keys(split_table)]
    assert offsets == sorted(offsets)
    assert offsets[0] >= 0


def test_c8_3_there_is_always_a_sample(rpc, table_name):
    assert len(rpc.sample_row_keys(table_name)) == 1


def test_c8_4_the_last_sample_is_the_end(rpc, table_name, split_table):
    for name in (table_name, split_table):
        keys = [key for key, _ in rpc.sample_row_keys(name)]
        assert keys[-1] == b""
        assert b"" not in keys[:-1]
        assert keys[:-1] == sorted(set(keys[:-1]))
