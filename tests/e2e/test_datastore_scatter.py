"""A kind read in parts, as Google's libraries for pipelines do it: __scatter__ gives a sample of
its keys, and those are where it is split."""

import pytest
from google.cloud.datastore.query import PropertyFilter
from harness.datastore import Raw, entity, fresh_client

ENTITIES = 3000
KEYS_A_SPLIT = 32  # that a split is chosen from


@pytest.fixture(scope="module")
def client(server):
    """A kind whose first half is under one root, with names, and whose second half has ids."""
    client = fresh_client(server.host)
    for start in range(0, ENTITIES, 500):
        client.put_multi(
            [
                entity(client, "R", "root", "K", f"n{n}", n=n)
                if n < ENTITIES // 2
                else entity(client, "K", n, n=n)
                for n in range(start, start + 500)
            ]
        )
    return client


def sample(client, limit=None):
    query = client.query(kind="K", order=["__scatter__"])
    query.keys_only()
    return [found.key for found in query.fetch(limit=limit)]


def order_of(key):
    return [(kind, isinstance(which, str), which) for kind, which in key_path(key)]


def key_path(key):
    return zip(key.flat_path[::2], key.flat_path[1::2], strict=True)


def split_points(client, parts):
    """Of the sample, as many as are needed, evenly, in the order of keys."""
    keys = sorted(sample(client, (parts - 1) * KEYS_A_SPLIT), key=order_of)
    if len(keys) < parts - 1:
        return keys
    step = max(1.0, len(keys) / (parts - 1))
    return [keys[round(number * step) - 1] for number in range(1, parts)]


def read_part(client, start, end):
    query = client.query(kind="K")
    if start is not None:
        query.add_filter(filter=PropertyFilter("__key__", ">=", start))
    if end is not None:
        query.add_filter(filter=PropertyFilter("__key__", "<", end))
    return [found["n"] for found in query.fetch()]


@pytest.mark.parametrize("parts", [2, 5, 16])
def test_parts_have_every_entity_once(client, parts):
    points = split_points(client, parts)
    assert len(points) == parts - 1
    bounds = [None, *points, None]
    read = [read_part(client, *both) for both in zip(bounds, bounds[1:], strict=False)]
    assert sorted(n for part in read for n in part) == list(range(ENTITIES))
    assert max(len(part) for part in read) < ENTITIES  # it was worth it


def test_the_sample_is_small_and_in_no_order_of_keys(client):
    keys = sample(client)
    assert ENTITIES / 128 / 2 < len(keys) < ENTITIES / 128 * 2
    assert len({tuple(key.flat_path) for key in keys}) == len(keys)
    assert keys != sorted(keys, key=order_of)
    assert sample(client, 3) == keys[:3]


def test_nobody_has_the_property(client):
    query = client.query(kind="K", order=["__scatter__"])
    (first,) = query.fetch(limit=1)
    assert dict(first) == {"n": first["n"]}
    listed = client.query(kind="__property__", ancestor=client.key("__kind__", "K"))
    assert [found.key.name for found in listed.fetch()] == ["n"]


def test_an_entity_leaves_the_sample_with_its_row(client):
    raw = Raw(client)
    gone = sample(client)[0]
    before = client.get(gone)
    client.delete(gone)
    assert gone not in sample(client)
    client.put(before)
    assert sample(client)[0] == gone
    assert raw.gql("SELECT __key__ FROM K ORDER BY __scatter__ LIMIT 1").batch.entity_results
