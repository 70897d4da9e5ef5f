"""What the clients of transactions.py do: transactions over few entities, so that they conflict.

    lists       numbers are appended to lists, which are read by keys and by queries; what comes of
                it is judged by histories.py
    transfers   from account to account: their sum stays
    skew        of two that are on duty one may leave while the other stays: never do both
    phantoms    who finds fewer than a few members in a group by a query adds one: there are never
                more
    counters    are read and written one higher: none of it gets lost

A worker is a process of many clients, generators over one connection (calls.py), and has all that
they have done in a Ledger. It does what it is told through a pipe:

    ("begin", host, round)   from now on, on entities of that round alone
    ("go on", host)          the server, which had died, is there again
    ("rest",)                once what is under way has ended, the ledger is sent back
    ("end",)
"""

import random
import time
from collections import Counter
from contextlib import contextmanager

from calls import Calls, Lost
from google.cloud.datastore_v1 import types
from histories import FAILED, SUCCEEDED, UNKNOWN, Transaction, value_of

PROJECT = "crash"
SLOTS, LIST_SIZE = 8, 32
ACCOUNTS, BALANCE = 8, 100
PAIRS = 4
GROUPS, MOST_MEMBERS = 4, 3
COUNTERS = 4

INVALID_ARGUMENT, ALREADY_EXISTS, ABORTED = 3, 6, 10

Lookup = types.LookupRequest.pb()
RunQuery = types.RunQueryRequest.pb()
RunAggregationQuery = types.RunAggregationQueryRequest.pb()
Commit = types.CommitRequest.pb()
Rollback = types.RollbackRequest.pb()
Entity = types.Entity.pb()
Key = types.Key.pb()

READ_ONLY = {"new_transaction": {"read_only": {}}}
TRANSACTIONAL, NON_TRANSACTIONAL = 1, 2


class Aborted(Exception):
    """The transaction has failed as it may: it is begun anew by whoever wants it."""


class Ledger:
    """What a worker's clients have done in a round."""

    def __init__(self):
        self.history = []  # of lists: Transaction
        self.increments = Counter()  # acknowledged, by counter
        self.doubts = Counter()  # increments of which it is not known
        self.outcomes = Counter()
        self.problems = []


def kind(name, round_number):
    return f"{name}{round_number}"


def key(round_number, name, which):
    return Key(
        partition_id={"project_id": PROJECT},
        path=[{"kind": kind(name, round_number), "name": which}],
    )


def unindexed(number):
    return {"integer_value": number, "exclude_from_indexes": True}


def list_of(entity):
    values = entity.properties["values"].array_value.values
    return value_of([value.integer_value for value in values])


class Attempt:
    """One transaction: what it reads, and what became of it. `previous`: the id of one that it
    does anew, as far as the server cares."""

    def __init__(self, previous=b""):
        self.begun = time.monotonic_ns()
        self.previous = previous
        self.transaction = b""
        self.is_committing = False
        self.outcome = None
        self.reads, self.scans, self.appends = [], [], []

    def options(self):
        if self.transaction:
            return {"transaction": self.transaction}
        return {"new_transaction": {"read_write": {"previous_transaction": self.previous}}}


class Worker:
    def __init__(self, number, options, progress):
        self.number, self.seed, self.clients = number, options.seed, options.clients
        self.works = {work: weight for each in options.only for work, weight in WORKS[each].items()}
        self.progress = progress  # transactions that succeeded, of each worker, for all to see
        self.ledger, self.round, self.calls = Ledger(), None, None
        self.appended = 0
        self.is_resting = False

    # --- commands ---

    def serve(self, pipe):
        command = pipe.recv()
        while command[0] != "end":
            if command[0] == "begin":
                self.begin_round(command[2])
            if command[0] == "rest":
                pipe.send(self.ledger)
                command = None
            else:
                command = self.run(command[1], pipe)
            command = command or pipe.recv()

    def begin_round(self, number):
        self.ledger, self.round, self.appended = Ledger(), number, 0
        self.generations = [0] * SLOTS
        self.is_resting = False

    def run(self, host, pipe):
        """Until the server dies, or all is done after we were told to rest. The next command, if
        it came meanwhile."""
        try:
            self.calls = Calls(host)
        except OSError:  # others were so quick that it was killed before we came
            return None
        for _ in range(self.clients):
            self.calls.begin(self.client())
        try:
            while not (self.is_resting and self.calls.is_idle):
                if pipe in self.calls.turn(60, *([] if self.is_resting else [pipe])):
                    command = pipe.recv()
                    if command[0] == "go on":  # it died behind answers that we have not read yet
                        self.calls.lose()
                        return command
                    assert command == ("rest",), command
                    self.is_resting = True
        except OSError:
            self.calls.lose()
            return None
        self.calls.close()
        pipe.send(self.ledger)
        return None

    # --- clients ---

    def client(self):
        dice = random.Random(f"{self.seed}/{self.round}/{self.number}/{time.monotonic_ns()}")
        works, weights = zip(*self.works.items(), strict=True)
        previous = b""
        while not self.is_resting:
            work = dice.choices(works, weights)[0]
            with self.attempt(previous) as attempt:
                yield from work(self, dice, attempt)
            if attempt.outcome == FAILED and attempt.transaction and not attempt.is_committing:
                yield "Rollback", Rollback(project_id=PROJECT, transaction=attempt.transaction)
            previous = attempt.transaction if attempt.outcome == FAILED else b""

    @contextmanager
    def attempt(self, previous):
        attempt = Attempt(previous)
        try:
            yield attempt
        except Aborted:
            attempt.outcome = FAILED
        except Lost:
            attempt.outcome = UNKNOWN if attempt.is_committing else FAILED
            raise
        finally:
            self.note(attempt)

    def note(self, attempt):
        assert attempt.outcome is not None, "a transaction without an end"
        self.ledger.outcomes[attempt.outcome] += 1
        if attempt.outcome == SUCCEEDED:
            self.progress[self.number] += 1
        if attempt.reads or attempt.appends or attempt.scans:
            self.ledger.history.append(
                Transaction(
                    attempt.outcome, attempt.begun, time.monotonic_ns(),
                    attempt.reads, attempt.scans, attempt.appends,
                )
            )  # fmt: skip

    def wrong(self, what):
        if len(self.ledger.problems) < 20:
            self.ledger.problems.append(f"round {self.round}: {what}")

    # --- calls ---

    def call(self, method, request):
        reply = yield method, request
        if reply.code == ABORTED:
            raise Aborted
        if reply.code not in (0, ALREADY_EXISTS):
            self.wrong(f"{method}: code {reply.code}, {reply.message}")
            raise Aborted
        return reply

    def look_up(self, attempt, keys, options=None):
        """Entities by names."""
        request = Lookup(
            project_id=PROJECT, keys=keys, read_options=options or attempt.options()
        )  # fmt: skip
        reply = yield from self.call("Lookup", request)
        answer = reply.answer
        if len(answer.found) + len(answer.missing) != len(keys) or answer.deferred:
            self.wrong(f"a lookup of {len(keys)} keys answers {answer}")
        attempt.transaction = answer.transaction or attempt.transaction
        return {each.entity.key.path[0].name: each.entity for each in answer.found}

    def query(self, attempt, of, property_name=None, value=None, options=None):
        """Entities by names. One batch: of few entities."""
        query = {"kind": [{"name": kind(of, self.round)}]}
        if property_name is not None:
            query["filter"] = {
                "property_filter": {
                    "property": {"name": property_name},
                    "op": 5,  # EQUAL
                    "value": {"string_value": value},
                }
            }
        request = RunQuery(
            project_id=PROJECT, partition_id={"project_id": PROJECT}, query=query,
            read_options=options or attempt.options(),
        )  # fmt: skip
        reply = yield from self.call("RunQuery", request)
        attempt.transaction = reply.answer.transaction or attempt.transaction
        results = reply.answer.batch.entity_results
        return {each.entity.key.path[0].name: each.entity for each in results}

    def commit(self, attempt, mutations, may_exist=False):
        """Its end: nothing comes after it."""
        request = Commit(project_id=PROJECT, mode=TRANSACTIONAL, mutations=mutations)
        if attempt.transaction:
            request.transaction = attempt.transaction
        else:
            request.single_use_transaction.read_write.SetInParent()
        attempt.is_committing = True
        reply = yield from self.call("Commit", request)
        if reply.code == ALREADY_EXISTS and not may_exist:
            self.wrong("a commit says ALREADY_EXISTS")
        attempt.outcome = SUCCEEDED if reply.code == 0 else FAILED

    # --- lists ---

    def list_keys(self, dice, count):
        slots = dice.sample(range(SLOTS), count)
        return {f"{slot}/{self.generations[slot]}": slot for slot in slots}

    def number_to_append(self):
        self.appended += 1
        return self.number << 26 | self.appended

    def read_lists(self, dice, attempt, count, options=None):
        """(slots by names, entities by names) of some lists."""
        names = self.list_keys(dice, count)
        keys = [key(self.round, "List", name) for name in names]
        found = yield from self.look_up(attempt, keys, options)
        for name, slot in names.items():
            value = list_of(found[name]) if name in found else b""
            attempt.reads.append((name, value))
            self.turn_page(slot, name, value)
        return names, found

    def turn_page(self, slot, name, value):
        """Lists that are long are left alone."""
        if len(value) >= 4 * LIST_SIZE and name == f"{slot}/{self.generations[slot]}":
            self.generations[slot] += 1

    def appending(self, attempt, name, slot, entity, count=1):
        """The mutation by which numbers come behind what the list has."""
        if entity is None:
            entity = Entity(key=key(self.round, "List", name))
            entity.properties["slot"].string_value = f"slot {slot}"
        values = entity.properties["values"].array_value.values
        for _ in range(count):
            number = self.number_to_append()
            values.add(integer_value=number, exclude_from_indexes=True)
            attempt.appends.append((name, number))
        return {"upsert": entity}

    def append_to_lists(self, dice, attempt, is_dropped=False):
        names, found = yield from self.read_lists(dice, attempt, dice.randint(1, 3))
        if dice.random() < 0.2:
            more, also_found = yield from self.read_lists(dice, attempt, 2)
            names, found = {**names, **more}, {**found, **also_found}
        count = 2 if dice.random() < 0.1 else 1
        chosen = dice.sample(list(names), dice.randint(1, min(2, len(names))))
        mutations = [
            self.appending(attempt, name, names[name], found.get(name), count) for name in chosen
        ]
        if is_dropped:
            there = {"key": key(self.round, "Account", "0")}
            mutations.append({"insert": there})
        yield from self.commit(attempt, mutations, may_exist=is_dropped)
        if is_dropped and attempt.outcome == SUCCEEDED:
            self.wrong("what is there was inserted")

    def fail_to_append(self, dice, attempt):
        """All of it, since one mutation cannot be done."""
        yield from self.append_to_lists(dice, attempt, is_dropped=True)

    def append_blindly(self, dice, attempt):
        """Without reading: the server knows what is there."""
        names = self.list_keys(dice, dice.randint(1, 2))
        mutations = []
        for name, slot in names.items():
            number = self.number_to_append()
            attempt.appends.append((name, number))
            slot_value = {"string_value": f"slot {slot}"}
            new = {"property": "values", "append_missing_elements": {"values": [unindexed(number)]}}
            mutations.append({
                "upsert": {
                    "key": key(self.round, "List", name), "properties": {"slot": slot_value}
                },
                "property_mask": {"paths": ["slot"]},
                "property_transforms": [new],
            })  # fmt: skip
        yield from self.commit(attempt, mutations)

    def scan_lists(self, dice, attempt):
        """All lists of a slot, by a query; then it appends to the newest, or to a new one."""
        slot = dice.randrange(SLOTS)
        found = yield from self.query(attempt, "List", "slot", f"slot {slot}")
        attempt.scans.append(str(slot))
        for name, entity in found.items():
            attempt.reads.append((name, list_of(entity)))
        newest = max((int(name.split("/")[1]) for name in found), default=0)
        name = f"{slot}/{newest}"
        self.generations[slot] = max(self.generations[slot], newest)
        self.turn_page(slot, name, list_of(found[name]) if found else b"")
        name = f"{slot}/{self.generations[slot]}"
        mutations = [self.appending(attempt, name, slot, found.get(name))]
        yield from self.commit(attempt, mutations)

    def look_at_lists(self, dice, attempt):
        """Without a transaction, or in one that only reads: as of one moment."""
        strong = {"read_consistency": 1}
        options = READ_ONLY if dice.random() < 0.5 else strong
        yield from self.read_lists(dice, attempt, dice.randint(3, SLOTS), options)
        attempt.outcome = SUCCEEDED

    def roll_back(self, dice, attempt):
        yield from self.read_lists(dice, attempt, 2)
        request = Rollback(project_id=PROJECT, transaction=attempt.transaction)
        yield from self.call("Rollback", request)
        transaction, attempt.transaction = attempt.transaction, b""
        reply = yield "Commit", Commit(
            project_id=PROJECT, mode=TRANSACTIONAL, transaction=transaction
        )
        if reply.code != INVALID_ARGUMENT:
            self.wrong(f"a commit after the rollback: code {reply.code}, {reply.message}")
        attempt.outcome = FAILED

    # --- transfers ---

    def transfer(self, dice, attempt):
        names = [str(number) for number in dice.sample(range(ACCOUNTS), 2)]
        keys = [key(self.round, "Account", name) for name in names]
        found = yield from self.look_up(attempt, keys)
        amount = dice.randint(1, 10)
        found[names[0]].properties["balance"].integer_value -= amount
        found[names[1]].properties["balance"].integer_value += amount
        yield from self.commit(attempt, [{"update": entity} for entity in found.values()])

    def sum_up(self, dice, attempt):
        options = READ_ONLY if dice.random() < 0.5 else None
        if dice.random() < 0.5:
            total = yield from self.sum_of_server(attempt, options)
        else:
            found = yield from self.query(attempt, "Account", options=options)
            total = sum(each.properties["balance"].integer_value for each in found.values())
        if total != ACCOUNTS * BALANCE:
            self.wrong(f"all accounts have {total}")
        yield from self.commit(attempt, [])

    def sum_of_server(self, attempt, options):
        query = {
            "nested_query": {"kind": [{"name": kind("Account", self.round)}]},
            "aggregations": [{"alias": "total", "sum": {"property": {"name": "balance"}}}],
        }
        request = RunAggregationQuery(
            project_id=PROJECT, partition_id={"project_id": PROJECT}, aggregation_query=query,
            read_options=options or attempt.options(),
        )  # fmt: skip
        reply = yield from self.call("RunAggregationQuery", request)
        attempt.transaction = reply.answer.transaction or attempt.transaction
        (result,) = reply.answer.batch.aggregation_results
        return result.aggregate_properties["total"].integer_value

    # --- write skew ---

    def take_turns(self, dice, attempt):
        pair = dice.randrange(PAIRS)
        names = [f"{pair} left", f"{pair} right"]
        found = yield from self.look_up(attempt, [key(self.round, "Duty", n) for n in names])
        on_duty = [name for name in names if found[name].properties["is_on"].boolean_value]
        if not on_duty:
            self.wrong(f"nobody of pair {pair} is on duty")
        mine = found[dice.choice(names)]
        is_on = mine.properties["is_on"].boolean_value
        may_leave = is_on and len(on_duty) > 1
        mine.properties["is_on"].boolean_value = not may_leave
        yield from self.commit(attempt, [{"update": mine}])

    # --- phantoms ---

    def join(self, dice, attempt):
        group = f"group {dice.randrange(GROUPS)}"
        found = yield from self.query(attempt, "Member", "group", group)
        if len(found) > MOST_MEMBERS:
            self.wrong(f"{group} has {len(found)} members")
        if len(found) >= MOST_MEMBERS or (found and dice.random() < 0.3):
            mutations = [{"delete": dice.choice(list(found.values())).key}]
        else:
            new = key(self.round, "Member", f"{self.number} {dice.getrandbits(40)}")
            mutations = [{"insert": {"key": new, "properties": {"group": {"string_value": group}}}}]
        yield from self.commit(attempt, mutations)

    # --- counters ---

    def count(self, dice, attempt):
        name = str(dice.randrange(COUNTERS))
        found = yield from self.look_up(attempt, [key(self.round, "Counter", name)])
        found[name].properties["n"].integer_value += 1
        try:
            yield from self.commit(attempt, [{"update": found[name]}])
        except Lost:
            self.ledger.doubts[name] += 1
            raise
        self.ledger.increments[name] += attempt.outcome == SUCCEEDED


WORKS = {  # by workload: how often each
    "lists": {
        Worker.append_to_lists: 40,
        Worker.append_blindly: 6,
        Worker.scan_lists: 6,
        Worker.look_at_lists: 6,
        Worker.fail_to_append: 2,
        Worker.roll_back: 2,
    },
    "transfers": {Worker.transfer: 12, Worker.sum_up: 4},
    "skew": {Worker.take_turns: 8},
    "phantoms": {Worker.join: 8},
    "counters": {Worker.count: 6},
}


def initial_entities(round_number):
    """(kind, name, properties) of what a round begins with."""
    for number in range(ACCOUNTS):
        yield kind("Account", round_number), str(number), {"balance": BALANCE}
    for pair in range(PAIRS):
        for side in ("left", "right"):
            yield kind("Duty", round_number), f"{pair} {side}", {"is_on": True}
    for number in range(COUNTERS):
        yield kind("Counter", round_number), str(number), {"n": 0}


def serve(pipe, number, options, progress):
    """A worker's process."""
    Worker(number, options, progress).serve(pipe)
