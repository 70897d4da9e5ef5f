"""Datastore's queries by Google's client: what is found, in which order, and as of when."""

import datetime

import pytest
from google.api_core import exceptions
from google.cloud.datastore.helpers import GeoPoint
from google.cloud.datastore.query import Or, PropertyFilter
from harness.datastore import Raw, client_of, entity, fresh_client

UTC = datetime.timezone.utc


@pytest.fixture
def client(server):
    return fresh_client(server.host)


@pytest.fixture
def raw(client):
    return Raw(client)


@pytest.fixture
def numbers(client):
    """Thirty entities of the kind K below one parent: n counts, m and tags repeat."""
    client.put_multi(
        [
            entity(client, "P", "root", "K", n + 1, n=n, m=n % 5, tags=[n % 3, "x", "x"])
            for n in range(30)
        ]
    )
    client.put(entity(client, "P", "other", "K", 99, n=99))
    return client


def asked(client, *filters, order=(), ancestor=None, **options):
    query = client.query(kind="K", ancestor=ancestor)
    for each in filters:
        query.add_filter(filter=each if not isinstance(each, tuple) else PropertyFilter(*each))
    query.order = list(order)
    return [found.key.id for found in query.fetch(**options)]


# --- what is found ---


def test_kinds_ancestors_and_keys(numbers):
    root = numbers.key("P", "root")
    assert asked(numbers) == [99, *range(1, 31)]
    assert asked(numbers, ancestor=root) == list(range(1, 31))
    assert asked(numbers, ancestor=root, limit=3, offset=2) == [3, 4, 5]
    assert len(list(numbers.query(ancestor=root).fetch())) == 30
    after = numbers.key("P", "root", "K", 28)
    assert asked(numbers, ("__key__", ">", after)) == [29, 30]


def test_equalities_are_joined(numbers):
    three = [n + 1 for n in range(30) if n % 5 == 3]
    assert asked(numbers, ("m", "=", 3)) == three
    both = [n + 1 for n in range(30) if n % 5 == 3 and n % 3 == 1]
    assert asked(numbers, ("m", "=", 3), ("tags", "=", 1), ("tags", "=", "x")) == both
    assert asked(numbers, ("m", "=", 3), ancestor=numbers.key("P", "other")) == []


def test_ranges_and_orders(numbers):
    assert asked(numbers, ("n", ">", 26)) == [28, 29, 30, 99]
    assert asked(numbers, ("n", ">=", 5), ("n", "<", 8), order=["-n"]) == [8, 7, 6]
    assert asked(numbers, order=["-n"], limit=2) == [99, 30]
    assert asked(numbers, ("n", "!=", 0), order=["n"], limit=2) == [2, 3]


def test_unions(numbers):
    assert asked(numbers, ("n", "IN", [7, 3, 500])) == [4, 8]
    either = Or([PropertyFilter("n", "=", 3), PropertyFilter("m", "=", 4)])
    assert asked(numbers, either) == sorted({4} | {n + 1 for n in range(30) if n % 5 == 4})
    assert asked(numbers, ("n", "NOT_IN", [0, 1]), order=["n"], limit=2) == [3, 4]
    with pytest.raises(exceptions.InvalidArgument, match="up to 30 values"):
        asked(numbers, ("n", "IN", list(range(31))))


def test_an_entity_is_found_once(numbers):
    """An array has an index row for each of its values."""
    assert len(asked(numbers, ("tags", ">=", 0), order=["tags"])) == 30


def test_an_index_that_is_missing_is_recommended(numbers):
    words = (
        "no matching index found. recommended index is:\n- kind: K\n  properties:\n"
        "  - name: m\n  - name: n\n    direction: desc\n"
    )
    with pytest.raises(exceptions.FailedPrecondition) as error:
        asked(numbers, ("m", "=", 3), order=["-n"])
    assert words in error.value.message


def test_values_order_by_their_types(client):
    values = [
        None, -3, datetime.datetime(1970, 1, 1, tzinfo=UTC), 5, False, True, "", b"abc", "é",
        b"\xff\x00", float("-inf"), -0.5, 5.0, float("inf"), GeoPoint(-10, 0), GeoPoint(10, 0),
        client.key("A", 1), client.key("A", "b"),
    ]  # fmt: skip
    for at, value in reversed(list(enumerate(values))):
        client.put(entity(client, "K", at + 1, v=value))
    assert asked(client, order=["v"]) == list(range(1, len(values) + 1))
    assert asked(client, order=["-v"]) == list(range(len(values), 0, -1))
    assert asked(client, ("v", "=", 5)) == [4] and asked(client, ("v", "=", 5.0)) == [13]


def test_what_is_excluded_is_not_found(client):
    client.put(entity(client, "K", 1, exclude=["v"], v=1))
    client.put(entity(client, "K", 2, v=1))
    assert asked(client, ("v", "=", 1)) == [2]
    client.put(entity(client, "K", 2, v=2))
    assert asked(client, ("v", "=", 1)) == []


# --- parts of entities, and of results ---


def test_projections_and_distinct(numbers):
    query = numbers.query(kind="K", projection=["m"], order=["m"], distinct_on=["m"])
    assert [found["m"] for found in query.fetch()] == [0, 1, 2, 3, 4]
    query = numbers.query(kind="K", projection=["tags"], order=["tags"])
    assert [found["tags"] for found in query.fetch(limit=11)] == [0] * 10 + [1]
    query = numbers.query(kind="K")
    query.keys_only()
    assert all(dict(found) == {} for found in query.fetch())


@pytest.mark.parametrize("order", [[], ["n"], ["-n"]])
def test_cursors_go_on(numbers, order):
    everything = asked(numbers, order=order)
    query = numbers.query(kind="K", order=order)
    found, cursor = [], None
    while True:
        page = query.fetch(start_cursor=cursor, limit=7)
        ids = [each.key.id for each in page]
        found += ids
        cursor = page.next_page_token
        if len(ids) < 7:
            break
    assert found == everything
    with pytest.raises(exceptions.InvalidArgument):
        list(query.fetch(start_cursor=b"bm9uc2Vuc2U="))


def test_aggregations(numbers):
    query = numbers.query(kind="K", filters=[("n", "<", 30)])
    asked_for = numbers.aggregation_query(query).count("count").sum("n", "sum").avg("n", "avg")
    (row,) = asked_for.fetch()
    assert {each.alias: each.value for each in row} == {"count": 30, "sum": 435, "avg": 14.5}
    nobody = numbers.aggregation_query(numbers.query(kind="None")).count("count").sum("n", "sum")
    (row,) = nobody.fetch()
    assert {each.alias: each.value for each in row} == {"count": 0, "sum": 0}


def test_gql(numbers, raw):
    answer = raw.gql(
        "SELECT * FROM K WHERE n < @1 AND n > @least ORDER BY n DESC LIMIT 2",
        positional_bindings=[{"value": {"integer_value": 10}}],
        named_bindings={"least": {"value": {"integer_value": 3}}},
    )
    results = answer.batch.entity_results
    assert [each.entity.properties["n"].integer_value for each in results] == [9, 8]
    assert answer.query.kind[0].name == "K"
    with pytest.raises(exceptions.InvalidArgument, match="line 1, column 1"):
        raw.gql("SELEC * FROM K")


# --- moments ---


def test_a_query_of_the_past(numbers, raw):
    before = raw.moment({"upsert": raw.entity("Other", 1, n=1)})
    numbers.delete(numbers.key("P", "root", "K", 4))
    numbers.put(entity(numbers, "P", "root", "K", 5, n=4, m=3))
    numbers.put(entity(numbers, "P", "root", "K", 777, n=3, m=3))
    now = asked(numbers, ("m", "=", 3))
    assert 4 not in now and 5 in now and 777 in now
    then = asked(numbers, ("m", "=", 3), read_time=before)
    assert then == [n + 1 for n in range(30) if n % 5 == 3]


def test_a_transaction_sees_no_phantoms(server, numbers):
    """What a query would find must not change before the commit that follows from it."""
    other = client_of(server.host, numbers.project)
    with pytest.raises(exceptions.Aborted), numbers.transaction():
        query = numbers.query(kind="K", filters=[("m", "=", 3)])
        count = len(list(query.fetch()))
        other.put(entity(other, "P", "root", "K", 1000, m=3))
        numbers.put(entity(numbers, "Count", "of 3", n=count))
    assert numbers.get(numbers.key("Count", "of 3")) is None
    with numbers.transaction():
        query = numbers.query(kind="K", filters=[("m", "=", 3)])
        count = len(list(query.fetch()))
        other.put(entity(other, "P", "root", "K", 1001, m=2))  # no result of the query
        numbers.put(entity(numbers, "Count", "of 3", n=count))
    assert numbers.get(numbers.key("Count", "of 3"))["n"] == count


def test_indexes_survive_a_kill(fresh_server):
    server = fresh_server()
    client = fresh_client(server.host)
    client.put_multi([entity(client, "K", n + 1, m=n % 5) for n in range(100)])
    client.delete_multi([client.key("K", n + 1) for n in range(0, 100, 2)])
    server.kill()
    server.start()
    client = client_of(server.host, client.project)
    for m in range(5):
        expected = [n + 1 for n in range(1, 100, 2) if n % 5 == m]
        assert asked(client, ("m", "=", m)) == expected
