"""Random tables, the same on the server (families are maps of bytes) and in SQLite (columns)."""

import struct

from differential import tree
from differential.tree import BOOL, BYTES, FLOAT, INT, STRING
from harness.rpc import set_cell

KEY = "_key"
EXTREMES = [-(2**63), 2**63 - 1, -(2**63) + 1, 2**62, -1, 0, 1, 2**31, 2**53 + 1]
# Prefixes of one another, signs of LIKE, texts around ASCII's ends.
KEY_PARTS = ["a", "b", "ab", "#", "é", "%", "_", "z", "0", "7", "日"]
KEY_BYTES = [b"\x00", b"\x01", b"a", b"b", b"\x7f", b"\xff", b"\xfe", b"%"]
WORDS = ["", "a", "A", "b", "B", "ab", "aB", "abc", "a,b", " a ", "é", "É", "12", "-7", "%", "_a"]
LETTERS = list("abcABC xyz01_%,'\\") + ["é", "ß", "Ж", "日", "😀"]

# name, type, family, how GoogleSQL reads it, how large, how many bits behind the point
COLUMNS = [
    ("id", INT, "g", "TO_INT64(g['id'])", 1 << 10, None),
    ("small", INT, "f", "TO_INT64(f['small'])", 5, None),
    ("medium", INT, "f", "TO_INT64(f['medium'])", 10**6, None),
    ("huge", INT, "f", "TO_INT64(f['huge'])", 2**63, None),
    ("total", INT, "n", "n['total']", 1 << 11, None),
    ("x", FLOAT, "g", "TO_FLOAT64(g['x'])", 1 << 8, 3),
    ("y", FLOAT, "f", "TO_FLOAT64(f['y'])", 2, 1),
    ("word", STRING, "f", "CAST(f['word'] AS STRING)", 0, None),
    ("text", STRING, "g", "CAST(g['text'] AS STRING)", 0, None),
    ("raw", BYTES, "g", "g['raw']", 0, None),
    ("flag", BOOL, "f", "CAST(TO_INT64(f['flag']) AS BOOL)", 0, None),
]
SQLITE_TYPES = {BOOL: "INTEGER", INT: "INTEGER", FLOAT: "REAL", STRING: "TEXT", BYTES: "BLOB"}


def column(name, type, google, bound=0, scale=None):
    leaf = tree.Leaf(google, name, type, bound, scale, column=name)
    leaf.is_unique = name in (KEY, "id")
    leaf.is_key = name == KEY
    return leaf


class Table:
    """`columns`: leaves as a query over the table reads them. `rows`: dictionaries by name."""

    def __init__(self, dice, name, count):
        self.dice = dice
        self.name = name
        self.has_text_keys = dice.random() < 0.6
        self.has_nothing = {  # columns without any value
            each[0] for each in COLUMNS[1:] if dice.random() < 0.03
        }
        self.holes = {each[0]: dice.choice([0, 0.1, 0.1, 0.4]) for each in COLUMNS[1:]}
        keys = self.make_keys(count)
        self.rows = [self.make_row(key, place) for place, key in enumerate(keys)]
        self.splits = sorted(dice.sample(keys, 4)) if dice.random() < 0.5 else []
        self.columns = [column(KEY, BYTES, KEY)]
        self.columns += [column(*each[:2], each[3], *each[4:]) for each in COLUMNS]
        self.extra = self.make_extra()

    def make_keys(self, count):
        keys = set()
        while len(keys) < count:
            if self.has_text_keys:
                key = "".join(self.dice.choices(KEY_PARTS, k=self.dice.randint(1, 4))).encode()
            else:
                key = b"".join(self.dice.choices(KEY_BYTES, k=self.dice.randint(1, 4)))
            keys.add(key)
        return self.dice.sample(sorted(keys), count)

    def make_row(self, key, place):
        values = {
            "id": place,
            "small": self.dice.randint(-5, 5),
            "medium": self.dice.randint(-(10**6), 10**6),
            "huge": self.dice.choice([*EXTREMES, self.dice.randint(-(2**63), 2**63 - 1)]),
            "total": self.dice.randint(-1000, 1000),
            "x": self.dice.randint(-2048, 2048) / 8,
            "y": self.dice.randint(-4, 4) / 2,
            "word": self.dice.choice(WORDS),
            "text": "".join(self.dice.choices(LETTERS, k=self.dice.randint(0, 8))),
            "raw": bytes(self.dice.choices([0, 1, 97, 127, 200, 255], k=self.dice.randint(0, 4))),
            "flag": self.dice.random() < 0.5,
        }
        for name, chance in self.holes.items():
            if name in self.has_nothing or self.dice.random() < chance:
                values[name] = None
        return {KEY: key, **values}

    def make_extra(self):
        """What only a table has: whole families."""
        by_family = {
            family: [each[0] for each in COLUMNS if each[2] == family] for family in "fgn"
        }
        extra = []
        for family, names in by_family.items():
            is_empty = " AND ".join(f"{name} IS NULL" for name in names)
            length = " + ".join(f"({name} IS NOT NULL)" for name in names)
            extra.append(tree.Leaf(f"MAP_EMPTY({family})", f"({is_empty})", BOOL, column=family))
            extra.append(tree.Leaf(f"ARRAY_LENGTH(MAP_KEYS({family}))", f"({length})", INT, 9,
                                   column=family))  # fmt: skip
            for name in names:
                extra.append(tree.Leaf(f"MAP_CONTAINS_KEY({family}, '{name}')",
                                       f"({name} IS NOT NULL)", BOOL, column=name))  # fmt: skip
        extra.append(tree.Leaf("f['missing']", "NULL", BYTES, column="f"))
        if self.has_text_keys:
            text = tree.Leaf("CAST(_key AS STRING)", "CAST(_key AS TEXT)", STRING, column=KEY)
            text.is_unique = True
            extra.append(text)
        return extra

    # --- the server's side ---

    def mutations(self, row):
        for name, type, family, *_ in COLUMNS:
            value = row[name]
            if value is None:
                continue
            if family == "n":
                yield dict(add_to_cell=dict(
                    family_name="n", column_qualifier={"raw_value": name.encode()},
                    timestamp={"raw_timestamp_micros": 0}, input={"int_value": value},
                ))  # fmt: skip
                continue
            if self.dice.random() < 0.1:  # an older version, which nobody may see
                yield set_cell(family, name.encode(), b"older", 1000)
            yield set_cell(family, name.encode(), encode(type, value), 2000)

    def create(self, rpc):
        sums = {"aggregate_type": {"input_type": {"int64_type": {}}, "sum": {}}}
        families = {"f": {}, "g": {}, "n": {"value_type": sums}}
        full = rpc.create_table(self.name, (), self.splits, column_families=families)
        rows = [(row[KEY], self.mutations(row)) for row in self.rows]
        assert set(rpc.mutate_rows(full, rows)) <= {0}
        self.full_name = full

    # --- SQLite's ---

    def create_in_sqlite(self, connection):
        kinds = [f"{each[0]} {SQLITE_TYPES[each[1]]}" for each in COLUMNS]
        connection.execute(f"CREATE TABLE {self.name} ({KEY} BLOB, {', '.join(kinds)})")
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        rows = [[row[KEY]] + [row[each[0]] for each in COLUMNS] for row in self.rows]
        connection.executemany(f"INSERT INTO {self.name} VALUES ({marks})", rows)


def encode(type, value):
    if type in (INT, BOOL):
        return struct.pack(">q", value)
    if type == FLOAT:
        return struct.pack(">d", value)
    return value.encode() if type == STRING else value
