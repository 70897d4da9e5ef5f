"""PrepareQuery and ExecuteQuery, message by message."""

import google_crc32c
from google.cloud.bigtable_v2 import types
from harness.rpc import INSTANCE


def request_to_prepare(text, kinds):
    return types.PrepareQueryRequest(
        instance_name=INSTANCE, query=text, proto_format={}, param_types=kinds
    )


def prepare(rpc, text, **kinds):
    return rpc.data.prepare_query(request_to_prepare(text, kinds))


def explain(rpc, text, mode, **kinds):
    """The same, with the header that asks for its plan."""
    prepared = rpc.data.prepare_query(
        request_to_prepare(text, kinds), metadata=[("trestle-explain", mode)]
    )
    (column,) = prepared.metadata.proto_schema.columns
    assert column.name == "plan" and "string_type" in column.type_
    return prepared


def begin(rpc, prepared, **fields):
    """The stream of messages."""
    request = types.ExecuteQueryRequest(
        instance_name=INSTANCE, prepared_query=prepared.prepared_query, **fields
    )
    return rpc.data.execute_query(request)


def execute(rpc, prepared, **fields):
    return list(begin(rpc, prepared, **fields))


def values_of(responses):
    """All values of the batches, whose checksums are held against them."""
    values = []
    for response in responses:
        batch = response.results.proto_rows_batch.batch_data
        if batch:
            assert response.results.batch_checksum == google_crc32c.value(batch)
            values += types.ProtoRows.deserialize(batch).values
    return values
