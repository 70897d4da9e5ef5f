"""Servers whose tables lie in two stores (--debug-shards): the data API's own tests, the
linearizability test, the model test and crashes, once more over such. Of the whole suites each day
has its share; a few tests that cross shards are in each run."""

import os
import subprocess
import sys

import pytest
from harness.rpc import set_cell
from harness.server import EXTERNAL, ROOT, SHARDS, run_trestle

pytestmark = pytest.mark.skipif(
    EXTERNAL is not None or SHARDS > 1, reason="starts servers of its own, in two ways"
)

# The data API's own tests, and what is built upon rows.
SUITES = [
    "e2e/conformance",
    "e2e/test_aggregates.py",
    "e2e/test_authorized_views.py",
    "e2e/test_batchers.py",
    "e2e/test_client_surface.py",
    "e2e/test_conditional.py",
    "e2e/test_drop_row_range.py",
    "e2e/test_expressions.py",
    "e2e/test_families_gc.py",
    "e2e/test_filters_samples.py",
    "e2e/test_idempotency.py",
    "e2e/test_large_data.py",
    "e2e/test_large_rows.py",
    "e2e/test_metadata.py",
    "e2e/test_multi_tablet.py",
    "e2e/test_mutate.py",
    "e2e/test_queries.py",
    "e2e/test_read_messages.py",
    "e2e/test_read_rows.py",
    "e2e/test_restart.py",
    "e2e/test_rmw.py",
    "e2e/test_sample_row_keys.py",
    "e2e/test_tables.py",
    "e2e/test_typed_families.py",
    "e2e/test_undelete.py",
    "e2e/test_unique_counts.py",
    "linear/test_linear.py",
    "model/test_model.py",
    "e2e/test_crash_short.py",
]

# What says something else of a table of two shards, or of several tablets, and is right in it.
OTHERWISE = [
    "e2e/conformance/test_c8_samples.py::test_c8_3_there_is_always_a_sample",
    "e2e/test_client_surface.py::test_a_materialized_view",  # of a source in one shard alone
]


def run_suite(path, *options):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "TRESTLE_SHARE"))}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider"]
    command += [word for each in OTHERWISE for word in ("--deselect", f"tests/{each}")]
    done = subprocess.run(
        [*command, *options, f"tests/{path}"],
        cwd=ROOT,
        env={**kept, "TRESTLE_DEBUG_SHARDS": "2"},
        capture_output=True,
        text=True,
    )
    print(done.stdout[-8000:], done.stderr[-2000:])
    assert done.returncode == 0
    assert " passed" in done.stdout


@pytest.mark.long
@pytest.mark.timeout(3600 if os.environ.get("TRESTLE_LONG") == "all" else 1200)
@pytest.mark.parametrize("path", SUITES)
def test_suite(path):
    run_suite(path)


def test_what_crosses_tablets():
    run_suite("e2e/test_multi_tablet.py")


def test_a_directory_keeps_its_number_of_shards(fresh_server, connect):
    server = fresh_server("--debug-shards", "2")
    rpc = connect(server.host)
    name = rpc.create_table("t", splits=[b"m"])
    rpc.mutate(name, b"a", set_cell("f", b"q", b"1"))
    rpc.mutate(name, b"z", set_cell("f", b"q", b"2"))
    server.stop()
    assert (server.data / "shard-1").is_dir()

    words = "has 2 shards, not 1: it is served with --debug-shards=2 alone"
    for command in (["serve", "--listen", "127.0.0.1:0", "--data-dir"], ["doctor"], ["repair"]):
        done = run_trestle(*command, server.data)
        assert done.returncode != 0
        assert words in done.stderr, done.stderr
    server.start()
    assert [key for key, _ in connect(server.host).read(name)] == [b"a", b"z"]


@pytest.mark.parametrize("setting", ["--archive", "--salvage"])
def test_what_needs_one_store_is_refused(tmp_path, setting):
    (tmp_path / "place").mkdir()
    values = [] if setting == "--salvage" else [tmp_path / "place"]
    done = run_trestle(
        "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data",
        "--debug-shards", "2", setting, *values,
    )  # fmt: skip
    assert done.returncode != 0
    assert "several shards have no archive, and cannot be salvaged" in done.stderr


def test_a_whole_backup_is_refused(fresh_server, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    server = fresh_server("--debug-shards", "2", "--backup-places", place)
    done = run_trestle("backup", "create", place, "--endpoint", server.host)
    assert done.returncode != 0
    assert "several shards have no checkpoint" in done.stderr, done.stderr
    server.stop()
    done = run_trestle("backup", "create", place, "--data-dir", server.data)
    assert done.returncode != 0
    assert "has 2 shards, not 1" in done.stderr, done.stderr
