"""Good and broken cases, each from a seed and its number alone."""

import random

from practices import alike, broken_cells, broken_keys, broken_loads, entities, good
from practices.practices import PRACTICES
from practices.words import Make

# What a practice can look like when it is broken: {practice: [(module, function)]}.
BROKEN = {
    practice: [
        (module, appearance)
        for module, found in (
            (broken_keys, broken_keys.KEYS),
            (broken_cells, broken_cells.CELLS),
            (broken_loads, broken_loads.LOADS),
            (entities, entities.ENTITIES),
        )
        for appearance in found.get(practice, ())
    ]
    for practice in PRACTICES
}
# A good case is one table in most cases; the weights are those of what users have.
GOOD = {
    good.good_table: 16,
    good.good_instance: 1,
    alike.good_look: 5,
    entities.good_database: 3,
    alike.good_database_look: 2,
}


def maker(seed, kind, number, now):
    return Make(random.Random(f"{seed}/{kind}/{number}"), now)


def good_case(seed, number, now):
    make = maker(seed, "good", number, now)
    (kind,) = make.rng.choices(list(GOOD), GOOD.values())
    return kind(make)


def every_appearance():
    return [(practice, *each) for practice, found in BROKEN.items() for each in found]


def broken_cases(seed, count):
    """(practice, module, function) of the first so many: practices take turns, and the appearances
    of each. The seed says which come first."""
    rng = random.Random(f"{seed}/order")
    order = {
        practice: rng.sample(found, len(found)) for practice, found in BROKEN.items() if found
    }
    turns = []
    while len(turns) < count:
        turn = len(turns) // len(order)
        turns += [(each, *found[turn % len(found)]) for each, found in order.items()]
    return turns[:count]


def broken_case(seed, number, now, chosen):
    practice, module, appearance = chosen
    case = module.case_of(practice, appearance, maker(seed, "broken", number, now))
    case.practice = practice
    case.also |= frozenset(PRACTICES[practice].also)
    return case
