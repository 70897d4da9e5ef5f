"""`trestle bench` against a server of ours: every answer is looked at, so a run without errors says
that all rows were there."""

import json

from harness.server import run_trestle

TABLE = "projects/p/instances/i/tables/bench"


def bench(host, *arguments):
    done = run_trestle(
        "bench", "--json", "--endpoint", host, "--table", TABLE, "--rows", "500", "--cells", "3",
        "--scan-rows", "20", "--columns", "12000", "--duration", "200ms", *arguments,
    )  # fmt: skip
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_every_workload(server, rpc):
    done, results = bench(server.host, "--tablets", "4")
    assert done.returncode == 0, done.stderr
    names = [
        "load", "batch", "write", "read", "scan", "limit", "mixed", "rmw", "add", "hot", "wide",
    ]  # fmt: skip
    assert [result["workload"] for result in results] == names
    assert {result["errors"] for result in results} == {0}
    assert all(result["rows"] > 0 for result in results)
    assert results[0]["rows"] == 500
    hot, *rows, wide = rpc.read(TABLE)
    assert len(rows) == 500
    assert int.from_bytes(hot[1][0].value, "big") == results[-2]["requests"]
    assert len(wide[1]) == 12000
    assert all([cell.qualifier for cell in cells][:3] == [b"c0", b"c1", b"c2"] for _, cells in rows)
    assert len(rpc.sample_row_keys(TABLE)) >= 4
    rpc.delete_table(TABLE)


def test_failures_are_counted(server):
    done, results = bench(server.host, "--workloads", "read", "--operations", "5")
    assert done.returncode == 1
    assert results[0]["errors"] == 5
    assert "not found" in done.stderr.lower()


def test_unknown_workload(server):
    done, _ = bench(server.host, "--workloads", "nonsense")
    assert done.returncode == 2
