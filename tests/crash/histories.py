"""Whether transactions were serializable, and strictly so, from what they read and appended.

Elle's way (Kingsbury, Alvaro: Elle, 2020): transactions append numbers, each of which is written
once, to lists, and read lists. A list tells the order of what was appended to it, so the last state
of all lists and what each transaction read say which must have come before which:

    ww      it appended what stands before the other's number
    wr      the other read a list that ends with its number
    rw      it read a list that the other appended the next number to
    time    it had ended before the other began

A cycle of these is what no order of the transactions explains. Besides, a list must never lose or
change what it had: each read of it is a beginning of its last state. A transaction that failed has
appended nothing, one that succeeded everything, and one of which it is not known all or nothing.
Those that failed have read, too: what they saw must fit as well.

A list is bytes, four for each number; its name is SLOT/WHAT. Who scans a slot has read all lists of
it, those that it did not find as empty.
"""

import struct
from collections import defaultdict, deque
from typing import NamedTuple

SUCCEEDED, FAILED, UNKNOWN = "succeeded", "failed", "unknown"
WW, WR, RW, TIME = "ww", "wr", "rw", "time"
KINDS = [WW, WR, RW, TIME]
MOST_PROBLEMS = 20


class Transaction(NamedTuple):
    outcome: str
    begun: int  # of one clock
    ended: int  # of one whose outcome is unknown: when it can no longer take effect
    reads: list  # of (list's name, what it was)
    scans: list  # of slots, whose lists are among the reads unless they were not there
    appends: list  # of (list's name, number), in their order


def numbers_of(value):
    return [number for (number,) in struct.iter_unpack(">I", value)]


def value_of(numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


class History:
    def __init__(self, transactions, final):
        self.transactions, self.final = transactions, final
        self.problems = []
        self.writers = {}  # number: which transaction
        for which, each in enumerate(transactions):
            for _, number in each.appends:
                assert number not in self.writers, "a number that is appended twice"
                self.writers[number] = which
        self.order = {key: numbers_of(value) for key, value in final.items()}
        self.slots = defaultdict(list)
        for key in final:
            self.slots[key.split("/")[0]].append(key)

    def wrong(self, what, which=None):
        if len(self.problems) < MOST_PROBLEMS:
            where = "" if which is None else f" (transaction {which}: {self.show(which)})"
            self.problems.append(what + where)

    def show(self, which):
        each = self.transactions[which]
        reads = {key: numbers_of(value) for key, value in each.reads}
        return f"{each.outcome} reads {reads} scans {each.scans} appends {each.appends}"

    # --- lists ---

    def check_orders(self):
        for key, numbers in self.order.items():
            if len(set(numbers)) != len(numbers):
                self.wrong(f"{key} has a number twice: {numbers}")
            for number in numbers:
                self.check_number(key, number)

    def check_number(self, key, number):
        which = self.writers.get(number)
        if which is None or (key, number) not in self.transactions[which].appends:
            self.wrong(f"{key} has {number}, which nobody appended to it")
        elif self.transactions[which].outcome == FAILED:
            self.wrong(f"failed, but {key} has its {number}", which)

    def check_appends(self):
        there = {key: set(numbers) for key, numbers in self.order.items()}
        for which, each in enumerate(self.transactions):
            seen = sum(number in there.get(key, ()) for key, number in each.appends)
            if seen == len(each.appends) or (seen == 0 and each.outcome != SUCCEEDED):
                continue
            if each.outcome == SUCCEEDED:
                self.wrong("succeeded, but what it appended is lost", which)
            elif each.outcome == UNKNOWN:
                self.wrong("is there in part", which)

    def check_reads(self):
        for which, each in enumerate(self.transactions):
            seen = {}
            for key, value in each.reads:
                if not self.final.get(key, b"").startswith(value):
                    self.wrong(f"read of {key} what it never was, or no longer is", which)
                elif self.is_intermediate(key, len(value) // 4):
                    self.wrong(f"read of {key} a part of what one transaction appended", which)
                if seen.setdefault(key, value) != value:
                    self.wrong(f"read {key} twice, and not the same", which)

    def is_intermediate(self, key, length):
        order = self.order.get(key, [])
        if not 0 < length < len(order):
            return False
        return self.writers[order[length - 1]] == self.writers[order[length]]

    # --- what comes before what ---

    def all_reads(self, each):
        """With the lists that scans did not find."""
        found = {key for key, _ in each.reads}
        for slot in each.scans:
            for key in self.slots[slot]:
                if key not in found:
                    yield key, b""
        yield from each.reads

    def edges(self):
        """(from, kind, to), without those of time."""
        for key, order in self.order.items():
            for before, after in zip(order, order[1:], strict=False):
                yield self.writers[before], WW, self.writers[after]
        for which, each in enumerate(self.transactions):
            for key, value in self.all_reads(each):
                order, length = self.order.get(key, []), len(value) // 4
                if length > 0:
                    yield self.writers[order[length - 1]], WR, which
                if length < len(order):
                    yield which, RW, self.writers[order[length]]

    def graph(self):
        """Of each node those that come after it, as (node, kind). Nodes beyond the transactions are
        instants: what ended before one comes before it, and what begins after it, after."""
        after = [[] for _ in self.transactions]
        for one, kind, other in self.edges():
            if one != other:
                after[one].append((other, kind))
        instants = [(each.begun, 0, which) for which, each in enumerate(self.transactions)]
        instants += [(each.ended, 1, which) for which, each in enumerate(self.transactions)]
        latest, ended = None, []
        for _, is_end, which in sorted(instants):
            if is_end:
                ended.append(which)
                continue
            if ended:
                after.append([])
                for one in [*ended, *([latest] if latest is not None else [])]:
                    after[one].append((len(after) - 1, TIME))
                latest, ended = len(after) - 1, []
            if latest is not None:
                after[latest].append((which, TIME))
        return after

    def check_cycles(self):
        after = self.graph()
        for component in components(after):
            self.wrong(self.explain(after, component))

    def explain(self, after, component):
        """The shortest cycle by one of the component's transactions, and what it is called."""
        inside = set(component)
        start = min(component)  # a transaction: instants alone are in no cycle
        came, queue = {}, deque([start])
        while start not in came:
            node = queue.popleft()
            for other, kind in after[node]:
                if other in inside and other not in came:
                    came[other] = (node, kind)
                    queue.append(other)
        steps, node = [], start
        while not steps or node != start:
            node, kind = came[node]
            steps.append((node, kind))
        steps.reverse()
        shown = "\n".join(
            f"  {self.show(node)}\n    {kind}"
            for node, kind in steps
            if node < len(self.transactions)
        )
        return f"{name_of([kind for _, kind in steps])}: a cycle of transactions\n{shown}"


def name_of(kinds):
    count = kinds.count(RW)
    if count > 0:
        name = "G-single" if count == 1 else "G2"
    else:
        name = "G1c" if WR in kinds else "G0" if WW in kinds else "time"
    return name + (", by the time" if TIME in kinds else "")


def components(after):
    """Tarjan's: the strongly connected ones of more than one node."""
    count, stack, found = 0, [], []
    index, low, is_on_stack = [None] * len(after), [0] * len(after), [False] * len(after)
    for root in range(len(after)):
        if index[root] is not None:
            continue
        work = [(root, iter(after[root]))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        is_on_stack[root] = True
        while work:
            node, rest = work[-1]
            for other, _ in rest:
                if index[other] is None:
                    index[other] = low[other] = count
                    count += 1
                    stack.append(other)
                    is_on_stack[other] = True
                    work.append((other, iter(after[other])))
                    break
                if is_on_stack[other]:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        is_on_stack[component[-1]] = False
                    if len(component) > 1:
                        found.append(component)
    return found


def check(transactions, final):
    """What is wrong with the transactions, after which the lists were `final` (bytes by name), in
    words; nothing if all is well."""
    history = History(transactions, final)
    history.check_orders()
    history.check_appends()
    if not history.problems:
        history.check_reads()
    if not history.problems:
        history.check_cycles()
    return history.problems
