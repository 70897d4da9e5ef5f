"""The generator itself: that a case follows from its seed, has a practice's number, and reaches a
server as it was meant. What the advisor says of the cases, run.py counts."""

import random
import time

import pytest

from practices import alike, broken_keys, good, records
from practices.case import Cell
from practices.generator import BROKEN, broken_case, broken_cases, good_case, maker
from practices.load import BYTES_A_REQUEST, Target, portions
from practices.practices import PRACTICES, UNSEEN
from practices.run import rules, verdict

NOW = 1_790_000_000_000_000
LARGE = ("B2", "B11", "B13")  # take seconds to make
SEVERAL_FRONTS = ("few_words_and_a_time", "local_dates_first", "numbers_of_several_kinds")


def contents(case):
    """All of a case that is not its name, in a form that can be compared."""
    tables = [(each.name, each.families, list(each.rows)) for each in case.tables]
    return case.appearance, tables, case.database, case.traffic


@pytest.mark.parametrize("number", range(3))
def test_a_good_case_follows_from_its_seed(number):
    first, second = (contents(good_case("s", number, NOW)) for _ in range(2))
    assert first == second
    assert first != contents(good_case("t", number, NOW))


@pytest.mark.parametrize(
    "look", alike.ALIKE + alike.ENTITIES_ALIKE, ids=lambda look: look.__name__
)
def test_what_looks_broken_can_be_made(look):
    case = look(maker("s", look.__name__, 0, NOW))
    assert all(table.rows for table in case.tables)
    assert case.tables or case.database.entities


def test_a_broken_case_follows_from_its_seed():
    chosen = broken_cases("s", 41)
    assert chosen == broken_cases("s", 41) != broken_cases("t", 41)
    light = [(i, each) for i, each in enumerate(chosen) if each[0] not in LARGE]
    for number, each in random.Random(1).sample(light, 3):
        first, second = (contents(broken_case("s", number, NOW, each)) for _ in range(2))
        assert first == second


def test_each_practice_that_can_be_seen_is_broken_somehow():
    missing = {number for number, found in BROKEN.items() if not found}
    assert missing == {each.number for each in PRACTICES.values() if UNSEEN in each.seen}
    assert {each for each, *_ in broken_cases("s", 200)} == set(PRACTICES) - missing


def keys_of(form):
    make = maker("s", form.__name__, 0, NOW)
    make.count = 600
    return [good.bytes_of(key) for key, _ in form(make)]


def at_the_front(keys):
    """The share of those that are written behind or before all that were written until then."""
    first = last = keys[0]
    count = 0
    for key in keys:
        count += not first <= key <= last
        first, last = min(first, key), max(last, key)
    return count / len(keys)


@pytest.mark.parametrize("form", good.FORMS, ids=lambda form: form.__name__)
def test_good_keys_are_short_many_and_not_in_order(form):
    keys = keys_of(form)
    assert len(set(keys)) > 100 and all(0 < len(key) < 150 for key in keys)
    assert at_the_front(keys) < 0.2


@pytest.mark.parametrize(("practice", "appearance"), [
    (practice, appearance) for practice in ("B21", "B23")
    for appearance in broken_keys.KEYS[practice]
    if appearance.__name__ not in SEVERAL_FRONTS
])  # fmt: skip
def test_keys_of_one_front_are_in_order(practice, appearance):
    """Ascending or descending, as long as numbers have one width."""
    keys = keys_of(appearance)
    width = max(map(len, keys))
    assert at_the_front([key for key in keys if len(key) == width or practice == "B21"]) > 0.6


def test_checksums():
    assert broken_keys.luhn("7992739871") == "3"
    make = maker("s", "cards", 0, NOW)
    for _ in range(100):
        digits = broken_keys.card(make)
        assert broken_keys.luhn(digits[:-1]) == digits[-1] and len(digits) in (15, 16)
        account = broken_keys.iban(make)
        assert int(account[4:] + "1314" + account[2:4]) % 97 == 1


def test_rules_name_practices():
    for rule, numbers in rules().items():
        assert rule and numbers <= set(PRACTICES)
    assert rules()["key-size"] == {"B16"}


def test_verdicts():
    def judged(*findings, practice="B18", refused=False):
        said = [{"rule": rule, "severity": severity} for rule, severity in findings]
        result = {"practice": practice, "also": ["B23"], "findings": said, "refused": refused}
        return verdict(result, {"a": frozenset({"B18"}), "b": frozenset({"B23"})})

    assert judged(("a", "warning")) == judged(("c", "info"), ("b", "warning")) == "told"
    assert judged(("a", "info"), ("c", "warning")) == "informed"
    assert judged(("c", "warning")) == "wrong"
    assert judged(("c", "info")) == judged() == "silent"
    assert judged(refused=True) == "refused"


def table_of(number, kind):
    make = maker("s", "rows", number, int(time.time()) * 1_000_000)
    make.count = 30
    record = kind(make)
    return good.Table(f"t{number}", record.families, good.rows_of(good.places(make), record))


def test_rows_arrive_as_they_were_made(server, rpc, new_table_id):
    """Of each kind of record all rows, with a cell of each column."""
    kinds = dict.fromkeys(records.KINDS)
    case = good.Case("", tables=[table_of(number, kind) for number, kind in enumerate(kinds)])
    target = Target(server.host)
    loaded = target.load(case, f"i{new_table_id()}")
    target.close()
    for name, table in zip(loaded.names, case.tables, strict=True):
        rows = rpc.read(name)
        assert {key: columns_of(cells) for key, cells in rows} == {
            key: columns_of(cells) for key, cells in table.rows
        }


def columns_of(cells):
    return {(cell.family, cell.qualifier) for cell in cells}


def test_large_rows_are_sent_in_pieces():


    value = bytes(BYTES_A_REQUEST // 3)
    rows = [(b"a", []), (b"b", [Cell("f", b"%d" % i, value, 0) for i in range(10)])]
    sent = list(portions(rows))
    assert [cell for part in sent for _, cells in part for cell in cells] == rows[1][1]
    sizes = [sum(len(cell.value) for _, cells in part for cell in cells) for part in sent]
    assert max(sizes) <= 2 * BYTES_A_REQUEST
