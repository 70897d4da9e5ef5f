"""Who may read what by SQL: tables by a right to them, and by logical views what these show."""

import pytest
from google.cloud.bigtable_admin_v2 import BigtableInstanceAdminClient
from google.cloud.bigtable_admin_v2.services.bigtable_instance_admin.transports import (
    BigtableInstanceAdminGrpcTransport,
)
from google.iam.v1 import policy_pb2
from grpc import StatusCode
from harness.admin import mask
from harness.rpc import INSTANCE, fails_with, set_cell
from harness.secured import OTHER_TABLE, POLICY, TABLE
from harness.sql import begin, execute, prepare, values_of

VIEW = f"{INSTANCE}/logicalViews/v"
ABOVE = f"{INSTANCE}/logicalViews/above"
OF_TABLES = "Access denied. Missing IAM permission: bigtable.tables.readRows."
OF_VIEWS = "Access denied. Missing IAM permission: bigtable.logicalViews.readRows."
OF_INSTANCES = "Access denied. Missing IAM permission: bigtable.instances.executeQuery."
ROWS, VALUE = 80, bytes(512 << 10)  # more than waits on the way to a client


def bound(*members):
    return {"bindings": [{"role": "roles/bigtable.reader", "members": members}]}


class World:
    """Tables t and other; the view v of t's rows before `c`, and the view above of v."""

    def __init__(self, secured):
        self.secured, self.admin = secured, secured.rpc("admin")
        self.instances = BigtableInstanceAdminClient(
            transport=BigtableInstanceAdminGrpcTransport(channel=self.admin.channel)
        )
        for name in ("t", "other"):
            self.admin.create_table(name)
        for key in (b"a", b"b", b"c"):
            self.admin.mutate(TABLE, key, set_cell("f", b"q", b"v", 1000))
        self.view("v", "SELECT _key FROM t WHERE _key < 'c'")
        self.view("above", "SELECT _key FROM v WHERE _key > 'a'")

    def view(self, view_id, query):
        self.instances.create_logical_view(
            parent=INSTANCE, logical_view_id=view_id, logical_view={"query": query}
        ).result()

    def change(self, name, query):
        self.instances.update_logical_view(
            logical_view={"name": name, "query": query}, update_mask=mask("query")
        ).result()

    def keys(self, token, source):
        """What a caller gets of a table or a view."""
        rpc = self.secured.rpc(token)
        values = values_of(execute(rpc, prepare(rpc, f"SELECT _key FROM {source}")))
        return [value.bytes_value for value in values]


@pytest.fixture
def world(secure):
    """The stranger may read the view v, above's the view above; alice the table t."""
    tokens = {"above's": "user:above@example.com", "elsewhere": "user:elsewhere@example.com"}
    return World(secure(
        policy={
            **POLICY,
            VIEW: bound("user:stranger@example.com"),
            ABOVE: bound("user:above@example.com"),
            f"{INSTANCE}i/tables/t": bound("user:elsewhere@example.com"),
        },
        tokens=tokens.items(),
    ))  # fmt: skip


def test_a_view_is_read_without_a_right_to_its_table(world):
    assert world.keys("stranger", "v") == [b"a", b"b"]
    assert world.keys("above's", "above") == [b"b"]
    for source in ("t", "other", "above", "nowhere"):
        with fails_with(StatusCode.PERMISSION_DENIED, OF_TABLES):
            world.keys("stranger", source)
    for source in ("v", "t"):
        with fails_with(StatusCode.PERMISSION_DENIED, OF_TABLES):
            world.keys("above's", source)


def test_a_table_is_read_by_a_right_to_it(world):
    assert world.keys("alice", "t") == [b"a", b"b", b"c"]
    for source in ("other", "v", "nowhere"):
        with fails_with(StatusCode.PERMISSION_DENIED, OF_TABLES):
            world.keys("alice", source)
    for token in ("reader", "admin"):
        assert world.keys(token, "t") == [b"a", b"b", b"c"]
        assert world.keys(token, "above") == [b"b"]
        with fails_with(StatusCode.INVALID_ARGUMENT, "Table not found: tt; Did you mean t?"):
            world.keys(token, "tt")


def test_nobody_else_asks_anything(world):
    for token in ("viewer", "elsewhere"):
        with fails_with(StatusCode.PERMISSION_DENIED, OF_INSTANCES):
            world.keys(token, "v")
    with fails_with(StatusCode.UNAUTHENTICATED):
        world.keys("nobody's", "v")


def test_a_join_tells_nothing_of_other_tables(world):
    for table in ("t", "nowhere"):
        with fails_with(StatusCode.INVALID_ARGUMENT, "Joins are not supported [at 1:21]"):
            world.keys("stranger", f"v, {table}")


def test_no_table_takes_the_name_of_a_view(world):
    with fails_with(StatusCode.ALREADY_EXISTS):
        world.admin.create_table("v")


def test_a_view_in_a_token_vouches_only_for_what_it_says_now(world):
    """Whoever carries a token could have made it, with a view of his own in it."""
    stranger, admin = world.secured.rpc("stranger"), world.secured.rpc("admin")
    text = "SELECT _key FROM v"
    prepared, all_may = prepare(stranger, text), prepare(admin, text)
    world.change(VIEW, "SELECT _key FROM t WHERE _key < 'b'")
    with fails_with(StatusCode.FAILED_PRECONDITION, "The prepared query has expired"):
        execute(stranger, prepared)
    assert [value.bytes_value for value in values_of(execute(admin, all_may))] == [b"a", b"b"]
    assert world.keys("stranger", "v") == [b"a"]


def test_rights_are_asked_for_when_a_query_is_executed(world):
    world.instances.set_iam_policy(request=policy(ABOVE, "user:stranger@example.com"))
    stranger = world.secured.rpc("stranger")
    prepared = prepare(stranger, "SELECT _key FROM above")
    assert values_of(execute(stranger, prepared))
    world.instances.set_iam_policy(request=policy(ABOVE))
    with fails_with(StatusCode.PERMISSION_DENIED, OF_TABLES):
        execute(stranger, prepared)


def policy(resource, *members):
    binding = policy_pb2.Binding(role="roles/bigtable.reader", members=members)
    return {"resource": resource, "policy": policy_pb2.Policy(bindings=[binding])}


def test_a_query_ends_with_the_right_to_its_view(world):
    """He may read another view still, and so ask the instance."""
    for number in range(ROWS):
        world.admin.mutate(OTHER_TABLE, b"%03d" % number, set_cell("f", b"q", VALUE, 1000))
    world.view("large", "SELECT f['q'] AS q FROM other")
    large = f"{INSTANCE}/logicalViews/large"
    members = ["user:stranger@example.com", "user:above@example.com"]
    world.instances.set_iam_policy(request=policy(large, *members))
    streams = []
    for token in ("stranger", "above's"):
        rpc = world.secured.rpc(token)
        prepared = prepare(rpc, "SELECT * FROM large")
        streams.append(begin(rpc, prepared))
        assert next(streams[-1]).results.proto_rows_batch.batch_data
    world.instances.set_iam_policy(request=policy(large, members[1]))
    ending, going_on = streams
    with fails_with(StatusCode.PERMISSION_DENIED, OF_VIEWS):
        list(ending)
    assert len(values_of(going_on)) > ROWS / 2
