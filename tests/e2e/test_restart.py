"""What was acknowledged is there after the server was killed, and after it was stopped."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from grpc import StatusCode
from harness.rpc import INSTANCE, Cell, delete_row, fails_with, set_cell

FAMILIES = {"f": admin_types.GcRule(max_num_versions=3), "g": None}


def kill(server):
    server.kill()
    server.start()


def stop(server):
    server.restart()


@pytest.fixture(params=[kill, stop], ids=["killed", "stopped"])
def again(request, connect):
    """A function that ends the server one way or the other, starts it again and connects to it."""

    def run(server):
        request.param(server)
        return connect(server.host)

    return run


def test_tables_and_their_schema(fresh_server, connect, again):
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("kept", FAMILIES, splits=[b"m"])
    rpc.delete_table(rpc.create_table("deleted"))
    rpc.modify_families(name, {"id": "g", "drop": True}, {"id": "h", "create": {}})
    rpc = again(server)
    table = rpc.get_table(name)
    assert sorted(table.column_families) == ["f", "h"]
    assert table.column_families["f"].gc_rule == FAMILIES["f"]
    assert [key for key, _ in rpc.sample_row_keys(name)] == [b"m", b""]
    with fails_with(StatusCode.NOT_FOUND):
        rpc.get_table(f"{INSTANCE}/tables/deleted")


def test_every_kind_of_write(fresh_server, connect, again):
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t", FAMILIES)
    rpc.mutate(name, b"set", set_cell("f", b"q", b"v", 1000))
    rpc.mutate_rows(name, [(b"bulk%d" % i, [set_cell("f", b"q", b"v", 1000)]) for i in range(3)])
    rpc.mutate(name, b"deleted", set_cell("f", b"q", b"v", 1000))
    rpc.mutate(name, b"deleted", delete_row())
    rule = types.ReadModifyWriteRule(family_name="f", column_qualifier=b"n", increment_amount=7)
    (counter,) = rpc.read_modify_write(name, b"counter", rule)
    rpc.check_and_mutate(name, b"checked", false=[set_cell("f", b"q", b"v", 1000)])
    rpc.mutate(name, b"dropped/1", set_cell("f", b"q", b"v", 1000))
    rpc.drop_row_range(name, prefix=b"dropped/")
    rpc = again(server)
    one = [Cell("f", b"q", 1000, b"v")]
    assert rpc.read(name) == [
        (b"bulk0", one),
        (b"bulk1", one),
        (b"bulk2", one),
        (b"checked", one),
        (b"counter", [counter]),
        (b"set", one),
    ]


def test_a_new_table_of_a_deleted_name_is_empty_after_a_restart(fresh_server, connect, again):
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t")
    rpc.mutate(name, b"k", set_cell("f", b"q", b"old"))
    rpc.delete_table(name)
    rpc.create_table("t")
    rpc = again(server)
    assert rpc.read(name) == []


def test_writes_after_a_restart_win(fresh_server, connect, again):
    """Versions go on above those of before, whatever the clock says."""
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t")
    for generation in range(4):
        rpc.mutate(name, b"k", set_cell("f", b"q", b"%d" % generation, 1000))
        rpc = again(server)
        assert rpc.read_row(name, b"k") == [Cell("f", b"q", 1000, b"%d" % generation)]
        rpc.mutate(name, b"k", delete_row())
        assert rpc.read_row(name, b"k") == []


def test_acknowledged_writes_of_many_clients_survive_a_kill(fresh_server, connect):
    """Eight writers go on until the server dies under them; each counts what was acknowledged."""
    server = fresh_server()
    rpc = connect(server.host)
    name = rpc.create_table("t", splits=[b"2", b"4", b"6"])

    def write(writer):
        stubs = connect(server.host)
        acknowledged = 0
        try:
            while acknowledged < 100_000:
                key = b"%d/%06d" % (writer, acknowledged)
                stubs.mutate(name, key, set_cell("f", b"q", key, 1000))
                acknowledged += 1
                if acknowledged == 200:
                    reached.append(writer)
        except grpc.RpcError:
            return acknowledged

    reached = []
    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write, writer) for writer in range(8)]
        while not reached:
            rpc.read(name, rows_limit=1)
        server.kill()
        counts = [writer.result() for writer in writers]
    server.start()
    rows = dict(connect(server.host).read(name))
    for writer, count in enumerate(counts):
        for number in range(count):
            key = b"%d/%06d" % (writer, number)
            assert rows.get(key) == [Cell("f", b"q", 1000, key)], f"{key} was acknowledged"
