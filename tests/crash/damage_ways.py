"""Ways to damage a file of a data directory: which file, what is done to it, where.

    flip     1, 8 or 64 bytes are inverted
    zeros    a page of 4 KiB is zeros
    cut      the file ends earlier
    empty    it has no bytes
    remove   it is not there
"""

import struct

from damage_bounds import Table, first_change
from harness.damage import cut, flip, tables

WAYS = ["flip", "flip", "flip", "zeros", "cut", "empty", "remove"]
PAGE = 4096
CATALOG = b"1"  # its keyspace


class NoFile(AssertionError):
    pass


class Hit:
    """A file, as it was and as it is now."""

    def __init__(self, path, kind, dice):
        self.path = path
        self.name = path.name
        self.kind = kind
        self.before = path.read_bytes()
        self.table = Table(self.before) if path.suffix == ".sst" else None
        self.words = self.damage(dice)

    def damage(self, dice):
        size = len(self.before)
        how, at = dice.choice(WAYS), dice.randrange(size)
        if how == "flip":
            flip(self.path, at, dice.choice([1, 8, 64]))
        elif how == "zeros":
            zero(self.path, at // PAGE * PAGE, size)
        elif how == "remove":
            self.path.unlink()
        else:
            cut(self.path, dice.random() if how == "cut" else 0)
        self.after = self.path.read_bytes() if self.path.exists() else None
        if self.after == self.before:  # zeros where there were zeros
            return self.damage(dice)
        return f"{self.name} ({self.kind}): {how}, at {at} of {size}"

    def first_change(self):
        return first_change(self.before, self.after)

    def put_back(self):
        self.path.write_bytes(self.before)


def zero(path, at, size):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(bytes(min(PAGE, size - at)))


# --- which files there are ---


def keyspace_of(path):
    """None: it is damaged, or not whole yet."""
    try:
        return Table(path.read_bytes()).keyspace
    except (ValueError, LookupError, struct.error, FileNotFoundError):
        return None


def spaces(data):
    """(table file, its keyspace)."""
    return [(path, keyspace_of(path)) for path in tables(data)]


PLACES = {
    "table": lambda data: [path for path, of in spaces(data) if of not in (CATALOG, None)],
    "catalog": lambda data: [path for path, of in spaces(data) if of == CATALOG],
    "log": lambda data: sorted(data.glob("*.log")),
    "SYNCED": lambda data: [data / "SYNCED"],
    "MANIFEST": lambda data: [path for path in data.glob("MANIFEST-*") if not path.suffix],
    "copy": lambda data: list(data.glob("MANIFEST-*.copy")),
    "CURRENT": lambda data: [data / "CURRENT"],
    "FORMAT": lambda data: [data / "FORMAT"],
    "IDENTITY": lambda data: [data / "IDENTITY"],
    "backup": lambda place: sorted(path for path in place.rglob("*") if path.is_file()),
}
KINDS = list(PLACES)


def hit_some(data, kind, most, dice, but=()):
    """Damages up to so many files of a kind, and none with those names: [Hit]. Of a server that
    runs files come and go, and are not whole yet."""
    hits = []
    while not hits:
        try:
            files = [path for path in PLACES[kind](data)
                     if path.stat().st_size > 0 and path.name not in but]  # fmt: skip
            if not files:
                raise NoFile(f"there is no file: {kind}")
            for path in dice.sample(files, min(most, len(files))):
                hits.append(Hit(path, kind, dice))
        except (ValueError, IndexError, FileNotFoundError):
            continue
    return hits
