"""The checker of histories, on histories made by hand.

`at(from, to, call, answer)` is an operation; `lost(from, call)` one whose answer was never seen.
"""

import itertools
import random

import pytest
import row
from checker import NEVER, Operation, check


def at(invoked, returned, call, answer="ok"):
    return Operation(invoked, returned, call, answer)


def lost(invoked, call, dead=NEVER):
    return Operation(invoked, dead, call)


def write(text):
    return ["write", text]


def swap(text, then):
    return ["swap", text, then, "other"]


def add(amount):
    return ["add", amount]


READ = ["read"]
DELETE = ["delete"]
NOTHING = [None, None, 0]


def is_linearizable(*operations):
    verdicts = {
        check(order, row).is_linearizable
        for order in itertools.islice(itertools.permutations(operations), 24)
    }
    assert len(verdicts) == 1, "the verdict depends on the order in which a history is given"
    return verdicts.pop()


def test_nothing_happened():
    assert is_linearizable()


def test_one_after_the_other():
    assert is_linearizable(
        at(0, 1, write("x")),
        at(2, 3, READ, ["x", "x", 0]),
        at(4, 5, add(2), 2),
        at(6, 7, swap("x", "y"), True),
        at(8, 9, READ, ["y", "y", 2]),
        at(10, 11, DELETE),
        at(12, 13, READ, NOTHING),
    )


def test_reads_during_a_write_see_either():
    writing = at(0, 10, write("x"))
    assert is_linearizable(writing, at(1, 2, READ, NOTHING), at(3, 4, READ, ["x", "x", 0]))


def test_a_read_that_goes_back():
    writing = at(0, 10, write("x"))
    assert not is_linearizable(writing, at(1, 2, READ, ["x", "x", 0]), at(3, 4, READ, NOTHING))


def test_a_stale_read():
    assert not is_linearizable(at(0, 1, write("x")), at(2, 3, READ, NOTHING))


def test_a_read_ahead_of_its_write():
    assert not is_linearizable(at(0, 1, READ, ["x", "x", 0]), at(2, 3, write("x")))


def test_half_of_a_write():
    assert not is_linearizable(at(0, 10, write("x")), at(1, 2, READ, ["x", None, 0]))


def test_a_lost_update():
    assert is_linearizable(at(0, 5, add(1), 1), at(1, 6, add(1), 2))
    assert not is_linearizable(at(0, 5, add(1), 1), at(1, 6, add(1), 1))


def test_an_update_done_twice():
    assert not is_linearizable(at(0, 1, add(1), 1), at(2, 3, READ, [None, None, 2]))
    assert not is_linearizable(at(0, 1, add(1), 1), at(2, 3, add(1), 3))


def test_an_overwritten_swap():
    """Both saw x: the second did not look while the first was at it."""
    assert not is_linearizable(
        at(0, 1, write("x")), at(2, 5, swap("x", "y"), True), at(2, 5, swap("x", "z"), True)
    )


def test_a_refusal_that_changed_something():
    assert is_linearizable(at(0, 1, ["refused", 1], "refused"), at(2, 3, READ, NOTHING))
    assert not is_linearizable(
        at(0, 1, ["refused", 1], "refused"), at(2, 3, READ, [None, None, 1])
    )


def test_who_never_heard_may_have_been_heard():
    unheard = lost(0, write("x"))
    assert is_linearizable(unheard, at(1, 2, READ, NOTHING))
    assert is_linearizable(unheard, at(1, 2, READ, ["x", "x", 0]))
    assert is_linearizable(unheard, at(1, 2, READ, NOTHING), at(3, 4, READ, ["x", "x", 0]))
    assert not is_linearizable(unheard, at(1, 2, READ, ["x", "x", 0]), at(3, 4, READ, NOTHING))


def test_who_never_heard_was_heard_once():
    unheard = lost(0, add(1))
    assert is_linearizable(unheard, at(1, 2, READ, [None, None, 1]))
    assert not is_linearizable(unheard, at(1, 2, READ, [None, None, 2]))


def test_the_dead_do_nothing():
    died = lost(0, write("x"), dead=5)
    assert is_linearizable(died, at(6, 7, READ, ["x", "x", 0]))
    assert not is_linearizable(died, at(6, 7, READ, NOTHING), at(8, 9, READ, ["x", "x", 0]))


def test_some_of_many_that_never_heard():
    """The sum tells that 1, 4 and 16 were done, one of them before a write."""
    unheard = [lost(0, add(1 << i), dead=9) for i in range(10)]
    for total, is_right in [(4096 + 1 + 4 + 16, True), (4096 + 1 + 16, False)]:
        seen = [at(3, 4, add(4096), 4096 + 4), at(10, 11, READ, [None, None, total])]
        assert check(unheard + seen, row).is_linearizable == is_right


def test_a_failure_is_shown():
    history = [at(0, 1, write("x")), at(2, 3, READ, ["x", "x", 0]), at(4, 5, READ, NOTHING)]
    verdict = check(history, row)
    assert verdict.order == history[:2]
    assert verdict.state == ("x", "x", 0)
    assert verdict.stuck == history[2:]


# --- histories that a row made, with many clients, and the same ones spoiled ---


def random_call(dice, number):
    return dice.choice([
        ["write", f"{number}"],
        ["swap", f"{number - dice.randrange(9)}", f"{number}", f"{number}"],
        ["add", dice.randrange(1, 9)],
        ["delete"],
        ["read"],
        ["read"],
    ])  # fmt: skip


def random_history(dice, count, clients):
    """Call i takes effect at the time i; intervals around these instants overlap."""
    state = row.INITIAL
    free = [0.0] * clients
    history = []
    for instant in range(count):
        client = dice.randrange(clients)
        invoked = max(free[client], instant - dice.random() * clients)
        if invoked > instant:
            continue  # the client is still busy
        call = random_call(dice, instant)
        state, answer = row.EFFECTS[call[0]](*state, *call[1:])
        free[client] = instant + dice.random() * clients
        history.append(Operation(invoked, free[client], call, answer))
    return history


@pytest.mark.parametrize("seed", range(20))
def test_what_a_row_did_is_linearizable(seed):
    dice = random.Random(seed)
    history = random_history(dice, 500, 8)
    assert check(history, row).is_linearizable


@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_sum_is_found(seed):
    dice = random.Random(seed)
    history = random_history(dice, 500, 8)
    wrong = dice.choice([i for i, o in enumerate(history) if o.call[0] == "add"])
    o = history[wrong]
    history[wrong] = Operation(o.invoked, o.returned, o.call, o.answer + 1000)
    assert not check(history, row).is_linearizable
