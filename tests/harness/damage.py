"""Damage to the files of a data directory: bytes flipped, files cut off, files removed."""

import re
from pathlib import Path

FOOTER_BYTES = 53
CATALOG = b"1"
# Of the properties, which are not compressed: the name's key has 22 bytes of the one before.
FAMILY = re.compile(rb"column\.family\.id.{1,5}?\x16\x04(.)name", re.DOTALL)


def tables(data):
    """The table files, the oldest first."""
    return sorted(Path(data).glob("*.sst"), key=lambda path: int(path.stem))


def flip(path, at, count=16):
    """Inverts bytes from there on; before the end if `at` is negative."""
    at += path.stat().st_size if at < 0 else 0
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(count)
        assert old, f"{path} has no byte {at}"
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in old))


def cut(path, part=0.5):
    """Leaves that part of the file."""
    size = int(path.stat().st_size * part)
    with open(path, "r+b") as file:
        file.truncate(size)


def tables_with(data, piece):
    """Those in which these bytes stand: keys do, unless they are much like the one before."""
    return [path for path in tables(data) if piece in path.read_bytes()]


def keyspace_of(path):
    """The number of the keyspace whose table file it is, as text; None if it was taken in."""
    data = Path(path).read_bytes()
    found = FAMILY.search(data)
    return data[found.end() : found.end() + found[1][0]] if found else None


def tables_of(data, keyspace):
    return [path for path in tables(data) if keyspace_of(path) == keyspace]
