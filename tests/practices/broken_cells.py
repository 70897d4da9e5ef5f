"""Tables whose families, columns, cells or sizes break one practice; and instances with tables that
should be one, or with too many.

An appearance takes a Make and gives a Case, or the table of one.
"""

import collections

from practices.case import Case, Cell, Rule, Table
from practices.good import SIMPLE, plain_table, rows_of, table_name
from practices.records import Plain, number
from practices.words import DAY

CELLS = collections.defaultdict(list)  # {practice: [function]}
MB = 1_000_000


def broken(practice):
    def note(function):
        CELLS[practice].append(function)
        return function

    return note


def case_of(practice, appearance, make):
    made = appearance(make)
    case = made if isinstance(made, Case) else Case("", tables=[made])
    case.appearance = appearance.__name__
    return case


def good_keys(make):
    return make.pick(SIMPLE)(make)


class With(Plain):
    """A good record, and in each row what `more(micros)` gives."""

    def __init__(self, make, families, more):
        super().__init__(make)
        self.families |= families
        self.more = more

    def cells(self, micros):
        return super().cells(micros) + self.more(micros)


def table_with(make, families, more):
    record = With(make, families, more)
    return Table(table_name(make), record.families, rows_of(good_keys(make), record))


# --- B1, B2: tables of an instance ---


def alike(make, names):
    """Tables of one shape and of a few rows each."""
    record = Plain(make)
    tables = []
    for name in names:
        make.count = make.rng.randint(20, 200)
        tables.append(Table(name, dict(record.families), rows_of(good_keys(make), record)))
    return Case("", tables=tables, asked=2)


@broken("B1")
def a_table_per_customer(make):
    thing, joint = make.pick(["orders", "events", "users"]), make.pick("-_.")
    names = make.companies(make.rng.randint(6, 20))
    first = make.chance(0.5)
    return alike(make, [joint.join((each, thing) if first else (thing, each)) for each in names])


@broken("B1")
def a_table_per_month(make):
    thing = make.pick(["logs", "metrics", "sales"])
    form = make.pick(["{}-{}-{:02d}", "{}_{}{:02d}", "{}{}m{:02d}"])
    return alike(make, [
        form.format(thing, year, month) for year in (2024, 2025) for month in range(1, 13)
    ])  # fmt: skip


@broken("B1")
def a_table_per_country(make):
    thing = make.pick(["products", "stores", "prices"])
    countries = make.rng.sample("de fr it es pl nl se no fi pt".split(), 8)
    return alike(make, [f"{thing}-{each}" for each in countries])


@broken("B1")
def a_table_per_shard(make):
    thing = make.noun()
    return alike(make, [f"{thing}_{i:02d}" for i in range(make.rng.randint(8, 24))])


@broken("B2")
def hundreds_of_tables(make):
    """Each of a shape of its own, and small."""
    tables = []
    for name in make.distinct(make.rng.randint(200, 350), lambda: make.slug("_")):
        make.count = 3
        tables.append(plain_table(make))
        tables[-1].name = name
    return Case("", tables=tables, asked=2)


# --- B4, B5: families ---


@broken("B4")
def a_family_per_thing(make):
    names = make.distinct(make.rng.randint(105, 250), lambda: make.noun()[:4] + make.digits(2))
    families = dict.fromkeys(names, Rule(1))

    def more(micros):
        chosen = make.rng.sample(names, 4)
        return [Cell(each, b"v", make.message(3), micros) for each in chosen]

    return table_with(make, families, more)


@broken("B5")
def families_with_long_names(make):
    joint = make.pick("_-.")
    names = [joint.join(make.slug(joint) for _ in range(make.pick([2, 3]))) for _ in range(3)]
    names = [f"{each}{joint}column{joint}family"[:64] for each in names]

    def more(micros):
        return [Cell(name, b"v", make.message(2), micros) for name in names]

    return table_with(make, dict.fromkeys(names, Rule(1)), more)


# --- B6: retention ---


@broken("B6")
def one_version_beside_many(make):
    """The family keeps a thousand for the sake of one column."""
    make.count = min(make.count, 400)
    family, kept = make.pick("dhx"), make.rng.randint(40, 80)

    def more(micros):
        series = [
            Cell(family, b"temp", number(10, 30)(make), micros - i * MB) for i in range(kept)
        ]
        single = [b"serial", b"vendor", b"site"]
        return series + [Cell(family, each, make.message(2), micros) for each in single]

    return table_with(make, {family: Rule(1000)}, more)


@broken("B6")
def old_beside_young(make):
    """The application deletes what is older than a week of one column, and never of the others."""
    family = make.pick("dex")
    make.days = 1

    def more(micros):
        young = [Cell(family, b"session", make.message(3), micros - i * MB) for i in range(4)]
        back = make.rng.randint(200, 700) * DAY
        old = [Cell(family, each, make.message(3), micros - back) for each in (b"born", b"terms")]
        return young + old

    return table_with(make, {family: Rule(10, 2000)}, more)


# --- B7: sparse ---


def twenty_columns(make, value_of, share):
    """Most of the values are the same, whoever the row is of."""
    names = [each.encode() for each in make.distinct(make.rng.randint(10, 20), make.noun)]
    family = make.pick(["a", "opt", "att"])

    def more(micros):
        return [
            Cell(family, name, value_of if make.chance(share) else make.message(2), micros)
            for name in names
        ]

    return table_with(make, {family: Rule(1)}, more)


@broken("B7")
def empty_cells(make):
    return twenty_columns(make, b"", make.rng.uniform(0.8, 0.97))


@broken("B7")
def defaults(make):
    value = make.pick([b"0", b"false", b"N/A", b"null", b"none", b"unknown", b"0.00", bytes(8)])
    return twenty_columns(make, value, make.rng.uniform(0.9, 0.98))


# --- B8: too many cells ---


@broken("B8")
def a_byte_a_cell(make):
    """The page's own example: 1,024 cells of a byte."""
    make.count = make.rng.randint(60, 150)
    cells = make.pick([512, 1024, 2048])
    family = make.pick("bfx")

    def more(micros):
        values = make.rng.randbytes(cells)
        return [
            Cell(family, b"%04d" % i, values[i : i + 1], micros) for i in range(cells)
        ]

    return table_with(make, {family: Rule(1)}, more)


@broken("B8")
def seconds_of_an_hour(make):
    """A small number a second, 3,600 a row."""
    make.count = make.rng.randint(40, 80)
    family = make.pick("stv")

    def more(micros):
        return [
            Cell(family, b"%04d" % i, b"%d" % make.rng.randrange(100), micros) for i in range(3600)
        ]

    return table_with(make, {family: Rule(1)}, more)


@broken("B8")
def thousands_of_columns(make):
    make.count = make.rng.randint(30, 50)
    family = make.pick("acp")

    def more(micros):
        return [Cell(family, b"p%05d" % i, b"%d" % (i % 7), micros) for i in range(8_000)]

    return table_with(make, {family: Rule(1)}, more)


@broken("B8")
def small_parts_of_one_thing(make):
    """Three hundred attributes of a few bytes, always the same ones: one message."""
    make.count = make.rng.randint(100, 250)
    names = [f"{make.noun()[:3]}{i:03d}".encode() for i in range(300)]
    family = make.pick("atv")

    def more(micros):
        return [Cell(family, name, make.digits(3).encode(), micros) for name in names]

    return table_with(make, {family: Rule(1)}, more)


# --- B9, B10: qualifiers ---


@broken("B9")
def numbered_qualifiers(make):
    """A list: whose members are found by reading all of it."""
    word = make.pick(["friend", "tag", "member", "item"])
    form = make.pick(["{}{}", "{}_{}", "{}#{}", "{}[{}]", "{}-{:03d}"])
    family, others = make.pick("flm"), make.entities(300)

    def more(micros):
        return [
            Cell(family, form.format(word, i).encode(), make.pick(others).encode(), micros)
            for i in range(1, make.rng.randint(4, 40))
        ]

    return table_with(make, {family: Rule(1)}, more)


@broken("B9")
def values_in_qualifiers(make):
    """Attributes that have one value each, which stands in the qualifier and changes."""
    family, mark = make.pick("aqv"), make.pick("=:")

    def more(micros):
        pairs = {
            "price": f"{make.rng.uniform(1, 999):.2f}", "stock": make.digits(4),
            "weight": f"{make.rng.uniform(0, 9):.3f}", "changed": str(micros),
        }  # fmt: skip
        return [Cell(family, f"{k}{mark}{v}".encode(), b"", micros) for k, v in pairs.items()]

    return table_with(make, {family: Rule(1)}, more)


@broken("B10")
def long_qualifiers(make):
    joint = make.pick("_.- ")
    names = [
        joint.join(make.phrase(make.rng.randint(7, 14)).split()).encode() for _ in range(6)
    ]
    family = make.pick("adq")

    def more(micros):
        return [Cell(family, name, make.digits(2).encode(), micros) for name in names]

    return table_with(make, {family: Rule(1)}, more)


# --- B11, B13: sizes ---


def with_one_row(make, cells):
    """A good table, and somewhere among its rows one that has these cells in a family b."""
    table = plain_table(make)
    table.families["b"] = Rule(1)
    place = make.rng.randrange(len(table.rows))
    key, others = table.rows[place]
    table.rows[place] = (key, others + cells)
    return table


def large(make, size):
    """Bytes that do not compress to nothing: a random block, again and again."""
    block = make.rng.randbytes(100_000)
    return (block * (size // len(block) + 1))[:size]


@broken("B11")
def one_row_of_many_megabytes(make):
    """Cells that are each allowed."""
    size = make.rng.randint(4 * MB, 9 * MB)
    value = large(make, size)
    count = make.rng.randint(108 * MB, 140 * MB) // size + 1
    return with_one_row(make, [Cell("b", b"%04d" % i, value, make.now) for i in range(count)])


@broken("B11")
def one_row_of_many_cells(make):
    value = large(make, 64_000)
    count = make.rng.randint(1700, 2000)
    return with_one_row(make, [Cell("b", b"%06d" % i, value, make.now) for i in range(count)])


@broken("B13")
def one_large_cell(make):
    value = large(make, make.rng.randint(11 * MB, 40 * MB))
    return with_one_row(make, [Cell("b", b"film", value, make.now)])


@broken("B13")
def some_large_cells(make):
    cells = [Cell("b", b"%d" % i, large(make, 12 * MB), make.now) for i in range(3)]
    return with_one_row(make, cells)


# --- B12: an entity in one row ---


@broken("B12")
def a_row_per_attribute(make):
    """What is of one user stands in as many rows as he has attributes."""
    names = make.rng.sample(["name", "city", "lang", "plan", "score", "born", "theme"], 5)
    rows = []
    for user, micros in zip(make.entities(400), make.times(400), strict=False):
        rows += [
            (make.join(user, name).encode(), [Cell("a", b"v", make.slug().encode(), micros)])
            for name in names
        ]
    return Table(table_name(make), {"a": Rule(1)}, rows)


# --- B24: one row written all the time ---


@broken("B24")
def hundreds_of_versions(make):
    """What a device said last, in one row that is never another's."""
    table = plain_table(make)
    table.families["u"] = Rule(1000)
    kept = make.rng.randint(300, 900)
    for place in make.rng.sample(range(len(table.rows)), 20):
        key, cells = table.rows[place]
        times = [make.now - i * MB for i in range(kept)]
        series = [Cell("u", b"mem", make.digits(3).encode(), micros) for micros in times]
        table.rows[place] = (key, cells + series)
    return table


# --- B27: personal data in families and qualifiers ---


@broken("B27")
def families_of_people(make):
    people = make.distinct(20, make.mail)
    joint = make.pick(["_", ".", "-at-"])
    names = [each.replace("@", joint) for each in people]

    def more(micros):
        return [Cell(make.pick(names), b"v", make.message(2), micros)]

    return table_with(make, dict.fromkeys(names, Rule(1)), more)


@broken("B27")
def addresses_in_qualifiers(make):
    def more(micros):
        return [Cell("to", make.mail().encode(), b"1", micros) for _ in range(3)]

    return table_with(make, {"to": Rule(1)}, more)
