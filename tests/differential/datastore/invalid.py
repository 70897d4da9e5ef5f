"""Requests that are to be refused, or lie just within what is allowed."""

from differential.datastore import values
from differential.datastore.queries import KEY, composite, filter_of


def write(make, key, properties=None, verb="upsert", **more):
    entity = {"key": key, "properties": properties if properties is not None else {}}
    return make.commit_of([{verb: key if verb == "delete" else entity, **more}])


def with_key(make):
    """A key that no entity may have, written, read, or reserved."""
    long = "x" * 1501
    key = make.dice.choice([
        values.key(["__bad__", 1]), values.key(["", 1]), values.key(["A", ""]),
        values.key(["A", long]), values.key([long, 1]), values.key(["A", "__x__"]),
        values.key(["A", None, "B", 1]), {"path": []}, values.key(["A", -5]),
        values.key(["A", 1], "bad namespace!"), values.key(["A", 1], "__n__"),
        values.key(["A", 1], "n" * 101), values.key(["A", "x" * 1500]),
        {"path": [{"kind": "A"}]}, {"path": [{"id": "3"}]}, values.key(["A", 1] * 101),
        values.key(["A", 0], "zero"), values.key(["A/b", "c.d"]), values.key(["__A", 1]),
        {"partitionId": {"projectId": "other"}, "path": [{"kind": "A", "id": "1"}]},
        {"partitionId": {"databaseId": "other"}, "path": [{"kind": "A", "id": "1"}]},
    ])  # fmt: skip
    verbs = ["insert", "update", "upsert", "delete", "lookup", "reserve", "allocate"]
    verb = make.dice.choice(verbs)
    if verb == "lookup":
        return {"rpc": "Lookup", "request": {"keys": [key]}}
    if verb in ("reserve", "allocate"):
        rpc = "ReserveIds" if verb == "reserve" else "AllocateIds"
        return {"rpc": rpc, "request": {"keys": [key]}}
    return write(make, key, {"a": values.integer(1)}, verb)


def nested(depth):
    value = values.integer(1)
    for _ in range(depth):
        value = {"entityValue": {"properties": {"x": value}}}
    return value


def with_value(make):
    long = "x" * 1501
    name, value = make.dice.choice([
        ("a", {"stringValue": long}), ("a", {"stringValue": "é" * 751}),
        ("a", values.blob(b"x" * 1501)),
        ("a", {"stringValue": long, "excludeFromIndexes": True}),
        ("a", {"stringValue": "x" * 1500}),
        ("a", {"arrayValue": {"values": [{"arrayValue": {"values": []}}]}}), ("a", nested(20)),
        ("a", nested(21)), ("__x__", values.integer(1)), ("", values.integer(1)), ("a", {}),
        ("x.y", values.integer(1)), (KEY, values.integer(1)), ("a" * 1501, values.integer(1)),
        ("a", {"timestampValue": "0001-01-01T00:00:00Z"}),
        ("a", {"timestampValue": "9999-12-31T23:59:59.999999999Z"}),
        ("a", {"geoPointValue": {"latitude": 91, "longitude": 0}}),
        ("a", {"geoPointValue": {"latitude": 0, "longitude": -181}}),
        ("a", {"geoPointValue": {"latitude": -90, "longitude": 180}}),
        ("a", {"keyValue": values.key(["A", None])}),
        ("a", {"keyValue": values.key(["__A__", 1])}),
        ("a", {"keyValue": {}}), ("a", {"arrayValue": {"values": [{}]}}),
        ("a", {"arrayValue": {"values": []}, "excludeFromIndexes": True}),
        ("a", {"entityValue": {"properties": {"__x__": values.integer(1)}}}),
        ("a", {"entityValue": {"key": values.key(["A", 1]), "properties": {}}}),
        ("a", {"entityValue": {"properties": {"s": {"stringValue": long}}}}),
        ("a", {"entityValue": {"properties": {"s": {"stringValue": long}}},
        "excludeFromIndexes": True}),
        ("a", {**values.integer(1), "meaning": 15}),
    ])  # fmt: skip
    return write(make, values.key(["C", 9]), {name: value})


def with_mutations(make):
    key = values.key(["C", 8])
    entity = {"key": key, "properties": {"a": values.integer(1)}}
    once = {"singleUseTransaction": {"readWrite": {}}, "mode": "TRANSACTIONAL"}
    verbs = ["insert", "update", "upsert", "delete"]
    pair = [{verb: key if verb == "delete" else entity} for verb in make.dice.choices(verbs, k=2)]
    return make.dice.choice([
        make.commit_of([]), make.commit_of([{}]), make.commit_of([{"upsert": {}}]),
        make.commit_of(pair, **once), make.commit_of(pair, **once), make.commit_of(pair, **once),
        make.commit_of(pair), make.commit_of([{"upsert": entity}], mode="TRANSACTIONAL"),
        make.commit_of([{"upsert": entity}], mode="MODE_UNSPECIFIED"),
        make.commit_of([{"upsert": entity}], transaction="bm9uZQ==", mode="TRANSACTIONAL"),
        make.commit_of([{"upsert": entity}], transaction="bm9uZQ=="),
        make.commit_of([{"upsert": entity}], **{**once, "mode": "NON_TRANSACTIONAL"}),
        make.commit_of([{"upsert": entity}], mode="TRANSACTIONAL",
        singleUseTransaction={"readOnly": {}}),
        {"rpc": "Rollback", "request": {"transaction": "bm9uZQ=="}},
        {"rpc": "Rollback", "request": {}},
        {"rpc": "Lookup", "request": {"keys": [key], "readOptions": {"transaction": "bm9uZQ=="}}},
        {"rpc": "Lookup", "request": {"keys": []}},
        {"rpc": "Lookup", "request": {"keys": [key, key]}},
        {"rpc": "Lookup", "request": {"keys": [key],
        "readOptions": {"readConsistency": "EVENTUAL"}}},
        {"rpc": "Lookup", "request": {"keys": [key],
        "readOptions": {"readTime": "2001-01-01T00:00:00Z"}}},
        {"rpc": "AllocateIds", "request": {"keys": []}},
        {"rpc": "ReserveIds", "request": {"keys": []}},
    ])  # fmt: skip


def with_mask(make):
    path = make.dice.choice(["", ".", "a.", ".a", "a..b", "__key__", "`a`", "a\\", "__x__", "e.x"])
    mask = {"propertyMask": {"paths": [path]}}
    key = values.key(["C", 8])
    if make.chance(0.5):
        return {"rpc": "Lookup", "request": {"keys": [key], **mask}}
    return write(make, key, {"a": values.integer(1)}, **mask)


def with_transform(make):
    one = make.dice.choice([
        {}, {"property": "a"}, {"property": "", "increment": values.integer(1)},
        {"property": "__key__", "increment": values.integer(1)},
        {"property": "a", "increment": {}},
        {"property": "a", "increment": {"stringValue": "x"}},
        {"property": "a", "maximum": {"booleanValue": True}},
        {"property": "a", "setToServerValue": "SERVER_VALUE_UNSPECIFIED"},
        {"property": "a.b.c", "increment": values.integer(1)},
        {"property": "a.", "increment": values.integer(1)},
        {"property": "__x__", "increment": values.integer(1)},
        {"property": "a", "appendMissingElements": {"values": [{"arrayValue": {"values": []}}]}},
    ])  # fmt: skip
    return write(make, values.key(["C", 8]), {"a": values.integer(1)}, propertyTransforms=[one])


def broken_filters(make):
    one = values.integer(1)

    def many(count):
        return {"arrayValue": {"values": [values.integer(each) for each in range(count)]}}

    root = {"keyValue": values.key(["A", 1])}
    return [
        filter_of("a", "IN", many(0)), filter_of("a", "IN", many(30)),
        filter_of("a", "IN", many(31)),
        filter_of("a", "NOT_IN", many(0)), filter_of("a", "NOT_IN", many(10)),
        filter_of("a", "NOT_IN", many(11)),
        filter_of("a", "IN", one), filter_of("a", "EQUAL", many(2)), filter_of("a", "EQUAL", {}),
        filter_of("a", "EQUAL", nested(1)), filter_of("a", "OPERATOR_UNSPECIFIED", one),
        filter_of("", "EQUAL", one), filter_of("__x__", "EQUAL", one),
        filter_of(KEY, "EQUAL", one),
        filter_of("a", "HAS_ANCESTOR", root), filter_of(KEY, "HAS_ANCESTOR", one),
        filter_of(KEY, "EQUAL", {"keyValue": values.key(["A", None])}),
        filter_of(KEY, "EQUAL", {"keyValue": values.key(["A", 1], "n")}),
        filter_of(KEY, "HAS_ANCESTOR", {"keyValue": values.key(["A", None])}),
        filter_of(KEY, "NOT_EQUAL", root),
        filter_of(KEY, "NOT_IN", {"arrayValue": {"values": [root]}}),
        filter_of("a", "EQUAL", {"stringValue": "x" * 1501}), {}, composite("AND", []),
        composite("OPERATOR_UNSPECIFIED", [filter_of("a", "EQUAL", one)]), composite("OR", []),
        composite("AND", [filter_of("a", "NOT_EQUAL", one), filter_of("b", "NOT_EQUAL", one)]),
        composite("AND", [filter_of("a", "NOT_EQUAL", one), filter_of("a", "NOT_IN", many(2))]),
        composite("AND", [filter_of("a", "IN", many(6)), filter_of("b", "IN", many(6))]),
        composite("AND", [filter_of("a", "IN", many(5)), filter_of("b", "IN", many(6))]),
        composite("AND", [filter_of(KEY, "HAS_ANCESTOR", root)] * 2),
        composite("OR", [filter_of(KEY, "HAS_ANCESTOR", root), filter_of("a", "EQUAL", one)]),
    ]  # fmt: skip


def with_query(make):
    kind, one = {"kind": [{"name": "A"}]}, values.integer(1)

    def by(name, direction="ASCENDING"):
        return {"property": {"name": name}, "direction": direction}

    def show(*names):
        return [{"property": {"name": name}} for name in names]

    query = make.dice.choice([
        {**kind, "offset": -1}, {**kind, "limit": -1}, {"kind": [{"name": "A"}, {"name": "B"}]},
        {"kind": [{"name": ""}]}, {"kind": [{"name": "__bad__"}]},
        {"kind": [{"name": "x" * 1501}]},
        {"filter": filter_of("a", "EQUAL", one)}, {"order": [by("a")]},
        {"order": [by(KEY, "DESCENDING")]},
        {"order": [by(KEY)]}, {"projection": show("a")}, {"projection": show(KEY)},
        {**kind, "projection": show("a", "a")}, {**kind, "projection": show(KEY, "a")},
        {**kind, "projection": show("a"), "filter": filter_of("a", "EQUAL", one)},
        {**kind, "projection": show("")}, {**kind, "order": [by("")]},
        {**kind, "order": [by("a", "DIRECTION_UNSPECIFIED")]},
        {**kind, "order": [by("a"), by("a", "DESCENDING")]}, {**kind, "order": [by(KEY), by("a")]},
        {**kind, "distinctOn": [{"name": "a"}], "order": [by("b")]},
        {**kind, "distinctOn": [{"name": "a"}, {"name": "a"}]},
        {**kind, "distinctOn": [{"name": KEY}]},
        {**kind, "distinctOn": [{"name": ""}]}, {**kind, "startCursor": "AAAA"},
        {**kind, "endCursor": "bm9uZQ=="},
        {**kind, "order": [by("__x__")]}, {**kind, "projection": show("__x__")},
        {**kind, "filter": filter_of("b", "GREATER_THAN", one), "order": [by("a")]},
    ])  # fmt: skip
    if make.chance(0.5):
        query = {**kind, "filter": make.dice.choice(broken_filters(make))}
    return {"rpc": "RunQuery", "request": {"query": query}}


def with_aggregation(make):
    kind, count = {"kind": [{"name": "A"}]}, {"count": {}}
    aggregations = make.dice.choice([
        [], [{}], [count] * 6, [count] * 5, [{**count, "alias": "x"}] * 2,
        [{**count, "alias": "__x__"}],
        [{"count": {"upTo": "0"}}], [{"count": {"upTo": "-1"}}], [{"sum": {}}],
        [{"sum": {"property": {"name": ""}}}], [{"sum": {"property": {"name": KEY}}}],
        [{"avg": {"property": {"name": "__x__"}}}], [{**count, "alias": "property_1"}, count],
        [{**count, "alias": ""}], [{**count, "alias": "x" * 1501}],
    ])  # fmt: skip
    request = {"aggregationQuery": {"nestedQuery": kind, "aggregations": aggregations}}
    if make.chance(0.2):
        request["aggregationQuery"]["nestedQuery"] = {
            **kind,
            "projection": [{"property": {"name": "b"}}],
        }
    return {"rpc": "RunAggregationQuery", "request": request}


def with_gql(make):
    texts = [
        "", "SELECT", "SELECT * FROM", "SELECT * FROM A WHERE", "SELECT * FROM A WHERE a",
        "SELEC * FROM A",
        "SELECT * FROM A WHERE a = ", "SELECT * FROM A WHERE a = @x",
        "SELECT * FROM A WHERE a = @1",
        "SELECT * FROM A ORDER a", "SELECT * FROM A LIMIT -1", "SELECT * FROM A LIMIT 'x'",
        "SELECT a, * FROM A",
        "SELECT * FROM A OFFSET -3", "SELECT * FROM A WHERE a = foo(3)",
        "SELECT * FROM A WHERE a = 'x",
        "SELECT * FROM A WHERE a = \"x\" AND", "SELECT * FROM A;",
        "SELECT * FROM A WHERE a LIKE 'x'",
        "SELECT * FROM A WHERE a = KEY(A)", "SELECT * FROM A WHERE a = KEY(A, 0)",
        "SELECT * FROM A WHERE a = DATETIME('x')",
        "SELECT * FROM A WHERE a = BLOB('***')", "SELECT * FROM A WHERE a = 99999999999999999999",
        "SELECT COUNT(*) FROM A",
        "SELECT * FROM A WHERE a = NULL", "SELECT * FROM A WHERE a IS NOT NULL",
        "SELECT * FROM A WHERE NOT a = 1",
        "SELECT * FROM `A` WHERE `a` = 1",
        "select * from A where a = 1 order by a desc limit 2 offset 1",
        "SELECT DISTINCT * FROM A", "SELECT * FROM A, B",
        "SELECT * WHERE __key__ HAS ANCESTOR KEY(A, 1)",
        "SELECT __key__ FROM A WHERE __key__ > KEY(A, 1)", "SELECT * FROM A WHERE a = 1 OR b = 2",
        "SELECT * FROM A WHERE 1 = a", "SELECT * FROM A WHERE 1 IN t",
        "SELECT * FROM A WHERE t CONTAINS 1",
        "SELECT * FROM A WHERE a IN ARRAY(1, 2)", "SELECT * FROM A WHERE a IN (1, 2)",
        "SELECT A.a FROM A",
    ]  # fmt: skip
    request = {"queryString": make.dice.choice(texts), "allowLiterals": make.chance(0.85)}
    if make.chance(0.2):
        request["namedBindings"] = {
            make.dice.choice(["x", "y", "__x__", "a b"]): {"value": values.integer(1)}
        }
    if make.chance(0.1):
        request["positionalBindings"] = [{"value": values.integer(1)}]
    return {"rpc": "RunQuery", "request": {"gqlQuery": request}}


MAKERS = [
    with_key, with_value, with_mutations, with_mask, with_transform, with_query, with_query,
    with_aggregation, with_gql,
]  # fmt: skip


def operation(make):
    return make.dice.choice(MAKERS)(make)
