"""Good cases that look like broken ones: for each rule that counts or compares, something just as
large, as many or as similar that is as it should be."""

from practices.case import (
    Case,
    Cell,
    Database,
    Entity,
    Lookup,
    Put,
    Query,
    Read,
    Rule,
    Table,
    Write,
)
from practices.entities import Kind, batched, moment, scattered
from practices.good import (
    at_random,
    dates_of_devices,
    plain_table,
    rows_of,
    table_name,
)
from practices.records import Plain, text

ALIKE, ENTITIES_ALIKE = [], []


def alike(function):
    ALIKE.append(function)
    return function


def entities_alike(function):
    ENTITIES_ALIKE.append(function)
    return function


# --- tables ---


@alike
def films(make):
    """Large cells and rows, each under the page's bounds."""
    make.count = 8
    block = make.rng.randbytes(500_000)
    rows = []
    for key, micros in at_random(make, lambda: make.join("film", make.slug())):
        size = make.rng.randint(2, 8) * 2
        reels = [Cell("b", b"reel%d" % i, block * size, micros) for i in range(make.pick([1, 3]))]
        rows.append((key.encode(), [*reels, Cell("i", b"title", text(3)(make), micros)]))
    return Case("", tables=[Table(table_name(make), {"b": Rule(1), "i": Rule(1)}, rows)])


@alike
def dozens_of_families(make):
    """Forty, of short names, of which a row has a few and a read wants one."""
    names = make.distinct(40, lambda: make.noun()[:3])
    families = dict.fromkeys(names, Rule(1))
    rows = []
    for key, micros in at_random(make, lambda: make.join(make.slug(), make.digits(6))):
        chosen = make.rng.sample(names, 4)
        rows.append((key.encode(), [Cell(each, b"v", make.message(4), micros) for each in chosen]))
    reads = [
        Read(keys=(make.pick(rows)[0],), filter={"family_name_regex_filter": make.pick(names)})
        for _ in range(200)
    ]
    return Case("", tables=[Table(table_name(make), families, rows)], traffic=reads)


@alike
def long_keys(make):
    """Paths of a hundred bytes or so: not short, and far from what the page warns of."""
    folders = make.distinct(60, lambda: "/".join(make.slug() for _ in range(6)))
    record = Plain(make)
    keys = at_random(make, lambda: f"{make.pick(folders)}/{make.slug()}.txt")
    return Case("", tables=[Table(table_name(make), record.families, rows_of(keys, record))])


@alike
def names_that_agree(make):
    """Tables of one thing whose families differ: each is for another question."""
    thing, tables = make.pick(["orders", "visits", "prices"]), []
    for end in make.rng.sample(["", "_by_day", "_totals", "_archive"], 3):
        make.count = make.rng.randint(400, 1500)
        table = plain_table(make)
        table.name, tables = thing + end, [*tables, table]
        table.families[end.strip("_")[:4] or "main"] = Rule(1)
    return Case("", tables=tables, asked=3)


@alike
def forty_tables(make):
    """Each of a shape of its own: a large application."""
    tables = []
    for name in make.distinct(40, lambda: make.slug("_")):
        make.count = make.rng.randint(20, 60)
        tables.append(plain_table(make))
        tables[-1].name = name
    return Case("", tables=tables, asked=2)


@alike
def an_archive_of_history(make):
    """Days that lie decades back, behind the place, written in no order."""
    places = make.entities(300)
    record = Plain(make)
    number = make.rng.randint

    def key():
        day = f"{number(1880, 1999)}-{number(1, 12):02d}-{number(1, 28):02d}"
        return make.join(make.pick(places), day)

    rows = rows_of(at_random(make, key), record)
    return Case("", tables=[Table(table_name(make), record.families, rows)])


@alike
def some_are_read_more(make):
    """A fifth of the keys, all over the table, take most of the reads: as it always is."""
    table = plain_table(make)
    keys = table.keys()
    favourites = make.rng.sample(keys, len(keys) // 5)
    reads = [Read(keys=(make.pick(favourites),)) for _ in range(800)]
    reads += [Read(keys=(key,)) for key in make.rng.choices(keys, k=200)]
    make.rng.shuffle(reads)
    return Case("", tables=[table], traffic=reads)


@alike
def few_whole_scans(make):
    """A nightly export beside a day's point reads."""
    table = plain_table(make)
    reads = [Read(keys=(key,)) for key in make.rng.choices(table.keys(), k=600)]
    return Case("", tables=[table], traffic=[*reads, Read()])


@alike
def ranges_of_owners(make):
    """Prefixes all over the table, all of whose rows are wanted."""
    record = Plain(make)
    table = Table(table_name(make), record.families, rows_of(dates_of_devices(make), record))
    owners = [key.rsplit(make.mark.encode(), 1)[0] for key in table.keys()]
    first, end = make.mark.encode(), bytes([ord(make.mark) + 1])
    reads = []
    for _ in range(300):
        owner = make.pick(owners)
        reads.append(Read(ranges=((owner + first, owner + end),)))
    return Case("", tables=[table], traffic=reads)


@alike
def counters_in_cells(make):
    """Adds to aggregate cells, all over the table."""
    table = plain_table(make)
    table.families["n"] = Rule(total=True, days=400)
    keys = table.keys()
    writes = [
        Write(tuple((key, [Cell("n", b"seen", 1, make.now)]) for key in make.rng.sample(keys, 20)))
        for _ in range(60)
    ]
    return Case("", tables=[table], traffic=writes)


@alike
def filters_that_keep_most(make):
    """Reads of ranges with a filter that cuts versions, and throws nothing away."""
    table = plain_table(make)
    keys = table.keys()
    newest = {"cells_per_column_limit_filter": 1}
    reads = [Read(ranges=((make.pick(keys), b""),), filter=newest, limit=50) for _ in range(200)]
    return Case("", tables=[table], traffic=reads)


# --- Datastore ---


@entities_alike
def times_not_indexed(make):
    """Each entity has the time of its writing, and no index has it."""
    kind = Kind(make)
    kind.plain = (*kind.plain, "created")
    entities = [
        kind.entity(kind.name, scattered(make), created=moment(micros))
        for micros in make.times(1000)
    ]
    return Case("", database=Database(entities))


@entities_alike
def dates_behind_names(make):
    kind, owners = Kind(make), make.entities(300)
    names = dict.fromkeys(
        f"{make.pick(owners)}-{moment(micros):%Y%m%d%H%M}" for micros in make.times(1000)
    )
    return Case("", database=Database([kind.entity(kind.name, name) for name in names]))


@entities_alike
def short_offsets(make):
    """The second page of twenty, now and then."""
    kind = Kind(make)
    queries = [Query(kind.name, offset=20, limit=20) for _ in range(10)]
    queries += [Query(kind.name, limit=20, pages=3) for _ in range(30)]
    return Case("", database=Database(kind.good(800)), traffic=queries)


@entities_alike
def projections(make):
    """Of all entities, but only what is asked for, and out of an index."""
    kind = Kind(make)
    name = make.pick(sorted(set(kind.values) - set(kind.plain)))
    queries = [Query(kind.name, projection=(name,), limit=300, pages=3) for _ in range(20)]
    return Case("", database=Database(kind.good(800)), traffic=queries)


@entities_alike
def children_of_many(make):
    """Groups of a dozen, each written in one commit."""
    kind = Kind(make)
    parents = kind.good(100)
    groups = [
        [parent, *(Entity((*parent.path, "Line", scattered(make)), {"n": i}) for i in range(12))]
        for parent in parents
    ]
    return Case("", database=Database(parents), traffic=[Put(tuple(each)) for each in groups])


@entities_alike
def reads_and_batches(make):
    """Single lookups, as a page of a site makes them, among lookups of many and batched puts."""
    kind = Kind(make)
    entities = kind.good(1000)
    traffic = [Lookup((make.pick(entities).path,)) for _ in range(40)]
    traffic += [
        Lookup(tuple(each.path for each in make.rng.sample(entities, 30))) for _ in range(40)
    ]
    return Case("", database=Database(entities), traffic=traffic + batched(entities[:300], 100))


def case_of(make, found):
    appearance = make.pick(found)
    case = appearance(make)
    case.appearance = f"alike: {appearance.__name__}"
    return case


def good_look(make):
    return case_of(make, ALIKE)


def good_database_look(make):
    return case_of(make, ENTITIES_ALIKE)
