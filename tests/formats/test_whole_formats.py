"""Whole backups and archives that former programs left (tests/data/formats) give the server as it
was: each row, entity and resource is compared with what the former program itself listed."""

import json
import subprocess

import pytest
from formats.listing import Asker, list_bigtable
from formats.make import FIXTURES, INSTANCE, b64, set_cell, write
from formats.make_whole import list_stored
from formats.test_formats import compare
from harness.server import Server, run_trestle


@pytest.fixture(params=["e83f5c53-whole"])
def left(request, tmp_path):
    """The directory with `whole`, `archive` and `listing.json`."""
    archive = FIXTURES / f"{request.param}.tar.gz"
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    return tmp_path


@pytest.fixture
def restored(left):
    """Starts a server on what the backup gives with these options."""
    servers = []

    def begin(*options):
        directory = left / f"server{len(servers)}"
        directory.mkdir()
        done = run_trestle(
            "backup", "restore", left / "whole", "--to", directory / "data", *options
        )
        assert done.returncode == 0, done.stdout + done.stderr
        servers.append(Server(directory))
        return servers[-1].start()

    yield begin
    for server in servers:
        server.close()


def listing(left):
    return json.loads((left / "listing.json").read_text())


def test_the_backup_alone_is_its_moment(left, restored):
    found = list_bigtable(Asker(restored().host), INSTANCE)
    compare(found, listing(left)["at_backup"])


def test_the_archive_takes_it_to_the_end(left, restored):
    server = restored("--archive", left / "archive")
    for _ in range(2):
        compare(list_stored(server.host), listing(left)["at_end"])
        server.restart()


def test_what_is_written_afterwards_counts(left, restored):
    """Over rows of the backup, rows of the archive, and what either has deleted or dropped."""
    asker = Asker(restored("--archive", left / "archive").host)
    table = f"{INSTANCE}/tables/rows"
    keys = [f"{prefix}{i:03}" for prefix in ("m", "x", "a02", "late") for i in range(20)]
    write(asker, table, {key: [set_cell("plain", "q", "afterwards")] for key in keys})
    rows = asker.rows(f"/v2/{table}")
    for key in keys:
        assert ["plain", b64("q"), "1000", b64("afterwards")] in rows[b64(key)], key


def test_one_table_comes_out_of_it(left, restored):
    name = f"{INSTANCE}/tables/rows"
    asker = Asker(restored("--table", name).host)
    compare(asker.rows(f"/v2/{name}"), listing(left)["at_backup"]["tables"][name]["rows"])


def test_both_are_verified(left):
    for what in ("backup", "verify", left / "whole"), ("archive", "verify", left / "archive"):
        done = run_trestle(*what)
        assert done.returncode == 0, done.stdout + done.stderr
