"""A server that is not ours and answers queries as a test tells it: for what clients must bear."""

import concurrent.futures

import google_crc32c
import grpc
from google.cloud.bigtable_v2 import types
from google.rpc import error_details_pb2, status_pb2

METHOD = "/google.bigtable.v2.Bigtable/"
STRING = types.Type(string_type={})
BYTES = types.Type(bytes_type={})
MAP = types.Type(map_type={"key_type": BYTES, "value_type": BYTES})
INT64 = types.Type(int64_type={})


def prepared(*columns):
    """What PrepareQuery answers: a result with the columns, each a name and a type."""
    schema = {"columns": [{"name": name, "type_": kind} for name, kind in columns]}
    return types.PrepareQueryResponse(metadata={"proto_schema": schema}, prepared_query=b"prepared")


def batch(*values, token=b"", reset=False, checksum=None):
    """A message of ExecuteQuery with a whole batch."""
    fields = [{"string_value" if isinstance(v, str) else "int_value": v} for v in values]
    data = types.ProtoRows.serialize(types.ProtoRows(values=fields))
    results = {"proto_rows_batch": {"batch_data": data}, "resume_token": token, "reset": reset}
    if data:
        results["batch_checksum"] = google_crc32c.value(data) if checksum is None else checksum
    return types.ExecuteQueryResponse(results=results)


def expired(context):
    """Ends the call as for a prepared query that has expired."""
    failure = error_details_pb2.PreconditionFailure()
    failure.violations.add(type="PREPARED_QUERY_EXPIRED", subject="query")
    status = status_pb2.Status(code=grpc.StatusCode.FAILED_PRECONDITION.value[0], message="too old")
    status.details.add().Pack(failure)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "too old")


class FakeQueries(grpc.GenericRpcHandler):
    """`answers`: for each ExecuteQuery in turn a function of the request and the context that gives
    messages. It has no admin API. What came is in `calls`: (method, request, metadata)."""

    def __init__(self, plan, *answers, host="127.0.0.1:0"):
        self.plan = plan
        self.answers = list(answers)
        self.calls = []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[self])
        self.host = f"127.0.0.1:{self.server.add_insecure_port(host)}"
        self.server.start()

    def service(self, details):
        metadata = dict(details.invocation_metadata)
        if details.method == METHOD + "PrepareQuery":
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: self.prepare(request, metadata),
                types.PrepareQueryRequest.deserialize, types.PrepareQueryResponse.serialize,
            )  # fmt: skip
        if details.method == METHOD + "ExecuteQuery":
            return grpc.unary_stream_rpc_method_handler(
                lambda request, context: self.execute(request, context, metadata),
                types.ExecuteQueryRequest.deserialize, types.ExecuteQueryResponse.serialize,
            )  # fmt: skip
        return None

    def prepare(self, request, metadata):
        self.calls.append(("PrepareQuery", request, metadata))
        return self.plan(metadata) if callable(self.plan) else self.plan

    def execute(self, request, context, metadata):
        self.calls.append(("ExecuteQuery", request, metadata))
        yield from self.answers.pop(0)(request, context)

    def methods(self):
        return [method for method, _, _ in self.calls]

    def close(self):
        self.server.stop(None).wait()
