"""Plans that are kept between the executions of a prepared query: each of these executes one, so
that its plan is kept, changes something, and executes it again. The plan is the former one, and
what is read, and whether it may be, is as things are now (src/bigtable/plan_cache.h)."""

import pytest
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from google.protobuf import descriptor_pb2
from grpc import RpcError, StatusCode
from harness.rpc import INSTANCE, fails_with, set_cell
from harness.secured import POLICY
from harness.sql import execute, prepare, values_of
from test_query_access import ABOVE, OF_TABLES, VIEW, World, bound, policy

EXPIRED = "The prepared query has expired"
Modification = admin_types.ModifyColumnFamiliesRequest.Modification


def texts(responses):
    return [value.bytes_value for value in values_of(responses)]


def value_by_key(rpc, prepared, key):
    parameter = types.Value(type_={"bytes_type": {}}, bytes_value=key)
    return texts(execute(rpc, prepared, params={"key": parameter}))


@pytest.fixture
def table(rpc, make_table):
    name = make_table()
    for key in (b"a", b"b"):
        rpc.mutate(name, key, set_cell("f", b"q", b"of " + key, 1000))
    return name


@pytest.fixture
def by_key(rpc, table):
    """Prepared, and executed: its plan is kept."""
    text = f"SELECT f['q'] AS q FROM `{table.rsplit('/', 1)[-1]}` WHERE _key = @key"
    prepared = prepare(rpc, text, key=types.Type(bytes_type={}))
    assert value_by_key(rpc, prepared, b"a") == [b"of a"]
    return prepared


def test_each_execution_has_its_own_parameters(rpc, by_key):
    for key in (b"b", b"a", b"b"):
        assert value_by_key(rpc, by_key, key) == [b"of " + key]
    assert value_by_key(rpc, by_key, b"c") == []


def test_a_parameter_of_another_type_is_refused_still(rpc, by_key):
    number = types.Value(type_={"int64_type": {}}, int_value=1)
    with fails_with(StatusCode.INVALID_ARGUMENT, "params 'key' has type int64_type"):
        execute(rpc, by_key, params={"key": number})
    with fails_with(StatusCode.INVALID_ARGUMENT, "params does not contain key 'key'"):
        execute(rpc, by_key)


def test_what_is_written_meanwhile_is_read(rpc, table, by_key):
    rpc.mutate(table, b"a", set_cell("f", b"q", b"new", 2000))
    assert value_by_key(rpc, by_key, b"a") == [b"new"]


def test_a_table_that_is_gone_is_not_read(rpc, table, by_key):
    rpc.delete_table(table)
    with fails_with(StatusCode.FAILED_PRECONDITION, EXPIRED):
        value_by_key(rpc, by_key, b"a")


def test_a_table_that_was_made_again_is_the_one_that_is_read(rpc, table, by_key):
    rpc.delete_table(table)
    rpc.create_table(table.rsplit("/", 1)[-1], families=("f",))
    assert value_by_key(rpc, by_key, b"a") == []
    rpc.mutate(table, b"a", set_cell("f", b"q", b"of another", 1000))
    assert value_by_key(rpc, by_key, b"a") == [b"of another"]


def test_a_family_that_is_gone_ends_it_and_one_of_its_name_is_another(rpc, table, by_key):
    rpc.modify_families(table, Modification(id="f", drop=True))
    with fails_with(StatusCode.FAILED_PRECONDITION, EXPIRED):
        value_by_key(rpc, by_key, b"a")
    rpc.modify_families(table, Modification(id="f", create={}))
    assert value_by_key(rpc, by_key, b"a") == []


def test_columns_are_those_of_when_it_was_prepared(rpc, table):
    """A family that is added is not in the `*` of a query that was prepared before."""
    prepared = prepare(rpc, f"SELECT * FROM `{table.rsplit('/', 1)[-1]}` LIMIT 1")
    before = len(values_of(execute(rpc, prepared)))
    rpc.modify_families(table, Modification(id="more", create={}))
    assert len(values_of(execute(rpc, prepared))) == before


def test_another_instance_has_no_use_for_it(rpc, by_key):
    request = types.ExecuteQueryRequest(
        instance_name=f"{INSTANCE}j", prepared_query=by_key.prepared_query
    )
    with pytest.raises(RpcError) as error:
        list(rpc.data.execute_query(request))
    assert error.value.code() == StatusCode.INVALID_ARGUMENT
    assert "Invalid prepared query" in error.value.details()


def test_a_token_that_is_nearly_the_same_is_none(rpc, by_key):
    token = bytearray(by_key.prepared_query)
    token[-1] ^= 1
    by_key.prepared_query = bytes(token)
    with fails_with(StatusCode.INVALID_ARGUMENT, "Invalid prepared query"):
        value_by_key(rpc, by_key, b"a")


def test_a_large_token_is_planned_each_time(rpc, table):
    """Its plan takes more than one that is kept."""
    items = ", ".join(f"f['{number}'] AS c{number}" for number in range(300))
    prepared = prepare(rpc, f"SELECT {items} FROM `{table.rsplit('/', 1)[-1]}` WHERE _key = 'a'")
    for _ in range(3):
        assert len(values_of(execute(rpc, prepared))) == 300


def bundle(*numbers):
    """A file with the message p.M, whose fields are f1, f2 and so on."""
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    message = file.message_type.add(name="M")
    for number in numbers:
        message.field.add(
            name=f"f{number}", number=number, label=1,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
        )  # fmt: skip
    descriptors = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return {"proto_schema": {"proto_descriptors": descriptors}}


def test_types_of_a_bundle_are_those_of_now(rpc, admin, table):
    admin.tables.create_schema_bundle(
        parent=table, schema_bundle_id="b", schema_bundle=bundle(1, 2)
    ).result()
    text = "SELECT CAST(f['q'] AS b.p.M).f2 AS x"
    prepared = prepare(rpc, f"{text} FROM `{table.rsplit('/', 1)[-1]}` LIMIT 1")
    rpc.mutate(table, b"a", set_cell("f", b"q", b"\x10\x05", 2000))
    assert [value.int_value for value in values_of(execute(rpc, prepared))] == [5]
    name = f"{table}/schemaBundles/b"
    admin.tables.delete_schema_bundle(name=name)
    with pytest.raises(RpcError) as error:
        execute(rpc, prepared)
    assert error.value.code() == StatusCode.INVALID_ARGUMENT


# --- with access control ---


@pytest.fixture
def world(secure):
    return World(secure(policy={**POLICY, VIEW: bound("user:stranger@example.com")}))


def test_another_callers_plan_gives_no_right(world):
    """A token is what its bearer makes it: one whom it was not given to may have it."""
    alice, stranger = world.secured.rpc("alice"), world.secured.rpc("stranger")
    prepared = prepare(alice, "SELECT _key FROM t")
    assert texts(execute(alice, prepared)) == [b"a", b"b", b"c"]
    with fails_with(StatusCode.PERMISSION_DENIED, OF_TABLES):
        execute(stranger, prepared)
    assert texts(execute(alice, prepared)) == [b"a", b"b", b"c"]


def test_a_right_that_was_taken_is_gone(world):
    """Of a view over a view: the policy names the outer one alone."""
    stranger = world.secured.rpc("stranger")
    world.instances.set_iam_policy(request=policy(ABOVE, "user:stranger@example.com"))
    prepared = prepare(stranger, "SELECT _key FROM above")
    for _ in range(2):
        assert texts(execute(stranger, prepared)) == [b"b"]
    world.instances.set_iam_policy(request=policy(ABOVE))
    with fails_with(StatusCode.PERMISSION_DENIED, OF_TABLES):
        execute(stranger, prepared)
    world.instances.set_iam_policy(request=policy(ABOVE, "user:stranger@example.com"))
    assert texts(execute(stranger, prepared)) == [b"b"]


def test_a_view_that_changed_vouches_for_nothing_of_before(world):
    stranger, admin = world.secured.rpc("stranger"), world.secured.rpc("admin")
    of_stranger = prepare(stranger, "SELECT _key FROM v")
    of_admin = prepare(admin, "SELECT _key FROM v")
    for rpc, prepared in (stranger, of_stranger), (admin, of_admin):
        assert texts(execute(rpc, prepared)) == [b"a", b"b"]
    world.change(VIEW, "SELECT _key FROM t WHERE _key < 'b'")
    with fails_with(StatusCode.FAILED_PRECONDITION, EXPIRED):
        execute(stranger, of_stranger)
    assert texts(execute(admin, of_admin)) == [b"a", b"b"]


# --- rows that are not for a loop ---


@pytest.mark.parametrize("sizes", [[3_000_000], [700_000] * 5, [40_000] * 40])
def test_a_large_row_by_its_key_is_whole(rpc, table, by_key, sizes):
    """Its values lie in records of their own, which a loop does not read."""
    values = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    for number, value in enumerate(values):
        rpc.mutate(table, b"a", set_cell("f", b"q%03d" % number, value, 1000))
    text = f"SELECT f FROM `{table.rsplit('/', 1)[-1]}` WHERE _key = 'a'"
    prepared = prepare(rpc, text)
    for _ in range(3):
        (family,) = values_of(execute(rpc, prepared))
        pairs = [each.array_value.values for each in family.array_value.values]
        assert [pair[1].bytes_value for pair in pairs] == [b"of a", *values]
        assert value_by_key(rpc, by_key, b"a") == [b"of a"]
