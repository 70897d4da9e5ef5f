"""The life of continuous materialized views, and what they have to do with all else: those of the
20 checks of Bigtable's interface that are not about contents (test_materialized_views.py)."""

import contextlib
import json
import pathlib
import random
import time

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import BigtableInstanceAdminClient
from google.cloud.bigtable_admin_v2.services.bigtable_instance_admin.transports import (
    BigtableInstanceAdminGrpcTransport,
)
from google.iam.v1 import policy_pb2
from google.longrunning import operations_pb2 as lro
from grpc import StatusCode
from harness.admin import mask
from harness.backups import Backups
from harness.change_streams import Reader, now_micros, stream_config, timestamp, update_stream
from harness.cpu_time import read_stat
from harness.rpc import INSTANCE, delete_row, fails_with, set_cell
from harness.rest import Rest
from harness.secured import TABLE
from harness.server import run_trestle
from harness.sql import execute, prepare, values_of
from harness.views import BOUND_SECONDS, Views, becomes, comes_to, number_cell, put, rows_of

COUNTED = "SELECT _key, COUNT(*) AS n FROM `{}` GROUP BY _key"


def short(name):
    return name.rsplit("/", 1)[-1]


@pytest.fixture
def t(table_name):
    return short(table_name)


class Held:
    """A server whose views stand still while `hold` says so."""

    def __init__(self, fresh_views, tmp_path):
        self.file = pathlib.Path(tmp_path, "hold")
        self.file.touch()
        self.server, self.views, self.rpc = fresh_views("--debug-hold-views", str(self.file))
        self.table = self.rpc.create_table("t")

    def let_go(self):
        self.file.unlink()

    def hold(self):
        self.file.touch()


@pytest.fixture
def held(fresh_views, tmp_path):
    return Held(fresh_views, tmp_path)


def operation_of(views, name):
    return views.admin.operations.GetOperation(lro.GetOperationRequest(name=name))


# --- 12 ---


def test_check_12_five_views_of_a_table_and_no_sixth(views, rpc, table_name, t):
    made = [views.create(COUNTED.format(t)) for _ in range(5)]
    with pytest.raises(exceptions.ResourceExhausted):
        views.begin(COUNTED.format(t))
    for number in range(500):
        put(rpc, table_name, b"%03d" % number, v=number)
    for view in made:
        becomes(lambda view=view: len(rpc.read(view)) == 500)
    views.delete(made[0])
    views.create(COUNTED.format(t))


# --- 13 ---


def test_check_13_a_view_that_is_populated_is_not_read(held):
    rows = 2000
    keys = [b"%05d" % n for n in range(rows)]
    codes = held.rpc.mutate_rows(held.table, [(k, [set_cell("f", b"q", b"v", 1000)]) for k in keys])
    assert set(codes) == {0}
    operation = held.views.begin(COUNTED.format("t"), "v").operation
    name = held.views.name("v")
    instances = held.views.admin.instances
    assert not operation.done
    assert instances.get_materialized_view(name=name).query == COUNTED.format("t")
    assert [view.name for view in instances.list_materialized_views(parent=INSTANCE)] == [name]
    with fails_with(StatusCode.FAILED_PRECONDITION, "populated"):
        held.rpc.read(name)
    with fails_with(StatusCode.FAILED_PRECONDITION, "populated"):
        held.rpc.sample_row_keys(name)
    with fails_with(StatusCode.FAILED_PRECONDITION, "populated"):
        rows_of(held.rpc, "SELECT * FROM v")
    assert rows_of(held.rpc, "@{allow_incomplete_view=true} SELECT * FROM v") == []
    held.server.kill()
    held.server.start()
    rpc = type(held.rpc)(held.server.host)
    views = Views(type(held.views.admin)(held.server.host), rpc, held.views.new_id)
    assert not operation_of(views, operation.name).done
    put(rpc, held.table, b"later", q="v")
    held.let_go()
    becomes(lambda: operation_of(views, operation.name).done)
    assert not operation_of(views, operation.name).HasField("error")
    views.keys_come_to(name, [*keys, b"later"])
    views.admin.close()
    rpc.close()


def test_check_13_who_cancels_the_operation_undoes_the_creation(held):
    operation = held.views.begin(COUNTED.format("t"), "v", deletion_protection=True).operation
    stub = held.views.admin.operations
    stub.CancelOperation(lro.CancelOperationRequest(name=operation.name))
    becomes(lambda: operation_of(held.views, operation.name).done)
    assert operation_of(held.views, operation.name).error.code == StatusCode.CANCELLED.value[0]
    with pytest.raises(exceptions.NotFound):
        held.views.admin.instances.get_materialized_view(name=held.views.name("v"))
    held.rpc.delete_table(held.table)


def test_check_13_other_operations_go_on_beside_populations(held):
    for number in range(4):
        held.views.begin(COUNTED.format("t"), f"v{number}")
    instance = held.views.admin.create_instance("other")
    held.views.admin.create_table(instance, "t")
    backups = Backups(held.views.admin, instance)
    backups.create("b", "t")


# --- 14 ---


def test_check_14_created_and_deleted_at_once(held):
    put(held.rpc, held.table, b"old", q="v")
    operation = held.views.begin(COUNTED.format("t"), "v").operation
    held.views.delete(held.views.name("v"))
    becomes(lambda: operation_of(held.views, operation.name).done)
    assert operation_of(held.views, operation.name).HasField("error")
    with fails_with(StatusCode.NOT_FOUND):
        held.rpc.read(held.views.name("v"))
    held.let_go()
    view = held.views.create("SELECT f['q'] AS _key, COUNT(*) AS m FROM t GROUP BY _key", "v")
    held.views.comes_to(view, [(b"v", [number_cell(b"m", 1)])])
    held.views.delete(view)
    held.server.kill()
    assert run_trestle("doctor", held.server.data).returncode == 0
    held.server.start()


def test_check_14_one_of_the_same_query_is_another_one(held):
    """However soon it is made in the place of the first: that one's operation ends with its view,
    and does not undo the other by being cancelled."""
    put(held.rpc, held.table, b"r", q="v")
    former = []
    for number in range(10):
        former.append(held.views.begin(COUNTED.format("t"), "v").operation.name)
        if number % 2 == 1:  # one that was changed is still the one that it was
            held.views.admin.instances.update_materialized_view(
                materialized_view={"name": held.views.name("v"), "deletion_protection": False},
                update_mask=mask("deletion_protection"),
            ).result()
        held.views.delete(held.views.name("v"))
    last = held.views.begin(COUNTED.format("t"), "v").operation.name
    for name in former:
        held.views.admin.operations.CancelOperation(lro.CancelOperationRequest(name=name))
        becomes(lambda name=name: operation_of(held.views, name).done)
        assert operation_of(held.views, name).error.code == StatusCode.NOT_FOUND.value[0]
    assert not operation_of(held.views, last).done
    held.views.admin.instances.update_materialized_view(
        materialized_view={"name": held.views.name("v"), "deletion_protection": True},
        update_mask=mask("deletion_protection"),
    ).result()
    held.let_go()
    becomes(lambda: operation_of(held.views, last).done)
    assert not operation_of(held.views, last).HasField("error")
    held.views.keys_come_to(held.views.name("v"), [b"r"])


# --- 15 ---


def test_check_15_a_table_that_is_read_is_not_deleted(views, rpc, table_name, t):
    made = [views.create(COUNTED.format(t)) for _ in range(2)]
    with fails_with(
        StatusCode.FAILED_PRECONDITION,
        f"Unable to delete resource {table_name} because the resource is referenced by another "
        f"resource. The existing references are: {{{', '.join(sorted(made))}}}",
    ):
        rpc.delete_table(table_name)
    put(rpc, table_name, b"r", v="1")
    views.keys_come_to(made[0], [b"r"])
    for view in made:
        views.delete(view)
    rpc.delete_table(table_name)


def test_check_15_a_family_that_is_read_is_not_dropped(views, rpc, table_name, t):
    view = views.create(f"SELECT f['q'] AS q, COUNT(*) AS n FROM `{t}` GROUP BY q")
    with fails_with(StatusCode.FAILED_PRECONDITION, view):
        rpc.modify_families(table_name, {"id": "f", "drop": True})
    rpc.modify_families(table_name, {"id": "g", "drop": True}, {"id": "h", "create": {}})
    views.delete(view)
    rpc.modify_families(table_name, {"id": "f", "drop": True})


def test_rows_that_go_with_a_family_leave_views(views, rpc, make_table):
    """A family that no view reads had rows of its own: with it they are no rows any more. They
    stayed in views for good, since only changes of rules were told to these."""
    name = make_table(["f", "g"])
    t = short(name)
    put(rpc, name, b"r1", q="A")
    put(rpc, name, b"only g", family="g", q="1")
    made = [
        views.create(f"SELECT _key AS k, COUNT(*) AS n FROM `{t}` GROUP BY k"),
        views.create(f"SELECT f['q'] AS q, COUNT(*) AS n FROM `{t}` GROUP BY q"),
        views.create(f"SELECT f['q'] AS q, _key FROM `{t}` ORDER BY q, _key"),
    ]
    assert [len(rpc.read(view)) for view in made] == [2, 2, 2]
    rpc.modify_families(name, {"id": "g", "drop": True})
    for view in made:
        comes_to(lambda view=view: len(rpc.read(view)), 1)
    # Again, under the same name.
    rpc.modify_families(name, {"id": "g", "create": {}})
    put(rpc, name, b"only g", family="g", q="1")
    for view in made:
        comes_to(lambda view=view: len(rpc.read(view)), 2)
    rpc.modify_families(name, {"id": "g", "drop": True}, {"id": "g", "create": {}})
    for view in made:
        comes_to(lambda view=view: len(rpc.read(view)), 1)


def test_check_15_keys_that_are_read_keep_their_schema(views, admin, table_name, t):
    schema = {
        "fields": [{"field_name": "k", "type_": {"bytes_type": {"encoding": {"raw": {}}}}}],
        "encoding": {"singleton": {}},
    }

    def update(**fields):
        request = {"table": {"name": table_name, **fields}, "update_mask": mask("row_key_schema")}
        admin.tables.update_table(request={**request, "ignore_warnings": True}).result()

    view = views.create(COUNTED.format(t))
    with pytest.raises(exceptions.FailedPrecondition, match=short(view)):
        update(row_key_schema=schema)
    update()  # nothing is set, and nothing was
    views.delete(view)
    update(row_key_schema=schema)


def test_check_15_ids_are_those_of_one_thing(views, admin, rpc, table_name, t):
    view = short(views.create(COUNTED.format(t)))
    logical = {"parent": INSTANCE, "logical_view": {"query": "SELECT 1"}}
    with fails_with(StatusCode.ALREADY_EXISTS):
        rpc.create_table(view)
    with pytest.raises(exceptions.AlreadyExists):
        admin.instances.create_logical_view(request={**logical, "logical_view_id": view})
    with pytest.raises(exceptions.AlreadyExists):
        admin.instances.create_logical_view(request={**logical, "logical_view_id": t})
    with pytest.raises(exceptions.AlreadyExists, match=f"Materialized View {view} already exists."):
        views.begin(COUNTED.format(t), view)
    with pytest.raises(exceptions.AlreadyExists):
        views.begin(COUNTED.format(t), t)
    taken = views.new_id()
    made = admin.instances.create_logical_view(request={**logical, "logical_view_id": taken})
    with fails_with(StatusCode.ALREADY_EXISTS):
        rpc.create_table(taken)
    with pytest.raises(exceptions.AlreadyExists):
        views.begin(COUNTED.format(t), taken)
    admin.instances.delete_logical_view(name=made.result().name)


def test_check_15_an_id_has_up_to_128_characters(views, admin, rpc, table_name, t):
    put(rpc, table_name, b"r", v="1")
    longest = (views.new_id() + "_.-aZ9" * 25)[:128]
    view = views.create(COUNTED.format(t), longest)
    assert [key for key, _ in rpc.read(view)] == [b"r"]
    assert len(rows_of(rpc, f"SELECT * FROM `{longest}`")) == 1
    views.delete(view)
    logical = {"parent": INSTANCE, "logical_view": {"query": "SELECT 1"}}
    made = admin.instances.create_logical_view(request={**logical, "logical_view_id": longest})
    admin.instances.delete_logical_view(name=made.result().name)
    for wrong in (longest + "x", "-v", ".v", "v v", "é"):
        with pytest.raises(exceptions.InvalidArgument, match="at most 128 characters"):
            views.begin(COUNTED.format(t), wrong)
        with pytest.raises(exceptions.InvalidArgument):
            admin.instances.create_logical_view(request={**logical, "logical_view_id": wrong})


def test_check_15_what_comes_back_needs_its_id(views, admin, rpc, make_table, t):
    gone = short(make_table())
    backups = Backups(admin, admin.create_instance(f"i{gone}"))
    admin.create_table(backups.instance, "t")
    backup = backups.create("b", "t")
    rpc.delete_table(f"{INSTANCE}/tables/{gone}")
    views.create(COUNTED.format(t), gone)
    with pytest.raises(exceptions.AlreadyExists):
        admin.tables.undelete_table(name=f"{INSTANCE}/tables/{gone}").result()
    with pytest.raises(exceptions.AlreadyExists):
        backups.restore(gone, backup.name, INSTANCE).result()


def test_check_15_a_view_is_no_table(views, rpc, table_name, t):
    view = short(views.create(COUNTED.format(t)))
    as_table = f"{INSTANCE}/tables/{view}"
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(as_table, b"r", set_cell("default", b"q", b"v"))
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(as_table)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.drop_row_range(as_table, everything=True)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.delete_table(as_table)
    assert as_table not in [each.name for each in views.admin.tables.list_tables(parent=INSTANCE)]
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(f"{INSTANCE}/materializedViews/none")
    with fails_with(StatusCode.INVALID_ARGUMENT):
        rpc.read(f"{INSTANCE}/materializedViews/none/materializedViews/")


def test_check_15_a_protected_view_holds_its_instance(admin, rpc, new_instance, new_table_id):
    instance = new_instance()
    table = admin.create_table(instance, "t")
    views = Views(admin, rpc, new_table_id, instance)
    view = views.create(COUNTED.format("t"), "v", deletion_protection=True)
    put(rpc, table, b"r", v="1")
    views.keys_come_to(view, [b"r"])
    refusal = f"Materialized View {view} has deletion protection enabled."
    with pytest.raises(exceptions.FailedPrecondition, match=refusal):
        views.delete(view)
    with pytest.raises(exceptions.FailedPrecondition):
        admin.instances.delete_instance(name=instance)
    admin.instances.update_materialized_view(
        materialized_view={"name": view}, update_mask=mask("deletion_protection")
    ).result()
    admin.instances.delete_instance(name=instance)
    with fails_with(StatusCode.NOT_FOUND):
        rpc.read(view)
    admin.create_instance(short(instance))
    admin.create_table(instance, "t")
    assert rpc.read(views.create(COUNTED.format("t"), "v")) == []


def test_check_15_etags_and_what_cannot_change(views, admin, table_name, t):
    view = views.create(COUNTED.format(t))
    etag = admin.instances.get_materialized_view(name=view).etag
    with pytest.raises(exceptions.Aborted):
        views.delete(view, etag="stale")
    with pytest.raises(exceptions.InvalidArgument, match="Immutable fields 'query,name' cannot be"):
        admin.instances.update_materialized_view(
            materialized_view={"name": view, "query": "SELECT 1"}, update_mask=mask("query")
        )
    views.delete(view, etag=etag)


# --- 16 ---

READER = policy_pb2.Binding(role="roles/bigtable.reader", members=["user:stranger@example.com"])


class SecuredViews:
    """A table t with a row, and the views v and w of it."""

    def __init__(self, secure):
        self.secured = secure()
        self.rpc = self.secured.rpc("admin")
        self.rpc.create_table("t")
        put(self.rpc, TABLE, b"r", q="v")
        self.admin = self.as_caller("admin")
        for view_id in ("v", "w"):
            self.create("admin", view_id).result(timeout=BOUND_SECONDS)

    def as_caller(self, token):
        channel = self.secured.rpc(token).channel
        return BigtableInstanceAdminClient(
            transport=BigtableInstanceAdminGrpcTransport(channel=channel)
        )

    def create(self, token, view_id):
        return self.as_caller(token).create_materialized_view(
            parent=INSTANCE, materialized_view_id=view_id,
            materialized_view={"query": COUNTED.format("t")},
        )  # fmt: skip

    def name(self, view_id):
        return f"{INSTANCE}/materializedViews/{view_id}"

    def bind(self, resource, binding):
        self.admin.set_iam_policy(
            request={"resource": resource, "policy": policy_pb2.Policy(bindings=[binding])}
        )


def test_check_16_who_may_read_a_view_needs_nothing_on_the_table(secure):
    world = SecuredViews(secure)
    world.bind(world.name("v"), READER)
    rpc = world.secured.rpc("stranger")
    assert [key for key, _ in rpc.read(world.name("v"))] == [b"r"]
    assert rpc.sample_row_keys(world.name("v"))[-1][0] == b""
    (key,) = values_of(execute(rpc, prepare(rpc, "SELECT _key FROM v")))
    assert key.bytes_value == b"r"
    for call_of in (
        lambda: rpc.read(TABLE), lambda: rpc.read(world.name("w")),
        lambda: prepare(rpc, "SELECT _key FROM t"), lambda: prepare(rpc, "SELECT _key FROM w"),
    ):  # fmt: skip
        with fails_with(StatusCode.PERMISSION_DENIED):
            call_of()
    shown = world.as_caller("stranger")
    assert shown.get_materialized_view(name=world.name("v")).name == world.name("v")
    with pytest.raises(exceptions.PermissionDenied):
        shown.delete_materialized_view(name=world.name("v"))


def test_check_16_who_may_only_look_makes_no_view(secure):
    """Whoever has the right to make views, by the roles that there are, may read tables as well."""
    world = SecuredViews(secure)
    viewer = policy_pb2.Binding(
        role="roles/bigtable.viewer", members=["user:stranger@example.com"]
    )
    world.bind(INSTANCE, viewer)
    with pytest.raises(exceptions.PermissionDenied):
        world.create("stranger", "x")
    names = [view.name for view in world.admin.list_materialized_views(parent=INSTANCE)]
    assert names == [world.name("v"), world.name("w")]


# --- 17 ---

ASCENDING = "Only ascending order in ORDER BY by is supported in materialized views."
LIMITS = "Limit and offset are not supported in materialized views."
BOTH = "ORDER BY is not supported with GROUP BY in materialized views."
REFUSED = {
    "SELECT nosuch FROM t": "Unrecognized name: nosuch [at 1:8]",
    "SELECT _key FROM t": "queries must contain a GROUP BY or ORDER BY clause",
    "SELECT f['x'] AS x, _key FROM t ORDER BY x DESC, _key": ASCENDING,
    "SELECT _key FROM t ORDER BY _key LIMIT 5": LIMITS,
    "SELECT _key, COUNT(*) AS c FROM (SELECT * FROM t LIMIT 5) GROUP BY _key": LIMITS,
    "SELECT _key, COUNT(*) AS c FROM t GROUP BY _key ORDER BY _key": BOTH,
    "SELECT x, COUNT(*) AS c FROM (SELECT f['x'] AS x FROM t ORDER BY _key) GROUP BY x": BOTH,
    "SELECT c, COUNT(*) AS d FROM (SELECT _key, COUNT(*) AS c FROM t GROUP BY _key) GROUP BY c":
        "This query is not valid. Please ensure that all parts of the query are valid",
    "SELECT f['x'] AS x FROM t ORDER BY x":
        "queries must select and order by the unmodified _key column from the source table",
    "SELECT _key FROM t ORDER BY f['x'], _key":
        "every ORDER BY column must be selected in the final query",
    "SELECT COUNT(*) AS c FROM t GROUP BY _key":
        "every GROUP BY column must be selected in the final query",
    "SELECT _key, f['x'] AS x, COUNT(*) AS c FROM t GROUP BY _key, x":
        "queries that provide a _key hint must only group by _key (and optionally _timestamp). Use "
        "a different column name if you want to create a composite key.",
    "SELECT _key, ANY_VALUE(f['x']) AS x FROM t GROUP BY _key":
        "Only stable functions are supported in materialized views (GoogleSQL:any_value is not "
        "stable)",
    "SELECT _key, RAND() AS x FROM t ORDER BY _key":
        "Only immutable functions are supported in materialized views (GoogleSQL:rand is not "
        "immutable)",
    "SELECT _key, COUNT(*) AS c FROM taken GROUP BY _key": "Table not found: taken",
    "SELECT _key, COUNT(*) AS c FROM lv GROUP BY _key": "Table not found: lv",
    "SELECT a._key, COUNT(*) AS c FROM t AS a, t AS b GROUP BY _key": "",
    "SELECT _key, COUNT(*) AS c FROM t WHERE _key = @p GROUP BY _key":
        "Query parameter 'p' not found [at 1:48]",
    "SELECT * FROM t ORDER BY _key": "",
    "SELECT DISTINCT _key FROM t ORDER BY _key": "",
    "SELECT _key, COUNT(DISTINCT f['x']) AS c FROM t GROUP BY _key": "",
    "SELECT 1 AS a GROUP BY a": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def taken(admin, rpc):
    """An instance with a table t, a logical view lv, and a materialized view called taken."""
    instance = admin.create_instance("i-refusals")
    admin.create_table(instance, "t")
    admin.instances.create_logical_view(
        parent=instance, logical_view_id="lv", logical_view={"query": "SELECT _key FROM t"}
    ).result()
    views = Views(admin, rpc, None, instance)
    views.create(COUNTED.format("t"), "taken")
    return views


@pytest.mark.parametrize("query", REFUSED)
def test_check_17_what_is_wrong_with_a_query_is_said_first(taken, query):
    with pytest.raises(exceptions.InvalidArgument) as failure:
        taken.begin(query, "taken")
    assert REFUSED[query] in failure.value.message


# --- 18 ---


def test_check_18_a_restored_table_has_no_views(views, admin, rpc, new_instance, new_table_id):
    instance = new_instance()
    table = admin.create_table(instance, "t")
    views = Views(admin, rpc, new_table_id, instance)
    view = views.create(COUNTED.format("t"), "v")
    put(rpc, table, b"r1", v="1")
    views.keys_come_to(view, [b"r1"])
    backups = Backups(admin, instance)
    backup = backups.create("b", "t")
    backups.restore("again", backup.name).result()
    again = f"{instance}/tables/again"
    put(rpc, again, b"of the copy", v="1")
    put(rpc, table, b"r2", v="1")
    views.keys_come_to(view, [b"r1", b"r2"])
    assert [v.name for v in admin.instances.list_materialized_views(parent=instance)] == [view]
    rpc.delete_table(again)


def test_check_18_a_stream_beside_a_view_tells_what_it_told_without(views, rpc, table_name, t):
    """Of two tables, of which one has views: the same changes, and no more."""
    other = rpc.create_table(views.new_id(), ["f", "g"], change_stream_config=stream_config())
    update_stream(rpc, table_name, stream_config())
    view = views.create(COUNTED.format(t))
    start = timestamp(now_micros())
    for name in (table_name, other):
        for number in range(20):
            put(rpc, name, b"r%d" % (number % 7), v=number)
        rpc.mutate(name, b"r1", delete_row())
        rpc.drop_row_range(name, prefix=b"r2")
    views.keys_come_to(view, [b"r0", b"r3", b"r4", b"r5", b"r6"])
    views.create(f"SELECT f['v'] AS v, _key AS k FROM `{t}` ORDER BY v, k")
    end = timestamp(now_micros())
    told = []
    for name in (table_name, other):
        with Reader(rpc, name, start_time=start, end_time=end) as reader:
            told.append([(change.key, change.mutations) for change in reader.rest()[0]])
    assert told[0] == told[1]
    assert len(told[0]) >= 21
    for name in (table_name, other):
        update_stream(rpc, name, None)
    rpc.delete_table(other)


# --- 19 ---


def test_check_19_the_lag_is_told(held):
    held.let_go()
    view = held.views.create(COUNTED.format("t"), "v")
    put(held.rpc, held.table, b"r", v="1")
    held.views.keys_come_to(view, [b"r"])

    def lag():
        return held.server.metric(f'view_lag_seconds{{view="{view}"}}')

    becomes(lambda: lag() == 0)
    held.hold()
    becomes(lambda: put(held.rpc, held.table, b"s", v="1") or lag() > 0)
    held.let_go()
    becomes(lambda: lag() == 0)
    held.views.keys_come_to(view, [b"r", b"s"])


FULL_ROWS, VALUE_BYTES = 40_000, 100


@pytest.mark.long
def test_check_19_what_views_take_is_told_within_a_fifth(fresh_views):
    """Beside what files of rows grow by. Write buffers have little of it: they are small."""
    server, views, rpc = fresh_views("--write-buffer=4MB")
    table = rpc.create_table("t", ["f"])
    chance = random.Random(19)
    for first in range(0, FULL_ROWS, 1000):
        rows = [(b"%06d" % n, [set_cell("f", b"v", chance.randbytes(VALUE_BYTES), 1000)])
                for n in range(first, first + 1000)]  # fmt: skip
        assert set(rpc.mutate_rows(table, rows)) == {0}
    before = in_files(server)
    view = views.create("SELECT f['v'] AS v, COUNT(*) AS n FROM t GROUP BY v", "v")

    def is_about_right():
        told = sum(server.metric(f'{name}{{view="{view}"}}')
                   for name in ("view_bytes", "view_intermediate_bytes"))  # fmt: skip
        grown = in_files(server) - before
        return abs(told - grown) <= 0.2 * grown and told >= 2 * FULL_ROWS * VALUE_BYTES

    becomes(is_about_right)


def in_files(server):
    """Bytes of rows' files; they may come and go meanwhile."""
    total = 0
    for path in server.data.rglob("*.sst"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


# --- 20 ---


IDLE_SECONDS = 5


def idle_seconds(*servers):
    """CPU seconds that each takes while nobody asks."""
    before = [read_stat(server.process.pid)[2] for server in servers]
    time.sleep(IDLE_SECONDS)
    return [read_stat(server.process.pid)[2] - was
            for server, was in zip(servers, before, strict=True)]  # fmt: skip


def test_check_20_views_that_have_all_take_nothing(fresh_views, fresh_server):
    """By the server's own CPU time, beside that of one without views; and nothing grows."""
    server, views, rpc = fresh_views()
    table = rpc.create_table("t")
    put(rpc, table, b"r", v="1")
    made = [views.create(COUNTED.format("t")) for _ in range(5)]
    growing = ["change_log_written_bytes_total", "change_log_bytes",
               *(f'view_changes_total{{view="{view}"}}' for view in made)]  # fmt: skip
    for view in made:
        views.keys_come_to(view, [b"r"])
    becomes(lambda: server.metric("views_lag_seconds") == 0)
    before = [server.metric(name) for name in growing]
    with_views, without = idle_seconds(server, fresh_server())
    assert with_views <= without + IDLE_SECONDS / 10
    assert [server.metric(name) for name in growing] == before


def test_check_20_a_start_builds_nothing_anew(held):
    """After it a view has what it had, though nothing is kept up."""
    held.let_go()
    view = held.views.create(COUNTED.format("t"), "v")
    put(held.rpc, held.table, b"r", v="1")
    held.views.keys_come_to(view, [b"r"])
    held.hold()
    for end in (held.server.kill, held.server.stop):
        end()
        held.server.start()
        rpc = type(held.rpc)(held.server.host)
        assert [key for key, _ in rpc.read(view)] == [b"r"]
        rpc.close()


# --- REST ---


def test_views_by_rest(server, views, rpc, table_name, t):
    put(rpc, table_name, b"r", v="1")
    view = views.create(COUNTED.format(t))
    rest = Rest(server.host)
    _, listed = rest.ask("GET", f"/v2/{INSTANCE}/materializedViews?view=SCHEMA_VIEW")
    assert view in [each["name"] for each in json.loads(listed)["materializedViews"]]
    _, got = rest.ask("GET", f"/v2/{view}?view=SCHEMA_VIEW")
    assert json.loads(got)["query"] == COUNTED.format(t)
    _, read = rest.ask("POST", f"/v2/{view}:readRows", {})
    assert json.loads(read)[0]["chunks"][0]["rowKey"] == "cg=="
