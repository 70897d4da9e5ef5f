"""`trestle bench` against a server of ours: every answer is looked at, so a run without errors says
that all rows were there."""

import json
import os
import subprocess
import sys

import pytest
from harness.certificates import Authority
from harness.server import EXTERNAL, ROOT, binary, run_trestle

TABLE = "projects/p/instances/i/tables/bench"


def bench(host, *arguments, rows=500):
    done = run_trestle(
        "bench", "--json", "--endpoint", host, "--table", TABLE, "--rows", str(rows),
        "--cells", "3", "--scan-rows", "20", "--columns", "12000", *arguments,
    )  # fmt: skip
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_every_workload(server, rpc):
    done, results = bench(server.host, "--tablets", "4", "--duration", "200ms")
    assert done.returncode == 0, done.stderr
    names = [
        "load", "overwrite", "batch", "write", "read", "query", "scan", "sift", "limit", "reverse",
        "mixed", "rmw", "add", "hot", "hotread", "wide", "ping",
    ]  # fmt: skip
    assert [result["workload"] for result in results] == names
    assert {result["errors"] for result in results} == {0}
    assert all(result["rows"] > 0 for result in results)
    assert results[0]["rows"] == 500
    assert results[1]["rows"] == 5000
    hot, *rows, wide = rpc.read(TABLE)
    assert len(rows) == 500
    assert int.from_bytes(hot[1][0].value, "big") == results[names.index("hot")]["requests"]
    assert len(wide[1]) == 12000
    assert all([cell.qualifier for cell in cells][:3] == [b"c0", b"c1", b"c2"] for _, cells in rows)
    assert len(rpc.sample_row_keys(TABLE)) >= 4
    rpc.delete_table(TABLE)


def test_every_workload_of_datastore(server):
    names = [
        "entities", "get", "ancestor", "find", "merge", "transaction", "update", "put", "batchput",
    ]  # fmt: skip
    done, results = bench(
        server.host, "--workloads", ",".join(names), "--duration", "200ms", "--batch", "40",
        "--connections", "1", "--streams", "4", rows=4000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [result["workload"] for result in results] == names
    assert {result["errors"] for result in results} == {0}
    of = {result["workload"]: result for result in results}
    assert of["entities"]["rows"] == 4000
    for query in ("ancestor", "find", "merge"):
        assert of[query]["rows"] == 20 * of[query]["requests"] > 0
    assert of["transaction"]["rows"] == 10 * of["transaction"]["requests"] > 0


def test_a_stream_is_read_from_its_beginning(fresh_server):
    """As many changes as there were rows written; the table goes with its stream for the next."""
    host = fresh_server().host
    for _ in range(2):
        done, results = bench(
            host, "--stream", "--workloads", "load,write,changes", "--operations", "3",
            "--connections", "1", "--streams", "1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert [result["rows"] for result in results] == [500, 3, 3 * 503]
    done, _ = bench(host, "--workloads", "load,changes")
    assert done.returncode == 2
    assert "changes wants load before it, and --stream" in done.stderr


def test_requests_keep_to_their_pace(server, rpc):
    done, results = bench(
        server.host, "--workloads", "load,read", "--rate", "100", "--operations", "21"
    )
    assert done.returncode == 0, done.stderr
    assert [result["requests"] for result in results] == [5, 21]
    assert results[0]["seconds"] >= 0.04
    assert results[1]["seconds"] >= 0.20
    rpc.delete_table(TABLE)


def test_the_server_is_looked_at(fresh_server):
    own = fresh_server()
    done, results = bench(own.host, "--workloads", "load", "--server-pid", own.process.pid)
    assert done.returncode == 0, done.stderr
    assert results[0]["server_cpu_seconds"] > 0
    assert results[0]["server_written_bytes"] >= 500 * 3 * 100
    assert results[0]["server_peak_bytes"] >= results[0]["server_resident_bytes"] > 0


def test_failures_are_counted(server):
    done, results = bench(server.host, "--workloads", "read", "--operations", "5")
    assert done.returncode == 1
    assert results[0]["errors"] == 5
    assert "not found" in done.stderr.lower()


def test_unknown_workload(server):
    done, _ = bench(server.host, "--workloads", "nonsense")
    assert done.returncode == 2


def test_tls_and_a_token(secure, tmp_path):
    secured, token = secure(), tmp_path / "token"
    token.write_text("admin\n")
    trust = ["--ca", secured.authority.certificate]
    done, results = bench(
        secured.server.host, *trust, "--token", token, "--workloads", "load,scan,wide",
        "--operations", "50",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [result["errors"] for result in results] == [0, 0, 0]
    done, results = bench(secured.server.host, *trust, "--workloads", "read", "--operations", "5")
    assert done.returncode == 1
    assert results[0]["errors"] == 5
    assert "missing required authentication credential" in done.stderr


def test_a_server_that_is_not_trusted(secure, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    done, _ = bench(
        secure().server.host, "--ca", Authority(other).certificate, "--workloads", "load"
    )
    assert done.returncode == 1


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
def test_the_bench_of_views_comes_to_its_end():
    """Whatever it measures: with so little work, and sanitizers, that says nothing."""
    words = [sys.executable, str(ROOT / "tools/bench/view_cost.py"), "--short"]
    environment = {**os.environ, "TRESTLE_BINARY": binary()}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert " of 13 goals of issue 24 are met." in done.stdout
