"""Every call of Google's Python clients: the data client in both its forms, the administration's,
and the classic one. What Trestle does not have yet must say so. And what they do when a connection
fails under them: they go on where they stood.

The lists of methods are held against the packages, so that a new release shows what it added."""

import asyncio
import inspect
import json
from datetime import timedelta
from importlib import resources

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import bigtable_admin_v2 as admin
from google.cloud import bigtable_v2
from google.cloud.bigtable import column_family, row_filters
from google.cloud.bigtable.data import (
    BigtableDataClient,
    BigtableDataClientAsync,
    MutationsExceptionGroup,
    ReadRowsQuery,
    RowMutationEntry,
    RowRange,
    SetCell,
    Table,
    TableAsync,
)
from google.cloud.bigtable.data.read_modify_write_rules import AppendValueRule, IncrementRule
from google.cloud.bigtable.row_set import RowSet
from google.cloud.bigtable.table import ClusterState
from google.cloud.bigtable_v2 import types
from harness.patience import PATIENCE_SECONDS
from harness.proxy import FailingProxy
from harness.rpc import INSTANCE, fails_with, set_cell

KEY = b"k"
SPLITS = [b"3", b"6"]
KEYS = [b"%d" % number for number in range(10)]


def value_of(row):
    return [cell.value for cell in row]


# --- the data client: one list of calls, for both its forms ---


class Plain:
    """Calls that come back with their result."""

    table_type = Table

    def __init__(self):
        self.client = BigtableDataClient(project="p")

    def open(self, method, *ids):
        """A table or a view: open("get_table", "i", "t")."""
        return getattr(self.client, method)(*ids)

    def wait(self, result):
        return result

    def items(self, stream):
        return list(stream)

    def batch(self, table, entries):
        with table.mutations_batcher(flush_limit_mutation_count=3) as batcher:
            for entry in entries:
                batcher.append(entry)

    def close(self):
        self.client.close()


class Asynchronous:
    """Calls that are awaited."""

    table_type = TableAsync

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.client = self.make(BigtableDataClientAsync, project="p")

    def make(self, function, *arguments, **named):
        """Clients and tables are made within the loop."""

        async def call():
            return function(*arguments, **named)

        return self.wait(call())

    def open(self, method, *ids):
        return self.make(getattr(self.client, method), *ids)

    def wait(self, result):
        return self.loop.run_until_complete(result)

    def items(self, stream):
        async def collect():
            return [item async for item in await stream]

        return self.wait(collect())

    def batch(self, table, entries):
        async def append_all():
            async with table.mutations_batcher(flush_limit_mutation_count=3) as batcher:
                for entry in entries:
                    await batcher.append(entry)

        self.wait(append_all())

    def close(self):
        self.wait(self.client.close())
        self.loop.close()


@pytest.fixture(scope="module", params=[Plain, Asynchronous])
def form(request, emulator_host):
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def digits(rpc, make_table):
    """A split table with one row for each of KEYS."""
    name = make_table(splits=SPLITS)
    rpc.mutate_rows(name, [(key, [set_cell("f", b"q", key, 1000)]) for key in KEYS])
    return name.rsplit("/", 1)[-1]


def read_row(form, table):
    assert value_of(form.wait(table.read_row(b"3"))) == [b"3"]
    assert form.wait(table.read_row(b"nobody")) is None


def read_rows(form, table):
    query = ReadRowsQuery(row_keys=[b"9"], row_ranges=RowRange(b"2", b"5"), limit=3)
    rows = form.wait(table.read_rows(query))
    assert [row.row_key for row in rows] == [b"2", b"3", b"4"]


def read_rows_stream(form, table):
    rows = form.items(table.read_rows_stream(ReadRowsQuery()))
    assert [row.row_key for row in rows] == KEYS


def read_rows_sharded(form, table):
    samples = form.wait(table.sample_row_keys())
    shards = ReadRowsQuery().shard(samples)
    assert len(shards) == len(SPLITS) + 1
    rows = form.wait(table.read_rows_sharded(shards))
    assert [row.row_key for row in rows] == KEYS


def row_exists(form, table):
    assert form.wait(table.row_exists(b"3")) is True
    assert form.wait(table.row_exists(b"nobody")) is False


def sample_row_keys(form, table):
    samples = form.wait(table.sample_row_keys())
    assert [key for key, _ in samples] == [*SPLITS, b""]


def mutate_row(form, table):
    form.wait(table.mutate_row(KEY, [SetCell("f", b"a", 7), SetCell("f", b"b", "text")]))
    assert value_of(form.wait(table.read_row(KEY))) == [(7).to_bytes(8, "big"), b"text"]


def bulk_mutate_rows(form, table):
    entries = [RowMutationEntry(KEY + key, SetCell("f", b"q", key)) for key in KEYS]
    form.wait(table.bulk_mutate_rows(entries))
    assert len(form.wait(table.read_rows(ReadRowsQuery(row_ranges=RowRange(KEY))))) == len(KEYS)
    failing = [*entries, RowMutationEntry(KEY, SetCell("nope", b"q", b"v"))]
    with pytest.raises(MutationsExceptionGroup) as caught:
        form.wait(table.bulk_mutate_rows(failing))
    assert [failure.index for failure in caught.value.exceptions] == [len(entries)]


def mutations_batcher(form, table):
    form.batch(table, [RowMutationEntry(KEY + key, SetCell("f", b"q", key)) for key in KEYS])
    assert len(form.wait(table.read_rows(ReadRowsQuery(row_ranges=RowRange(KEY))))) == len(KEYS)


def check_and_mutate_row(form, table):
    call = {"true_case_mutations": SetCell("f", b"true", b"")}
    assert form.wait(table.check_and_mutate_row(b"nobody", None, **call)) is False
    assert form.wait(table.check_and_mutate_row(b"3", None, **call)) is True
    assert len(form.wait(table.read_row(b"3")).cells) == 2


def read_modify_write_row(form, table):
    rules = [AppendValueRule("f", b"q", b"!"), IncrementRule("f", b"n", 2)]
    row = form.wait(table.read_modify_write_row(b"3", rules))
    assert value_of(row) == [(2).to_bytes(8, "big"), b"3!"]


DATA_CALLS = [
    bulk_mutate_rows,
    check_and_mutate_row,
    mutate_row,
    mutations_batcher,
    read_modify_write_row,
    read_row,
    read_rows,
    read_rows_sharded,
    read_rows_stream,
    row_exists,
    sample_row_keys,
]


def open_table(form, _, table_id):
    return form.open("get_table", "i", table_id)


def open_view(form, rpc, table_id):
    """A view of everything."""
    request = admin.CreateAuthorizedViewRequest(
        parent=f"{INSTANCE}/tables/{table_id}",
        authorized_view_id="v",
        authorized_view={
            "subset_view": {
                "row_prefixes": [b""],
                "family_subsets": {"f": {"qualifier_prefixes": [b""]}},
            }
        },
    )
    rpc.admin.create_authorized_view(request, timeout=PATIENCE_SECONDS)
    return form.open("get_authorized_view", "i", table_id, "v")


@pytest.fixture(params=[open_table, open_view])
def opened(request, form, rpc, digits):
    """The table `digits`, by itself or through a view, in either form."""
    table = request.param(form, rpc, digits)
    yield table
    form.wait(table.close())


@pytest.mark.parametrize("call", DATA_CALLS, ids=lambda call: call.__name__)
def test_data_client(form, opened, call):
    call(form, opened)


def public(kind):
    return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_no_call_of_the_data_client_is_left_out(form):
    assert public(form.table_type) == {call.__name__ for call in DATA_CALLS} | {"close"}


def test_a_materialized_view(form, views, rpc, table_name):
    rpc.mutate(table_name, KEY, set_cell("f", b"q", b"v"))
    made = views.create(
        f"SELECT _key, COUNT(*) AS n FROM `{table_name.rsplit('/', 1)[-1]}` GROUP BY _key"
    )
    view = form.open("get_materialized_view", "i", made.rsplit("/", 1)[-1])
    row = form.wait(view.read_row(KEY))
    assert [cell.qualifier for cell in row.cells] == [b"", b"n"]
    form.wait(view.close())


def test_a_query(form):
    async def rows_of(answer):
        return [row async for row in answer]

    answer = form.wait(form.client.execute_query("SELECT 1 AS one", "i"))
    rows = form.wait(rows_of(answer)) if hasattr(answer, "__aiter__") else list(answer)
    assert [row["one"] for row in rows] == [1]


# --- administration ---

TABLE_ADMIN = "/google.bigtable.admin.v2.BigtableTableAdmin/"
INSTANCE_ADMIN = "/google.bigtable.admin.v2.BigtableInstanceAdmin/"
DATA = "/google.bigtable.v2.Bigtable/"


@pytest.fixture
def table_admin(server):
    with grpc.insecure_channel(server.host) as channel:
        transport = admin.BigtableTableAdminClient.get_transport_class("grpc")(channel=channel)
        yield admin.BigtableTableAdminClient(transport=transport)


def test_table_admin(table_admin, new_table_id):
    """Every call that there is, in the life of a table."""
    table_id = new_table_id()
    name = f"{INSTANCE}/tables/{table_id}"
    table = {"column_families": {"f": {}}}
    created = table_admin.create_table(parent=INSTANCE, table_id=table_id, table=table)
    assert created.name == name
    assert name in [each.name for each in table_admin.list_tables(parent=INSTANCE)]
    table_admin.modify_column_families(name=name, modifications=[{"id": "g", "create": {}}])
    assert sorted(table_admin.get_table(name=name).column_families) == ["f", "g"]
    token = table_admin.generate_consistency_token(name=name).consistency_token
    assert table_admin.check_consistency(name=name, consistency_token=token).consistent
    assert table_admin.wait_for_consistency({"name": name}) is True
    for is_protected in (True, False):
        protected = {"name": name, "deletion_protection": is_protected}
        mask = {"paths": ["deletion_protection"]}
        operation = table_admin.update_table(table=protected, update_mask=mask)
        assert operation.result(timeout=PATIENCE_SECONDS).deletion_protection == is_protected
    table_admin.drop_row_range({"name": name, "delete_all_data_from_table": True}, timeout=900)
    table_admin.delete_table(name=name)
    with pytest.raises(exceptions.NotFound):
        table_admin.get_table(name=name)


def test_table_admin_that_is_awaited(server, new_table_id):
    async def live(table_id):
        async with grpc.aio.insecure_channel(server.host) as channel:
            kind = admin.BigtableTableAdminAsyncClient
            transport = kind.get_transport_class("grpc_asyncio")(channel=channel)
            client = kind(transport=transport)
            made = await client.create_table(parent=INSTANCE, table_id=table_id, table={})
            assert await client.wait_for_consistency({"name": made.name}) is True
            assert (await client.get_table(name=made.name)).name == made.name
            await client.delete_table(name=made.name)

    asyncio.run(live(new_table_id()))


# What the services have, by the packages' own lists, and Trestle does not have yet.
ANSWERED = {
    DATA: {
        "CheckAndMutateRow", "ExecuteQuery", "GenerateInitialChangeStreamPartitions",
        "MutateRow", "MutateRows", "PingAndWarm", "PrepareQuery", "ReadChangeStream",
        "ReadModifyWriteRow", "ReadRows", "SampleRowKeys",
    },
    TABLE_ADMIN: {
        "CheckConsistency", "CopyBackup", "CreateAuthorizedView", "CreateBackup",
        "CreateSchemaBundle", "CreateTable", "DeleteAuthorizedView", "DeleteBackup",
        "DeleteSchemaBundle", "DeleteTable", "DropRowRange", "GenerateConsistencyToken",
        "GetAuthorizedView", "GetBackup", "GetIamPolicy", "GetSchemaBundle", "GetTable",
        "ListAuthorizedViews", "ListBackups", "ListSchemaBundles", "ListTables",
        "ModifyColumnFamilies", "RestoreTable", "SetIamPolicy", "TestIamPermissions",
        "UndeleteTable", "UpdateAuthorizedView", "UpdateBackup", "UpdateSchemaBundle",
        "UpdateTable",
    },
    INSTANCE_ADMIN: {
        "CreateAppProfile", "CreateCluster", "CreateInstance", "CreateLogicalView",
        "CreateMaterializedView", "DeleteAppProfile", "DeleteCluster", "DeleteInstance",
        "DeleteLogicalView", "DeleteMaterializedView", "GetAppProfile", "GetCluster",
        "GetIamPolicy", "GetInstance", "GetLogicalView", "GetMaterializedView",
        "ListAppProfiles", "ListClusters", "ListHotTablets", "ListInstances",
        "ListLogicalViews", "ListMaterializedViews", "PartialUpdateCluster",
        "PartialUpdateInstance", "SetIamPolicy", "TestIamPermissions", "UpdateAppProfile",
        "UpdateCluster", "UpdateInstance", "UpdateLogicalView", "UpdateMaterializedView",
    },
}  # fmt: skip


def rpcs_of(package):
    """(service, RPC) pairs."""
    listed = json.loads(resources.files(package).joinpath("gapic_metadata.json").read_text())
    return [
        (f"/{listed['protoPackage']}.{service}/", rpc)
        for service, forms in listed["services"].items()
        for rpc in forms["clients"]["grpc"]["rpcs"]
    ]


RPCS = [*rpcs_of(bigtable_v2), *rpcs_of(admin)]


def test_what_is_answered_is_in_the_lists():
    named = {(service, rpc) for service, rpcs in ANSWERED.items() for rpc in rpcs}
    assert named <= set(RPCS)


def test_what_is_not_there_says_so(rpc):
    for service, name in RPCS:
        if name not in ANSWERED[service]:
            with fails_with(grpc.StatusCode.UNIMPLEMENTED):
                rpc.channel.unary_unary(service + name)(b"", timeout=PATIENCE_SECONDS)


# --- the classic client ---


@pytest.fixture
def classic(instance, digits):
    return instance.table(digits)


def cells_of(row):
    """{family: {qualifier: newest value}}"""
    return {
        family: {qualifier: cells[0].value for qualifier, cells in columns.items()}
        for family, columns in row.cells.items()
    }


def test_classic_reads(classic):
    assert cells_of(classic.read_row(b"3")) == {"f": {b"q": b"3"}}
    assert classic.read_row(b"nobody") is None
    rows = classic.read_rows(start_key=b"2", end_key=b"5", end_inclusive=True)
    assert [row.row_key for row in rows] == [b"2", b"3", b"4", b"5"]
    chosen = RowSet()
    chosen.add_row_key(b"9")
    chosen.add_row_range_from_keys(b"1", b"3")
    assert [row.row_key for row in classic.read_rows(row_set=chosen)] == [b"1", b"2", b"9"]
    with pytest.warns(DeprecationWarning):
        assert len(list(classic.yield_rows(limit=4))) == 4
    assert [sample.row_key for sample in classic.sample_row_keys()] == [*SPLITS, b""]


def test_classic_direct_row(classic):
    row = classic.direct_row(b"3")
    row.set_cell("f", b"q", b"new")
    row.set_cell("g", b"n", 7)
    assert row.commit().code == 0
    assert cells_of(classic.read_row(b"3")) == {
        "f": {b"q": b"new"}, "g": {b"n": (7).to_bytes(8, "big")},
    }  # fmt: skip
    row.delete_cell("f", b"q")
    row.delete_cells("g", row.ALL_COLUMNS)
    row.commit()
    assert classic.read_row(b"3") is None


def test_classic_conditional_row(classic):
    row = classic.conditional_row(b"3", row_filters.ValueRegexFilter(b"3"))
    row.set_cell("f", b"true", b"")
    row.set_cell("f", b"false", b"", state=False)
    assert row.commit() is True
    assert sorted(cells_of(classic.read_row(b"3"))["f"]) == [b"q", b"true"]


def test_classic_append_row(classic):
    row = classic.append_row(b"3")
    row.append_cell_value("f", b"q", b"!")
    row.increment_cell_value("g", b"n", 2)
    assert {family: list(columns) for family, columns in row.commit().items()} == {
        "f": [b"q"], "g": [b"n"],
    }  # fmt: skip
    assert cells_of(classic.read_row(b"3"))["f"] == {b"q": b"3!"}


def test_classic_rows_in_bulk(classic):
    rows = [classic.direct_row(KEY + key) for key in KEYS]
    for row in rows:
        row.set_cell("f", b"q", b"v")
    rows.append(classic.direct_row(b"bad"))
    rows[-1].set_cell("nope", b"q", b"v")
    codes = [status.code for status in classic.mutate_rows(rows)]
    assert codes == [0] * len(KEYS) + [grpc.StatusCode.NOT_FOUND.value[0]]
    with classic.mutations_batcher(flush_count=4) as batcher:
        batcher.mutate_rows(rows[:-1])
    assert len(list(classic.read_rows(start_key=KEY))) == len(KEYS)


def test_classic_dropping(classic):
    classic.drop_by_prefix(b"1", timeout=900)
    assert [row.row_key for row in classic.read_rows()] == KEYS[:1] + KEYS[2:]
    classic.truncate(timeout=900)
    assert list(classic.read_rows()) == []


def test_classic_administration(instance, new_table_id):
    table = instance.table(new_table_id())
    assert table.exists() is False
    table.create(column_families={"f": column_family.MaxVersionsGCRule(1)})
    assert table.exists() is True
    assert table.table_id in [each.table_id for each in instance.list_tables()]
    family = table.column_family("g", column_family.MaxAgeGCRule(timedelta(days=1)))
    family.create()
    family.gc_rule = column_family.GCRuleUnion(
        [column_family.MaxVersionsGCRule(2), column_family.MaxAgeGCRule(timedelta(days=2))]
    )
    family.update()
    assert table.list_column_families()["g"].gc_rule == family.gc_rule
    family.delete()
    assert sorted(table.list_column_families()) == ["f"]
    (state,) = table.get_cluster_states().values()
    assert state.replication_state == ClusterState(4).replication_state
    table.delete()
    assert table.exists() is False


# --- when the connection fails ---


@pytest.fixture
def through(server, monkeypatch):
    """A function that opens a table of the data client over a connection that is going to fail once
    the server has sent so many bytes."""
    opened = []

    def open_table(name, after):
        proxy = FailingProxy(server.host, after)
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", proxy.host)
        client = BigtableDataClient(project="p")
        opened.extend([client, proxy])
        return client.get_table("i", name.rsplit("/", 1)[-1]), proxy

    yield open_table
    for each in opened:
        each.close()


def test_a_read_goes_on_after_the_last_row(through, rpc, table_name):
    """4 MB in 4,000 rows; the connection fails somewhere in their midst."""
    keys = [b"%04d" % number for number in range(4000)]
    cells = [set_cell("f", b"q", b"x" * 1000, 1000)]
    assert set(rpc.mutate_rows(table_name, [(key, cells) for key in keys])) == {0}
    table, proxy = through(table_name, after=1_000_000)
    with table:
        rows = table.read_rows_stream(ReadRowsQuery(limit=3900))
        assert [row.row_key for row in rows] == keys[:3900]
    assert proxy.connections > 1


def test_a_write_is_tried_again(through, rpc, table_name):
    """The answers are lost, or not all of the request has come: the client cannot know."""
    table, proxy = through(table_name, after=200)
    entries = [RowMutationEntry(b"%04d" % i, SetCell("f", b"q", b"x" * 100)) for i in range(2000)]
    with table:
        table.bulk_mutate_rows(entries)
    assert proxy.connections > 1
    assert [len(cells) for _, cells in rpc.read(table_name)] == [1] * len(entries)


def test_a_scan_goes_on_after_the_last_scanned_key(rpc, table_name):
    """As Java's and Go's clients do when nothing but progress has come before the failure."""
    keys = [b"%05d" % number for number in range(5000)]
    assert set(rpc.mutate_rows(table_name, [(k, [set_cell("f", b"q", k)]) for k in keys])) == {0}
    late = types.RowFilter(value_regex_filter=b"04.*")
    first = next(iter(rpc.read_stream(table_name, filter=late)))
    scanned = first.last_scanned_row_key
    assert keys[0] < scanned < b"04"
    rest = {"row_ranges": [{"start_key_open": scanned}]}
    assert [key for key, _ in rpc.read(table_name, rows=rest, filter=late)] == keys[4000:]


def test_a_deadline_ends_the_call_alone(client, table, rpc, table_name):
    """A call that has no time left fails; the connection serves the next."""
    rows = [(b"%04d" % i, [set_cell("f", b"q", b"x" * 1000)]) for i in range(2000)]
    assert set(rpc.mutate_rows(table_name, rows)) == {0}
    with pytest.raises(exceptions.DeadlineExceeded):
        table.read_rows(ReadRowsQuery(), operation_timeout=0.001)
    assert len(table.read_rows(ReadRowsQuery())) >= 2000
