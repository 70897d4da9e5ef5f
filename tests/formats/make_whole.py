"""Makes a fixture of tests/data/formats with a whole backup and an archive (README.md there):

    PYTHONPATH=tests .venv/bin/python tests/formats/make_whole.py TRESTLE NAME

What make.py writes into a data directory is backed up whole by the program TRESTLE between
Bigtable's part and Datastore's, and archived from the start on. NAME.tar.gz has the backup's place,
the archive, and the listings: of the moment of the backup, and of the end."""

import json
import os
import sys
import tarfile
import tempfile
from pathlib import Path

from formats.listing import Asker, list_bigtable
from formats.make import (
    FIXTURES,
    INSTANCE,
    SETTINGS,
    TABLE,
    drop,
    fill_bigtable,
    fill_datastore,
    list_all,
    narrow_rows,
    write,
)
from harness.server import Server, run_trestle


def fill_late(asker):
    """What the archive alone has."""
    write(asker, TABLE, narrow_rows("late", 20))
    drop(asker, TABLE, "late01")
    fill_datastore(asker)


def list_stored(host):
    """Without backups, which are in none of it."""
    found = list_all(host)
    del found["backups"]
    return found


def make(directory):
    """Leaves whole, archive and listing.json there."""
    for name in "backups", "archive", "places":
        (directory / name).mkdir()
    places = ["--backup-places", directory / "places", "--archive", directory / "archive"]
    server = Server(directory, [*SETTINGS, "--backup-dir", directory / "backups", *places]).start()
    try:
        asker = Asker(server.host)
        fill_bigtable(asker)
        listing = {"at_backup": list_bigtable(asker, INSTANCE)}
        done = run_trestle(
            "backup", "create", directory / "places/whole", "--endpoint", server.host
        )
        assert done.returncode == 0, done.stderr
        fill_late(asker)
        listing["at_end"] = list_stored(server.host)
        server.stop()  # which puts all into the archive
    finally:
        server.close()
    text = json.dumps(listing, indent=1, sort_keys=True) + "\n"
    (directory / "listing.json").write_text(text)


def main(program, name):
    os.environ["TRESTLE_BINARY"] = program
    with tempfile.TemporaryDirectory() as directory:
        make(Path(directory))
        with tarfile.open(FIXTURES / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(Path(directory) / "places/whole", "whole")
            for part in "archive", "listing.json":
                archive.add(Path(directory) / part, part)


if __name__ == "__main__":
    main(*sys.argv[1:])
