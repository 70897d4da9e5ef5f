"""find_nearest by the messages of Google's client, whose queries have no method for it yet."""

import math
import random

import pytest
from google.api_core import exceptions
from google.cloud.datastore_v1 import types
from harness.datastore import Raw, fresh_client

VECTOR = 31  # the meaning of an array that is one
MEASURE = types.FindNearest.DistanceMeasure


@pytest.fixture
def raw(server):
    return Raw(fresh_client(server.host))


def vector(*numbers):
    return types.Value(
        meaning=VECTOR, array_value={"values": [{"double_value": number} for number in numbers]}
    )


def put(raw, number, *numbers, **properties):
    made = {name: types.Value(integer_value=value) for name, value in properties.items()}
    made["v"] = vector(*numbers)
    raw.commit({"upsert": types.Entity(key=raw.key("K", number), properties=made)})


def find(raw, *numbers, measure="EUCLIDEAN", limit=10, mask=None, query=None, **options):
    nearest = {
        "vector_property": {"name": "v"},
        "query_vector": vector(*numbers),
        "distance_measure": MEASURE[measure],
        "limit": limit,
        **options,
    }
    request = {
        "project_id": raw.project,
        "query": {"kind": [{"name": "K"}], "find_nearest": nearest, **(query or {})},
    }
    if mask is not None:
        request["property_mask"] = {"paths": mask}
    return raw.api.run_query(request=request, retry=None).batch


def ids(batch):
    return [result.entity.key.path[-1].id for result in batch.entity_results]


def test_the_nearest_by_each_measure(raw):
    for number, at in enumerate([(3, 4), (1, 0), (-2, 0), (0, 1)]):
        put(raw, number + 1, *at)
    assert ids(find(raw, 0, 0)) == [2, 4, 3, 1]
    assert ids(find(raw, 2, 0, measure="COSINE")) == [2, 1, 4, 3]
    assert ids(find(raw, 1, 1, measure="DOT_PRODUCT")) == [1, 2, 4, 3]
    assert ids(find(raw, 0, 0, limit=2)) == [2, 4]
    assert ids(find(raw, 0, 0, distance_threshold=1.5)) == [2, 4]
    assert ids(find(raw, 1, 1, measure="DOT_PRODUCT", distance_threshold=1.0)) == [1, 2, 4]


def test_the_distance_and_what_is_shown(raw):
    put(raw, 1, 3, 4, n=7)
    (result,) = find(raw, 0, 0, distance_result_property="far").entity_results
    assert result.entity.properties["far"].double_value == 5
    assert result.entity.properties["n"].integer_value == 7
    assert result.entity.properties["v"] == vector(3, 4)
    assert result.version > 0
    (result,) = find(raw, 0, 0, mask=["n"]).entity_results
    assert list(result.entity.properties) == ["n"]
    (result,) = find(
        raw, 0, 0, query={"projection": [{"property": {"name": "__key__"}}]}
    ).entity_results
    assert not result.entity.properties


def test_filters_and_moments(raw):
    for number in range(1, 9):
        put(raw, number, number, 0, odd=number % 2)
    odd = {
        "property_filter": {
            "property": {"name": "odd"},
            "op": "EQUAL",
            "value": {"integer_value": 1},
        }
    }
    assert ids(find(raw, 0, 0, query={"filter": odd}, limit=3)) == [1, 3, 5]
    transaction = raw.begin()
    request = {
        "project_id": raw.project,
        "read_options": {"transaction": transaction},
        "query": {
            "kind": [{"name": "K"}],
            "find_nearest": {
                "vector_property": {"name": "v"},
                "query_vector": vector(0, 0),
                "distance_measure": MEASURE.EUCLIDEAN,
                "limit": 1,
            },
        },
    }
    raw.commit({"delete": raw.key("K", 1)})
    assert ids(raw.api.run_query(request=request, retry=None).batch) == [1]
    assert ids(find(raw, 0, 0, limit=1)) == [2]


def test_many_random_vectors(raw):
    """Against what sorting all of them says; there are more than a batch of a query has."""
    chosen = random.Random(3)
    points = {
        n: tuple(chosen.gauss(0, 1) for _ in range(8)) for n in range(1, 701)
    }
    for start in range(1, 701, 100):
        raw.commit(
            *(
                {"upsert": {"key": raw.key("K", n), "properties": {"v": vector(*points[n])}}}
                for n in range(start, start + 100)
            )
        )
    asked = tuple(chosen.gauss(0, 1) for _ in range(8))

    def length(point):
        return math.sqrt(sum(x * x for x in point))

    def product(point):
        return sum(x * y for x, y in zip(point, asked, strict=True))

    ranks = {
        "EUCLIDEAN": lambda n: math.dist(points[n], asked),
        "COSINE": lambda n: 1 - product(points[n]) / length(points[n]) / length(asked),
        "DOT_PRODUCT": lambda n: -product(points[n]),
    }
    for measure, rank in ranks.items():
        assert ids(find(raw, *asked, measure=measure, limit=100)) == sorted(points, key=rank)[:100]


def test_what_cannot_be_asked(raw):
    put(raw, 1, 0, 0)
    with pytest.raises(exceptions.InvalidArgument, match="no more than 100"):
        find(raw, 0, 0, limit=101)
    with pytest.raises(exceptions.InvalidArgument, match="2048 dimensions"):
        find(raw, *([0.5] * 2049))
    with pytest.raises(exceptions.InvalidArgument, match="must be of type vector"):
        find(raw, 0, 0, query_vector=types.Value(array_value={"values": []}))
    with pytest.raises(exceptions.InvalidArgument, match="order"):
        find(raw, 0, 0, query={"order": [{"property": {"name": "n"}}]})
