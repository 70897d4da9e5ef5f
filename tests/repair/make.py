"""Makes a fixture of tests/data/damage (README.md there):

    PYTHONPATH=tests .venv/bin/python tests/repair/make.py TRESTLE NAME

The program TRESTLE is one that still had the bug: with --gc-on-read=false it took, of an entity in
a record of its own, the oldest version for what the commit replaces. So it ended index rows that
had ended, left those of the version between, did not write what it thought was there, and left
types that had changed and changed back.
"""

import os
import sys
import tarfile
import tempfile
from pathlib import Path

from harness.datastore import client_of, entity
from harness.indexes import Indexes
from harness.server import ROOT, Server

FIXTURES = ROOT / "tests/data/damage"
PROJECT = "damaged"
BIG = b"x" * 70_000  # over the spill threshold
ENTITIES = 20
NUMBERS = 100

# Of each version: the numbers between in the second are left, and the first ones, which it does
# not have, are missing in the third.
RANGES = [range(NUMBERS), range(1000, 1000 + NUMBERS), range(NUMBERS)]


def numbers(client, i, version):
    each = list(RANGES[version])
    return entity(client, "Numbers", i + 1, exclude=("x",), x=BIG, n=each, version=version)


def typed(client, version):
    """A blob has a string's row of its bytes."""
    text = "text" if version % 2 == 0 else b"text"
    return entity(client, "Typed", 1, exclude=("x", "version"), x=BIG, text=text, version=version)


def pair(client, i, version):
    fields = {"x": BIG, "a": i, "b": version}
    return entity(client, "Pair", "parent", "Pair", i + 1, exclude=("x",), **fields)


def fill(host):
    client = client_of(host, PROJECT)
    indexes = Indexes(host, PROJECT)
    indexes.create("Pair", "a", "-b", ancestor=True)
    indexes.close()
    for version in range(len(RANGES)):
        for i in range(ENTITIES):
            client.put(numbers(client, i, version))
        client.put_multi([pair(client, i, version) for i in range(3)])
        client.put(typed(client, version))
    client.put(entity(client, "Sound", 1, n=1))
    other = client_of(host, PROJECT, database="sound")
    other.put_multi([entity(other, "Sound", i, n=i) for i in range(1, 11)])
    for each in client, other:
        each.close()


def make(directory):
    server = Server(directory, ["--gc-on-read=false", "--balance=false"]).start()
    try:
        fill(server.host)
    finally:
        server.kill()


def main(program, name):
    os.environ["TRESTLE_BINARY"] = program
    with tempfile.TemporaryDirectory() as directory:
        make(Path(directory))
        with tarfile.open(FIXTURES / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(Path(directory) / "data", "data")


if __name__ == "__main__":
    main(*sys.argv[1:])
