"""UndeleteTable: a deleted table comes back with all that it had, for a while."""

import json
import urllib.request

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from google.iam.v1 import policy_pb2
from google.longrunning import operations_pb2 as lro
from google.protobuf import descriptor_pb2
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rpc import fails_with, set_cell

BINDING = policy_pb2.Binding(role="roles/bigtable.reader", members=["user:a@example.com"])
SCHEMA = descriptor_pb2.FileDescriptorSet(file=[{"name": "a.proto", "package": "a"}])


def belongings(admin, table):
    """What a table has beside its rows, as clients see it."""
    return [
        admin.tables.get_table(request={"name": table, "view": types.Table.View.FULL}),
        list(admin.tables.list_authorized_views(request={"parent": table, "view": 3})),
        list(admin.tables.list_schema_bundles(parent=table)),
        admin.tables.get_iam_policy(request={"resource": table}),
        admin.tables.get_iam_policy(request={"resource": f"{table}/authorizedViews/v"}),
    ]


def give_belongings(admin, table):
    view = {"subset_view": {"row_prefixes": [b"a"]}}
    admin.tables.create_authorized_view(
        parent=table, authorized_view_id="v", authorized_view=view
    ).result()
    bundle = {"proto_schema": {"proto_descriptors": SCHEMA.SerializeToString()}}
    admin.tables.create_schema_bundle(
        parent=table, schema_bundle_id="s", schema_bundle=bundle
    ).result()
    for name in (table, f"{table}/authorizedViews/v"):
        policy = policy_pb2.Policy(version=1, bindings=[BINDING])
        admin.tables.set_iam_policy(request={"resource": name, "policy": policy})
    return belongings(admin, table)


def write(rpc, table, keys, token=None):
    idempotency = token and {"token": token}
    for key in keys:
        rpc.mutate(table, key, set_cell("f", b"q", b"v of " + key), idempotency=idempotency)


def test_a_deleted_table_comes_back_with_all_that_it_had(fresh_server, administer, connect):
    server = fresh_server()
    admin, rpc = administer(server.host), connect(server.host)
    table = rpc.create_table("t", splits=[b"k"])
    had = give_belongings(admin, table)
    write(rpc, table, [b"a", b"z"])
    write(rpc, table, [b"m"], token=b"0123456789")
    rows = rpc.read(table)
    admin.tables.delete_table(name=table)
    with pytest.raises(exceptions.NotFound):
        admin.tables.get_table(name=table)
    assert not list(admin.tables.list_tables(parent=table.rsplit("/", 2)[0]))
    assert server.metric("deleted_tables") == 1
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(table)
    server.kill()
    server.check_data(f"{table} (deleted): 2 tablets, 3 rows")
    server.start()
    admin, rpc = administer(server.host), connect(server.host)
    operation = admin.tables.undelete_table(name=table)
    assert operation.result().name == table
    assert operation.metadata.name == table
    assert operation.metadata.start_time == operation.metadata.end_time
    assert belongings(admin, table) == had
    assert rpc.read(table) == rows
    write(rpc, table, [b"m"], token=b"0123456789")  # known: not written again
    assert rpc.read(table) == rows
    server.kill()
    server.check_data()
    server.start()
    admin, rpc = administer(server.host), connect(server.host)
    name = operation.operation.name
    assert admin.operations.GetOperation(lro.GetOperationRequest(name=name)).done
    assert belongings(admin, table) == had
    assert rpc.read(table) == rows


def test_the_name_is_free_and_the_newest_counts(admin, rpc, new_table_id):
    table_id = new_table_id()
    table = rpc.create_table(table_id)
    with pytest.raises(exceptions.AlreadyExists):
        admin.tables.undelete_table(name=table)
    write(rpc, table, [b"older"])
    give_belongings(admin, table)
    rpc.delete_table(table)
    assert rpc.create_table(table_id) == table
    assert not list(admin.tables.list_authorized_views(parent=table))
    with pytest.raises(exceptions.AlreadyExists):
        admin.tables.undelete_table(name=table)
    write(rpc, table, [b"newer"])
    rpc.delete_table(table)
    admin.tables.undelete_table(name=table).result()
    assert [key for key, _ in rpc.read(table)] == [b"newer"]
    assert not list(admin.tables.list_authorized_views(parent=table))
    rpc.delete_table(table)


def test_what_cannot_be_undeleted(admin, new_instance):
    instance = new_instance()
    with pytest.raises(exceptions.NotFound):
        admin.tables.undelete_table(name=f"{instance}/tables/never")
    with pytest.raises(exceptions.InvalidArgument):
        admin.tables.undelete_table(name=instance)
    table = admin.create_table(instance, "t")
    admin.tables.delete_table(name=table)
    admin.instances.delete_instance(name=instance)
    with pytest.raises(exceptions.NotFound):
        admin.tables.undelete_table(name=table)


def test_without_a_window_nothing_is_kept(fresh_server, administer, connect):
    server = fresh_server("--undelete-window", "0")
    table = connect(server.host).create_table("t")
    connect(server.host).delete_table(table)
    with pytest.raises(exceptions.NotFound):
        administer(server.host).tables.undelete_table(name=table)


def test_undelete_by_rest(server, rpc, new_table_id):
    table = rpc.create_table(new_table_id())
    write(rpc, table, [b"a"])
    rpc.delete_table(table)
    url = f"http://{server.host}/v2/{table}:undelete"
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE_SECONDS) as response:
        operation = json.load(response)
    assert operation["done"]
    assert operation["response"]["name"] == table
    assert operation["metadata"]["@type"].endswith(".UndeleteTableMetadata")
    assert [key for key, _ in rpc.read(table)] == [b"a"]
    rpc.delete_table(table)
