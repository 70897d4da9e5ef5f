"""Random queries and aggregations, as the JSON of the messages."""

from differential.datastore import values

PROPERTIES = ["a", "a", "b", "b", "s", "t", "t", "d", "v", "e.x", "e"]
RANGES = ["LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL"]
KEY = "__key__"


def filter_of(name, operator, value):
    return {"propertyFilter": {"property": {"name": name}, "op": operator, "value": value}}


def composite(operator, filters):
    return {"compositeFilter": {"op": operator, "filters": filters}}


class Queries:
    def __init__(self, dice, some_values):
        self.dice, self.values = dice, some_values

    def chance(self, share):
        return self.dice.random() < share

    # --- filters ---

    def value_for(self, name):
        if name == "t":
            return self.values.element() if self.chance(0.2) else values.integer(self.small())
        if name in ("e.x", "e"):
            return self.values.integer()
        return self.values.of(name) if name in "abdsv" else self.values.scalar()

    def scalar_for(self, name):
        while True:
            value = self.value_for(name)
            if not {"entityValue", "arrayValue"} & set(value):
                return value

    def small(self):
        return self.dice.choice([0, 1, 2, 3])

    def comparison(self, namespace):
        name = self.dice.choice(PROPERTIES)
        chance = self.dice.random()
        if chance < 0.5:
            return filter_of(name, "EQUAL", self.scalar_for(name))
        if chance < 0.8:
            return filter_of(name, self.dice.choice(RANGES), self.scalar_for(name))
        if chance < 0.86:
            return filter_of(name, "NOT_EQUAL", self.scalar_for(name))
        if chance < 0.95:
            return filter_of(name, "IN", self.array_for(name, 3))
        return filter_of(name, "NOT_IN", self.array_for(name, 3))

    def array_for(self, name, most):
        count = self.dice.randint(1, most)
        return {"arrayValue": {"values": [self.scalar_for(name) for _ in range(count)]}}

    def key_comparison(self, namespace):
        if self.chance(0.08):
            keys = [
                {"keyValue": self.values.key(namespace)} for _ in range(self.dice.randint(1, 3))
            ]
            return filter_of(KEY, "IN", {"arrayValue": {"values": keys}})
        operator = self.dice.choice([*RANGES, "EQUAL"])
        return filter_of(KEY, operator, {"keyValue": self.values.key(namespace)})

    def ancestor(self, namespace):
        return filter_of(KEY, "HAS_ANCESTOR", {"keyValue": self.values.key(namespace)})

    def filters(self, namespace, with_kind):
        """Those that a query has, all to be true."""
        made = []
        if self.chance(0.2 if with_kind else 0.6):
            made.append(self.ancestor(namespace))
        if self.chance(0.1 if with_kind else 0.5):
            made.append(self.key_comparison(namespace))
        if with_kind:
            count = self.dice.choice([0, 0, 1, 1, 1, 2, 2, 3])
            made += [self.comparison(namespace) for _ in range(count)]
            if self.chance(0.08):
                some = [self.comparison(namespace) for _ in range(self.dice.randint(2, 3))]
                made.append(composite("OR", some))
        self.dice.shuffle(made)
        return made

    # --- queries ---

    def orders(self):
        names = self.dice.sample(["a", "b", "s", "t", "d", "v", "e.x", KEY],
                                 self.dice.choice([1, 1, 1, 2, 2, 3]))  # fmt: skip
        directions = ["ASCENDING", "DESCENDING"]
        return [
            {"property": {"name": name}, "direction": self.dice.choice(directions)}
            for name in names
        ]

    def query(self, namespace, with_limits=True):
        with_kind = self.chance(0.88)
        made = {}
        if with_kind:
            made["kind"] = [{"name": self.dice.choice(values.KINDS)}]
        filters = self.filters(namespace, with_kind)
        if len(filters) == 1 and self.chance(0.7):
            made["filter"] = filters[0]
        elif filters:
            made["filter"] = composite("AND", filters)
        if with_kind and self.chance(0.35):
            made["order"] = self.orders()
        self.add_projection(made, with_kind)
        if with_limits:
            self.add_limits(made)
        return made

    def add_projection(self, made, with_kind):
        chance = self.dice.random()
        if chance < 0.12:
            made["projection"] = [{"property": {"name": KEY}}]
        elif chance < 0.26 and with_kind:
            names = self.dice.sample(["a", "b", "s", "t", "v", "e.x", "d"],
                                     self.dice.choice([1, 1, 2]))  # fmt: skip
            made["projection"] = [{"property": {"name": name}} for name in names]
            if self.chance(0.35):
                made["distinctOn"] = [{"name": name} for name in names[: self.dice.choice([1, 2])]]
        elif chance < 0.29 and with_kind:
            made["distinctOn"] = [{"name": self.dice.choice("abst")}]

    def add_limits(self, made):
        if self.chance(0.25):
            made["offset"] = self.dice.choice([0, 1, 2, 3, 50])
        if self.chance(0.35):
            made["limit"] = self.dice.choice([0, 1, 2, 3, 5, 100])

    def aggregations(self):
        made = []
        for place in range(self.dice.choice([1, 1, 2, 3])):
            kind = self.dice.choice(["count", "count", "sum", "avg"])
            one = {kind: {}}
            if kind != "count":
                one[kind] = {"property": {"name": self.dice.choice(["a", "b", "d", "t", "v"])}}
            elif self.chance(0.25):
                one[kind] = {"upTo": str(self.dice.choice([1, 2, 5]))}
            if self.chance(0.5):
                one["alias"] = f"x{place}"
            made.append(one)
        return made

    def aggregation(self, namespace):
        query = self.query(namespace, with_limits=self.chance(0.3))
        return {"nestedQuery": query, "aggregations": self.aggregations()}
