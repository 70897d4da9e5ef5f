"""Google's admin clients on a server's plain port, and what their tests share."""

import grpc
from google.cloud.bigtable_admin_v2 import (
    BigtableInstanceAdminClient,
    BigtableTableAdminClient,
)
from google.cloud.bigtable_admin_v2.services.bigtable_instance_admin.transports import (
    BigtableInstanceAdminGrpcTransport,
)
from google.cloud.bigtable_admin_v2.services.bigtable_table_admin.transports import (
    BigtableTableAdminGrpcTransport,
)
from google.longrunning import operations_pb2_grpc
from google.protobuf import field_mask_pb2
from harness.rpc import CHANNEL_OPTIONS

PROJECT = "projects/p"
ZONES = [f"{PROJECT}/locations/us-east1-{which}" for which in "bcd"]
ZONE, OTHER_ZONE = ZONES[:2]


def mask(*paths):
    return field_mask_pb2.FieldMask(paths=paths)


class Admin:
    """`instances` and `tables` are the clients, `operations` a stub of google.longrunning."""

    def __init__(self, host):
        self.channel = grpc.insecure_channel(host, options=CHANNEL_OPTIONS)
        self.instances = BigtableInstanceAdminClient(
            transport=BigtableInstanceAdminGrpcTransport(channel=self.channel)
        )
        self.tables = BigtableTableAdminClient(
            transport=BigtableTableAdminGrpcTransport(channel=self.channel)
        )
        self.operations = operations_pb2_grpc.OperationsStub(self.channel)

    def close(self):
        self.channel.close()

    def create_instance(self, instance_id, clusters=("c",), **fields):
        """An instance with clusters of one node each, each in a zone. Returns its name."""
        operation = self.instances.create_instance(
            parent=PROJECT,
            instance_id=instance_id,
            instance={"display_name": instance_id, **fields},
            clusters={
                each: {"location": ZONES[at], "serve_nodes": 1} for at, each in enumerate(clusters)
            },
        )
        return operation.result().name

    def create_table(self, instance, table_id, families=("f",), **fields):
        families = {name: {} for name in families}
        table = {"column_families": families, **fields}
        return self.tables.create_table(parent=instance, table_id=table_id, table=table).name
