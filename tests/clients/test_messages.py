"""Google's client for Go, and cbt, which is made of it, on rows that fill messages: the program of
tests/clients/bigtable, as BIGTABLE_EMULATOR_HOST connects it, which leaves it at messages of 4 MiB,
and dialed with more."""

import os
import shutil
import subprocess

import pytest
from harness.clients import build_bigtable_go, demand
from harness.patience import PATIENCE_SECONDS
from harness.server import EXTERNAL
from harness.shapes import SHAPES, make_shape

MANY_ROWS = ["narrow", "middle", "wide", "wider"]
TOO_LARGE = "received message larger than max"


def run(command, **environment):
    """In the tests' environment, but for where other tests in this process lead their clients."""
    inherited = {k: v for k, v in os.environ.items() if k != "BIGTABLE_EMULATOR_HOST"}
    return subprocess.run(
        [str(each) for each in command], env={**inherited, **environment},
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tables(rpc):
    """Ids by shape."""
    ids = {shape: f"go-{shape}" for shape in SHAPES}
    names = [make_shape(rpc, table_id, shape) for shape, table_id in ids.items()]
    yield ids
    for name in names:
        rpc.delete_table(name)


def total(shape, rows=None):
    all_rows, cells, size = SHAPES[shape]
    rows = all_rows if rows is None else rows
    return f"{rows} {rows * cells} {rows * cells * size}"


def lines_of(tables, shape):
    name = tables[shape]
    whole = total(shape)
    return [f"{name} {whole}", f"{name}/reversed {whole}", f"{name}/limited {total(shape, 1)}"]


@pytest.mark.parametrize("way", ["emulator", "dialed"])
def test_go(server, tables, way):
    done = run([build_bigtable_go(), "read", server.host, way, *tables.values()])
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == 3 * len(SHAPES)
    for place, shape in enumerate(SHAPES):
        found = told[3 * place : 3 * place + 3]
        if way == "emulator" and shape in ("cell-of-5-mb", "cell-of-60-mb"):
            assert all(" failed: " in line and TOO_LARGE in line for line in found), found
        else:
            assert found == lines_of(tables, shape)


@pytest.fixture
def cbt(tmp_path):
    """A function that runs a command with these options. With nothing in PATH: cbt would ask gcloud
    for credentials, which takes seconds."""
    demand("cbt", "cbt")
    program = shutil.which("cbt")

    def command(*words, **environment):
        return run([program, "-project", "p", "-instance", "i", *words],
                   HOME=str(tmp_path), PATH=str(tmp_path), **environment)  # fmt: skip

    return command


@pytest.mark.skipif(EXTERNAL is not None, reason="cbt's options of connections are ours")
def test_cbt(server, tables, cbt):
    """Through BIGTABLE_EMULATOR_HOST: whole tables, and cells of up to 4 MiB."""
    for shape in [*MANY_ROWS, "cell-of-3-mb"]:
        done = cbt("count", tables[shape], BIGTABLE_EMULATOR_HOST=server.host)
        assert done.stdout.strip() == str(SHAPES[shape][0]), done.stderr
        done = cbt("read", tables[shape], "count=1000", BIGTABLE_EMULATOR_HOST=server.host)
        assert done.returncode == 0, done.stderr
        rows, cells, _ = SHAPES[shape]
        assert done.stdout.count(" @ ") == rows * cells
    for shape in ["cell-of-5-mb", "cell-of-60-mb"]:
        done = cbt("read", tables[shape], BIGTABLE_EMULATOR_HOST=server.host)
        assert done.returncode != 0
        assert TOO_LARGE in done.stderr


@pytest.mark.parametrize("shape", ["cell-of-3-mb", "cell-of-5-mb", "cell-of-60-mb"])
def test_cbt_dialed(secure, connect, cbt, tmp_path, shape):
    """With TLS and a token cbt takes what production sends: up to 256 MiB."""
    secured = secure()
    make_shape(secured.rpc("admin"), "cells", shape)
    options = ["-data-endpoint", secured.server.host, "-admin-endpoint", secured.server.host,
               "-cert-file", secured.authority.certificate, "-access-token", "admin"]  # fmt: skip
    done = cbt(*options, "read", "cells")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" @ ") == SHAPES[shape][0]
