"""Ways to damage a file of a data directory: which file, what is done to it, where.

    flip     1, 8 or 64 bytes are inverted
    zeros    a page of 4 KiB is zeros
    cut      the file ends earlier
    empty    it has no bytes
    remove   it is not there
"""

from damage_bounds import Table, first_change
from harness.damage import cut, flip, tables

WAYS = ["flip", "flip", "flip", "zeros", "cut", "empty", "remove"]
PAGE = 4096
CATALOG = b"1"  # its keyspace


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


def is_of_catalog(path):
    return Table(path.read_bytes()).keyspace == CATALOG


PLACES = {
    "table": lambda data: [path for path in tables(data) if not is_of_catalog(path)],
    "catalog": lambda data: [path for path in tables(data) if is_of_catalog(path)],
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


def hit_some(data, kind, most, dice):
    """Damages up to so many files of a kind: [Hit]. Of a server that runs files come and go, and
    are not whole yet."""
    hits = []
    while not hits:
        try:
            files = [path for path in PLACES[kind](data) if path.stat().st_size > 0]
            assert files, f"there is no file: {kind}"
            for path in dice.sample(files, min(most, len(files))):
                hits.append(Hit(path, kind, dice))
        except (ValueError, IndexError, FileNotFoundError):
            continue
    return hits
