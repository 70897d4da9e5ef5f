"""Operations, views over an instance, access policies; and what of all that survives a kill."""

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from google.iam.v1 import policy_pb2
from google.longrunning import operations_pb2 as lro
from google.protobuf import descriptor_pb2
from grpc import StatusCode
from harness.admin import OTHER_ZONE, PROJECT, mask
from harness.rpc import fails_with
from harness.server import run_trestle

# --- operations ---


def test_an_operation_is_found_by_its_name(admin, new_instance):
    instance = new_instance()
    wanted = types.Instance(name=instance, display_name="new")
    operation = admin.instances.partial_update_instance(
        instance=wanted, update_mask=mask("display_name")
    ).operation
    found = admin.operations.GetOperation(lro.GetOperationRequest(name=operation.name))
    assert found == operation
    assert admin.operations.WaitOperation(lro.WaitOperationRequest(name=found.name)) == found
    admin.operations.CancelOperation(lro.CancelOperationRequest(name=found.name))
    admin.operations.DeleteOperation(lro.DeleteOperationRequest(name=found.name))
    for call, request in (
        (admin.operations.GetOperation, lro.GetOperationRequest),
        (admin.operations.WaitOperation, lro.WaitOperationRequest),
        (admin.operations.CancelOperation, lro.CancelOperationRequest),
        (admin.operations.DeleteOperation, lro.DeleteOperationRequest),
    ):
        with fails_with(StatusCode.NOT_FOUND):
            call(request(name=found.name))


def list_operations(admin, name, **fields):
    return admin.operations.ListOperations(lro.ListOperationsRequest(name=name, **fields))


def test_operations_are_listed_by_instance_and_by_project(admin, new_instance):
    instance = new_instance()
    for number in range(3):
        wanted = types.Instance(name=instance, display_name=str(number))
        admin.instances.partial_update_instance(instance=wanted, update_mask=mask("displayName"))
    name = f"operations/{instance}"
    listed = list_operations(admin, name).operations
    assert len(listed) == 4
    assert {each.name for each in listed} <= {
        each.name for each in list_operations(admin, f"operations/{PROJECT}").operations
    }
    page = list_operations(admin, name, page_size=3)
    rest = list_operations(admin, name, page_size=3, page_token=page.next_page_token)
    assert [*page.operations, *rest.operations] == list(listed)
    assert not rest.next_page_token
    assert len(list_operations(admin, name, filter="done:true").operations) == 4
    assert not list_operations(admin, name, filter="done:false").operations
    for fields in ({"filter": "x"}, {"page_size": -1}, {"name": "x"}):
        with fails_with(StatusCode.INVALID_ARGUMENT):
            list_operations(admin, **{"name": name, **fields})


# --- views over an instance ---

QUERIES = {"logical": "SELECT 1", "materialized": "SELECT _key, COUNT(*) AS n FROM t GROUP BY _key"}
KINDS = list(QUERIES)


class Views:
    """Both kinds of views have the same calls. The queries need a table, t."""

    def __init__(self, admin, instance, kind):
        self.client, self.instance, self.kind = admin.instances, instance, kind

    def call(self, verb, suffix="view", **request):
        return getattr(self.client, f"{verb}_{self.kind}_{suffix}")(request=request)

    def create(self, view_id="v", query=None, **fields):
        query = QUERIES[self.kind] if query is None else query
        view = {f"{self.kind}_view": {"query": query, **fields}, f"{self.kind}_view_id": view_id}
        return self.call("create", parent=self.instance, **view).result()

    def update(self, paths, **fields):
        view = {f"{self.kind}_view": fields}
        return self.call("update", update_mask=mask(*paths), **view).result()


@pytest.fixture
def with_table(admin, new_instance):
    """An instance with the table t."""
    instance = new_instance()
    admin.create_table(instance, "t")
    return instance


@pytest.fixture(params=KINDS)
def views(request, admin, with_table):
    return Views(admin, with_table, request.param)


def test_life_of_a_view(views):
    made = views.create(query="-- all of it\n(SELECT _key FROM t ORDER BY _key)")
    assert made.name == f"{views.instance}/{views.kind}Views/v"
    assert views.call("get", name=made.name) == made
    assert list(views.call("list", "views", parent=views.instance)) == [made]
    with pytest.raises(exceptions.AlreadyExists):
        views.create()
    views.call("delete", name=made.name)
    with pytest.raises(exceptions.NotFound):
        views.call("get", name=made.name)


@pytest.mark.parametrize("query", ["", " ", "DELETE FROM t", "SELECTED", "-- SELECT 1"])
def test_what_no_query_is(views, query):
    with pytest.raises(exceptions.InvalidArgument, match=r"\[at "):
        views.create(query=query)


@pytest.mark.parametrize("query, message", {
    "SELECT nosuch FROM t GROUP BY 1": r"Unrecognized name: nosuch \[at 1:8\]",
    "SELECT _key FROM u GROUP BY 1": r"Table not found: u; Did you mean t\? \[at 1:18\]",
    "SELECT NOSUCHFN(_key) FROM t GROUP BY 1": r"Function not found: NOSUCHFN \[at 1:8\]",
    "SELECT _key\nFROM t WHERE _key = 5 GROUP BY 1": r"No matching signature .* \[at 2:14\]",
    "SELECT _key FROM t WHERE _key = @k GROUP BY 1": r"Query parameter 'k' not found \[at 1:33\]",
}.items())  # fmt: skip
def test_a_query_that_cannot_be_planned_makes_no_view(views, query, message):
    """Before anything else is looked at: also where there is a view of that name."""
    with pytest.raises(exceptions.InvalidArgument, match=message):
        views.create(query=query)
    made = views.create()
    with pytest.raises(exceptions.InvalidArgument, match=message):
        views.create(query=query)
    if views.kind == "logical":
        with pytest.raises(exceptions.InvalidArgument, match=message):
            views.update(["query"], name=made.name, query=query)
    assert list(views.call("list", "views", parent=views.instance)) == [made]


def test_a_logical_view_outlives_its_table(admin, with_table):
    """It is planned when its query changes, and not when something else of it does."""
    views = Views(admin, with_table, "logical")
    made = views.create(query="SELECT _key, COUNT(*) AS n FROM t GROUP BY _key")
    admin.tables.delete_table(name=f"{views.instance}/tables/t")
    views.update(["deletion_protection"], name=made.name, deletion_protection=True)
    views.update(["deletion_protection"], name=made.name)


def test_views_in_an_instance_that_is_not_there(fresh_server, administer):
    admin = administer(fresh_server("--auto-create", "off").host)
    for kind in KINDS:
        with pytest.raises(exceptions.NotFound):
            Views(admin, f"{PROJECT}/instances/none", kind).create()


def test_logical_views_of_logical_views(admin, with_table):
    views = Views(admin, with_table, "logical")
    above = "SELECT _key FROM t WHERE CAST(_key AS STRING) > VIEW_PARAMETERS('a')"
    first = views.create("first", above)
    views.create("second", "SELECT _key AS k FROM first")
    itself = "The query of view {} must not contain it"
    for query in ("SELECT * FROM first", "SELECT k FROM second"):
        with pytest.raises(exceptions.InvalidArgument, match=itself.format("first")):
            views.update(["query"], name=first.name, query=query)
    with pytest.raises(exceptions.InvalidArgument, match=itself.format("third")):
        views.create("third", "SELECT * FROM third")
    with pytest.raises(exceptions.InvalidArgument, match=r"Unrecognized name: _key \[at 1:8\]"):
        views.create("third", "SELECT _key FROM second")
    assert views.update(["query"], name=first.name, query="SELECT _key FROM t").name == first.name


def test_a_materialized_view_is_of_a_table_and_has_a_form(admin, with_table):
    """The rules are those of sql/plan/materialized.h."""
    Views(admin, with_table, "logical").create("lv", "SELECT _key FROM t")
    views = Views(admin, with_table, "materialized")
    with pytest.raises(exceptions.InvalidArgument, match=r"Table not found: lv"):
        views.create(query="SELECT _key, COUNT(*) AS n FROM lv GROUP BY _key")
    with pytest.raises(exceptions.InvalidArgument, match="must contain a GROUP BY or ORDER BY"):
        views.create(query="SELECT _key FROM t")
    with pytest.raises(exceptions.InvalidArgument, match="VIEW_PARAMETERS"):
        views.create(query="SELECT VIEW_PARAMETERS('a') AS a, COUNT(*) AS n FROM t GROUP BY a")


def test_etags_of_views(views):
    made = views.create()
    changed = views.update(["deletion_protection"], name=made.name, deletion_protection=True)
    assert changed.etag != made.etag
    with pytest.raises(exceptions.Aborted):
        views.update(["deletionProtection"], name=made.name, etag=made.etag)
    with pytest.raises(exceptions.Aborted):
        views.call("delete", name=made.name, etag=made.etag)
    views.update(["deletionProtection"], name=made.name, etag=changed.etag)


def test_protected_views(views, admin):
    made = views.create(deletion_protection=True)
    with pytest.raises(exceptions.FailedPrecondition, match="protect"):
        views.call("delete", name=made.name)
    with pytest.raises(exceptions.FailedPrecondition, match="protected"):
        admin.instances.delete_instance(name=views.instance)
    views.update(["deletion_protection"], name=made.name)
    admin.instances.delete_instance(name=views.instance)


def test_a_logical_views_query_may_change(admin, new_instance):
    views = Views(admin, new_instance(), "logical")
    made = views.create()
    assert views.update(["query"], name=made.name, query="SELECT 2").query == "SELECT 2"
    assert views.update([], name=made.name, query="SELECT 3").query == "SELECT 3"
    with pytest.raises(exceptions.InvalidArgument):
        views.update(["query"], name=made.name)


def test_a_materialized_views_query_stays(admin, with_table):
    views = Views(admin, with_table, "materialized")
    made = views.create()
    with pytest.raises(exceptions.InvalidArgument, match="Immutable fields"):
        views.update(["query"], name=made.name, query="SELECT 2")


# --- access policies ---

BINDING = policy_pb2.Binding(role="roles/bigtable.reader", members=["user:a@example.com"])


def policy_resources(admin, instance):
    """(client, name) of each kind of resource that has a policy."""
    table = admin.create_table(instance, "t")
    views = [Views(admin, instance, kind).create(kind) for kind in KINDS]
    view = admin.tables.create_authorized_view(
        parent=table, authorized_view_id="v", authorized_view={"subset_view": {}}
    )
    return [
        (admin.instances, instance), (admin.tables, table), (admin.tables, view.result().name),
        *((admin.instances, view.name) for view in views),
    ]  # fmt: skip


def test_policies_are_kept_as_given(admin, new_instance):
    for client, name in policy_resources(admin, new_instance()):
        empty = client.get_iam_policy(request={"resource": name})
        assert not empty.bindings
        given = policy_pb2.Policy(version=1, bindings=[BINDING], etag=empty.etag)
        kept = client.set_iam_policy(request={"resource": name, "policy": given})
        assert list(kept.bindings) == [BINDING]
        assert client.get_iam_policy(request={"resource": name}) == kept
        with pytest.raises(exceptions.Aborted):
            client.set_iam_policy(request={"resource": name, "policy": given})
        asked = {"resource": name, "permissions": ["bigtable.tables.get"]}
        assert client.test_iam_permissions(request=asked).permissions == asked["permissions"]
        with pytest.raises(exceptions.InvalidArgument):
            client.test_iam_permissions(request={**asked, "permissions": ["bigtable.*"]})


def test_a_policy_goes_with_its_resource(admin, new_instance):
    instance = new_instance()
    table = admin.create_table(instance, "t")
    policy = policy_pb2.Policy(bindings=[BINDING])
    admin.tables.set_iam_policy(request={"resource": table, "policy": policy})
    admin.tables.delete_table(name=table)
    with pytest.raises(exceptions.NotFound):
        admin.tables.get_iam_policy(request={"resource": table})
    asked = {"resource": table, "permissions": ["bigtable.tables.get"]}
    assert not admin.tables.test_iam_permissions(request=asked).permissions
    admin.create_table(instance, "t")
    assert not admin.tables.get_iam_policy(request={"resource": table}).bindings


@pytest.mark.parametrize(
    "policy",
    [
        {"version": 2},
        {"bindings": [{"role": "reader"}]},
        {"bindings": [{"role": "roles/x", "members": ["me"]}]},
        {"version": 1, "bindings": [{"role": "roles/x", "condition": {"expression": "true"}}]},
    ],
    ids=str,
)
def test_what_no_policy_is(admin, new_instance, policy):
    with pytest.raises(exceptions.InvalidArgument):
        admin.instances.set_iam_policy(request={"resource": new_instance(), "policy": policy})


def test_conditions_are_kept(admin, new_instance):
    binding = {"role": "roles/x", "condition": {"title": "t", "expression": "true"}}
    kept = admin.instances.set_iam_policy(
        request={"resource": new_instance(), "policy": {"version": 3, "bindings": [binding]}}
    )
    assert (kept.version, kept.bindings[0].condition.expression) == (3, "true")


# --- a kill ---


def descriptor_set():
    """A small well-formed FileDescriptorSet."""
    file = {"name": "a.proto", "message_type": [{"name": "M"}]}
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def children_of_tables(admin, instance):
    for table in admin.tables.list_tables(parent=instance):
        yield from admin.tables.list_authorized_views(parent=table.name)
        yield from admin.tables.list_schema_bundles(parent=table.name)


def everything(admin, instance):
    """All that there is of an instance."""
    return [
        admin.instances.get_instance(name=instance),
        *admin.instances.list_clusters(parent=instance).clusters,
        *admin.instances.list_app_profiles(parent=instance),
        *admin.instances.list_logical_views(parent=instance),
        *admin.instances.list_materialized_views(parent=instance),
        *admin.tables.list_tables(parent=instance),
        *children_of_tables(admin, instance),
        admin.instances.get_iam_policy(request={"resource": instance}),
        *list_operations(admin, f"operations/{instance}").operations,
    ]


def test_each_change_survives_a_kill(fresh_server, administer):
    server = fresh_server()
    admin = administer(server.host)
    instance = f"{PROJECT}/instances/kept"
    changes = [
        lambda: admin.create_instance("kept"),
        lambda: admin.instances.create_cluster(
            parent=instance, cluster_id="d",
            cluster={"location": OTHER_ZONE, "serve_nodes": 1},
        ),
        lambda: admin.instances.update_cluster(
            request=types.Cluster(name=f"{instance}/clusters/d", serve_nodes=4)
        ),
        lambda: admin.instances.create_app_profile(
            parent=instance, app_profile_id="p", app_profile={"multi_cluster_routing_use_any": {}}
        ),
        lambda: admin.instances.partial_update_instance(
            instance={"name": instance, "display_name": "new"}, update_mask=mask("display_name")
        ),
        lambda: admin.create_table(instance, "t"),
        lambda: Views(admin, instance, "logical").create(),
        lambda: Views(admin, instance, "materialized").create("m"),
        lambda: admin.tables.create_authorized_view(
            parent=f"{instance}/tables/t", authorized_view_id="v",
            authorized_view={"subset_view": {"row_prefixes": [b"a"]}},
        ),  # fmt: skip
        lambda: admin.tables.create_schema_bundle(
            parent=f"{instance}/tables/t", schema_bundle_id="s",
            schema_bundle={"proto_schema": {"proto_descriptors": descriptor_set()}},
        ),  # fmt: skip
        lambda: admin.tables.update_table(
            table={"name": f"{instance}/tables/t", "deletion_protection": True},
            update_mask=mask("deletion_protection"),
        ),
        lambda: admin.instances.set_iam_policy(
            request={"resource": instance, "policy": policy_pb2.Policy(bindings=[BINDING])}
        ),
        lambda: admin.instances.delete_app_profile(
            name=f"{instance}/appProfiles/p", ignore_warnings=True
        ),
        lambda: admin.instances.delete_cluster(name=f"{instance}/clusters/d"),
    ]
    for change in changes:
        change()
        before = everything(admin, instance)
        server.kill()
        checked = run_trestle("doctor", server.data)
        assert checked.returncode == 0, checked.stderr
        admin = administer(server.start().host)
        assert everything(admin, instance) == before


def test_a_deleted_instance_stays_away(fresh_server, administer):
    server = fresh_server()
    admin = administer(server.host)
    instance = admin.create_instance("gone")
    admin.create_table(instance, "t")
    admin.instances.delete_instance(name=instance)
    server.kill()
    admin = administer(server.start().host)
    with pytest.raises(exceptions.NotFound):
        admin.instances.get_instance(name=instance)
    assert not list(admin.tables.list_tables(parent=instance))
