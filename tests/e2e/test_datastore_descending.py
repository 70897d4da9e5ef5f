"""Datastore's queries down a property by Google's client: they read the rows of the index that
goes up, where equal values have their keys in order."""

import pytest
from google.api_core import exceptions
from google.cloud.datastore.query import Or, PropertyFilter
from harness.datastore import Raw, entity, fresh_client

LEVELS = [1, 40, 17, 60, 16]  # how many entities have the level 0, 1, …


@pytest.fixture
def client(server):
    return fresh_client(server.host)


def fill(client):
    """Entities of the kind L, whose ids say nothing of their levels; the ids, downwards."""
    of_each = [level for level, count in enumerate(LEVELS) for _ in range(count)]
    made = [(n * 37 % len(of_each) + 1, level) for n, level in enumerate(of_each)]
    client.put_multi([entity(client, "L", number, level=level) for number, level in made])
    return [number for number, level in sorted(made, key=lambda each: (-each[1], each[0]))]


def ids(client, *filters, **options):
    query = client.query(kind="L", order=["-level"])
    for each in filters:
        query.add_filter(filter=PropertyFilter(*each) if isinstance(each, tuple) else each)
    return [each.key.id for each in query.fetch(**options)]


def pages(client, size, **options):
    """All, each page from the cursor of the one before."""
    query, cursor, found = client.query(kind="L", order=["-level"]), None, []
    while True:
        fetched = query.fetch(limit=size, start_cursor=cursor, **options)
        page = [each.key.id for each in fetched]
        found += page
        if len(page) < size:
            return found
        cursor = fetched.next_page_token


def test_equal_values_keep_the_order_of_keys(client):
    expected = fill(client)
    assert ids(client) == expected
    assert ids(client, offset=20, limit=70) == expected[20:90]
    for size in (1, 16, 17, 25):
        assert pages(client, size) == expected


def test_parts_of_the_index(client):
    expected = fill(client)
    four, three = expected[: LEVELS[4]], expected[LEVELS[4] : LEVELS[4] + LEVELS[3]]
    two_and_one = expected[len(four) + len(three) : -1]
    assert ids(client, ("level", "<", 3), ("level", ">", 0)) == two_and_one
    assert ids(client, ("level", ">=", 3), ("level", "<=", 4)) == four + three
    assert ids(client, ("level", "NOT_IN", [3, 0])) == four + two_and_one
    assert ids(client, ("level", "!=", 3)) == four + two_and_one + expected[-1:]
    either = Or([PropertyFilter("level", ">", 3), PropertyFilter("level", "<", 3)])
    assert ids(client, either) == four + two_and_one + expected[-1:]


def test_the_past(client):
    expected = fill(client)
    raw = Raw(client)
    before = raw.moment({"upsert": raw.entity("Other", 1, n=1)})
    client.delete_multi([client.key("L", number) for number in expected[::3]])
    client.put_multi([entity(client, "L", number, level=0) for number in expected[1::3]])
    client.put_multi([entity(client, "L", 1000 + number, level=number % 6) for number in range(50)])
    assert ids(client) != expected
    assert ids(client, read_time=before) == expected
    assert pages(client, 25, read_time=before) == expected


# What others write while a transaction has read the first five downwards, all of the level 4: a
# child of the first, whose key is between two of theirs, or one behind all keys; and whether it
# would be one of the five.
WRITES = {
    "a higher level": (5, False, True),
    "the same level, before the last": (4, True, True),
    "the same level, behind the last": (4, False, False),
    "a lower level": (3, True, False),
}


def read_five(raw, expected, is_between):
    """A transaction that has, and the path of what is then written."""
    transaction = raw.begin(read_write={})
    query = {"kind": [{"name": "L"}], "limit": 5, "order": [
        {"property": {"name": "level"}, "direction": "DESCENDING"}
    ]}  # fmt: skip
    request = {"project_id": raw.project, "read_options": {"transaction": transaction}}
    results = raw.api.run_query(request={**request, "query": query}).batch.entity_results
    found = [each.entity.key.path[0].id for each in results]
    assert found == expected[:5]
    return transaction, ("L", found[0] if is_between else "x", "L", 1)


@pytest.mark.parametrize(("level", "is_between", "is_seen"), WRITES.values(), ids=WRITES)
def test_phantoms(client, level, is_between, is_seen):
    raw = Raw(client)
    transaction, path = read_five(raw, fill(client), is_between)
    raw.commit({"insert": raw.entity(*path, level=level)})
    count = {"upsert": raw.entity("Count", 1, n=5)}
    if not is_seen:
        raw.commit(count, transaction=transaction, mode="TRANSACTIONAL")
        return
    with pytest.raises(exceptions.Aborted):
        raw.commit(count, transaction=transaction, mode="TRANSACTIONAL")


@pytest.mark.parametrize(("level", "is_between", "is_seen"), WRITES.values(), ids=WRITES)
def test_phantoms_are_kept_out(fresh_server, level, is_between, is_seen):
    client = fresh_client(fresh_server("--datastore-concurrency", "pessimistic").host)
    raw = Raw(client)
    transaction, path = read_five(raw, fill(client), is_between)
    mutation = {"insert": raw.entity(*path, level=level)}
    if is_seen:
        with pytest.raises(exceptions.Aborted, match="Transaction lock timeout."):
            raw.commit(mutation)
    else:
        raw.commit(mutation)
    count = {"upsert": raw.entity("Count", 1, n=5)}
    raw.commit(count, transaction=transaction, mode="TRANSACTIONAL")
