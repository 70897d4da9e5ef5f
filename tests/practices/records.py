"""What stands in the rows of a good table: families with sensible rules, columns that are there or
not, values of the kinds that applications store.

A record is made once a table; `cells(micros)` is one row of it, written then.
"""

import struct

from practices.case import Cell, Rule

# Short names of families, by what is in them.
NAMES = {
    "profile": ["p", "info", "main", "prof"],
    "geo": ["g", "geo", "loc"],
    "money": ["m", "pay", "price", "o"],
    "sensor": ["s", "d", "data", "v"],
    "text": ["t", "doc", "txt"],
    "state": ["st", "meta", "x", "life"],
    "large": ["b", "blob", "img"],
}


def text(words):
    return lambda make: make.phrase(words).encode()


def number(low, high, form="{:.2f}"):
    return lambda make: form.format(make.rng.uniform(low, high)).encode()


def double(mean, spread):
    return lambda make: struct.pack(">d", make.rng.gauss(mean, spread))


def integer(high):
    return lambda make: struct.pack(">q", make.rng.randrange(high))


def one_of(*words):
    return lambda make: make.pick(words).encode()


def blob(low, high):
    return lambda make: make.rng.randbytes(make.rng.randint(low, high))


COLUMNS = {
    "profile": {
        "name": text(2), "mail": lambda make: make.mail().encode(), "bio": text(12),
        "lang": one_of("en", "de", "fr", "ja", "pt"), "card": lambda make: make.message(5),
        "site": lambda make: f"https://{make.noun()}.example/{make.slug()}".encode(),
    },
    "geo": {
        "lat": double(48, 9), "lon": double(9, 20), "alt": number(0, 2000, "{:.0f}"),
        "city": lambda make: make.pick(("Berlin", "Oslo", "Kyoto", "Lima", "Accra")).encode(),
        "box": lambda make: make.message(4),
    },
    "money": {
        "price": number(1, 900), "cur": one_of("EUR", "USD", "JPY", "GBP"), "qty": integer(900),
        "items": lambda make: make.message(9), "tax": number(0, 99), "note": text(6),
    },
    "sensor": {
        "temp": double(20, 6), "hum": number(10, 99, "{:.1f}"), "volt": double(3.6, 0.2),
        "raw": lambda make: make.message(8), "rpm": integer(9000),
    },
    "text": {
        "title": text(5), "body": text(60), "tags": lambda make: make.document(),
        "html": lambda make: f"<p>{make.phrase(40)}</p>".encode(), "sum": text(20),
    },
    "state": {
        "step": one_of("new", "paid", "packed", "sent", "done"), "rank": integer(10**6),
        "json": lambda make: make.document(), "by": lambda make: make.slug().encode(),
        "pb": lambda make: make.message(7),
    },
    "large": {"img": blob(2_000, 60_000), "thumb": blob(500, 4_000), "mime": one_of(
        "image/png", "image/jpeg", "image/webp", "image/avif")},
}  # fmt: skip


def good_rule(make):
    """Keeps all that the table's time has, with one version or a few of each cell."""
    days = 2 * make.days + make.pick([1, 7, 30])
    few = make.pick([1, 1, 1, 2, 3, 5])
    kept = make.pick([Rule(few), Rule(few, days), Rule(1, days), Rule(few + 2, days, both=True)])
    return make.pick([Rule(few), kept])


class Record:
    """Columns of one to three families, each of which a row has with a probability of its own."""

    def __init__(self, make, most=3):
        self.make = make
        self.families, self.columns = {}, []
        for kind in make.rng.sample(sorted(COLUMNS), make.rng.randint(1, most)):
            self.add_family(kind)

    def add_family(self, kind):
        if kind == "large":
            self.make.count = min(self.make.count, 300)
        family = self.make.pick(NAMES[kind])
        self.families[family] = good_rule(self.make)
        names = sorted(COLUMNS[kind])
        for name in self.make.rng.sample(names, self.make.rng.randint(2, len(names))):
            share = self.make.pick([1, 1, 0.9, 0.5, 0.2])
            self.columns.append((family, name.encode(), COLUMNS[kind][name], share))

    def cells(self, micros):
        made = [
            Cell(family, name, value(self.make), micros)
            for family, name, value, share in self.columns
            if share == 1 or self.make.chance(share)
        ]
        return made or [self.first(micros)]

    def first(self, micros):
        family, name, value, _ = self.columns[0]
        return Cell(family, name, value(self.make), micros)


class Plain(Record):
    """Without large values: what broken tables put beside what is broken."""

    def __init__(self, make):
        self.make = make
        self.families, self.columns = {}, []
        kinds = [each for each in sorted(COLUMNS) if each != "large"]
        for kind in make.rng.sample(kinds, make.rng.randint(1, 2)):
            self.add_family(kind)


class Edges(Plain):
    """Qualifiers as data: whom one follows, and nothing to say of it, or when it began."""

    def __init__(self, make):
        super().__init__(make)
        self.family = make.pick(["fol", "to", "tag"])
        self.families[self.family] = Rule(1)
        self.others = make.entities(400)
        self.value = make.pick([b"", b"1", None])

    def cells(self, micros):
        others = self.make.rng.sample(self.others, self.make.rng.randint(1, 25))
        value = self.make.message(2) if self.value is None else self.value
        edges = [Cell(self.family, other.encode(), value, micros) for other in others]
        return super().cells(micros) + edges


class Bucket(Record):
    """An hour a row, a reading of some fields a minute or five: a message each."""

    def __init__(self, make):
        self.make = make
        self.step = make.pick([1, 5, 5, 10])
        make.count = min(make.count, 80 * self.step)
        self.family = make.pick(NAMES["sensor"])
        self.families = {self.family: good_rule(make)}

    def cells(self, micros):
        return [
            Cell(self.family, f"{minute:02d}".encode(), self.make.message(6), micros)
            for minute in range(0, 60, self.step)
        ]


class Versions(Record):
    """A column of which some values are kept: what a thing cost, what a device said of late."""

    def __init__(self, make):
        self.make = make
        self.kept = make.rng.randint(3, 12)
        make.count = min(make.count, 1500)
        self.family = make.pick(["h", "hist", "q"])
        self.families = {self.family: Rule(self.kept, 2 * make.days + 30)}
        self.names = make.pick([[b"price"], [b"bid", b"ask"], [b"t", b"h", b"p"]])

    def cells(self, micros):
        steps = self.make.rng.randint(2, self.kept)
        return [
            Cell(self.family, name, number(10, 99)(self.make), micros - step * 1_000_000)
            for step in range(steps)
            for name in self.names
        ]


class Totals(Plain):
    """Counters in aggregate cells, one a day."""

    def __init__(self, make):
        super().__init__(make)
        self.family = make.pick(["n", "cnt", "sum"])
        self.families[self.family] = Rule(days=2 * make.days + 90, total=True)
        self.names = make.pick([[b"views"], [b"clicks", b"seen"], [b"in", b"out", b"err"]])

    def cells(self, micros):
        day = micros // 86_400_000_000 * 86_400_000_000
        added = [Cell(self.family, name, self.make.rng.randint(1, 50), day) for name in self.names]
        return super().cells(micros) + added


KINDS = (Record, Record, Record, Plain, Plain, Edges, Bucket, Versions, Totals)


def any_record(make):
    return make.pick(KINDS)(make)
