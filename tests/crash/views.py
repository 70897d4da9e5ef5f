#!/usr/bin/env python3
"""Kills the server while it keeps materialized views. `./dev crash views --help`.

Cycles are those of run.py, with its writers and its comparison of the table. Beside that the table
has views: a table's count, groups with extremes, an index, an inverted index. They are made in the
first cycle, while clients write, and one more is deleted and made anew in each, so that kills fall
into populations as well. After each start, when the table was compared, each view must come to what
its query gives then, with nobody writing.
"""

import random
import sys
import time

import grpc

import run  # first: it says where the harness is

from google.cloud.bigtable_admin_v2 import types
from google.cloud.bigtable_admin_v2.services.bigtable_instance_admin import transports
from harness.rpc import ADMIN_SECONDS, INSTANCE, Rpc
from harness.server import SHARDS
from harness.views import rows_of

SETTLE_SECONDS = 120
TABLE = "crash"
QUERIES = {
    "v_all": "SELECT '*' AS _key, COUNT(*) AS n FROM crash GROUP BY _key",
    "v_groups": "SELECT SUBSTR(_key, 1, 3) AS p, COUNT(*) AS n, COUNT(c['n']) AS c, "
    "MIN(_key) AS least, MAX(_key) AS most FROM crash GROUP BY p",
    "v_index": "SELECT c['n'] AS n, _key AS k FROM crash WHERE c['n'] IS NOT NULL ORDER BY n, k",
    "v_inverted": "SELECT e.key AS q, _key AS k FROM crash CROSS JOIN UNNEST(MAP_ENTRIES(f)) AS e "
    "ORDER BY q, k",
}
ANEW = ("v_anew", "SELECT SUBSTR(_key, 1, 2) AS p, COUNT(*) AS n FROM crash GROUP BY p")


class ViewCrash(run.Crash):
    def __init__(self, options):
        if SHARDS > 1:
            raise SystemExit("a view's source lies in one store")
        super().__init__(options)
        self.are_made = False
        self.compared = 0
        self.slowest = 0.0

    # --- views ---

    def call(self, rpc, method, request):
        instances = transports.BigtableInstanceAdminGrpcTransport(channel=rpc.channel)
        return getattr(instances, method)(request, timeout=ADMIN_SECONDS)

    def create(self, rpc, view, query):
        """Nobody waits for it."""
        self.call(rpc, "create_materialized_view", types.CreateMaterializedViewRequest(
            parent=INSTANCE, materialized_view_id=view, materialized_view={"query": query}
        ))  # fmt: skip

    def make_anew(self, rpc):
        view, query = ANEW
        name = f"{INSTANCE}/materializedViews/{view}"
        try:
            request = types.DeleteMaterializedViewRequest(name=name)
            self.call(rpc, "delete_materialized_view", request)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        self.create(rpc, view, query)

    def let_work(self, writer, plan):
        """Views are made while clients write."""
        rpc = Rpc(self.server.host)
        try:
            if not self.are_made:
                for view, query in QUERIES.items():
                    self.create(rpc, view, query)
                self.are_made = True
            writer.join(random.Random(plan.seconds).uniform(0, plan.seconds))
            self.make_anew(rpc)
        finally:
            rpc.close()
        super().let_work(writer, plan)

    # --- after a start ---

    def verify(self, plan):
        super().verify(plan)
        if not self.are_made:
            return
        rpc = Rpc(self.server.host)
        try:
            queries = {**QUERIES, ANEW[0]: ANEW[1]}
            problems = [self.compare_view(rpc, *view) for view in queries.items()]
        finally:
            rpc.close()
        problems = [problem for problem in problems if problem is not None]
        if problems:
            raise run.Failure(problems)

    def compare_view(self, rpc, view, query):
        began = time.monotonic()
        expected, seen = sorted(rows_of(rpc, query)), None
        while seen != expected:
            if time.monotonic() > began + SETTLE_SECONDS:
                return self.difference(view, expected, seen)
            seen = self.read(rpc, view)
            time.sleep(0.02)
        self.compared += 1
        self.slowest = max(self.slowest, time.monotonic() - began)
        return None

    def read(self, rpc, view):
        """None: it is still populated."""
        try:
            return sorted(rows_of(rpc, f"SELECT * FROM {view}"))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                raise
            return None

    def difference(self, view, expected, seen):
        if seen is None:
            return f"{view}: it is still populated after {SETTLE_SECONDS} s"
        missing, strange = set(expected) - set(seen), set(seen) - set(expected)
        return f"{view}: misses {sorted(missing)[:3]}, has {sorted(strange)[:3]}"

    def summary(self, lost):
        return (
            f"{super().summary(lost)}; {self.compared} views were their queries, the slowest "
            f"{self.slowest:.1f} s after a start"
        )


if __name__ == "__main__":
    about = "Kills the server while it keeps materialized views."
    sys.exit(run.main("./dev crash views", about, ViewCrash))
