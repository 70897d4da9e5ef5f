"""The two sides of a comparison: a server, by its RPCs without any client library, and SQLite."""

import sqlite3

import grpc
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types
from google.longrunning import operations_pb2
from harness.patience import PATIENCE_SECONDS
from harness.rpc import INSTANCE, Rpc

from differential import functions
from differential.tree import BOOL, BYTES, FLOAT, INT, STRING

DATA = "/google.bigtable.v2.Bigtable/"
ADMIN = "/google.bigtable.admin.v2.BigtableInstanceAdmin/"
WIRE_TYPES = {
    "bool_type": BOOL, "int64_type": INT, "float64_type": FLOAT, "string_type": STRING,
    "bytes_type": BYTES,
}  # fmt: skip
PYTHON_TYPES = {BOOL: bool, INT: int, FLOAT: float, STRING: str, BYTES: bytes}


class Refused(Exception):
    """A side's error. `is_by_rule`: it came of a value, not of the query's text."""

    def __init__(self, text, is_by_rule):
        super().__init__(text)
        self.is_by_rule = is_by_rule


class Server:
    """Speaks protobuf's own messages: Google's wrappers cost more than the queries."""

    def __init__(self, host):
        self.rpc = Rpc(host)
        channel = self.rpc.channel
        self.prepare_request = type(types.PrepareQueryRequest.pb(types.PrepareQueryRequest()))
        self.execute_request = type(types.ExecuteQueryRequest.pb(types.ExecuteQueryRequest()))
        prepared = type(types.PrepareQueryResponse.pb(types.PrepareQueryResponse()))
        executed = type(types.ExecuteQueryResponse.pb(types.ExecuteQueryResponse()))
        self.rows = type(types.ProtoRows.pb(types.ProtoRows()))
        self.prepare = channel.unary_unary(
            DATA + "PrepareQuery", self.prepare_request.SerializeToString, prepared.FromString
        )
        self.execute = channel.unary_stream(
            DATA + "ExecuteQuery", self.execute_request.SerializeToString, executed.FromString
        )

    def close(self):
        self.rpc.close()

    def admin(self, method, message):
        serialize = type(type(message).pb(message)).SerializeToString
        call = self.rpc.channel.unary_unary(
            ADMIN + method, serialize, operations_pb2.Operation.FromString
        )
        return call(type(message).pb(message), timeout=PATIENCE_SECONDS)

    def create_view(self, name, query):
        request = admin_types.CreateLogicalViewRequest(
            parent=INSTANCE, logical_view_id=name, logical_view={"query": query}
        )
        operation = self.admin("CreateLogicalView", request)
        assert operation.done and not operation.error.code, operation

    def delete_view(self, name):
        request = admin_types.DeleteLogicalViewRequest(name=f"{INSTANCE}/logicalViews/{name}")
        self.admin("DeleteLogicalView", request)

    def run(self, query):
        """(types, rows)."""
        try:
            return self.ask(query)
        except grpc.RpcError as error:
            is_by_rule = error.code() == grpc.StatusCode.OUT_OF_RANGE
            raise Refused(f"{error.code().name}: {error.details()}", is_by_rule) from None

    def ask(self, query):
        request = self.prepare_request(instance_name=INSTANCE, query=query)
        request.proto_format.SetInParent()
        prepared = self.prepare(request, timeout=PATIENCE_SECONDS)
        kinds = [
            WIRE_TYPES.get(column.type_.WhichOneof("kind"), str(column.type_))
            for column in prepared.metadata.proto_schema.columns
        ]
        request = self.execute_request(
            instance_name=INSTANCE, prepared_query=prepared.prepared_query
        )
        data = [
            response.results.proto_rows_batch.batch_data
            for response in self.execute(request, timeout=PATIENCE_SECONDS)
        ]
        values = [value_of(value) for value in self.rows.FromString(b"".join(data)).values]
        width = len(kinds)
        rows = [tuple(values[at : at + width]) for at in range(0, len(values), width)]
        return kinds, rows


def value_of(value):
    kind = value.WhichOneof("kind")
    return None if kind is None else getattr(value, kind)


class SQLite:
    def __init__(self):
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("PRAGMA case_sensitive_like = TRUE")
        functions.register(self.connection)

    def close(self):
        self.connection.close()

    def create_view(self, name, query):
        self.connection.execute(f"CREATE VIEW {name} AS {query}")

    def run(self, query, kinds=None):
        """Rows, with values of these types if they are told."""
        try:
            rows = self.connection.execute(query).fetchall()
        except sqlite3.Error as error:
            text = str(error)
            is_by_rule = "user-defined" in text or "overflow" in text  # ours, in functions.py
            raise Refused(f"SQLite: {text}", is_by_rule) from None
        return rows if kinds is None else [tuple(map(typed, kinds, row)) for row in rows]


def typed(kind, value):
    """SQLite's truth is a number; all else must be what the translator promised."""
    if kind == BOOL and value in (0, 1):
        return bool(value)
    return value
