#!/usr/bin/env python3
"""Kills the server while it keeps materialized views. `./dev crash views --help`.

Cycles are those of run.py, with its writers and its comparison of the table. Beside that the table
has views: a table's count, groups with extremes, an index, an inverted index. They are made in the
first cycle, while clients write, and one more is deleted and made anew in each, so that kills fall
into populations as well. After each start, when the table was compared, each view must come to what
its query gives then, with nobody writing. With --random all five are of random queries
(harness/view_queries.py), and made anew in each cycle.
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
from harness.view_queries import random_view
from harness.views import rows_of

TABLE = "crash"
VIEWS = 5  # as many as a table may have
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

    @staticmethod
    def add_options(add):
        add("--settle-seconds", type=float, default=120, metavar="S",
            help="after a start until each view has to be its query; default 120")  # fmt: skip

        add("--random", action="store_true", help="five views of random queries in each cycle")

    @staticmethod
    def own_options(options):
        return f" --settle-seconds {options.settle_seconds}" + " --random" * options.random

    # --- views ---

    def call(self, rpc, method, request):
        instances = transports.BigtableInstanceAdminGrpcTransport(channel=rpc.channel)
        return getattr(instances, method)(request, timeout=ADMIN_SECONDS)

    def create(self, rpc, view, query):
        """Nobody waits for it."""
        self.call(rpc, "create_materialized_view", types.CreateMaterializedViewRequest(
            parent=INSTANCE, materialized_view_id=view, materialized_view={"query": query}
        ))  # fmt: skip

    def make_anew(self, rpc, view, query):
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
            chance = random.Random(f"views {plan.seconds}")
            if not self.are_made and not self.options.random:
                for view, query in QUERIES.items():
                    self.create(rpc, view, query)
            self.are_made = True
            writer.join(chance.uniform(0, plan.seconds))
            for view, query in self.fresh_views(chance):
                self.make_anew(rpc, view, query)
        finally:
            rpc.close()
        super().let_work(writer, plan)

    def fresh_views(self, chance):
        if not self.options.random:
            return [ANEW]
        return [(f"v_{number}", random_view(chance, TABLE)) for number in range(VIEWS)]

    # --- after a start ---

    def verify(self, plan):
        super().verify(plan)
        if not self.are_made:
            return
        rpc = Rpc(self.server.host)
        try:
            problems = [self.compare_view(rpc, *view) for view in self.standing(rpc)]
        finally:
            rpc.close()
        problems = [problem for problem in problems if problem is not None]
        if problems:
            raise run.Failure(problems)

    def standing(self, rpc):
        """(id, query) of each: a kill came perhaps before it was made, or made anew."""
        request = types.ListMaterializedViewsRequest(parent=INSTANCE)
        listed = self.call(rpc, "list_materialized_views", request).materialized_views
        found = {view.name.rsplit("/", 1)[-1]: view.query for view in listed}
        if not self.options.random and not found.keys() >= QUERIES.keys():
            raise run.Failure([f"there are {sorted(found)} alone"])
        return sorted(found.items())

    def compare_view(self, rpc, view, query):
        began = time.monotonic()
        expected, seen = sorted(rows_of(rpc, query)), None
        while seen != expected:
            if time.monotonic() > began + self.options.settle_seconds:
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
            return f"{view}: it is still populated after {self.options.settle_seconds} s"
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
