"""The calls that the comparison makes, with protobuf's own messages: no retries, no wrapping.

A call that fails gives a Failed; a call that succeeds gives what the model gives.
"""

import collections
import time

import grpc
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2
from harness.patience import PATIENCE_SECONDS
from harness.rpc import ALL_FEATURES, CHANNEL_OPTIONS, INSTANCE, Cell, decode_responses

ADMIN_SECONDS = 900
DATA = "/google.bigtable.v2.Bigtable/"
ADMIN = "/google.bigtable.admin.v2.BigtableTableAdmin/"
Modification = admin_types.ModifyColumnFamiliesRequest.Modification.pb()
ColumnFamily = admin_types.ColumnFamily.pb()
ReadRowsRequest = types.ReadRowsRequest.pb()

AGGREGATORS = {"sum": "sum", "min": "min_", "max": "max_"}  # as the package calls them

Failed = collections.namedtuple("Failed", "code text")


class Clock:
    """The machine's, which somebody may set back. A server gives no time twice, so it goes on with
    what the clock had shown until that comes again (docs/internals/clocks.md)."""

    def __init__(self):
        self.ahead_ns = -float("inf")  # of the steady clock: the most that it has been

    def now_us(self):
        steady = time.monotonic_ns()
        wall = time.time_ns()
        self.ahead_ns = max(self.ahead_ns, wall - steady)
        return wall // 1000

    def latest_us(self):
        """What a clock would show that was never set back."""
        return max(self.now_us(), (time.monotonic_ns() + self.ahead_ns) // 1000 + 1)


def failed(error):
    return Failed(error.code().value[0], error.details())


class Wire:
    instance = INSTANCE

    def __init__(self, host):
        self.clock = Clock()
        self.channel = grpc.insecure_channel(host, options=CHANNEL_OPTIONS)
        self.calls = {
            "mutate_row": self.method(DATA, "MutateRow", types.MutateRowResponse),
            "mutate_rows": self.method(DATA, "MutateRows", types.MutateRowsResponse, True),
            "check_and_mutate_row": self.method(
                DATA, "CheckAndMutateRow", types.CheckAndMutateRowResponse
            ),
            "read_modify_write_row": self.method(
                DATA, "ReadModifyWriteRow", types.ReadModifyWriteRowResponse
            ),
            "read_rows": self.method(DATA, "ReadRows", types.ReadRowsResponse, True),
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def method(self, service, name, response, is_stream=False):
        message = response.pb() if hasattr(response, "pb") else response
        make = self.channel.unary_stream if is_stream else self.channel.unary_unary
        return make(
            service + name,
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=message.FromString,
        )

    # --- data ---

    def call(self, kind, request):
        try:
            return getattr(self, f"answer_{kind}")(self.calls[kind], request)
        except grpc.RpcError as error:
            return failed(error)

    def answer_mutate_row(self, method, request):
        method(request, timeout=PATIENCE_SECONDS)

    def answer_mutate_rows(self, method, request):
        codes = [None] * len(request.entries)
        for response in method(request, timeout=PATIENCE_SECONDS):
            for entry in response.entries:
                assert codes[entry.index] is None, "two answers for an entry"
                codes[entry.index] = entry.status.code
        return codes

    def answer_check_and_mutate_row(self, method, request):
        return method(request, timeout=PATIENCE_SECONDS).predicate_matched

    def answer_read_modify_write_row(self, method, request):
        row = method(request, timeout=PATIENCE_SECONDS).row
        assert row.key == request.row_key
        return [
            Cell(family.name, column.qualifier, cell.timestamp_micros, cell.value)
            for family in row.families
            for column in family.columns
            for cell in column.cells
        ]

    def answer_read_rows(self, _, request):
        return self.read(request)

    def start_read(self, request):
        return self.calls["read_rows"](request, timeout=PATIENCE_SECONDS, metadata=ALL_FEATURES)

    def read(self, request, call=None):
        """({key: cells}, (rows returned, cells returned, rows seen, cells seen) or None)."""
        stats = []
        responses = noting_stats(call or self.start_read(request), stats)
        try:
            return dict(decode_responses(responses, request.reversed)), (stats or [None])[-1]
        except grpc.RpcError as error:
            return failed(error)

    def read_request(self, table, keys=()):
        return ReadRowsRequest(table_name=table.name, rows={"row_keys": keys})

    def rows_of(self, table, keys):
        """{key: cells} of these keys, which may be impossible ones, or of all if None."""
        possible = [key for key in keys if 0 < len(key) <= 4096] if keys is not None else []
        if keys is not None and not possible:
            return {}
        answer = self.read(self.read_request(table, possible))
        assert not isinstance(answer, Failed), answer
        rows, _ = answer
        return {key: rows.get(key, []) for key in possible} if keys is not None else rows

    def delete_row(self, table, key):
        self.mutate(table, key, types.Mutation.pb()(delete_from_row={}))

    def delete_family(self, table, key, family):
        self.mutate(table, key, types.Mutation.pb()(delete_from_family={"family_name": family}))

    def mutate(self, table, key, *mutations):
        message = types.MutateRowRequest.pb()
        request = message(table_name=table.name, row_key=key, mutations=mutations)
        self.call("mutate_row", request)

    # --- administration ---

    def admin(self, name, request, response):
        method = self.method(ADMIN, name, response)
        return method(request, timeout=ADMIN_SECONDS)

    def create_table(self, table, splits):
        parent, _, table_id = table.name.rpartition("/tables/")
        micros = admin_types.Table.TimestampGranularity.MICROS
        request = admin_types.CreateTableRequest.pb()(
            parent=parent,
            table_id=table_id,
            table={"granularity": int(micros) if table.step == 1 else 0},
            initial_splits=[{"key": key} for key in splits],
        )
        self.admin("CreateTable", request, admin_types.Table)
        for name, family in sorted(table.families.items()):
            self.create_family(table, name, family)

    def delete_table(self, table):
        request = admin_types.DeleteTableRequest.pb()(name=table.name)
        self.admin("DeleteTable", request, empty_pb2.Empty)

    def drop_row_range(self, table, prefix):
        fields = {"row_key_prefix": prefix} if prefix else {"delete_all_data_from_table": True}
        request = admin_types.DropRowRangeRequest.pb()(name=table.name, **fields)
        self.admin("DropRowRange", request, empty_pb2.Empty)

    def modify(self, table, **change):
        request = admin_types.ModifyColumnFamiliesRequest.pb()(
            name=table.name, modifications=[Modification(**change)]
        )
        self.admin("ModifyColumnFamilies", request, admin_types.Table)

    def create_view(self, view):
        parent, _, view_id = view.name.rpartition("/authorizedViews/")
        request = admin_types.CreateAuthorizedViewRequest.pb()(
            parent=parent, authorized_view_id=view_id, authorized_view=view_message(view)
        )
        self.admin("CreateAuthorizedView", request, operations_pb2.Operation)

    def update_view(self, view):
        request = admin_types.UpdateAuthorizedViewRequest.pb()(
            authorized_view=view_message(view, name=view.name),
            update_mask={"paths": ["subset_view"]},
        )
        self.admin("UpdateAuthorizedView", request, operations_pb2.Operation)

    def create_family(self, table, name, family):
        created = ColumnFamily(gc_rule=family.gc)
        if family.aggregate:
            getattr(created.value_type.aggregate_type, AGGREGATORS[family.aggregate]).SetInParent()
            created.value_type.aggregate_type.input_type.int64_type.SetInParent()
        self.modify(table, id=name, create=created)

    def set_rule(self, table, name, rule):
        self.modify(table, id=name, update=ColumnFamily(gc_rule=rule))

    def drop_family(self, table, name):
        self.modify(table, id=name, drop=True)


def view_message(view, **fields):
    families = {
        name: {"qualifiers": qualifiers, "qualifier_prefixes": prefixes}
        for name, (qualifiers, prefixes) in view.families.items()
    }
    subset = {"row_prefixes": view.prefixes, "family_subsets": families}
    return admin_types.AuthorizedView.pb()(subset_view=subset, **fields)


def noting_stats(responses, stats):
    for response in responses:
        if response.HasField("request_stats"):
            counts = response.request_stats.full_read_stats_view.read_iteration_stats
            stats.append((
                counts.rows_returned_count, counts.cells_returned_count,
                counts.rows_seen_count, counts.cells_seen_count,
            ))  # fmt: skip
        yield response
