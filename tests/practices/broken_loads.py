"""Good tables that are used in a way that breaks one practice: what can be seen by traffic alone.

An appearance takes a Make and gives a Case with traffic.
"""

import collections
import re

from practices.case import Case, Cell, Increment, Read, Rule, Table, Write
from practices.good import at_random, dates_of_devices, in_time, plain_table, rows_of, table_name
from practices.records import Plain

LOADS = collections.defaultdict(list)  # {practice: [function]}


def broken(practice):
    def note(function):
        LOADS[practice].append(function)
        return function

    return note


def case_of(practice, appearance, make):
    make.count = max(make.count, 1500)  # a range can only be hot among others
    case = appearance(make)
    case.appearance = appearance.__name__
    return case


# --- B3: related columns in one family ---


@broken("B3")
def a_family_per_column(make):
    """Six families of a column each, all of which each read wants."""
    names = make.rng.sample(["na", "ct", "zip", "st", "tel", "web", "lat", "lon"], 6)
    families = dict.fromkeys(names, Rule(1))
    rows = [
        (key.encode(), [Cell(name, b"v", make.message(3), micros) for name in names])
        for key, micros in at_random(make, lambda: make.join(make.slug(), make.digits(6)))
    ]
    table = Table(table_name(make), families, rows)
    return Case("", tables=[table], traffic=whole_rows(make, table, names))


def whole_rows(make, table, names):
    """Either without a filter or with one that names all the families."""
    families = make.pick([None, {"family_name_regex_filter": "|".join(names)}])
    return [Read(keys=(key,), filter=families) for key in make.rng.choices(table.keys(), k=900)]


@broken("B3")
def two_that_are_read_together(make):
    """One column of each of two large families, always both."""
    record = Plain(make)
    record.families |= {"a": Rule(1), "z": Rule(1)}
    rows = []
    for key, micros in at_random(make, lambda: make.join(make.slug(), make.digits(6))):
        parts = [Cell(name, b"c%d" % i, make.message(4), micros) for name in "az" for i in range(5)]
        rows.append((key.encode(), record.cells(micros) + parts))
    table = Table(table_name(make), record.families, rows)
    both = {"interleave": {"filters": [column_of("a", b"c1"), column_of("z", b"c3")]}}
    reads = [Read(keys=(key,), filter=both) for key in make.rng.choices(table.keys(), k=900)]
    return Case("", tables=[table], traffic=reads)


def column_of(family, name):
    ends = {"start_qualifier_closed": name, "end_qualifier_closed": name}
    return {"column_range_filter": {"family_name": family, **ends}}


# --- B12: an entity in one row ---


@broken("B12")
def parts_far_apart(make):
    """A profile and its settings begin with what they are, and are always read together."""
    users = make.entities(800)
    record = Plain(make)
    keys = [(f"{part}#{user}", make.now - 1_000_000_000) for part in ("prof", "sett", "stat")
            for user in users]  # fmt: skip
    table = Table(table_name(make), record.families, rows_of(keys, record))
    reads = []
    for _ in range(700):
        user = make.pick(users)
        reads.append(Read(keys=tuple(f"{p}#{user}".encode() for p in ("prof", "sett", "stat"))))
    return Case("", tables=[table], traffic=reads)


# --- B14: aggregates ---


@broken("B14")
def increments(make):
    """Counters by ReadModifyWriteRow."""
    table = plain_table(make)
    table.families["n"] = Rule(1)
    keys = make.rng.sample(table.keys(), make.pick([1, 5, 40]))
    column = make.pick([b"views", b"clicks", b"total"])
    return Case("", tables=[table], traffic=[
        Increment(make.pick(keys), "n", column) for _ in range(2400)
    ])  # fmt: skip


@broken("B14")
def totals_read_and_written(make):
    """Read, add, write: by a client, again and again the same few rows."""
    table = plain_table(make)
    table.families["n"] = Rule(1)
    keys = make.rng.sample(table.keys(), 10)
    traffic = []
    for total in range(1200):
        key = make.pick(keys)
        traffic.append(Read(keys=(key,)))
        cell = Cell("n", b"total", total.to_bytes(8), make.now + 1000 * total)
        traffic.append(Write(((key, [cell]),)))
    return Case("", tables=[table], traffic=traffic)


# --- B15: keys by queries ---


@broken("B15")
def scans_with_a_filter_of_values(make):
    """What is wanted does not stand in the key; what is found is nothing or little."""
    table = plain_table(make)
    filters = [{"value_regex_filter": make.slug().encode()} for _ in range(120)]
    return Case("", tables=[table], traffic=[Read(filter=each) for each in filters])


@broken("B15")
def scans_with_a_filter_of_keys(make):
    """By the end of the key, which no order helps to find."""
    table = plain_table(make)
    ends = [re.escape(key[-5:]) for key in make.rng.choices(table.keys(), k=120)]
    filters = [{"row_key_regex_filter": b"\\C*" + each} for each in ends]
    return Case("", tables=[table], traffic=[Read(filter=each) for each in filters])


@broken("B15")
def scans_for_one_row(make):
    """A condition on a column, first match."""
    table = plain_table(make)
    family = next(iter(table.families))
    filters = [
        {"chain": {"filters": [
            {"family_name_regex_filter": family},
            {"value_range_filter": {"start_value_closed": b"~~" + make.slug().encode()}},
        ]}} for _ in range(120)
    ]  # fmt: skip
    return Case("", tables=[table], traffic=[Read(filter=each, limit=1) for each in filters])


@broken("B15")
def everything_each_time(make):
    """The client throws away, not the server."""
    table = plain_table(make)
    return Case("", tables=[table], traffic=[Read() for _ in range(100)])


@broken("B15")
def a_tenant_at_a_time_by_filter(make):
    """A whole range of a third of the table for the sake of a few rows."""
    record = Plain(make)
    table = Table(table_name(make), record.families, rows_of(dates_of_devices(make), record))
    keys = sorted(table.keys())
    ranges = ((keys[len(keys) // 3], keys[2 * len(keys) // 3]),)
    reads = [
        Read(ranges=ranges, filter={"value_regex_filter": make.noun().encode()}) for _ in range(200)
    ]
    return Case("", tables=[table], traffic=reads)


# --- B24: frequently updated ---


@broken("B24")
def one_row_for_the_newest(make):
    """`latest`: whoever has something new writes it there."""
    table = plain_table(make)
    table.families["u"] = Rule(1)
    key = make.pick([b"latest", b"config#current", make.pick(table.keys())])
    writes = [
        Write(((key, [Cell("u", b"v", make.message(3), make.now + 1000 * i)]),))
        for i in range(3000)
    ]
    return Case("", tables=[table], traffic=writes)


@broken("B24")
def one_row_for_all_readers(make):
    """Asked for with each request of the application."""
    table = plain_table(make)
    key = make.pick(table.keys())
    others = [Read(keys=(each,)) for each in make.rng.choices(table.keys(), k=300)]
    reads = [Read(keys=(key,)) for _ in range(3000)] + others
    make.rng.shuffle(reads)
    return Case("", tables=[table], traffic=reads)


# --- B25: load spread evenly ---


def neighbours(make, keys):
    """A fortieth of them."""
    size = len(keys) // 40
    first = make.rng.randrange(len(keys) - size)
    return keys[first : first + size]


@broken("B25")
def most_writes_to_few_neighbours(make):
    table = plain_table(make)
    record = Plain(make)
    table.families |= record.families
    keys = sorted(table.keys())
    hot, writes = neighbours(make, keys), []
    for _ in range(120):
        chosen = make.rng.choices(hot, k=40) + make.rng.choices(keys, k=10)
        writes.append(Write(tuple((key, record.cells(make.now)) for key in dict.fromkeys(chosen))))
    return Case("", tables=[table], traffic=writes)


@broken("B25")
def most_reads_of_one_prefix(make):
    table = plain_table(make)
    keys = sorted(table.keys())
    hot = neighbours(make, keys)
    reads = [Read(ranges=((hot[0], hot[-1]),)) for _ in range(900)]
    reads += [Read(keys=(key,)) for key in make.rng.choices(keys, k=100)]
    make.rng.shuffle(reads)
    return Case("", tables=[table], traffic=reads)


@broken("B25")
def a_front_of_new_rows(make):
    """Of all devices one writes nearly everything."""
    record = Plain(make)
    keys = dates_of_devices(make)
    loud = f"{make.slug()}-loud"
    front = in_time(make, lambda micros: make.join(loud, micros))[:1500]
    table = Table(table_name(make), record.families, rows_of(keys, record))
    rows = [(key.encode(), record.cells(make.now)) for key, _ in front]
    writes = [Write(tuple(rows[i : i + 25])) for i in range(0, len(rows), 25)]
    return Case("", tables=[table], traffic=writes)


@broken("B25")
def a_queue(make):
    """Rows are written at one end, read and deleted at the other: what was deleted is read over
    and over."""
    record = Plain(make)
    keys = [make.join("job", make.slug(), f"{i:06d}").encode() for i in range(4000)]
    rows = [(key, record.cells(make.now - 60_000_000)) for key in sorted(keys)]
    table = Table(table_name(make), record.families, rows)
    traffic, queue = [], table.keys()
    for first in range(0, 3900, 50):
        gone = queue[first : first + 50]
        traffic.append(Write(tuple((key, []) for key in gone)))
        traffic.append(Read(ranges=((b"job", b"joc"),), limit=50))
    return Case("", tables=[table], traffic=traffic)
