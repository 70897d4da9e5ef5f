"""Random operations of a round, one after the other.

An operation is a dict that JSON can hold: `rpc`, its `request` as the message's JSON without the
project, and perhaps a label, `as`, by which later ones refer to its transaction, or `then`, the
pages of a query that are to be turned. In a request, {"$transaction": label} is a transaction,
{"$version": key, "back": n} a version that the key had, and {"$id": [label, place]} an id that was
allocated: each side has its own.

Transactions come as stories of several operations, which are made at once and never overlap with
another story's; each says `story`. Where one of them must fail or wait by the sides' way of
concurrency, it says so: `conflict`. Behind the `last` operation of a story all sides roll back
what is open.
"""

import collections
import copy
import json

from differential.datastore import gql, invalid, values
from differential.datastore.queries import Queries

WRITES = {"insert": 2, "update": 3, "upsert": 6, "delete": 2}
FIRST = 12  # operations of a round that only write


def key_text(key):
    return json.dumps(key, sort_keys=True)


class Operations:
    def __init__(self, dice, with_conflicts=True):
        self.dice = dice
        self.values = values.Values(dice)
        self.queries = Queries(dice, self.values)
        self.with_conflicts = with_conflicts
        self.waiting = collections.deque()
        self.labels = 0
        self.made = 0

    def chance(self, share):
        return self.dice.random() < share

    def label(self, letter):
        self.labels += 1
        return f"{letter}{self.labels}"

    def next(self):
        self.made += 1
        if self.waiting:
            return self.waiting.popleft()
        if self.made <= FIRST:
            return self.filling()
        makers = {
            self.commit: 26, self.lookup: 9, self.query: 30, self.aggregation: 8, self.by_gql: 8,
            self.story: 6, self.ids: 2, self.broken: 9,
        }  # fmt: skip
        make = self.dice.choices(list(makers), makers.values())[0]
        made = make()
        if isinstance(made, list):
            self.waiting.extend(made[1:])
            return made[0]
        return made

    # --- writing ---

    def entity(self, key):
        return {"key": key, "properties": self.values.properties()}

    def filling(self):
        mutations = [
            {"upsert": self.entity(self.values.key(self.values.namespace()))} for _ in range(2)
        ]
        return self.commit_of(self.each_once(mutations))

    @staticmethod
    def each_once(mutations):
        seen = {key_text(key_of(each)): each for each in mutations}
        return list(seen.values())

    def commit_of(self, mutations, **fields):
        request = {"mode": "NON_TRANSACTIONAL", "mutations": mutations, **fields}
        return {"rpc": "Commit", "request": request}

    def mutation(self):
        verb = self.dice.choices(list(WRITES), WRITES.values())[0]
        key = self.values.key(self.values.namespace())
        made = {verb: key if verb == "delete" else self.entity(key)}
        if self.chance(0.08):
            made["baseVersion"] = {"$version": key_text(key), "back": self.dice.choice([0, 0, 1])}
            if self.chance(0.5):
                made["conflictResolutionStrategy"] = self.dice.choice(["SERVER_VALUE", "FAIL"])
        if verb != "delete" and self.chance(0.12):
            paths = self.dice.sample(
                ["a", "b", "t", "e.x", "e", "s", "nil"], self.dice.randint(0, 3)
            )
            made["propertyMask"] = {"paths": paths}
        if verb != "delete" and self.chance(0.15):
            made["propertyTransforms"] = [
                self.transform() for _ in range(self.dice.choice([1, 1, 2]))
            ]
        return made

    def transform(self):
        name = self.dice.choice(["a", "b", "t", "d", "v", "e.x", "new"])
        number = self.values.double() if self.chance(0.25) else self.values.integer()
        kind = self.dice.choice(
            ["increment", "maximum", "minimum", "appendMissingElements", "removeAllFromArray"]
        )
        operand = number
        if kind in ("appendMissingElements", "removeAllFromArray"):
            operand = {"values": [self.values.element() for _ in range(self.dice.randint(0, 2))]}
        return {"property": name, kind: operand}

    def commit(self):
        mutations = [self.mutation() for _ in range(self.dice.choice([1, 1, 1, 2, 3]))]
        if self.chance(0.25):
            once = {"singleUseTransaction": {"readWrite": {}}, "mode": "TRANSACTIONAL"}
            return self.commit_of(mutations, **once)
        if self.chance(0.97):
            mutations = self.each_once(mutations)
        return self.commit_of(mutations)

    # --- reading ---

    def lookup(self, **options):
        count = self.dice.choice([1, 1, 2, 3, 5])
        keys = [self.values.key(self.values.namespace()) for _ in range(count)]
        unique = {key_text(each): each for each in keys}
        request = {"keys": list(unique.values())}
        if self.chance(0.12):
            names = ["a", "b", "t", "e.x", "s", "__key__"]
            request["propertyMask"] = {"paths": self.dice.sample(names, self.dice.randint(0, 3))}
        if options:
            request["readOptions"] = options
        return {"rpc": "Lookup", "request": request}

    def partition(self, namespace):
        return {"partitionId": {"namespaceId": namespace}} if namespace else {}

    def query(self, **options):
        namespace = self.values.namespace()
        query = self.queries.query(namespace)
        made = {"rpc": "RunQuery", "request": {**self.partition(namespace), "query": query}}
        if options:
            made["request"]["readOptions"] = options
            return made
        if self.chance(0.3):
            query["limit"] = self.dice.choice([1, 2, 3])
            made["then"] = self.dice.choice(
                [["end"] * 3, ["end"] * 3, ["result", "end"], ["until"]]
            )
        return made

    def aggregation(self):
        namespace = self.values.namespace()
        request = {**self.partition(namespace)}
        request["aggregationQuery"] = self.queries.aggregation(namespace)
        return {"rpc": "RunAggregationQuery", "request": request}

    def by_gql(self):
        namespace, printer = self.values.namespace(), gql.Printer(self.dice)
        request = {**self.partition(namespace)}
        if self.chance(0.25):
            text = printer.aggregated(self.queries.aggregation(namespace))
            rpc = "RunAggregationQuery"
        else:
            text, rpc = printer.text(self.queries.query(namespace)), "RunQuery"
        request["gqlQuery"] = printer.request(text)
        return {"rpc": rpc, "request": request}

    # --- ids ---

    def ids(self):
        if self.chance(0.4):
            keys = [self.values.key() for _ in range(self.dice.randint(1, 3))]
            keys = [each for each in keys if "id" in each["path"][-1]] or [values.key(["A", 77])]
            return {"rpc": "ReserveIds", "request": {"keys": keys}}
        label = self.label("k")
        kinds = self.dice.choices(values.KINDS, k=self.dice.randint(1, 3))
        parent = self.dice.choice([[], [], ["A", 1]])
        keys = [values.key([*parent, kind, None], "auto") for kind in kinds]
        if self.chance(0.5):
            return {"rpc": "AllocateIds", "as": label, "request": {"keys": keys}}
        write = self.commit_of([{self.dice.choice(["insert", "upsert"]): {
            "key": each, "properties": self.values.properties()}} for each in keys])  # fmt: skip
        read = copy.deepcopy(keys)
        for place, each in enumerate(read):
            each["path"][-1]["id"] = {"$id": [label, place]}
        return [{**write, "as": label}, {"rpc": "Lookup", "request": {"keys": read}}]

    # --- transactions ---

    def story(self):
        tell = self.dice.choice(
            [self.of_one, self.of_one, self.of_one, self.of_two, self.read_only, self.used_again,
             self.begun_by_reading]
        )  # fmt: skip
        if self.with_conflicts and self.chance(0.04):
            tell = self.conflict
        told = [{**each, "story": True} for each in tell()]
        told[-1]["last"] = True
        return told

    def begin(self, label, **options):
        request = {"transactionOptions": options} if options else {}
        return {"rpc": "BeginTransaction", "as": label, "request": request}

    def reading_in(self, label):
        options = {"transaction": {"$transaction": label}}
        return self.query(**options) if self.chance(0.35) else self.lookup(**options)

    def ending(self, label, mutations=None):
        if mutations is None:
            mutations = [self.mutation() for _ in range(self.dice.choice([0, 1, 2, 2]))]
        if self.chance(0.2):
            return {"rpc": "Rollback", "request": {"transaction": {"$transaction": label}}}
        fields = {"mode": "TRANSACTIONAL", "transaction": {"$transaction": label}}
        return self.commit_of(mutations, **fields)

    def of_one(self):
        label = self.label("t")
        reads = [self.reading_in(label) for _ in range(self.dice.randint(0, 3))]
        return [self.begin(label), *reads, self.ending(label)]

    def of_two(self):
        """Of namespaces of their own, so that they do not meet."""
        first, second = self.label("t"), self.label("t")
        story = [self.begin(first), self.begin(second)]
        for label, kind in ((first, "T"), (second, "U")):
            keys = [values.key([kind, 1 + place]) for place in range(2)]
            options = {"transaction": {"$transaction": label}}
            story.append({"rpc": "Lookup", "request": {"keys": keys, "readOptions": options}})
        for label, kind in ((second, "U"), (first, "T")):
            mutation = {"upsert": self.entity(values.key([kind, self.dice.randint(1, 2)]))}
            story.append(self.ending(label, [mutation]))
        return story

    def read_only(self):
        label = self.label("t")
        story = [self.begin(label, readOnly={}), self.reading_in(label), self.commit()]
        story += [self.reading_in(label) for _ in range(self.dice.randint(0, 2))]
        return [*story, self.ending(label, [] if self.chance(0.7) else [self.mutation()])]

    def used_again(self):
        label = self.label("t")
        story = [self.begin(label), self.ending(label)]
        return [*story, self.reading_in(label) if self.chance(0.5) else self.ending(label)]

    def begun_by_reading(self):
        label = self.label("t")
        kind = {"readOnly": {}} if self.chance(0.3) else {"readWrite": {}}
        options = {"newTransaction": kind}
        read = self.query(**options) if self.chance(0.4) else self.lookup(**options)
        mutations = [] if "readOnly" in kind else None
        return [{**read, "as": label}, self.reading_in(label), self.ending(label, mutations)]

    def conflict(self):
        """What a transaction has read is written by another commit."""
        label, key = self.label("t"), self.values.key()
        options = {"transaction": {"$transaction": label}}
        read = {"rpc": "Lookup", "request": {"keys": [key], "readOptions": options}}
        once = {"mode": "TRANSACTIONAL", "singleUseTransaction": {"readWrite": {}}}
        between = self.commit_of([{"upsert": self.entity(key)}], **once)
        fields = {"mode": "TRANSACTIONAL", "transaction": {"$transaction": label}}
        end = self.commit_of([{"upsert": self.entity(key)}], **fields)
        marked = [{**each, "conflict": True} for each in (between, end)]
        return [self.begin(label), read, *marked]

    # --- what is refused ---

    def broken(self):
        return invalid.operation(self)


def key_of(mutation):
    """The key of a mutation, as JSON."""
    for verb in WRITES:
        if verb in mutation:
            return mutation[verb] if verb == "delete" else mutation[verb].get("key", {})
    return {}
