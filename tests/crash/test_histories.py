"""The checker of histories finds what is wrong with them, and nothing else."""

import random
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]

from histories import FAILED, SUCCEEDED, UNKNOWN, Transaction, check, value_of  # noqa: E402


def transaction(begun, ended, reads=(), appends=(), scans=(), outcome=SUCCEEDED):
    """`reads`: {"a/1": [1, 2]}."""
    values = [(key, value_of(numbers)) for key, numbers in dict(reads).items()]
    return Transaction(outcome, begun, ended, values, list(scans), list(appends))


def verdict(final, *transactions):
    return check(transactions, {key: value_of(numbers) for key, numbers in final.items()})


def test_one_after_the_other():
    assert not verdict(
        {"a/1": [1, 2], "b/1": [3]},
        transaction(0, 1, {"a/1": []}, [("a/1", 1)]),
        transaction(2, 3, {"a/1": [1], "b/1": []}, [("a/1", 2), ("b/1", 3)]),
        transaction(4, 5, {"a/1": [1, 2], "b/1": [3]}),
    )


def test_at_the_same_time_any_order_will_do():
    assert not verdict(
        {"a/1": [1], "b/1": [2]},
        transaction(0, 9, {"a/1": []}, [("a/1", 1)]),
        transaction(0, 9, {"a/1": []}, [("b/1", 2)]),
        transaction(0, 9, {"a/1": [], "b/1": [2]}),
    )


def test_what_is_not_known_is_there_or_not():
    doubtful = transaction(0, 9, {}, [("a/1", 1), ("b/1", 2)], outcome=UNKNOWN)
    assert not verdict({"a/1": [], "b/1": []}, doubtful)
    assert not verdict({"a/1": [1], "b/1": [2]}, doubtful)


def test_random_serial_histories_are_right():
    dice = random.Random(1)
    lists, done, number = {}, [], 0
    for time in range(0, 4000, 2):
        keys = dice.sample([f"{slot}/1" for slot in "abcdef"], 3)
        reads = {key: list(lists.get(key, [])) for key in keys}
        appends = []
        for key in keys[: dice.randrange(3)]:
            number += 1
            appends.append((key, number))
            lists.setdefault(key, []).append(number)
        # Each began before the one before had ended.
        done.append(transaction(time - 3, time + 1, reads, appends))
    assert not verdict(lists, *done)


WRONG = {
    "lost update": (
        "G-single",
        {"a/1": [1, 2]},
        transaction(0, 9, {"a/1": []}, [("a/1", 1)]),
        transaction(0, 9, {"a/1": []}, [("a/1", 2)]),
    ),
    "a lost update whose number is gone": (
        "what it appended is lost",
        {"a/1": [2]},
        transaction(0, 9, {"a/1": []}, [("a/1", 1)]),
        transaction(0, 9, {"a/1": []}, [("a/1", 2)]),
    ),
    "write skew": (
        "G2",
        {"a/1": [1], "b/1": [2]},
        transaction(0, 9, {"a/1": [], "b/1": []}, [("a/1", 1)]),
        transaction(0, 9, {"a/1": [], "b/1": []}, [("b/1", 2)]),
    ),
    "phantom": (
        "G2",
        {"a/1": [1], "a/2": [2]},
        transaction(0, 9, {}, [("a/1", 1)], scans=["a"]),
        transaction(0, 9, {}, [("a/2", 2)], scans=["a"]),
    ),
    "read skew": (
        "G-single",
        {"a/1": [1], "b/1": [2]},
        transaction(0, 9, {}, [("a/1", 1), ("b/1", 2)]),
        transaction(0, 9, {"a/1": [], "b/1": [2]}),
    ),
    "a cycle of what was written": (
        "G0",
        {"a/1": [1, 3], "b/1": [4, 2]},
        transaction(0, 9, {}, [("a/1", 1), ("b/1", 2)]),
        transaction(0, 9, {}, [("a/1", 3), ("b/1", 4)]),
    ),
    "information goes in a circle": (
        "G1c",
        {"a/1": [1], "b/1": [2]},
        transaction(0, 9, {"b/1": [2]}, [("a/1", 1)]),
        transaction(0, 9, {"a/1": [1]}, [("b/1", 2)]),
    ),
    "aborted read": (
        "what it never was",
        {"a/1": []},
        transaction(0, 9, {}, [("a/1", 1)], outcome=FAILED),
        transaction(0, 9, {"a/1": [1]}),
    ),
    "an aborted write that stays": (
        "failed, but",
        {"a/1": [1]},
        transaction(0, 9, {}, [("a/1", 1)], outcome=FAILED),
    ),
    "dirty read": (
        "what it never was",
        {"a/1": []},
        transaction(0, 9, {}, [("a/1", 1)], outcome=UNKNOWN),
        transaction(0, 9, {"a/1": [1]}),
    ),
    "intermediate read": (
        "a part of what",
        {"a/1": [1, 2]},
        transaction(0, 9, {}, [("a/1", 1), ("a/1", 2)]),
        transaction(0, 9, {"a/1": [1]}),
    ),
    "lost write": (
        "what it appended is lost",
        {"a/1": []},
        transaction(0, 9, {}, [("a/1", 1)]),
    ),
    "half of a transaction": (
        "is there in part",
        {"a/1": [1], "b/1": []},
        transaction(0, 9, {}, [("a/1", 1), ("b/1", 2)], outcome=UNKNOWN),
    ),
    "what nobody wrote": ("nobody appended", {"a/1": [7]}),
    "a number twice": (
        "twice",
        {"a/1": [1, 1]},
        transaction(0, 9, {}, [("a/1", 1)]),
    ),
    "stale read": (
        "by the time",
        {"a/1": [1]},
        transaction(0, 1, {}, [("a/1", 1)]),
        transaction(2, 3, {"a/1": []}),
    ),
    "a failed transaction that saw what cannot be": (
        "G-single",
        {"a/1": [1], "b/1": [2]},
        transaction(0, 9, {}, [("a/1", 1), ("b/1", 2)]),
        transaction(0, 9, {"a/1": [1], "b/1": []}, [("b/1", 3)], outcome=FAILED),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name):
    words, final, *transactions = WRONG[name]
    problems = verdict(final, *transactions)
    assert any(words in problem for problem in problems), problems
