"""SampleRowKeys: where a client may cut a table into parts, and how large they are."""

import pytest
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import INSTANCE, fails_with, set_cell

SPLITS = [b"a\xff", b"b", b"c\0d"]


def test_initial_splits_come_back(table, rpc, make_table):
    name = make_table(splits=SPLITS)
    samples = rpc.sample_row_keys(name)
    assert [key for key, _ in samples] == [*SPLITS, b""]
    offsets = [offset for _, offset in samples]
    assert offsets == sorted(offsets)


def test_through_the_client(client, make_table):
    name = make_table(splits=SPLITS)
    with client.get_table("i", name.rsplit("/", 1)[-1]) as table:
        samples = table.sample_row_keys()
    assert [key for key, _ in samples] == [*SPLITS, b""]
    assert all(isinstance(offset, int) for _, offset in samples)


def test_splits_in_any_order_and_twice(rpc, make_table):
    name = make_table(splits=[b"m", b"c", b"m", b"x"])
    assert [key for key, _ in rpc.sample_row_keys(name)] == [b"c", b"m", b"x", b""]


def test_empty_table(rpc, table_name):
    assert rpc.sample_row_keys(table_name)[-1][0] == b""


def test_sizes_are_real(rpc, make_table):
    """10 MB in the first part, nothing in the second, and nothing flushed yet."""
    name = make_table(splits=[b"m", b"t"])
    for i in range(10):
        cells = [set_cell("f", b"%d" % j, b"%07d" % j * 15_000) for j in range(10)]
        rpc.mutate(name, b"a%02d" % i, *cells)
    sizes = dict(rpc.sample_row_keys(name))
    assert 5_000_000 < sizes[b"m"] < 20_000_000
    assert sizes[b"t"] - sizes[b"m"] < 1_000_000
    assert sizes[b""] >= sizes[b"t"]


def test_samples_are_in_order(rpc, make_table):
    name = make_table(splits=[b"%02d" % i for i in range(1, 50)])
    rows = [(b"%02d/%d" % (i, j), [set_cell("f", b"q", b"v")]) for i in range(50) for j in range(9)]
    rpc.mutate_rows(name, rows)
    samples = rpc.sample_row_keys(name)
    keys = [key for key, _ in samples[:-1]]
    assert keys == sorted(set(keys))
    assert samples[-1][0] == b""
    assert [offset for _, offset in samples] == sorted(offset for _, offset in samples)


def test_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.sample_row_keys(f"{INSTANCE}/tables/no-such-table")


@pytest.mark.parametrize(
    ("row_range", "keys"),
    [
        ({"start_key_closed": b"c", "end_key_open": b"e"}, [b"d", b"e"]),
        ({"start_key_open": b"c", "end_key_closed": b"e"}, [b"d", b"e"]),
        ({"start_key_closed": b"d", "end_key_open": b"f"}, [b"f"]),
        ({"end_key_closed": b"d"}, [b"b", b"d"]),
        ({"start_key_closed": b"e"}, [b"f", b""]),
        ({"start_key_closed": b"x", "end_key_open": b"z"}, [b"z"]),
        ({}, [b"b", b"d", b"f", b""]),
    ],
    ids=str,
)
def test_range(rpc, make_table, row_range, keys):
    """The end of the range that was asked for is always the last sample."""
    name = make_table(splits=[b"b", b"d", b"f"])
    request = types.SampleRowKeysRequest(table_name=name, row_range=row_range)
    stream = rpc.data.sample_row_keys(request, timeout=PATIENCE_SECONDS)
    assert [sample.row_key for sample in stream] == keys


def test_tables_are_listed_with_their_sizes(fresh_server, connect):
    """Insight.ListTableSizes: of each table what its samples come to; page by page."""
    server = fresh_server()
    rpc, rest = connect(server.host), Rest(server.host)
    for i, table in enumerate(["a", "b", "c"]):
        name = rpc.create_table(table, splits=SPLITS[:i])
        for j in range(i * 10):
            rpc.mutate(name, b"%02d" % j, set_cell("f", b"q", bytes(range(250)) * 400))
    rpc.create_table("other", instance=f"{INSTANCE}-2")
    path = f"/v1/{INSTANCE}/tableSizes"
    found = rest.call("GET", path)
    assert found.keys() == {"tables"}
    for each in found["tables"]:
        samples = rpc.sample_row_keys(f"{INSTANCE}/tables/{each['id']}")
        assert each["tablets"] == len(samples)
        assert int(each.get("bytes", 0)) == pytest.approx(samples[-1][1], rel=0.01)
    assert [each["id"] for each in found["tables"]] == ["a", "b", "c"]
    assert int(found["tables"][2]["bytes"]) > 1_000_000
    first = rest.call("GET", f"{path}?pageSize=2")
    assert [each["id"] for each in first["tables"]] == ["a", "b"]
    rest_of_them = rest.call("GET", f"{path}?pageSize=2&pageToken={first['nextPageToken']}")
    assert [each["id"] for each in rest_of_them["tables"]] == ["c"]
    assert "nextPageToken" not in rest_of_them
    assert rest.ask("GET", f"{path}?pageSize=-1")[0] == 400
