"""Requests to Datastore's API that want too much: large, deep, many. Each gets its error or its
answer, while another client is served and memory is bounded."""

import pytest
from google.api_core import exceptions
from google.cloud.datastore_v1 import types
from harness.datastore import Raw, fresh_client
from harness.patience import PATIENCE_SECONDS

LARGE = 900_000  # bytes of an entity


@pytest.fixture
def raw(victim):
    return Raw(fresh_client(victim.host))


def query(raw, **parts):
    request = {"project_id": raw.project, "query": {"kind": [{"name": "K"}], **parts}}
    return raw.api.run_query(request=request, retry=None, timeout=PATIENCE_SECONDS)


def gql(raw, text):
    request = {"project_id": raw.project, "gql_query": {"query_string": text, "allow_literals": 1}}
    return raw.api.run_query(request=request, retry=None, timeout=PATIENCE_SECONDS)


def equal(name, number):
    return {
        "property_filter": {
            "property": {"name": name}, "op": "EQUAL", "value": {"integer_value": number}
        }
    }  # fmt: skip


def composite(op, *filters):
    return {"composite_filter": {"op": op, "filters": list(filters)}}


def vector(*numbers):
    return types.Value(
        meaning=31, array_value={"values": [{"double_value": number} for number in numbers]}
    )


def put_large(raw, number):
    """An entity whose values take many times their bytes once they are decoded."""
    null = types.Value(null_value=0, exclude_from_indexes=True)
    nulls = types.Value(array_value={"values": [null] * (LARGE // 8)})
    entity = types.Entity(
        key=raw.key("K", number), properties={"v": vector(number, 0), "nulls": nulls}
    )
    raw.commit({"upsert": entity})


@pytest.mark.long
def test_large_entities_that_are_near(victim, raw):
    for number in range(1, 61):
        put_large(raw, number)
    nearest = {
        "vector_property": {"name": "v"}, "query_vector": vector(0, 0), "limit": 50,
        "distance_measure": types.FindNearest.DistanceMeasure.EUCLIDEAN,
    }  # fmt: skip
    with victim.attacked(512), pytest.raises(exceptions.ResourceExhausted):
        query(raw, find_nearest=nearest)


@pytest.mark.long
def test_many_large_entities_at_once(victim, raw):
    for number in range(1, 61):
        put_large(raw, number)
    keys = [raw.key("K", number) for number in range(1, 61)]
    with victim.attacked(512):
        answer = raw.api.lookup(
            project_id=raw.project, keys=keys, retry=None, timeout=PATIENCE_SECONDS
        )
        assert answer.found and answer.deferred
        assert len(answer.found) + len(answer.deferred) == len(keys)


def test_filters_whose_disjunctions_explode(victim, raw):
    pairs = [composite("OR", equal(f"a{i}", 0), equal(f"a{i}", 1)) for i in range(40)]
    with victim.attacked(), pytest.raises(exceptions.InvalidArgument):
        query(raw, filter=composite("AND", *pairs))


def test_queries_of_many_properties(victim, raw):
    many = [{"name": f"p{i}"} for i in range(50_000)]
    with victim.attacked(128):
        for parts in (
            {"projection": [{"property": each} for each in many]},
            {"order": [{"property": each} for each in many]},
            {"distinct_on": many},
            {"filter": composite("AND", *(equal(f"p{i}", i) for i in range(5_000)))},
        ):
            with pytest.raises(exceptions.InvalidArgument, match="A query has up to 100"):
                query(raw, **parts)


def test_gql_that_is_deep_or_long(victim, raw):
    with victim.attacked():
        for text in (
            "SELECT * FROM K WHERE " + "(" * 100_000 + "a = 1" + ")" * 100_000,
            "SELECT * FROM K WHERE " + "a = 1 OR " * 100_000 + "a = 1",
            "SELECT * FROM K WHERE a IN ARRAY(" + ",".join(["1"] * 200_000) + ")",
            "SELECT " + ",".join(f"p{i}" for i in range(50_000)) + " FROM K",
            "SELECT * FROM K ORDER BY " + ",".join(f"p{i}" for i in range(50_000)),
            "SELECT * FROM K WHERE a = '" + "\\'" * 500_000 + "'",
        ):
            with pytest.raises(exceptions.InvalidArgument):
                gql(raw, text)


def test_entities_with_too_many_index_entries(victim, raw):
    values = [types.Value(integer_value=number) for number in range(30_000)]
    many = types.Value(array_value={"values": values})
    entity = types.Entity(key=raw.key("K", 1), properties={"a": many})
    with victim.attacked(128), pytest.raises(exceptions.InvalidArgument):
        raw.commit({"upsert": entity})


def test_transactions_that_nobody_ends(victim, raw):
    with victim.attacked(128):
        begun = 0
        for _ in range(20_000):
            try:
                raw.api.begin_transaction(
                    project_id=raw.project, retry=None, timeout=PATIENCE_SECONDS
                )
            except exceptions.ResourceExhausted:
                break
            begun += 1
        assert begun > 100


def test_cursors_that_are_none(victim, raw):
    with victim.attacked():
        for cursor in (b"\0", b"x" * 100, b"\xff" * 1_000_000):
            with pytest.raises(exceptions.InvalidArgument):
                query(raw, start_cursor=cursor)
