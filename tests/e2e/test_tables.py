"""Tables: create, list, get, update, delete; consistency tokens."""

import pytest
from google.api_core import exceptions
from google.cloud.bigtable import column_family
from google.cloud.bigtable_admin_v2 import types
from google.longrunning import operations_pb2
from google.protobuf import field_mask_pb2
from grpc import StatusCode
from harness.rpc import ADMIN_SECONDS, INSTANCE, fails_with, set_cell

VIEW = types.Table.View


def list_tables(rpc, parent, **fields):
    request = types.ListTablesRequest(parent=parent, **fields)
    return rpc.admin.list_tables(request, timeout=ADMIN_SECONDS)


def update_table(rpc, mask, **fields):
    request = types.UpdateTableRequest(
        table=fields, update_mask=field_mask_pb2.FieldMask(paths=mask)
    )
    return rpc.admin.update_table(request, timeout=ADMIN_SECONDS)


# --- as the classic client does it ---


def test_life_of_a_table(instance, new_table_id):
    table = instance.table(new_table_id())
    assert not table.exists()
    table.create(column_families={"f": column_family.MaxVersionsGCRule(2), "g": None})
    assert table.exists()
    assert table.table_id in [each.table_id for each in instance.list_tables()]
    families = table.list_column_families()
    assert sorted(families) == ["f", "g"]
    assert families["f"].gc_rule == column_family.MaxVersionsGCRule(2)
    table.delete()
    assert not table.exists()


def test_data_through_the_classic_client(instance, new_table_id):
    table = instance.table(new_table_id())
    table.create(column_families={"f": None})
    row = table.direct_row(b"k")
    row.set_cell("f", b"q", b"v")
    row.commit()
    assert table.read_row(b"k").cell_value("f", b"q") == b"v"
    table.delete()


def test_deleting_twice(instance, new_table_id):
    table = instance.table(new_table_id())
    table.create(column_families={"f": None})
    table.delete()
    with pytest.raises(exceptions.NotFound):
        table.delete()


# --- create ---


def test_answer_of_create(rpc, new_table_id):
    table_id = new_table_id()
    request = types.CreateTableRequest(
        parent=INSTANCE, table_id=table_id, table={"column_families": {"f": {}}}
    )
    table = rpc.admin.create_table(request, timeout=ADMIN_SECONDS)
    assert table.name == f"{INSTANCE}/tables/{table_id}"
    assert list(table.column_families) == ["f"]
    rpc.delete_table(table.name)


def test_create_again(rpc, table_name):
    table_id = table_name.rsplit("/", 1)[-1]
    with fails_with(StatusCode.ALREADY_EXISTS):
        rpc.create_table(table_id)


def test_table_without_families(rpc, make_table):
    name = make_table(families=())
    assert rpc.read(name) == []
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(name, b"k", set_cell("f", b"q", b"v"))


@pytest.mark.parametrize("table_id", ["", "a" * 51, "sla/sh", "spa ce", "ünicode", "-first"])
def test_table_ids_that_are_refused(rpc, table_id):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.create_table(table_id)


@pytest.mark.parametrize("table_id", ["a" * 50, "_x", "A.b-c_d", "9"])
def test_table_ids_that_are_fine(rpc, table_id):
    rpc.delete_table(rpc.create_table(table_id))


@pytest.mark.parametrize("family", ["", "a" * 65, "with:colon", "spa ce", "nul\0", "ünicode"])
def test_family_names_that_are_refused(rpc, new_table_id, family):
    table_id = new_table_id()
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.create_table(table_id, [family])
    with fails_with(StatusCode.NOT_FOUND):
        rpc.get_table(f"{INSTANCE}/tables/{table_id}")


@pytest.mark.parametrize("parent", ["", "projects/p", "instances/i", f"{INSTANCE}/tables/t"])
def test_malformed_parent(rpc, new_table_id, parent):
    with fails_with({StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND}):
        rpc.create_table(new_table_id(), instance=parent)


def test_any_project_and_instance_will_do(rpc, new_table_id):
    """And the same table id in another instance is another table."""
    table_id = new_table_id()
    instances = ["projects/one/instances/some", "projects/two/instances/some"]
    names = [rpc.create_table(table_id, instance=each) for each in instances]
    rpc.mutate(names[0], b"k", set_cell("f", b"q", b"v"))
    assert rpc.read(names[1]) == []
    assert [t.name for t in list_tables(rpc, instances[1]).tables] == [names[1]]
    for name in names:
        rpc.delete_table(name)


# --- get and list ---


def test_views(rpc, make_table):
    name = make_table(["f"])
    assert rpc.get_table(name, VIEW.NAME_ONLY).name == name
    assert not rpc.get_table(name, VIEW.NAME_ONLY).column_families
    for view in (VIEW.VIEW_UNSPECIFIED, VIEW.SCHEMA_VIEW, VIEW.FULL):
        table = rpc.get_table(name, view)
        assert list(table.column_families) == ["f"]
        assert table.granularity == types.Table.TimestampGranularity.MILLIS


def test_replication_view_says_ready(rpc, table_name):
    states = rpc.get_table(table_name, VIEW.REPLICATION_VIEW).cluster_states
    ready = types.Table.ClusterState.ReplicationState.READY
    assert states
    assert {state.replication_state for state in states.values()} == {ready}


def test_get_of_a_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.get_table(f"{INSTANCE}/tables/no-such-table")


def test_list_of_an_empty_instance(rpc):
    assert list(list_tables(rpc, "projects/p/instances/never-used").tables) == []


def test_list_in_pages(rpc, new_table_id):
    parent = "projects/p/instances/pages"
    names = sorted(rpc.create_table(new_table_id(), instance=parent) for _ in range(5))
    found, token = [], ""
    while True:
        page = list_tables(rpc, parent, page_size=2, page_token=token)
        assert len(page.tables) <= 2
        found += [table.name for table in page.tables]
        token = page.next_page_token
        if not token:
            break
    assert found == names
    for name in names:
        rpc.delete_table(name)


# --- delete ---


def test_a_new_table_of_the_same_name_is_empty(rpc, new_table_id):
    table_id = new_table_id()
    for round_number in range(3):
        name = rpc.create_table(table_id)
        assert rpc.read(name) == []
        rpc.mutate(name, b"k", set_cell("f", b"q", b"%d" % round_number))
        rpc.delete_table(name)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(name)


# --- update ---


def test_deletion_protection(rpc, make_table):
    name = make_table()
    operation = update_table(rpc, ["deletion_protection"], name=name, deletion_protection=True)
    assert operation.done
    assert rpc.get_table(name).deletion_protection
    with fails_with(StatusCode.FAILED_PRECONDITION):
        rpc.delete_table(name)
    with fails_with(StatusCode.FAILED_PRECONDITION):
        rpc.modify_families(name, {"id": "f", "drop": True})
    update_table(rpc, ["deletion_protection"], name=name, deletion_protection=False)
    rpc.delete_table(name)


def test_answer_of_update_is_the_table(rpc, table_name):
    operation = update_table(rpc, ["deletion_protection"], name=table_name)
    assert isinstance(operation, operations_pb2.Operation)
    table = types.Table.pb(types.Table())
    assert operation.response.Unpack(table)
    assert table.name == table_name


def test_protected_from_the_start(rpc, make_table):
    name = make_table(deletion_protection=True)
    with fails_with(StatusCode.FAILED_PRECONDITION):
        rpc.delete_table(name)
    update_table(rpc, ["deletion_protection"], name=name, deletion_protection=False)


@pytest.mark.parametrize("mask", [[], ["no_such_field"], ["*"], ["name"]])
def test_update_masks_that_are_refused(rpc, table_name, mask):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        update_table(rpc, mask, name=table_name, deletion_protection=True)
    assert not rpc.get_table(table_name).deletion_protection


def test_families_are_not_updated_here(rpc, table_name):
    with fails_with({StatusCode.UNIMPLEMENTED, StatusCode.INVALID_ARGUMENT}):
        update_table(rpc, ["column_families"], name=table_name)


def test_update_of_a_missing_table(rpc):
    with fails_with(StatusCode.NOT_FOUND):
        update_table(rpc, ["deletion_protection"], name=f"{INSTANCE}/tables/no-such-table")


# --- consistency ---


def generate_token(rpc, name):
    request = types.GenerateConsistencyTokenRequest(name=name)
    return rpc.admin.generate_consistency_token(request, timeout=ADMIN_SECONDS).consistency_token


def check_token(rpc, name, token):
    request = types.CheckConsistencyRequest(name=name, consistency_token=token)
    return rpc.admin.check_consistency(request, timeout=ADMIN_SECONDS).consistent


def test_consistency_token(rpc, table_name):
    token = generate_token(rpc, table_name)
    assert token
    assert check_token(rpc, table_name, token)


def test_bad_consistency_token(rpc, table_name):
    with fails_with(StatusCode.INVALID_ARGUMENT):
        check_token(rpc, table_name, "not a token")


def test_consistency_of_a_missing_table(rpc, table_name):
    token = generate_token(rpc, table_name)
    with fails_with(StatusCode.NOT_FOUND):
        generate_token(rpc, f"{INSTANCE}/tables/no-such-table")
    with fails_with({StatusCode.NOT_FOUND, StatusCode.INVALID_ARGUMENT}):
        check_token(rpc, f"{INSTANCE}/tables/no-such-table", token)
