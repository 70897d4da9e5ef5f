"""Rounds: each is a project of its own on all sides, and follows from the seed and its number
alone. An operation is sent to the server and to the emulators,
and what they answer is held against each
other."""

import collections
import itertools
import os
import random
import re

import grpc

from differential.datastore import indexes, known
from differential.datastore.operations import Operations, key_of
from differential.datastore.sides import Session, Side

OPERATIONS_A_ROUND = 100
TRIES = 3  # of writing what a side lacks: the classic emulator is contended now and then
PROJECTS = itertools.count(1)


Difference = collections.namedtuple("Difference", "case operations")
Difference.__doc__ = """An answer that no rule explains. `operations`: all that led to it, its own
the last."""


def kind_of(case):
    """What must stay so while a case is made small: of words the part before the first name."""
    refusals = [
        (answer["error"], re.split(r"[\"':0-9\[]", answer["words"])[0])
        if "error" in answer else None
        for answer in (case.ours, case.theirs)
    ]  # fmt: skip
    return case.side, case.field, case.operation["rpc"], refusals


def fields_that_differ(ours, theirs):
    if "error" in ours or "error" in theirs:
        return ["error"] if ours.get("error") != theirs.get("error") else []
    return [name for name in ours if ours[name] != theirs.get(name)]


def has_other_words(ours, answers):
    """Whether all emulators refuse as we do, but in other words that they agree on."""
    words = {each.get("words") for each in answers}
    codes = {each.get("error") for each in answers}
    if len(answers) < 2 or len(words) > 1 or codes != {ours.get("error")}:
        return False
    return "error" in ours and words != {ours["words"]}


class Round:
    """Operations one after the other, on sessions of their own."""

    def __init__(self, ours, emulators):
        project = f"d{os.getpid()}-{next(PROJECTS)}"
        self.ours = Session(ours, project)
        self.emulators = {each.name: Session(each, project) for each in emulators}
        self.indexes = indexes.Indexes(self.ours)
        self.done, self.differences = [], []
        self.counts = collections.Counter()
        self.is_cut = False  # what is left of the story goes

    def run(self, operation):
        """Differences are added to `differences`."""
        self.is_cut = self.is_cut and operation.get("story", False)
        if self.is_cut:
            self.counts["not sent: the story was cut"] += 1
        else:
            self.done.append(operation)
            self.ask(operation)
        if operation.get("last"):
            self.end_transactions()

    def close(self):
        self.indexes.close()

    def end_transactions(self):
        for session in (self.ours, *self.emulators.values()):
            session.end_transactions()

    def answers_of(self, operation):
        """Of the emulators, by their names."""
        return {name: each.answer(operation) for name, each in self.emulators.items()}

    def ask(self, operation):
        ours = self.ours.answer(operation)
        answers = self.answers_of(operation)
        self.counts["operations"] += 1
        self.counts["rpc", operation["rpc"]] += 1
        if indexes.is_missing(ours):
            self.counts["wanted an index"] += 1
            ours = self.indexes.answer(operation, ours)
        if indexes.is_missing(ours):
            self.counts["not compared: no index"] += 1
            return
        used = set()
        for name, theirs in answers.items():
            used |= self.judge_all(name, operation, ours, theirs)
        if has_other_words(ours, list(answers.values())):
            name, theirs = next(iter(answers.items()))
            used.add(self.judge(known.Case(name, operation, "words", ours, theirs)))
        self.count(ours, used)
        self.mend(operation, ours, answers)

    def judge_all(self, name, operation, ours, theirs):
        """Where other results come, other numbers of them follow."""
        used, rule = set(), None
        for field in fields_that_differ(ours, theirs):
            if rule is not None and field in ("more", "skipped"):
                continue
            found = self.judge(known.Case(name, operation, field, ours, theirs))
            rule = found if field == "results" else rule
            used.add(found)
        return used

    def judge(self, case):
        """The rule that knows the difference; else it is one of ours."""
        rule = known.known(case)
        if rule is None:
            self.differences.append(Difference(case, list(self.done)))
        else:
            self.counts["rule", rule] += 1
        return rule

    def count(self, ours, used):
        self.counts["refused" if "error" in ours else "answered"] += 1
        self.counts["alike in all"] += not used
        self.counts["results"] += len(ours.get("results", ()))

    def mend(self, operation, ours, answers):
        """After a write that a side did otherwise, for reasons that are known, it is given what
        the server has, so that the round can go on. No transaction survives that."""
        if operation["rpc"] != "Commit":
            return
        mutations = operation["request"]["mutations"]
        keys = self.keys_of_story(operation)
        for name, theirs in answers.items():
            are_refused = "error" in ours and "error" in theirs
            are_alike = theirs == ours and not known.may_be_unlike(name, operation)
            if known.may_be_in_part(name, operation) if are_refused else not are_alike:
                self.mend_all(self.emulators[name], keys)
            elif name == "firestore" and any("propertyTransforms" in each for each in mutations):
                self.mend_flags(self.emulators[name], keys)

    def keys_of_story(self, operation):
        """What has been written in the transactions that this belongs to, or by it alone."""
        done = itertools.takewhile(lambda each: each.get("story"), reversed(self.done))
        told = list(done) if operation.get("story") else [operation]
        return [key_of(each) for one in told for each in one["request"].get("mutations", ())]

    def mend_all(self, session, keys):
        for key in [key for key in keys if self.is_unlike(session, key)]:
            self.copy(session, key)

    def mend_flags(self, session, keys):
        for key in [key for key in keys if self.is_unlike(session, key)]:
            ours, theirs = self.ours.entity(key), session.entity(key)
            if known.without_flags(ours) == known.without_flags(theirs):
                self.copy(session, key)
                self.counts["rule", "firestore_flags"] += 1

    def is_unlike(self, session, key):
        """Of keys that nothing can have, nothing is there."""
        try:
            return self.ours.entity(key) != session.entity(key)
        except grpc.RpcError:
            return False

    def copy(self, session, key):
        self.end_transactions()
        self.is_cut = self.done[-1].get("story", False)
        for _ in range(TRIES):
            try:
                session.put(key, self.ours.entity(key))
                self.counts["entities mended"] += 1
                return
            except grpc.RpcError as error:
                what = f"could not be mended: {session.side.name}: {error.details()[:100]}"
        self.counts[what] += 1


def operations_of(seed, number, count, **options):
    make = Operations(random.Random(f"{seed}/{number}"), **options)
    return [make.next() for _ in range(count)]


def run_round(task):
    """In a process of its own, maybe: all that it gets and gives can be pickled."""
    hosts, seed, number, count = task
    sides = [Side(name, host) for name, host in hosts]
    one = Round(sides[0], sides[1:])
    try:
        for operation in operations_of(seed, number, count):
            one.run(operation)
    finally:
        one.close()
        for side in sides:
            side.close()
    return number, one.counts, one.differences
