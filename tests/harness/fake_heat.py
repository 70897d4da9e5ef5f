"""A server of administrative calls that knows one table, and answers ListHotTablets as a test tells
it: for what is hot in a way that no load brings about for certain."""

import concurrent.futures

import grpc
from google.cloud.bigtable_admin_v2 import types

METHOD = "/google.bigtable.admin.v2."
CLUSTER = "projects/p/instances/i/clusters/c"


class FakeHeat(grpc.GenericRpcHandler):
    """`tablets`: (start, end, from second, percent), for `seconds` each; None: ListHotTablets is
    UNIMPLEMENTED."""

    def __init__(self, table, tablets, seconds):
        hot = [
            types.HotTablet(
                table_name=table.name, start_key=start, end_key=end,
                start_time={"seconds": second}, end_time={"seconds": second + seconds},
                node_cpu_usage_percent=percent,
            )
            for start, end, second, percent in tablets or ()
        ]  # fmt: skip
        clusters = types.ListClustersResponse(clusters=[{"name": CLUSTER}])
        tables = types.ListTablesResponse(tables=[{"name": table.name}])
        self.answers = {
            "BigtableTableAdmin/GetTable": types.Table.serialize(table),
            "BigtableTableAdmin/ListTables": types.ListTablesResponse.serialize(tables),
            "BigtableInstanceAdmin/ListClusters": types.ListClustersResponse.serialize(clusters),
        }
        if tablets is not None:
            self.answers["BigtableInstanceAdmin/ListHotTablets"] = (
                types.ListHotTabletsResponse.serialize(
                    types.ListHotTabletsResponse(hot_tablets=hot)
                )
            )
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), handlers=[self])
        self.host = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        answer = self.answers.get(details.method.removeprefix(METHOD))
        if answer is None:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, context: answer)

    def close(self):
        self.server.stop(None)
