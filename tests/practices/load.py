"""Puts cases into a server, and plays their traffic.

A case has an instance or a project of its own, so none is seen by another's advice. Requests are
protobuf's own classes on plain stubs: the client must not be what takes the time.
"""

import datetime
import functools

import grpc
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types as bigtable
from google.cloud.datastore_v1 import types as datastore
from harness.admin import Admin
from harness.backups import SOON
from harness.indexes import Indexes, definition
from harness.rpc import CHANNEL_OPTIONS, Rpc

from practices import case as cases
from practices.entities import BAD_TEXT

CELLS_A_REQUEST = 20_000
BYTES_A_REQUEST = 16_000_000
ENTITIES_A_COMMIT = 200
NOT_UTF8 = b"\xff\xfe\xfd\xfc\xfb\xfa"


def stubs(channel, service, **kinds):
    """{method: function}, answers as bytes, or as the class that is given."""
    made = {}
    for method, answer in kinds.items():
        make = channel.unary_stream if method in ("ReadRows", "MutateRows") else channel.unary_unary
        made[method] = make(
            f"/{service}/{method}",
            request_serializer=lambda request: request.SerializeToString().replace(
                BAD_TEXT[-2:].encode(), NOT_UTF8
            ),
            response_deserializer=answer and answer.pb().FromString,
        )
    return made


# --- Bigtable ---


def gc_rule(rule):
    parts = []
    if rule.versions:
        parts.append(admin_types.GcRule(max_num_versions=rule.versions))
    if rule.days:
        age = datetime.timedelta(days=rule.days)
        parts.append(admin_types.GcRule(max_age=age))
    if len(parts) < 2:
        return parts[0] if parts else None
    kind = "intersection" if rule.both else "union"
    return admin_types.GcRule(**{kind: {"rules": parts}})


def family_of(rule):
    family = admin_types.ColumnFamily(gc_rule=gc_rule(rule))
    if rule.total:
        big_endian = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
        family.value_type = {"aggregate_type": {"input_type": big_endian, "sum": {}}}
    return family


def put_cell(mutation, cell):
    """Into a new Mutation."""
    if isinstance(cell.value, int):
        add = mutation.add_to_cell
        add.family_name = cell.family
        add.column_qualifier.raw_value = cell.qualifier
        add.timestamp.raw_timestamp_micros = cell.micros // 1000 * 1000
        add.input.int_value = cell.value
    else:
        put = mutation.set_cell
        put.family_name, put.column_qualifier, put.value = cell.family, cell.qualifier, cell.value
        put.timestamp_micros = cell.micros // 1000 * 1000


def put_row(request, cells):
    """Into the `mutations` of a request or an entry."""
    for cell in cells:
        put_cell(request.mutations.add(), cell)
    if not cells:
        request.mutations.add().delete_from_row.SetInParent()


def pieces(cells):
    """A row in parts that are small enough for a message: one, nearly always."""
    part, size = [], 0
    for cell in cells:
        weight = 8 if isinstance(cell.value, int) else len(cell.value)
        if part and size + weight > BYTES_A_REQUEST:
            yield part
            part, size = [], 0
        part.append(cell)
        size += weight
    yield part


def portions(rows):
    """Rows in lists of which each fits into a request."""
    portion, count, size = [], 0, 0
    for key, cells in rows:
        for part in pieces(cells):
            portion.append((key, part))
            count += len(part)
            size += sum(8 if isinstance(each.value, int) else len(each.value) for each in part)
            if count > CELLS_A_REQUEST or size > BYTES_A_REQUEST:
                yield portion
                portion, count, size = [], 0, 0
    if portion:
        yield portion


class Tables:
    """The tables of one case on a server. Traffic goes to the first."""

    def __init__(self, server, case, name):
        self.call = server.bigtable
        instance = server.admin.create_instance(name)
        self.names = []
        for table in case.tables:
            families = {each: family_of(rule) for each, rule in table.families.items()}
            self.names.append(create_table(server.rpc, instance, table.name, families))
            for portion in portions(table.rows):
                self.send(self.names[-1], portion)

    def send(self, table, rows):
        """One MutateRows, all of which must succeed."""
        request = bigtable.MutateRowsRequest.pb()(table_name=table)
        for key, cells in rows:
            put_row(request.entries.add(row_key=key), cells)
        for answer in self.call["MutateRows"](request):
            for entry in answer.entries:
                assert entry.status.code == 0, entry.status.message

    def play(self, step):
        play(step, self)


def create_table(rpc, instance, table_id, families):
    request = admin_types.CreateTableRequest(
        parent=instance, table_id=table_id, table={"column_families": families}
    )
    return rpc.admin.create_table(request).name


@functools.singledispatch
def play(step, target):
    raise TypeError(step)


@play.register
def _(step: cases.Read, tables):
    request = bigtable.ReadRowsRequest(
        table_name=tables.names[0], filter=step.filter, rows_limit=step.limit
    )
    request = bigtable.ReadRowsRequest.pb(request)
    request.rows.row_keys.extend(step.keys)
    for first, end in step.ranges:
        part = request.rows.row_ranges.add(start_key_closed=first)
        if end:
            part.end_key_open = end
    for _ in tables.call["ReadRows"](request):
        pass


@play.register
def _(step: cases.Write, tables):
    if len(step.rows) > 1:
        tables.send(tables.names[0], step.rows)
        return
    ((key, cells),) = step.rows
    request = bigtable.MutateRowRequest.pb()(table_name=tables.names[0], row_key=key)
    put_row(request, cells)
    tables.call["MutateRow"](request)


@play.register
def _(step: cases.Increment, tables):
    request = bigtable.ReadModifyWriteRowRequest.pb()(
        table_name=tables.names[0], row_key=step.key
    )
    request.rules.add(
        family_name=step.family, column_qualifier=step.qualifier, increment_amount=1
    )
    tables.call["ReadModifyWriteRow"](request)


# --- Datastore ---


def put_value(value, given, is_plain):
    """Into a new Value."""
    if isinstance(given, list):
        value.array_value.SetInParent()
        for each in given:
            put_value(value.array_value.values.add(), each, is_plain)
        return
    kinds = {bool: "boolean", int: "integer", float: "double", str: "string", bytes: "blob"}
    if isinstance(given, datetime.datetime):
        value.timestamp_value.FromDatetime(given)
    else:
        setattr(value, f"{kinds[type(given)]}_value", given)
    value.exclude_from_indexes = is_plain


def put_path(key, project, path):
    key.partition_id.project_id = project
    for kind, which in zip(path[::2], path[1::2], strict=True):
        element = key.path.add(kind=kind)
        if isinstance(which, int):
            element.id = which
        else:
            element.name = which


class Entities:
    """The database of one case on a server."""

    def __init__(self, server, case, name):
        self.call, self.project = server.datastore, name
        if case.database.indexes:
            create_indexes(server.host, name, case.database.indexes)
        entities = case.database.entities
        for first in range(0, len(entities), ENTITIES_A_COMMIT):
            self.play(cases.Put(tuple(entities[first : first + ENTITIES_A_COMMIT])))

    def request(self, kind):
        return kind.pb()(project_id=self.project)

    def play(self, step):
        play(step, self)


def create_indexes(host, project, found):
    client = Indexes(host, project)
    begun = [client.begin(definition(kind, *names)) for kind, *names in found]
    for each in begun:
        each.result(polling=SOON)
    client.close()


@play.register
def _(step: cases.Put, target):
    request = target.request(datastore.CommitRequest)
    request.mode = request.NON_TRANSACTIONAL
    for each in step.entities:
        mutation = request.mutations.add()
        if step.kind == "delete":
            put_path(mutation.delete, target.project, each.path)
            continue
        put_path(mutation.upsert.key, target.project, each.path)
        for name, given in each.properties.items():
            put_value(mutation.upsert.properties[name], given, name in each.plain)
    target.call["Commit"](request)


def put_paths(request, target, paths):
    for path in paths:
        put_path(request.keys.add(), target.project, path)


@play.register
def _(step: cases.Lookup, target):
    request = target.request(datastore.LookupRequest)
    put_paths(request, target, step.paths)
    target.call["Lookup"](request)


@play.register
def _(step: cases.OpenTransaction, target):
    begin = target.request(datastore.BeginTransactionRequest)
    begin.transaction_options.read_write.SetInParent()
    request = target.request(datastore.LookupRequest)
    request.read_options.transaction = target.call["BeginTransaction"](begin).transaction
    put_paths(request, target, step.paths)
    target.call["Lookup"](request)


def query_of(step, target):
    request = target.request(datastore.RunQueryRequest)
    request.partition_id.project_id = target.project
    query = request.query
    query.kind.add(name=step.kind)
    query.offset = step.offset
    if step.limit:
        query.limit.value = step.limit
    for name in step.order:
        query.order.add().property.name = name
    for name in step.projection:
        query.projection.add().property.name = name
    if step.where:
        query.filter.composite_filter.op = datastore.CompositeFilter.Operator.AND
    for name, operator, given in step.where:
        part = query.filter.composite_filter.filters.add().property_filter
        part.property.name = name
        part.op = datastore.PropertyFilter.Operator[operator]
        put_value(part.value, given, False)
    return request


@play.register
def _(step: cases.Query, target):
    request, pages = query_of(step, target), step.pages
    while pages:
        batch = target.call["RunQuery"](request).batch
        request.query.start_cursor = batch.end_cursor
        request.query.offset = 0
        if batch.more_results == datastore.QueryResultBatch.MoreResultsType.NOT_FINISHED:
            continue
        if not batch.entity_results:
            return
        pages -= 1


# --- all ---


class Target:
    """A server's stubs, for as many cases as one likes."""

    def __init__(self, host):
        self.host = host
        self.admin, self.rpc = Admin(host), Rpc(host)
        self.channel = grpc.insecure_channel(host, options=CHANNEL_OPTIONS)
        self.bigtable = stubs(
            self.channel, "google.bigtable.v2.Bigtable", ReadRows=None, MutateRow=None,
            MutateRows=bigtable.MutateRowsResponse, ReadModifyWriteRow=None,
        )  # fmt: skip
        self.datastore = stubs(
            self.channel, "google.datastore.v1.Datastore", Commit=None, Lookup=None,
            BeginTransaction=datastore.BeginTransactionResponse,
            RunQuery=datastore.RunQueryResponse,
        )  # fmt: skip

    def load(self, case, name):
        """The case's data; what is returned plays its traffic."""
        return (Entities if case.database else Tables)(self, case, name)

    def close(self):
        for each in (self.admin, self.rpc, self.channel):
            each.close()
