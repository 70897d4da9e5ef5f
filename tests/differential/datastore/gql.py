"""Queries of queries.py as GQL, with literals or with bindings."""

import base64
import json

SIGNS = {
    "EQUAL": "=", "NOT_EQUAL": "!=", "LESS_THAN": "<", "LESS_THAN_OR_EQUAL": "<=",
    "GREATER_THAN": ">", "GREATER_THAN_OR_EQUAL": ">=", "IN": "IN", "NOT_IN": "NOT IN",
    "HAS_ANCESTOR": "HAS ANCESTOR",
}  # fmt: skip


class Impossible(Exception):
    """The value has no literal."""


class Printer:
    def __init__(self, dice):
        self.dice = dice
        self.named, self.positional = {}, []

    def bind(self, value):
        if self.dice.random() < 0.5:
            name = f"p{len(self.named)}"
            self.named[name] = {"value": value}
            return f"@{name}"
        self.positional.append({"value": value})
        return f"@{len(self.positional)}"

    def literal(self, value):
        (kind, content), *_ = value.items()
        makers = {
            "integerValue": lambda: content, "nullValue": lambda: "NULL",
            "booleanValue": lambda: "TRUE" if content else "FALSE",
            "stringValue": lambda: self.quoted(content),
            "doubleValue": lambda: self.double(content),
            "timestampValue": lambda: f"DATETIME('{content}')",
            "blobValue": lambda: self.blob(content),
            "keyValue": lambda: self.key(content),
            "arrayValue": lambda: self.array(content),
        }  # fmt: skip
        if kind not in makers:
            raise Impossible(kind)
        return makers[kind]()

    @staticmethod
    def quoted(text):
        return json.dumps(text, ensure_ascii=False)

    @staticmethod
    def double(number):
        if isinstance(number, str):
            raise Impossible(number)
        return repr(float(number))

    @staticmethod
    def blob(content):
        data = base64.b64decode(content)
        return f"BLOB('{base64.urlsafe_b64encode(data).decode().rstrip('=')}')"

    def key(self, key):
        parts = []
        namespace = key.get("partitionId", {}).get("namespaceId")
        if namespace:
            parts.append(f"NAMESPACE({self.quoted(namespace)})")
        for each in key["path"]:
            parts.append(each["kind"])
            parts.append(each["id"] if "id" in each else self.quoted(each["name"]))
        return f"KEY({', '.join(parts)})"

    def array(self, array):
        return f"ARRAY({', '.join(self.value(each) for each in array['values'])})"

    def value(self, value):
        if self.dice.random() < 0.4 and "arrayValue" not in value:
            return self.bind(value)
        try:
            return self.literal(value)
        except Impossible:
            return self.bind(value)

    @staticmethod
    def name(name):
        return name

    def condition(self, one):
        if "compositeFilter" in one:
            inner = one["compositeFilter"]
            return "(" + f" {inner['op']} ".join(map(self.condition, inner["filters"])) + ")"
        one = one["propertyFilter"]
        name, sign = self.name(one["property"]["name"]), SIGNS[one["op"]]
        if one["op"] == "EQUAL" and "nullValue" in one["value"] and self.dice.random() < 0.5:
            return f"{name} IS NULL"
        if one["op"] == "EQUAL" and self.dice.random() < 0.15:
            return f"{name} CONTAINS {self.value(one['value'])}"
        return f"{name} {sign} {self.value(one['value'])}"

    def where(self, query):
        if "filter" not in query:
            return ""
        whole = query["filter"]
        if whole.get("compositeFilter", {}).get("op") == "AND":
            return " WHERE " + " AND ".join(
                map(self.condition, whole["compositeFilter"]["filters"])
            )
        return " WHERE " + self.condition(whole)

    def selection(self, query):
        names = [each["property"]["name"] for each in query.get("projection", [])]
        distinct = [each["name"] for each in query.get("distinctOn", [])]
        shown = ", ".join(map(self.name, names)) or "*"
        if not distinct:
            return shown
        if distinct == names and self.dice.random() < 0.5:
            return f"DISTINCT {shown}"
        return f"DISTINCT ON ({', '.join(map(self.name, distinct))}) {shown}"

    def orders(self, query):
        parts = []
        for each in query.get("order", []):
            ending = " DESC" if each["direction"] == "DESCENDING" else ""
            parts.append(self.name(each["property"]["name"]) + ending)
        return f" ORDER BY {', '.join(parts)}" if parts else ""

    def text(self, query):
        kind = query.get("kind")
        made = f"SELECT {self.selection(query)}"
        made += f" FROM {kind[0]['name']}" if kind else ""
        made += self.where(query) + self.orders(query)
        if "limit" in query:
            made += f" LIMIT {query['limit']}"
        if "offset" in query:
            made += f" OFFSET {query['offset']}"
        return made

    def aggregated(self, whole):
        parts = []
        for each in whole["aggregations"]:
            parts.append(self.aggregation(each))
        return f"AGGREGATE {', '.join(parts)} OVER ({self.text(whole['nestedQuery'])})"

    def aggregation(self, one):
        ending = f" AS {one['alias']}" if "alias" in one else ""
        for kind in ("sum", "avg"):
            if kind in one:
                return f"{kind.upper()}({one[kind]['property']['name']}){ending}"
        most = one["count"].get("upTo")
        return (f"COUNT_UP_TO({most})" if most else "COUNT(*)") + ending

    def request(self, text):
        made = {"queryString": text, "allowLiterals": True}
        if self.named:
            made["namedBindings"] = self.named
        if self.positional:
            made["positionalBindings"] = self.positional
        return made
