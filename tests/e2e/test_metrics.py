"""Metrics: that they move when what they count happens, that /metrics and GetMetrics say the same,
and what `trestle status` makes of them. Those of Datastore are in test_datastore_metrics.py."""

import collections
import json
import os
import re
import time

import pytest
from grpc import StatusCode
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc, fails_with, set_cell
from harness.server import run_trestle

SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
DATA = "google.bigtable.v2.Bigtable"
INSIGHT = "trestle.insight.v1.Insight"


def labels_of(text):
    return dict(re.findall(r'(\w+)="([^"]*)"', text or ""))


def series_of(page):
    """{(name, labels): value} of Prometheus's text."""
    return {
        (name, frozenset(labels_of(labels).items())): float(value)
        for name, labels, value in SERIES.findall(page)
    }


class Metrics:
    """/metrics of a server, as it is now."""

    def __init__(self, server):
        status, page = server.get("/metrics")
        assert status == 200
        self.series = series_of(page)

    def value(self, name, **labels):
        """The sum over all series of the name that have these labels."""
        return sum(
            value
            for (own, pairs), value in self.series.items()
            if own == f"trestle_{name}" and labels.items() <= dict(pairs).items()
        )


def wait_until(server, condition):
    """The metrics of which the condition is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition(metrics := Metrics(server)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return metrics


@pytest.fixture
def small(fresh_server):
    """A server with little memory, its RPCs, and a table."""
    server = fresh_server("--write-buffer", "4MB", "--cache", "8MB", "--pool-threads", "1")
    rpc = Rpc(server.host)
    yield server, rpc, rpc.create_table("t")
    rpc.close()


# --- by method and profile ---


def create_profiles(rest, ids):
    clusters = {"c1": {"location": "projects/p/locations/local", "serveNodes": 1}}
    body = {"instanceId": "prod", "instance": {"displayName": "Prod"}, "clusters": clusters}
    rest.call("POST", "/v2/projects/p/instances", body)
    for profile in ids:
        path = f"/v2/projects/p/instances/prod/appProfiles?appProfileId={profile}"
        rest.call("POST", path, {"multiClusterRoutingUseAny": {}})


def test_requests_are_counted_by_app_profile(fresh_server):
    server = fresh_server()
    rpc = Rpc(server.host)
    table = rpc.create_table("t")
    create_profiles(Rest(server.host), ["batch"])
    for profile, times in {"": 1, "default": 2, "batch": 4, "made-up": 8, "other": 16}.items():
        for _ in range(times):
            rpc.mutate(table, b"k", set_cell("f", b"q", b"v"), app_profile_id=profile)
    list(rpc.read_stream(table, app_profile_id="batch"))
    rpc.sample_row_keys(table, app_profile_id="batch")
    with fails_with(StatusCode.NOT_FOUND):
        rpc.mutate(f"{table}-not", b"k", set_cell("f", b"q", b"v"), app_profile_id="batch")

    def count(method, **labels):
        return metrics.value("rpcs_total", method=f"{DATA}/{method}", **labels)

    metrics = Metrics(server)
    assert count("MutateRow", app_profile="default", code="OK") == 3
    assert count("MutateRow", app_profile="batch", code="OK") == 4
    assert count("MutateRow", app_profile="other", code="OK") == 24
    assert count("MutateRow", app_profile="batch", code="NOT_FOUND") == 1
    assert count("ReadRows", app_profile="batch") == 1
    assert count("SampleRowKeys", app_profile="batch") == 1
    seconds = f"{DATA}/MutateRow"
    assert metrics.value("rpc_seconds_count", method=seconds, app_profile="batch") == 5
    assert metrics.value("rpc_seconds_sum", method=seconds, app_profile="batch") > 0
    profiles = {dict(pairs).get("app_profile") for _, pairs in metrics.series}
    assert profiles == {None, "default", "other", "batch"}
    rpc.close()
    server.restart()
    rpc = Rpc(server.host)
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v"), app_profile_id="batch")
    metrics = Metrics(server)
    assert count("MutateRow", app_profile="batch", code="OK") == 1
    rpc.close()


def test_a_query_is_counted_by_app_profile(fresh_server):
    server = fresh_server()
    rpc, rest = Rpc(server.host), Rest(server.host)
    rpc.create_table("t")
    create_profiles(rest, ["reports"])
    body = {"query": "SELECT 1", "protoFormat": {}, "appProfileId": "reports"}
    rest.call("POST", "/v2/projects/p/instances/prod:prepareQuery", body)
    rest.call("POST", "/v2/projects/p/instances/prod:ping", {"appProfileId": "reports"})
    metrics = Metrics(server)
    for method in ("PrepareQuery", "PingAndWarm"):
        assert metrics.value("rpcs_total", method=f"{DATA}/{method}", app_profile="reports") == 1
    rpc.close()


def test_methods_without_profiles_have_no_such_label(server, rpc):
    with fails_with(StatusCode.NOT_FOUND):
        rpc.get_table("projects/p/instances/i/tables/nothing")
    series = Metrics(server).series
    admin = [dict(pairs) for (name, pairs) in series
             if name == "trestle_rpcs_total" and "Admin" in dict(pairs)["method"]]  # fmt: skip
    assert admin
    assert all("app_profile" not in labels for labels in admin)


# --- the store ---


def load(rpc, table, rounds, prefix="k"):
    """Writes what does not compress: 1 MB each time."""
    for i in range(rounds):
        rows = [(f"{prefix}{i:04d}-{j:02d}".encode(), [set_cell("f", b"q", os.urandom(20_000))])
                for j in range(50)]  # fmt: skip
        rpc.mutate_rows(table, rows)


def test_flushes_and_compactions_are_counted(small):
    server, rpc, table = small
    before = Metrics(server)
    assert before.value("store_flushes_total") == 0
    load(rpc, table, 16)
    rpc.drop_row_range(table, prefix=b"k000")  # the space is given back by a compaction
    after = wait_until(server, lambda m: m.value("store_compaction_seconds_total") > 0)
    assert after.value("store_compactions_total") > 0
    assert after.value("store_flushes_total") > 0
    assert after.value("store_flushed_bytes_total") > 1_000_000
    assert after.value("store_compaction_read_bytes_total") > 0
    assert after.value("store_compaction_written_bytes_total") > 0
    assert sum(after.value("store_level_files", level=str(level)) for level in range(7)) > 0
    assert after.value("store_table_bytes") > 0
    # A flush may begin while the last compaction ends: each number is 0 when both are through.
    running = ("store_compactions_running", "store_flushes_running")
    wait_until(server, lambda m: all(m.value(name) == 0 for name in running))


def test_the_cache_tells_hits_from_misses(small):
    server, rpc, table = small
    load(rpc, table, 8)
    server.restart()
    rpc = Rpc(server.host)
    misses = Metrics(server).value("store_cache_misses_total")
    rpc.read_row(table, b"k0000-00")
    first = Metrics(server)
    assert first.value("store_cache_misses_total") > misses
    for _ in range(5):
        rpc.read_row(table, b"k0000-00")
    again = Metrics(server)
    assert again.value("store_cache_hits_total") > first.value("store_cache_hits_total")
    assert again.value("store_cache_capacity_bytes") == 8 << 20
    assert 0 < again.value("store_cache_bytes") <= 8 << 20
    rpc.close()


def test_threads_of_pools_are_counted(small):
    server, rpc, table = small
    before = Metrics(server)
    rpc.sample_row_keys(table)
    body = {"query": "SELECT 1", "protoFormat": {}}
    Rest(server.host).call("POST", "/v2/projects/p/instances/i:prepareQuery", body)
    after = wait_until(server, lambda m: m.value("pool_running") == 0)
    for pool in ("requests", "queries"):
        begun = [m.value("pool_tasks_total", pool=pool) for m in (before, after)]
        assert begun[1] > begun[0]
        waited = [m.value("pool_wait_seconds_total", pool=pool) for m in (before, after)]
        assert waited[1] >= waited[0]
    assert after.value("pool_queued") == 0


def test_tables_and_tablets_are_counted(small):
    server, rpc, table = small
    before = Metrics(server)
    rpc.create_table("more", splits=[b"m"])
    after = Metrics(server)
    assert after.value("tables") == before.value("tables") + 1
    assert after.value("tablets") == before.value("tablets") + 2


def test_traffic_is_counted_by_table(small):
    server, rpc, table = small
    more = rpc.create_table("more")
    before = Metrics(server)
    for i in range(3):
        rpc.mutate(table, b"k%d" % i, set_cell("f", b"q", b"v" * 1000))
    rpc.mutate(more, b"k", set_cell("f", b"q", b"v"))
    assert len(rpc.read(table)) == 3
    rpc.read_row(table, b"k1")
    after = Metrics(server)

    def risen(name, table):
        return after.value(name, table=table) - before.value(name, table=table)

    assert risen("table_rows_written_total", table) == 3
    assert risen("table_rows_written_total", more) == 1
    assert 3000 < risen("table_written_bytes_total", table) < 4000
    assert 4000 < risen("table_read_bytes_total", table) < 5000
    assert risen("table_rows_read_total", table) >= 4
    assert risen("table_rows_read_total", more) == risen("table_rows_read_total", "other") == 0
    assert after.value("store_sync_seconds_count") == after.value("store_syncs_total") > 0
    names = {dict(pairs)["table"] for name, pairs in after.series
             if name.startswith("trestle_table_")}  # fmt: skip
    assert names == {table, more, "other"}  # system tables have none
    wait_until(server, lambda m: m.value("table_bytes", table=table) > 1000)
    place = str(server.data / "backups")
    measured = wait_until(server, lambda m: m.value("place_free_bytes", place=place) > 0)
    assert measured.value("place_free_bytes") == measured.value("place_free_bytes", place=place)


def test_the_program_says_what_it_is(server):
    (labels,) = [dict(pairs) for name, pairs in Metrics(server).series
                 if name == "trestle_build_info"]  # fmt: skip
    assert labels["version"] == run_trestle("version").stdout.split()[1]
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?|unknown", labels["revision"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", labels["rocksdb"])


def test_nothing_has_stalled_at_first(small):
    server, _, _ = small
    metrics = Metrics(server)
    assert ("trestle_store_stalls_total", frozenset({("kind", "stop")})) in metrics.series
    assert metrics.value("store_stalls_total") == metrics.value("store_stall_causes_total") == 0
    assert metrics.value("loop_slow_turns_total") >= 0


# --- by RPC ---


def get_metrics(host):
    return Rest(host).call("GET", "/v1/servers/self/metrics")


def series_of_message(message):
    """As series_of has it; buckets with nothing in them are not there."""
    out = {}
    for metric in message["metrics"]:
        labels = frozenset(metric.get("labels", {}).items())
        name, value = metric["name"], metric.get("value", 0)
        if metric["type"] != "HISTOGRAM":
            out[name, labels] = value
            continue
        out[f"{name}_sum", labels] = value
        out[f"{name}_count", labels] = float(metric.get("count", 0))
        for bucket in metric.get("buckets", []):
            le = ("le", f"{bucket['upTo']:.9g}")
            out[f"{name}_bucket", labels | {le}] = float(bucket["count"])
    return out


def without_empty_buckets(series):
    """Buckets are in their order; one that holds no more than the one before adds nothing."""
    out, last = {}, collections.Counter()
    for (name, labels), value in series.items():
        if not name.endswith("_bucket"):
            out[name, labels] = value
            continue
        histogram = (name, frozenset(pair for pair in labels if pair[0] != "le"))
        if value > last[histogram] and dict(labels)["le"] != "+Inf":
            out[name, labels] = value
        last[histogram] = value
    return out


# What asking itself changes, and what time does.
MOVING = re.compile(r"process_|.*(_bytes|loop_|pool_|connections|rpcs_running|cache_)")


def test_get_metrics_says_what_the_page_says(fresh_server):
    server = fresh_server()
    rpc = Rpc(server.host)
    table = rpc.create_table("t")
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v"))
    rpc.read_row(table, b"k")
    get_metrics(server.host)
    asked = series_of_message(get_metrics(server.host))
    shown = without_empty_buckets(Metrics(server).series)

    def about(series):
        return {key for key in series if not any(INSIGHT in value for _, value in key[1])}

    assert about(asked) == about(shown)
    assert len(about(asked)) > 100
    for name, labels in about(asked):
        if not MOVING.match(name):
            assert asked[name, labels] == pytest.approx(shown[name, labels]), (name, labels)
    rpc.close()


def test_get_metrics_tells_of_the_server(server):
    answer = get_metrics(server.host)
    page = run_trestle("serve", "--metrics-markdown").stdout
    groups = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert {metric["group"] for metric in answer["metrics"]} <= set(groups)
    assert answer["version"] == run_trestle("version").stdout.split()[1]
    assert answer["startTime"] < answer["time"]
    assert answer.get("trouble", "") == ""
    for metric in answer["metrics"]:
        assert metric["help"] in page
    status, _ = Rest(server.host).ask("GET", "/v1/servers/another/metrics")
    assert status == 404


# --- trestle status ---


def test_status_tells_of_the_server(server, rpc, table_name):
    rpc.mutate(table_name, b"k", set_cell("f", b"q", b"v"))
    done = run_trestle("status", "--endpoint", server.host, "--interval", "100ms")
    assert done.returncode == 0, done.stderr
    assert re.match(rf"trestle \S+ at {server.host}, up \d+ ", done.stdout)
    for title in ("connections", "traffic", "requests", "threads", "commits", "store", "cache",
                  "compactions", "stalls", "tables", "streams", "backups"):  # fmt: skip
        assert re.search(rf"^{title} ", done.stdout, re.MULTILINE), title
    assert re.search(r"^ Bigtable/MutateRow +\| default ", done.stdout, re.MULTILINE)
    assert re.search(r"^connections +[1-9]\d* open", done.stdout, re.MULTILINE)


def test_status_as_json(server, rpc, table_name):
    rpc.mutate(table_name, b"k", set_cell("f", b"q", b"v"))
    flags = ("--watch", "--count", "2", "--interval", "100ms", "--format", "json")
    done = run_trestle("status", "--endpoint", server.host, *flags)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert second["upSeconds"] > first["upSeconds"] > 0
    assert first["intervalSeconds"] >= 0.1
    mutations = [method for method in second["methods"]
                 if method["method"] == f"{DATA}/MutateRow"
                 and method["appProfile"] == "default"]  # fmt: skip
    assert len(mutations) == 1
    assert mutations[0]["calls"] >= 1
    own = [method for method in second["methods"] if method["method"].endswith("GetMetrics")]
    assert own[0]["callsPerSecond"] > 0
    assert 0 < own[0]["p50Seconds"] <= own[0]["p99Seconds"]
    named = {metric["name"]: metric for metric in second["metrics"]}
    assert named["trestle_tables"]["value"] >= 1
    assert "perSecond" in named["trestle_received_bytes_total"]
    assert "perSecond" not in named["trestle_tables"]


def test_status_needs_a_permission(secure):
    secured = secure()

    def ask(token):
        ca = secured.authority.certificate
        host = secured.server.host.replace("127.0.0.1", "localhost")
        flags = ("--ca", ca, "--token", token, "--interval", "100ms")
        return run_trestle("status", "--endpoint", host, *flags)

    assert ask("admin").returncode == 0
    refused = ask("alice")
    assert refused.returncode == 1
    assert "metrics.get" in refused.stderr


def test_status_without_a_server():
    done = run_trestle("status", "--endpoint", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.startswith("trestle status: ")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--interval", "1ms"], "interval"),
        (["--interval", "2d"], "interval"),
        (["--count", "2"], "--count is for --watch"),
        (["--format", "xml"], "format"),
    ],
)
def test_status_refuses(flags, words):
    done = run_trestle("status", *flags)
    assert done.returncode == 2
    assert words in done.stderr
