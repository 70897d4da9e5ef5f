"""Whether a history is linearizable: whether each operation can have taken effect at one instant
between its call and its answer, such that all answers follow from the order of these instants.

The search is Wing's and Gong's: build the order from its beginning, each time with an operation
that may come next, and go back where the answers do not fit. Lowe's addition makes it feasible: two
beginnings made of the same operations that lead to the same state have the same continuations, so
only the first is followed. And a beginning is given up as soon as something has gone for good that
a later answer still needs.

An operation whose answer was never seen may stand anywhere in its interval or nowhere. Orders with
fewer of these are tried first: most of them did nothing, and which of them did something is learned
from the first answer that cannot be explained without.

Wing, Gong: Testing and verifying concurrent objects, 1993. Lowe: Testing for linearizability, 2017.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

NEVER = math.inf
MOST_BEGINNINGS = 3_000_000  # of one history; more are given up on


@dataclass(frozen=True, slots=True)
class Operation:
    """`answer` is None if it was not seen; `returned` is then the end of the time in which the
    operation can have taken effect: NEVER, or when whoever worked on it was known to be dead."""

    invoked: float
    returned: float
    call: object
    answer: object = None

    @property
    def is_certain(self):
        return self.answer is not None


@dataclass(slots=True)
class Beginning:
    """The first operations of an order. `first` is the operation from which on not all are settled,
    in the order of their calls; `placed` has a bit for each from there on that has its place.
    `latest` is the latest call of all those that have a place: what returned before can have none
    any more."""

    first: int
    placed: int
    latest: float
    state: object
    missing: int  # certain operations without a place
    last: Operation = None
    before: object = None

    def order(self):
        operations = []
        at = self
        while at.last is not None:
            operations.append(at.last)
            at = at.before
        return operations[::-1]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`order` explains the history if it is linearizable; else it is a longest beginning that could
    be explained, after which none of `stuck` can come, though one of them would have to."""

    is_linearizable: bool
    order: list
    state: object
    stuck: list
    is_undecided: bool = False


class Search:
    def __init__(self, operations, model):
        self.operations = sorted(operations, key=lambda operation: operation.invoked)
        self.model = model
        self.needed_by = defaultdict(list)  # marks: who needs them, by number
        for i, operation in enumerate(self.operations):
            if operation.is_certain:
                for mark in model.needs(operation.call, operation.answer):
                    self.needed_by[mark].append(i)

    def begin(self):
        certain = sum(operation.is_certain for operation in self.operations)
        return Beginning(0, 0, -math.inf, self.model.INITIAL, certain)

    def candidates(self, here):
        """What may come next: what was called before anything that has no place had returned. Those
        that returned first come first: they often were first."""
        deadline = NEVER
        found = []
        for i in range(here.first, len(self.operations)):
            operation = self.operations[i]
            if operation.invoked > deadline:
                break
            if here.placed >> (i - here.first) & 1 or operation.returned < here.latest:
                continue
            found.append(i)
            if operation.is_certain:
                deadline = min(deadline, operation.returned)
        found.sort(key=lambda i: self.operations[i].returned)
        return [i for i in found if self.operations[i].invoked <= deadline]

    def extend(self, here, i):
        """The beginning with one operation more, or None if its answer does not fit, or if it ends
        what another one still needs."""
        operation = self.operations[i]
        state = self.model.step(here.state, operation.call, operation.answer)
        if state is None or self.is_missed(here, i, state):
            return None
        latest = max(here.latest, operation.invoked)
        missing = here.missing - operation.is_certain
        first, placed = here.first, here.placed | 1 << (i - here.first)
        while first < len(self.operations) and (
            placed & 1 or self.operations[first].returned < latest
        ):
            first, placed = first + 1, placed >> 1
        return Beginning(first, placed, latest, state, missing, operation, here)

    def is_missed(self, here, i, state):
        """Whether a mark goes for good that somebody without a place needs."""
        return any(
            user >= here.first and user != i and not here.placed >> (user - here.first) & 1
            for mark in self.model.marks(here.state) - self.model.marks(state)
            for user in self.needed_by[mark]
        )

    def extensions(self, here):
        """What to go on with, the best last. An operation that only looks, and fits, is all that
        need be tried: wherever an order has it, it may as well come now. Unless it was called so
        late that one of unknown answer could not follow."""
        found = []
        candidates = self.candidates(here)
        end = min((self.operations[i].returned for i in candidates), default=NEVER)
        for i in candidates:
            there = self.extend(here, i)
            if there is None:
                continue
            operation = self.operations[i]
            if self.model.only_looks(operation.call) and operation.invoked <= end:
                return [there]
            found.append(there)
        return found[::-1]

    def run(self):
        now, later = [self.begin()], []  # later: with one more of unknown answer
        furthest = now[0]
        seen = set()
        while now or later:
            if not now:
                now, later = later, []
            here = now.pop()
            if here.missing < furthest.missing:
                furthest = here
            if here.missing == 0:
                return Verdict(True, here.order(), here.state, [])
            for there in self.extensions(here):
                key = (there.first, there.placed, there.state)
                if key not in seen:
                    seen.add(key)
                    (now if there.last.is_certain else later).append(there)
            if len(seen) > MOST_BEGINNINGS:
                return self.failure(furthest, is_undecided=True)
        return self.failure(furthest)

    def failure(self, furthest, is_undecided=False):
        stuck = [self.operations[i] for i in self.candidates(furthest)]
        return Verdict(False, furthest.order(), furthest.state, stuck, is_undecided)


def check(operations, model):
    """`model` says what the operations mean:

    INITIAL                     the state at the beginning; states can be hashed
    step(state, call, answer)   the state after the call, or None if the call cannot have had this
                                answer; with None for the answer any will do
    only_looks(call)            the call never changes the state; such calls must have been answered
    marks(state)                a set of what can never be again once it has gone
    needs(call, answer)         marks that the state must have had for this answer
    """
    return Search(operations, model).run()
