"""RPCs with as little around them as Python allows, for clients that make many: no client library,
requests and answers as protobuf's own classes where they can be.
"""

import grpc
from google.cloud.bigtable_admin_v2 import types as admin_types
from google.cloud.bigtable_v2 import types

from harness.rpc import CHANNEL_OPTIONS

MutateRowRequest = types.MutateRowRequest.pb()
MutateRowsRequest = types.MutateRowsRequest.pb()
CheckAndMutateRowRequest = types.CheckAndMutateRowRequest.pb()
ReadModifyWriteRowRequest = types.ReadModifyWriteRowRequest.pb()
ReadRowsRequest = types.ReadRowsRequest.pb()
DropRowRangeRequest = admin_types.DropRowRangeRequest.pb()


class Stubs:
    """Methods of one channel, which has a connection of its own."""

    def __init__(self, host):
        self.channel = grpc.insecure_channel(
            host, options=[*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        )
        self.mutate_row = self.unary("MutateRow", types.MutateRowResponse)
        self.check_and_mutate = self.unary("CheckAndMutateRow", types.CheckAndMutateRowResponse)
        self.read_modify_write = self.unary("ReadModifyWriteRow", types.ReadModifyWriteRowResponse)
        self.mutate_rows = self.stream("MutateRows", types.MutateRowsResponse)
        self.read_rows = self.stream("ReadRows", types.ReadRowsResponse)
        self.drop_row_range = self.channel.unary_unary(
            "/google.bigtable.admin.v2.BigtableTableAdmin/DropRowRange",
            request_serializer=DropRowRangeRequest.SerializeToString,
        )

    def unary(self, method, response):
        return self.channel.unary_unary(
            f"/google.bigtable.v2.Bigtable/{method}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=response.pb().FromString,
        )

    def stream(self, method, response):
        return self.channel.unary_stream(
            f"/google.bigtable.v2.Bigtable/{method}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=response.deserialize,
        )

    def close(self):
        self.channel.close()
