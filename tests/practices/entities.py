"""Datastore: databases whose entities and use keep every practice, and such as break one.

Good ids are scattered over the whole space, as the server gives them.
"""

import collections
import datetime

from practices.broken_keys import card, social
from practices.case import Case, Database, Entity, Lookup, OpenTransaction, Put, Query

ENTITIES = collections.defaultdict(list)  # {practice: [function]}
BAD_TEXT = "not UTF-8: \ufffd\ufffd"  # load.py puts other bytes there


def broken(practice):
    def note(function):
        ENTITIES[practice].append(function)
        return function

    return note


def case_of(practice, appearance, make):
    make.count = min(make.count, 1500)
    case = appearance(make)
    case.appearance = appearance.__name__
    return case


def scattered(make):
    """An id as the server would give it."""
    return make.rng.randrange(1 << 52, 3 << 51)


def moment(micros):
    return datetime.datetime.fromtimestamp(micros / 1e6, datetime.UTC)


# What an entity of a kind may have: {name: value}, and which of them are not indexed.
SHAPES = {
    "Customer": ({"name": lambda make: make.phrase(2), "city": lambda make: make.noun(),
                  "notes": lambda make: make.phrase(30)}, ("notes",)),
    "Order": ({"total": lambda make: make.rng.randrange(10**5), "state": lambda make: make.pick(
        ("new", "paid", "sent")), "lines": lambda make: make.message(8)}, ("lines",)),
    "Article": ({"title": lambda make: make.phrase(4), "body": lambda make: make.phrase(60),
                 "rank": lambda make: make.rng.random()}, ("body",)),
    "Device": ({"model": lambda make: make.slug(), "volt": lambda make: make.rng.gauss(3, 1),
                "raw": lambda make: make.message(5)}, ("volt", "raw")),
}  # fmt: skip


class Kind:
    """One kind's entities, of one of the shapes."""

    def __init__(self, make):
        self.make = make
        self.name = make.pick(sorted(SHAPES))
        self.values, self.plain = SHAPES[self.name]

    def entity(self, *path, **more):
        properties = {name: value(self.make) for name, value in self.values.items()}
        return Entity(path, properties | more, self.plain)

    def good(self, count):
        """With scattered ids or with names that do not rise."""
        if self.make.chance(0.5):
            return [self.entity(self.name, scattered(self.make)) for _ in range(count)]
        return [self.entity(self.name, name) for name in self.make.entities(count)]


def batched(entities, size=200):
    return [Put(tuple(entities[i : i + size])) for i in range(0, len(entities), size)]


# --- good ---


def good_database(make):
    make.count = min(make.count, 1200)
    kind = Kind(make)
    entities = kind.good(make.count)
    entities += children(make, kind, entities)
    traffic = make.pick([no_traffic, good_queries, good_batches])(make, kind, entities)
    indexes = ((kind.name, *make.rng.sample(sorted(kind.values), 2)),) if make.chance(0.3) else ()
    return Case(f"Datastore, {kind.name}", database=Database(entities, indexes), traffic=traffic)


def children(make, kind, parents):
    """Some entities of some groups."""
    count = make.pick([0, 0, 150])
    return [
        Entity((*make.pick(parents).path, "Note", scattered(make)), {"text": make.phrase(5)})
        for _ in range(count)
    ]


def no_traffic(make, kind, entities):
    return []


def good_queries(make, kind, entities):
    """By properties that are indexed, few results of each, further pages by cursors."""
    indexed = sorted(set(kind.values) - set(kind.plain))
    queries = []
    for _ in range(60):
        name = make.pick(indexed)
        value = make.pick(entities[:50]).properties.get(name)
        if value is not None:
            queries.append(Query(kind.name, where=((name, "EQUAL", value),), limit=20))
    return [*queries, Query(kind.name, limit=50, pages=4)]


def good_batches(make, kind, entities):
    paths = [each.path for each in entities]
    lookups = [Lookup(tuple(make.rng.sample(paths, 50))) for _ in range(20)]
    return [*lookups, *batched([kind.entity(kind.name, scattered(make)) for _ in range(200)], 100)]


# --- broken: names and ids ---


@broken("D1")
def bytes_that_are_no_text(make):
    kind = Kind(make)
    bad = Put((Entity((kind.name, BAD_TEXT), {"a": 1}),))
    return Case("", database=Database(kind.good(50)), traffic=[bad], refused=True)


@broken("D8")
def twice_in_a_commit(make):
    kind = Kind(make)
    entities = kind.good(50)
    twice = Put((entities[0], entities[1], entities[0]))
    return Case("", database=Database(entities), traffic=[twice], refused=True)


@broken("D9")
def the_id_zero(make):
    """Which the API takes for no id, and refuses where there must be one."""
    kind = Kind(make)
    zero = Lookup(((kind.name, 0),))
    return Case("", database=Database(kind.good(50)), traffic=[zero], refused=True)


def named(make, name_of):
    kind = Kind(make)
    return Case("", database=Database([
        kind.entity(kind.name, name) for name in dict.fromkeys(name_of() for _ in range(make.count))
    ]))  # fmt: skip


@broken("D2")
def slashes_in_names(make):
    return named(make, lambda: f"{make.noun()}/{make.slug()}/{make.noun()}")


@broken("D2")
def slashes_in_kinds(make):
    kind = Kind(make)
    kind.name = f"{make.noun()}/{kind.name}"
    return Case("", database=Database(kind.good(make.count)))


@broken("D3")
def mail_addresses_as_names(make):
    return named(make, make.mail)


@broken("D3")
def social_numbers_as_names(make):
    return named(make, lambda: f"ssn-{social(make)}")


@broken("D3")
def cards_as_names(make):
    return named(make, lambda: card(make))


@broken("D3")
def addresses_as_properties(make):
    kind = Kind(make)
    entities = [
        kind.entity(kind.name, scattered(make), **{make.mail(): True}) for _ in range(400)
    ]
    return Case("", database=Database(entities))


@broken("D9")
def negative_ids(make):
    kind = Kind(make)
    ids = make.rng.sample(range(-(10**12), 0), 200)
    entities = kind.good(make.count) + [kind.entity(kind.name, each) for each in ids]
    return Case("", database=Database(entities))


def rising(make, id_of):
    kind = Kind(make)
    first = make.pick([1, 1, 1000, 50_000])
    count = max(make.count, 1000)
    entities = [kind.entity(kind.name, id_of(i)) for i in range(first, first + count)]
    return Case("", database=Database(entities))


@broken("D10")
def rising_ids(make):
    return rising(make, lambda number: number)


@broken("D10")
def rising_names(make):
    word = make.pick(["Customer", "Product ", "order-", "user", "INV_"])
    width = make.pick([0, 0, 7])
    return rising(make, lambda number: f"{word}{number:0{width}d}")


@broken("D10")
def dates_as_names(make):
    times = make.times(1200)
    kind = Kind(make)
    pattern = make.pick(["%Y-%m-%dT%H:%M:%S", "%Y%m%d%H%M%S", "%d-%m-%Y %H:%M:%S"])
    names = dict.fromkeys(moment(micros).strftime(pattern) for micros in times)
    return Case("", database=Database([kind.entity(kind.name, name) for name in names]))


@broken("D10")
def rising_ids_of_children(make):
    """Of one parent."""
    kind = Kind(make)
    parent = (kind.name, "root")
    children = [Entity((*parent, "Line", i), {"n": i % 7}) for i in range(1, 1200)]
    return Case("", database=Database([kind.entity(*parent), *children]))


@broken("D10")
def rising_ids_of_three_kinds(make):
    entities = [
        Entity((name, i), {"text": make.phrase(2)}) for i in range(1, 1000) for name in "ABC"
    ]
    return Case("", database=Database(entities))


@broken("D14")
def dots_in_properties(make):
    kind = Kind(make)
    more = {f"{make.noun()}.{make.noun()}": 1, "address.city": "x"}
    entities = [kind.entity(kind.name, scattered(make), **more) for _ in range(make.count)]
    return Case("", database=Database(entities))


# --- broken: indexes ---


@broken("D11")
def hundreds_of_indexed_properties(make):
    """Of which queries use one."""
    names = make.distinct(100, lambda: f"{make.noun()}{make.digits(2)}")
    entities = [
        Entity(("Wide", scattered(make)), {name: make.rng.randrange(1000) for name in names})
        for _ in range(150)
    ]
    queries = [Query("Wide", where=((names[0], "EQUAL", i),), limit=5) for i in range(200)]
    return Case("", database=Database(entities), traffic=queries)


@broken("D11")
def long_lists_indexed(make):
    entities = [
        Entity(("List", scattered(make)), {"words": [f"{make.slug()}{i}" for i in range(700)]})
        for _ in range(20)
    ]
    return Case("", database=Database(entities))


@broken("D12")
def many_composite_indexes(make):
    names = make.distinct(8, make.noun)
    entities = [
        Entity(("Indexed", scattered(make)), {name: make.rng.randrange(100) for name in names})
        for _ in range(100)
    ]
    pairs = [(a, b) for a in names for b in names if a != b]
    indexes = tuple(("Indexed", *pair) for pair in make.rng.sample(pairs, 40))
    return Case("", database=Database(entities, indexes))


@broken("D13")
def times_indexed(make):
    """When it was written, in each entity, indexed."""
    kind = Kind(make)
    name = make.pick(["created", "updated", "at"])
    times = make.times(1200)
    as_number = make.chance(0.3)
    entities = [
        kind.entity(kind.name, scattered(make), **{name: micros if as_number else moment(micros)})
        for micros in times
    ]
    return Case("", database=Database(entities))


@broken("D13")
def counters_indexed(make):
    kind = Kind(make)
    entities = [
        kind.entity(kind.name, scattered(make), sequence=i) for i in range(10_000, 11_500)
    ]
    return Case("", database=Database(entities))


# --- broken: calls ---


@broken("D4")
def one_put_a_call(make):
    kind = Kind(make)
    entities = kind.good(1200)
    return Case("", database=Database(entities[:300]), traffic=batched(entities[300:], 1))


@broken("D4")
def one_lookup_a_call(make):
    kind = Kind(make)
    entities = kind.good(make.count)
    lookups = [Lookup((each.path,)) for each in make.rng.choices(entities, k=900)]
    return Case("", database=Database(entities), traffic=lookups)


@broken("D5")
def transactions_left_open(make):
    kind = Kind(make)
    entities = kind.good(make.count)
    left = [OpenTransaction((each.path,)) for each in make.rng.sample(entities, 80)]
    return Case("", database=Database(entities), traffic=left)


@broken("D7")
def writes_to_one_group(make):
    kind = Kind(make)
    root = (kind.name, scattered(make))
    children = [Entity((*root, "Item", scattered(make)), {"n": i % 9}) for i in range(400)]
    return Case("", database=Database(kind.good(500)), traffic=batched(children, 1))


@broken("D15")
def offsets(make):
    kind = Kind(make)
    make.count = 1500
    queries = [Query(kind.name, offset=1400, limit=20) for _ in range(80)]
    return Case("", database=Database(kind.good(make.count)), traffic=queries)


@broken("D15")
def pages_by_offset(make):
    kind = Kind(make)
    queries = [Query(kind.name, offset=20 * i, limit=20) for i in range(70)] * 2
    return Case("", database=Database(kind.good(1500)), traffic=queries)


@broken("D15")
def whole_entities_each_time(make):
    """All of a kind, though somebody only counts them."""
    kind = Kind(make)
    queries = [Query(kind.name) for _ in range(80)]
    return Case("", database=Database(kind.good(1000)), traffic=queries)


@broken("D16")
def one_entity_for_all_readers(make):
    kind = Kind(make)
    entities = kind.good(make.count)
    hot = make.pick(entities)
    reads = [Lookup((hot.path, make.pick(entities).path)) for _ in range(2500)]
    return Case("", database=Database(entities), traffic=reads)


@broken("D16")
def a_new_kind_at_once(make):
    """A thousand entities a second for a minute, or faster; no ramp."""
    entities = [Entity(("New", scattered(make)), {"n": i % 5}) for i in range(60_000)]
    return Case("", database=Database(Kind(make).good(200)), traffic=batched(entities, 250))


@broken("D16")
def a_queue_of_entities(make):
    """The oldest are deleted and asked for again: queries run over what was deleted."""
    entities = [Entity(("Job", f"{i:06d}"), {"due": i}) for i in range(3000)]
    traffic = []
    for first in range(0, 2800, 50):
        traffic.append(Put(tuple(entities[first : first + 50]), kind="delete"))
        traffic.append(Query("Job", order=("due",), limit=50))
    return Case("", database=Database(entities), traffic=traffic, also=frozenset({"D10", "D13"}))
