"""Google's admin clients, over each of their transports: every RPC that they expose is driven, and
succeeds. What the calls mean in detail is for the tests of each resource; these are about the way
there and back: paths, queries and bodies over REST, operations to their end, pages."""

import asyncio
import json
from datetime import datetime, timedelta, timezone
from importlib import resources

import grpc
import pytest
from google.api_core import operation, operation_async
from google.auth.credentials import AnonymousCredentials
from google.cloud.bigtable_admin_v2 import (
    BigtableInstanceAdminAsyncClient,
    BigtableInstanceAdminClient,
    BigtableTableAdminAsyncClient,
    BigtableTableAdminClient,
    types,
)
from google.iam.v1 import policy_pb2
from google.protobuf import descriptor_pb2
from harness.admin import PROJECT, ZONE, mask
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

# Calls that are there, and that Trestle does not have.
NOT_THERE = {
    "create_table_from_snapshot", "delete_snapshot", "get_memory_layer", "get_snapshot",
    "list_memory_layers", "list_snapshots", "snapshot_table", "update_memory_layer",
}  # fmt: skip


def methods_of(service):
    """The names that the package itself gives to the RPCs of a service."""
    text = resources.files("google.cloud.bigtable_admin_v2").joinpath("gapic_metadata.json")
    rpcs = json.loads(text.read_text())["services"][service]["clients"]["grpc"]["rpcs"]
    return {method.lstrip("_") for rpc in rpcs.values() for method in rpc["methods"]}


# --- the transports ---


class Blocking:
    """Calls that come back with their result: `transport` is "grpc" or "rest"."""

    def __init__(self, host, transport):
        self.channel = grpc.insecure_channel(host) if transport == "grpc" else None
        kinds = BigtableInstanceAdminClient, BigtableTableAdminClient
        self.clients = [
            kind(transport=self.open(kind.get_transport_class(transport), host)) for kind in kinds
        ]

    def open(self, kind, host):
        if self.channel is not None:
            return kind(channel=self.channel)
        return kind(host=host, url_scheme="http", credentials=AnonymousCredentials())

    def settle(self, result):
        if isinstance(result, operation.Operation):
            return result.result(timeout=PATIENCE_SECONDS)
        return list(result) if hasattr(result, "pages") else result

    def close(self):
        for client in self.clients:
            client.transport.close()


class Awaited:
    """Calls that are awaited."""

    def __init__(self, host):
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.open(host))

    async def open(self, host):
        self.channel = grpc.aio.insecure_channel(host)
        kinds = BigtableInstanceAdminAsyncClient, BigtableTableAdminAsyncClient
        self.clients = [
            kind(transport=kind.get_transport_class("grpc_asyncio")(channel=self.channel))
            for kind in kinds
        ]

    def settle(self, result):
        async def settle():
            answer = await result
            if isinstance(answer, operation_async.AsyncOperation):
                return await answer.result(timeout=PATIENCE_SECONDS)
            return [each async for each in answer] if hasattr(answer, "pages") else answer

        return self.loop.run_until_complete(settle())

    def close(self):
        self.loop.run_until_complete(self.channel.close())
        self.loop.close()


class Driver:
    """`ask(method, …)` calls whichever client has it, waits for all of the result, and notes that
    it came."""

    def __init__(self, form):
        self.form = form
        self.succeeded = set()

    def ask(self, service, method, *arguments, **named):
        client = self.form.clients[service]
        result = self.form.settle(getattr(client, method)(*arguments, **named))
        self.succeeded.add(method)
        return result

    def instances(self, method, *arguments, **named):
        return self.ask(0, method, *arguments, **named)

    def tables(self, method, *arguments, **named):
        return self.ask(1, method, *arguments, **named)


@pytest.fixture(params=["grpc", "rest", "asyncio"])
def driver(request, server):
    form = Awaited(server.host) if request.param == "asyncio" else Blocking(
        server.host, request.param
    )  # fmt: skip
    yield Driver(form)
    form.close()


@pytest.fixture
def instance_name(new_table_id):
    return f"{PROJECT}/instances/i{new_table_id()}"


# --- instances, and what they have ---


def drive_instance(ask, name):
    made = ask(
        "create_instance", parent=PROJECT, instance_id=name.rsplit("/", 1)[1],
        instance={"display_name": "made"}, clusters={"c": {"location": ZONE, "serve_nodes": 1}},
    )  # fmt: skip
    assert made.name == name
    assert ask("get_instance", name=name) == made
    assert name in [each.name for each in ask("list_instances", parent=PROJECT).instances]
    changed = ask(
        "partial_update_instance",
        instance={"name": name, "display_name": "changed"}, update_mask=mask("display_name"),
    )  # fmt: skip
    assert changed.display_name == "changed"
    whole = types.Instance(name=name, display_name="whole", type_=types.Instance.Type.PRODUCTION)
    assert ask("update_instance", whole).display_name == "whole"


def drive_clusters(ask, instance):
    name = f"{instance}/clusters/d"
    cluster = {"location": f"{PROJECT}/locations/us-east1-c", "serve_nodes": 2}
    made = ask("create_cluster", parent=instance, cluster_id="d", cluster=cluster)
    assert (made.name, made.serve_nodes) == (name, 2)
    assert ask("get_cluster", name=name) == made
    assert len(ask("list_clusters", parent=instance).clusters) == 2
    wanted = types.Cluster(name=name, serve_nodes=3)
    changed = ask("partial_update_cluster", cluster=wanted, update_mask=mask("serve_nodes"))
    assert changed.serve_nodes == 3
    whole = types.Cluster(name=name, location=made.location, serve_nodes=4)
    assert ask("update_cluster", whole).serve_nodes == 4
    assert ask("list_hot_tablets", parent=name) == []
    ask("delete_cluster", name=name)


def drive_profiles(ask, instance):
    name = f"{instance}/appProfiles/p"
    profile = {"multi_cluster_routing_use_any": {}, "description": "made"}
    made = ask(
        "create_app_profile", parent=instance, app_profile_id="p", app_profile=profile
    )
    assert made.name == name
    assert ask("get_app_profile", name=name) == made
    assert name in [each.name for each in ask("list_app_profiles", parent=instance)]
    wanted = types.AppProfile(name=name, description="changed")
    changed = ask("update_app_profile", app_profile=wanted, update_mask=mask("description"))
    assert changed.description == "changed"
    ask("delete_app_profile", {"name": name, "ignore_warnings": True})


def drive_logical_views(ask, instance):
    name = f"{instance}/logicalViews/v"
    made = ask(
        "create_logical_view", parent=instance, logical_view_id="v",
        logical_view={"query": "SELECT 1"},
    )  # fmt: skip
    assert made.name == name
    assert ask("get_logical_view", name=name).query == "SELECT 1"
    assert [each.name for each in ask("list_logical_views", parent=instance)] == [name]
    wanted = types.LogicalView(name=name, query="SELECT 2")
    changed = ask("update_logical_view", logical_view=wanted, update_mask=mask("query"))
    assert changed.query == "SELECT 2"
    drive_policies(ask, name, "bigtable.logicalViews.get")
    ask("delete_logical_view", name=name)


def drive_materialized_views(ask, instance):
    name = f"{instance}/materializedViews/v"
    query = "SELECT _key, COUNT(f['q']) AS n FROM t GROUP BY _key"
    made = ask(
        "create_materialized_view", parent=instance, materialized_view_id="v",
        materialized_view={"query": query},
    )  # fmt: skip
    assert made.name == name
    assert ask("get_materialized_view", name=name).query == query
    assert [each.name for each in ask("list_materialized_views", parent=instance)] == [name]
    wanted = types.MaterializedView(name=name, deletion_protection=True)
    for _ in range(2):
        changed = ask(
            "update_materialized_view",
            materialized_view=wanted, update_mask=mask("deletion_protection"),
        )  # fmt: skip
        assert changed.deletion_protection == wanted.deletion_protection
        wanted.deletion_protection = False
    ask("delete_materialized_view", name=name)


def drive_policies(ask, resource, permission):
    binding = policy_pb2.Binding(role="roles/bigtable.reader", members=["user:a@example.com"])
    policy = policy_pb2.Policy(bindings=[binding])
    made = ask("set_iam_policy", request={"resource": resource, "policy": policy})
    assert ask("get_iam_policy", resource=resource) == made
    allowed = ask("test_iam_permissions", resource=resource, permissions=[permission])
    assert list(allowed.permissions) == [permission]


def test_instance_admin(driver, instance_name):
    ask = driver.instances
    drive_instance(ask, instance_name)
    drive_clusters(ask, instance_name)
    drive_profiles(ask, instance_name)
    drive_policies(ask, instance_name, "bigtable.instances.get")
    driver.tables(
        "create_table", parent=instance_name, table_id="t", table={"column_families": {"f": {}}}
    )
    drive_logical_views(ask, instance_name)
    drive_materialized_views(ask, instance_name)
    ask("delete_instance", name=instance_name)
    assert driver.succeeded - {"create_table"} == methods_of("BigtableInstanceAdmin") - NOT_THERE


# --- tables, and what they have ---


def drive_table(ask, name):
    parent, _, table_id = name.rsplit("/", 2)
    made = ask(
        "create_table", parent=parent, table_id=table_id, table={"column_families": {"f": {}}}
    )
    assert made.name == name
    assert name in [each.name for each in ask("list_tables", parent=parent)]
    create_family = {"id": "g", "create": {"gc_rule": {"max_num_versions": 2}}}
    ask("modify_column_families", name=name, modifications=[create_family])
    families = ask("get_table", name=name).column_families
    assert families["g"].gc_rule.max_num_versions == 2
    token = ask("generate_consistency_token", name=name).consistency_token
    assert ask("check_consistency", name=name, consistency_token=token).consistent
    for is_protected in (True, False):
        wanted = {"name": name, "deletion_protection": is_protected}
        changed = ask("update_table", table=wanted, update_mask=mask("deletion_protection"))
        assert changed.deletion_protection == is_protected
    drive_policies(ask, name, "bigtable.tables.readRows")


def drive_authorized_views(ask, table):
    name = f"{table}/authorizedViews/v"
    view = {"subset_view": {"row_prefixes": [b"\xff"]}}
    made = ask("create_authorized_view", parent=table, authorized_view_id="v", authorized_view=view)
    assert made.name == name
    whole = {"name": name, "view": types.AuthorizedView.ResponseView.FULL}
    assert ask("get_authorized_view", whole).subset_view.row_prefixes == [b"\xff"]
    assert [each.name for each in ask("list_authorized_views", parent=table)] == [name]
    wanted = types.AuthorizedView(name=name, subset_view={"row_prefixes": [b"b"]})
    changed = ask(
        "update_authorized_view",
        authorized_view=wanted, update_mask=mask("subset_view.row_prefixes"),
    )  # fmt: skip
    assert changed.subset_view.row_prefixes == [b"b"]
    ask("delete_authorized_view", name=name)


def descriptors(*fields):
    """A serialised set of one file with one message."""
    kind = descriptor_pb2.FieldDescriptorProto
    message = descriptor_pb2.DescriptorProto(name="M")
    for number, field in enumerate(fields, 1):
        message.field.add(
            name=field, number=number, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL
        )
    file = descriptor_pb2.FileDescriptorProto(
        name="m.proto", package="p", syntax="proto3", message_type=[message]
    )
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def drive_schema_bundles(ask, table):
    name = f"{table}/schemaBundles/b"
    bundle = {"proto_schema": {"proto_descriptors": descriptors("a")}}
    made = ask("create_schema_bundle", parent=table, schema_bundle_id="b", schema_bundle=bundle)
    assert made.name == name
    assert ask("get_schema_bundle", name=name).proto_schema == made.proto_schema
    assert [each.name for each in ask("list_schema_bundles", parent=table)] == [name]
    more = {"name": name, "proto_schema": {"proto_descriptors": descriptors("a", "b")}}
    changed = ask("update_schema_bundle", schema_bundle=more, update_mask=mask("proto_schema"))
    assert changed.proto_schema.proto_descriptors == descriptors("a", "b")
    ask("delete_schema_bundle", name=name)


def drive_backups(ask, rpc, instance, table):
    cluster, restored = f"{instance}/clusters/c", f"{instance}/tables/restored"
    name, copy = f"{cluster}/backups/b", f"{cluster}/backups/copy"
    expire = datetime.now(timezone.utc) + timedelta(days=2)
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v", 1000))
    backup = {"source_table": table, "expire_time": expire}
    made = ask("create_backup", parent=cluster, backup_id="b", backup=backup)
    assert made.name == name
    assert ask("get_backup", name=name).source_table == table
    copied = ask(
        "copy_backup", parent=cluster, backup_id="copy", source_backup=name, expire_time=expire
    )
    assert (copied.name, copied.source_backup) == (copy, name)
    assert {each.name for each in ask("list_backups", parent=cluster)} == {name, copy}
    later = expire + timedelta(days=1)
    wanted = types.Backup(name=name, expire_time=later)
    assert ask("update_backup", backup=wanted, update_mask=mask("expire_time")).expire_time == later
    ask("restore_table", {"parent": instance, "table_id": "restored", "backup": name})
    assert [key for key, _ in rpc.read(restored)] == [b"k"]
    for each in name, copy:
        ask("delete_backup", name=each)
    ask("delete_table", name=restored)


def test_table_admin(driver, admin, rpc, instance_name):
    ask, table = driver.tables, f"{instance_name}/tables/t"
    admin.create_instance(instance_name.rsplit("/", 1)[1])
    drive_table(ask, table)
    drive_authorized_views(ask, table)
    drive_schema_bundles(ask, table)
    drive_backups(ask, rpc, instance_name, table)
    ask("drop_row_range", {"name": table, "delete_all_data_from_table": True}, timeout=900)
    assert rpc.read(table) == []
    ask("delete_table", name=table)
    assert ask("undelete_table", name=table).name == table
    ask("delete_table", name=table)
    assert driver.succeeded == methods_of("BigtableTableAdmin") - NOT_THERE
    admin.instances.delete_instance(name=instance_name)
