"""google-cloud-datastore's own methods, one after the other, over gRPC and over HTTP: what its
system tests look at, and the rest of its surface."""

import datetime
import threading
import warnings

import pytest
from google.api_core import exceptions
from google.api_core.retry import Retry
from google.cloud import datastore
from google.cloud.datastore import aggregation, helpers, query_profile
from google.cloud.datastore.helpers import GeoPoint
from google.cloud.datastore.query import And, Or, PropertyFilter
from google.cloud.datastore_v1 import types
from harness.datastore import Raw, client_of, entity, fresh_client
from harness.indexes import Indexes
from harness.patience import PATIENCE_SECONDS

UTC = datetime.timezone.utc
pytestmark = pytest.mark.filterwarnings("ignore:Detected filter using positional")
CAST = [  # name, family, appearances, alive; two have two families
    ("Ada", ["North"], 9, False), ("Bea", ["North", "South"], 26, False),
    ("Cleo", ["North"], 33, True), ("Dora", ["North"], 22, False), ("Ella", ["North"], 30, True),
    ("Fay", ["North"], 31, True), ("Gus", ["North"], 32, True),
    ("Hal", ["East", "North"], 0, False),
]  # fmt: skip


@pytest.fixture(params=["grpc", "http"])
def client(request, server):
    """Of a project of its own, by either transport."""
    return client_of(
        server.host, fresh_client(server.host).project, _use_grpc=request.param == "grpc"
    )


@pytest.fixture
def grpc_client(server):
    return fresh_client(server.host)


@pytest.fixture
def cast(client):
    """Eight persons below a book, each in the key of the one before: one path of ten elements."""
    path, made = ["Book", "Tales"], []
    for name, family, appearances, alive in CAST:
        path += ["Person", name]
        made.append(
            entity(
                client, *path, name=name, family=family, appearances=appearances, alive=alive
            )
        )
    client.put_multi(made)
    return client


def persons(client, **options):
    return client.query(kind="Person", ancestor=client.key("Book", "Tales"), **options)


def names(found):
    return [each["name"] for each in found]


def values(row):
    return {each.alias: each.value for each in row}


# --- keys and entities ---


@pytest.mark.parametrize("which", [None, "post1", 123456789])
def test_put_and_get(client, which):
    key = client.key("Post", parent=client.key("Blog", "PizzaMan"))
    made = client.entity(key if which is None else key.completed_key(which))
    made.update(
        title="é", tags=["pizza", "grill"], when=datetime.datetime(2001, 1, 1, tzinfo=UTC),
        draft=False, words=400, rating=5.0, itself=key.parent,
    )  # fmt: skip
    client.put(made)
    assert not made.key.is_partial and made.key.parent == key.parent
    assert which in (None, made.key.id_or_name)
    read = client.get(made.key)
    assert read == made and read.key == made.key and read["itself"] == key.parent
    client.delete(made.key)
    assert client.get(made.key) is None
    client.delete(made.key)


def test_all_values(client):
    inner = client.entity(client.key("Saved", "here"))
    inner.update(hi="bye", deep=client.entity())
    inner["deep"].update(x=[1, 2], nothing=None)
    made = entity(
        client, "All", 1234, exclude=("blob", "inner"), truth=True, number=3735928559,
        least=-(2**63), double=2.718281828, infinite=float("-inf"), words="foo", blob=b"\x00\xff",
        nothing=None, empty=[], items=[1, "a", None, 2.5], where=GeoPoint(-90.0, 180.0),
        key=client.key("Saved", "here"), inner=inner, inners=[inner, inner],
        old=datetime.datetime(1, 1, 1, tzinfo=UTC),
        far=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    )  # fmt: skip
    client.put(made)
    read = client.get(made.key)
    assert read == made and read["inner"].key == inner.key
    assert read.exclude_from_indexes == {"blob", "inner"}


def test_meanings_stay(client):
    """What ndb and App Engine mark values with, those in a list each for itself."""
    key = client.key("M", 1)
    pb = types.Entity(key=key.to_protobuf(), properties={
        "packed": {"blob_value": b"x", "meaning": 22, "exclude_from_indexes": True},
        "list": {"array_value": {"values": [
            {"string_value": "a", "meaning": 6}, {"string_value": "b"},
        ]}},
    })  # fmt: skip
    client.put(helpers.entity_from_protobuf(pb))
    stored = helpers.entity_to_protobuf(client.get(key))
    assert stored.properties["packed"].meaning == 22
    assert [value.meaning for value in stored.properties["list"].array_value.values] == [6, 0]


def test_keys(client):
    key = client.key("A", 1, "B", "ü", namespace="n")
    client.put(entity(client, "Z", 1, key=key))
    assert client.get(client.key("Z", 1))["key"] == key
    urlsafe = key.to_legacy_urlsafe()
    assert datastore.Key.from_legacy_urlsafe(urlsafe).flat_path == key.flat_path
    made = client.entity(key)
    made["n"] = 1
    client.put(made)
    assert client.get(key)["n"] == 1 and client.get(client.key("A", 1, "B", "ü")) is None
    for parts in ("a/b", "a.b"), ("__x", "x__"), (" ", "\n"), ("😀", "x" * 1500):
        client.put(entity(client, *parts, **{"p.q": 1}))
        assert client.get(client.key(*parts))["p.q"] == 1


def test_many_keys(client):
    made = [entity(client, "K", n=n) for n in range(3)]
    client.put_multi(made)
    deferred, missing = [], []
    gone = client.key("K", "gone")
    keys = [each.key for each in made]
    found = client.get_multi(
        [*keys, gone, keys[0]], missing=missing, deferred=deferred,
        timeout=PATIENCE_SECONDS, retry=Retry(),
    )  # fmt: skip
    assert sorted(each["n"] for each in found) in ([0, 0, 1, 2], [0, 1, 2])
    assert [each.key for each in missing] == [gone] and deferred == []
    assert client.get(keys[1], eventual=True)["n"] == 1
    client.delete_multi([*keys, gone])
    assert client.get_multi(keys) == []
    with pytest.raises(ValueError):
        client.get_multi([client.key("K", 1), datastore.Key("K", 1, project="another")])


def test_what_is_too_much_is_deferred(client):
    """A lookup of 24 MB comes in parts, which the client asks for."""
    made = [
        entity(client, "Big", n + 1, exclude=("x",), x=bytes([n]) * 1_000_000) for n in range(24)
    ]
    for at in range(0, 24, 8):
        client.put_multi(made[at : at + 8])
    keys, deferred = [each.key for each in made], []
    assert {e.key.id: e["x"][0] for e in client.get_multi(keys)} == {n + 1: n for n in range(24)}
    part = client.get_multi(keys, deferred=deferred)
    assert len(part) + len(deferred) == 24 and deferred


def test_ids(client):
    key = client.key("K", parent=client.key("P", 1))
    allocated = client.allocate_ids(key, 10)
    assert len({each.id for each in allocated}) == 10 and allocated[0].parent == key.parent
    client.reserve_ids_multi([client.key("K", 5), client.key("K", 6)])
    client.reserve_ids_sequential(client.key("K", 100), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        client.reserve_ids(client.key("K", 200), 2)
    assert client.get(client.key("K", 5)) is None


def test_vectors(client):
    """As today's clients write them; this one knows them by their meaning."""
    raw, key = Raw(client), client.key("V", 1)

    def put(*numbers):
        value = {"array_value": {"values": [{"double_value": n} for n in numbers]}, "meaning": 31}
        pb = types.Entity(key=key.to_protobuf(), properties={"v": value})
        client._datastore_api.commit(
            request={
                "project_id": client.project, "mode": "NON_TRANSACTIONAL",
                "mutations": [{"upsert": pb}],
            }
        )  # fmt: skip

    put(1.0, 2.0, 3.0)
    (found,) = raw.lookup(key.to_protobuf()).found
    value = found.entity.properties["v"]
    assert value.meaning == 31 and len(value.array_value.values) == 3
    with pytest.raises(exceptions.BadRequest, match="Cannot have a zero length vector"):
        put()


# --- batches and transactions ---


def test_batches(client):
    gone = client.key("K", "gone")
    client.put(entity(client, "K", "gone", n=0))
    with client.batch() as batch:
        assert client.current_batch is batch and client.current_transaction is None
        one, two = entity(client, "K", "one", n=1), entity(client, "K", n=2)
        batch.put(one)
        client.put(two)
        batch.delete(gone)
        assert client.get(one.key) is None and two.key.is_partial
    assert client.current_batch is None and not two.key.is_partial
    assert len(client.get_multi([one.key, two.key])) == 2 and client.get(gone) is None
    with pytest.raises(ZeroDivisionError), client.batch() as batch:
        batch.put(entity(client, "K", "never", n=1))
        raise ZeroDivisionError
    assert client.get(client.key("K", "never")) is None
    batch = client.batch()
    batch.begin()
    batch.put(entity(client, "K", "by hand", n=1))
    batch.commit(retry=Retry(), timeout=PATIENCE_SECONDS)
    assert client.get(client.key("K", "by hand"))["n"] == 1


def test_transactions(client):
    key = client.key("Company", "x")
    with client.transaction() as transaction:
        assert client.current_transaction is transaction and transaction.id
        assert client.get(key) is None
        transaction.put(entity(client, "Company", "x", n=1))
        two = [entity(client, "Company", n=n) for n in (2, 3)]
        transaction.put(two[0])
        client.put_multi(two[1:])
        assert client.get(key) is None  # seen from the commit on
    assert client.get(key)["n"] == 1
    assert len({each.key.id for each in two}) == 2 and not two[0].key.is_partial
    with pytest.raises(ZeroDivisionError), client.transaction():
        client.delete(key)
        raise ZeroDivisionError
    assert client.get(key)["n"] == 1
    transaction = client.transaction()
    transaction.begin()
    transaction.delete(key)
    transaction.rollback()
    assert client.get(key)["n"] == 1
    with client.transaction() as transaction:
        transaction.delete(key)
    assert client.get(key) is None


@pytest.mark.parametrize("first", ["get", "put", "delete", "query", "aggregation", "nothing"])
def test_a_transaction_that_begins_later(client, first):
    """With its first lookup, whose answer says which it is; or else when it is committed."""
    client.put(entity(client, "K", "a", n=1))
    with client.transaction(begin_later=True) as transaction:
        assert transaction.id is None
        if first == "get":
            assert client.get(client.key("K", "a"))["n"] == 1
        elif first == "put":
            transaction.put(entity(client, "K", "b", n=2))
        elif first == "delete":
            transaction.delete(client.key("K", "a"))
        elif first == "query":
            assert [e["n"] for e in client.query(kind="K").fetch()] == [1]
        elif first == "aggregation":
            (row,) = client.aggregation_query(client.query(kind="K")).count("c").fetch()
            assert values(row) == {"c": 1}
        assert (transaction.id is not None) == (first == "get")  # others begin at the commit
    assert (client.get(client.key("K", "b")) is not None) == (first == "put")
    assert (client.get(client.key("K", "a")) is None) == (first == "delete")


def test_transactions_that_only_read(client):
    client.put(entity(client, "K", "a", n=1))
    with client.transaction(read_only=True):
        assert client.get(client.key("K", "a"))["n"] == 1
        assert len(list(client.query(kind="K").fetch())) == 1
        with pytest.raises(RuntimeError):
            client.put(entity(client, "K", "a", n=2))
    (found,) = Raw(client).lookup(client.key("K", "a").to_protobuf()).found
    client.put(entity(client, "K", "a", n=2))
    with client.transaction(read_only=True, read_time=found.update_time):
        assert client.get(client.key("K", "a"))["n"] == 1
        assert [e["n"] for e in client.query(kind="K").fetch()] == [1]
    assert client.get(client.key("K", "a"), read_time=found.update_time)["n"] == 1
    query = client.query(kind="K")
    assert [e["n"] for e in query.fetch(read_time=found.update_time)] == [1]
    (row,) = client.aggregation_query(query).sum("n", "s").fetch(read_time=found.update_time)
    assert values(row) == {"s": 1}


def test_contention(client, server):
    """What somebody else wrote in between wins."""
    client.put(entity(client, "K", 1234, foo="bar"))
    other = client_of(server.host, client.project)
    with pytest.raises(exceptions.Conflict), client.transaction() as transaction:
        read = client.get(client.key("K", 1234))
        writer = threading.Thread(target=other.put, args=(entity(other, "K", 1234, foo="out"),))
        writer.start()
        writer.join()
        read["foo"] = "in"
        transaction.put(read)
    assert client.get(client.key("K", 1234))["foo"] == "out"


# --- queries ---


def test_filters(cast):
    def found(*filters):
        query = persons(cast, filters=filters)
        return sorted(names(query.fetch(limit=20)))

    assert len(found()) == 8
    query = persons(cast)
    query.add_filter("appearances", ">=", 20)
    refused = exceptions.FailedPrecondition, exceptions.BadRequest  # the latter over HTTP
    with pytest.raises(refused, match="ancestor: yes"):
        list(query.fetch())
    assert found(("family", "=", "South")) == ["Bea"]
    assert found(("family", "=", "North"), ("alive", "=", True)) == ["Cleo", "Ella", "Fay", "Gus"]
    both = And([PropertyFilter("family", "=", "North"), PropertyFilter("name", "=", "Ada")])
    either = Or([PropertyFilter("name", "=", "Ada"), PropertyFilter("name", "=", "Hal")])
    query = persons(cast)
    query.add_filter(filter=both)
    assert names(query.fetch()) == ["Ada"]
    query = persons(cast)
    query.add_filter(filter=either)
    assert names(query.fetch()) == ["Ada", "Hal"]
    query.add_filter(filter=PropertyFilter("alive", "=", False))
    query.add_filter(filter=PropertyFilter("family", "IN", ["East", "South"]))
    assert names(query.fetch()) == ["Hal"]


@pytest.fixture
def indexed(cast, server):
    """With the composite indexes that queries below an ancestor need."""
    indexes = Indexes(server.host, cast.project)
    for names in ["appearances"], ["name", "family"], ["family", "appearances"], ["alive"]:
        indexes.create("Person", *names, ancestor=True)
    indexes.close()
    return cast


def test_orders_below_an_ancestor(indexed):
    query = persons(indexed, order=["appearances"])
    everything = ["Hal", "Ada", "Dora", "Bea", "Ella", "Fay", "Gus", "Cleo"]
    assert names(query.fetch()) == everything
    page = query.fetch(limit=3, offset=2)
    assert names(page) == everything[2:5]
    assert names(query.fetch(start_cursor=page.next_page_token)) == everything[5:]
    query.add_filter("appearances", ">=", 20)
    assert names(query.fetch()) == everything[2:]
    query.add_filter("family", "=", "South")
    assert names(query.fetch()) == ["Bea"]
    query = persons(indexed, projection=["name", "family"], order=["name", "family"])
    found = [(each["name"], each["family"]) for each in query.fetch()]
    assert len(found) == 10 and [each for each in found if "Bea" in each] == [
        ("Bea", "North"), ("Bea", "South"),
    ]  # fmt: skip
    query = persons(indexed, distinct_on=["alive"], order=["alive"])
    assert names(query.fetch()) == ["Ada", "Cleo"]


def test_filters_without_an_ancestor(cast):
    def found(*filters, **options):
        query = cast.query(kind="Person", **options)
        for each in filters:
            query.add_filter(filter=PropertyFilter(*each))
        return names(query.fetch())

    assert found(("appearances", ">=", 26)) == ["Bea", "Ella", "Fay", "Gus", "Cleo"]
    assert found(("appearances", "<", 9)) == ["Hal"] == found(("appearances", "<=", 0))
    assert len(found(("appearances", "!=", 9))) == 7
    assert found(("appearances", "NOT_IN", [9, 26, 33, 22, 30, 31])) == ["Hal", "Gus"]
    assert found(order=["-appearances"])[:2] == ["Cleo", "Gus"]
    query = cast.query(kind="Person")
    query.key_filter(cast.key("Book", "Tales", "Person", "Ada"))
    assert names(query.fetch()) == ["Ada"]
    query = cast.query(kind="Person")
    query.key_filter(cast.key("Book", "Tales", "Person", "Ada"), ">")
    assert len(list(query.fetch())) == 7
    assert len(list(cast.query().fetch())) == 8
    with pytest.raises(exceptions.BadRequest, match="kind is required"):
        list(cast.query(filters=[("name", "=", "Ada")]).fetch())


def test_projections(cast):
    query = cast.query(kind="Person", projection=["family"], order=["family", "__key__"])
    found = [(each.key.name, each["family"]) for each in query.fetch()]
    assert found[0] == ("Hal", "East") and found[-1] == ("Bea", "South") and len(found) == 10
    query.distinct_on = ["family"]
    assert [each["family"] for each in query.fetch()] == ["East", "North", "South"]
    query = cast.query(kind="Person", distinct_on=["alive"], order=["alive"])
    assert [each["name"] for each in query.fetch()] == ["Ada", "Cleo"]
    query = cast.query(kind="Person")
    query.keys_only()
    assert [dict(each) for each in query.fetch()] == [{}] * 8


def test_pages(cast):
    query = cast.query(kind="Person", order=["appearances"])
    everything = names(query.fetch())
    pages = query.fetch(limit=3, offset=2)
    (page,) = pages.pages
    assert names(page) == everything[2:5]
    rest = query.fetch(limit=3, start_cursor=pages.next_page_token)
    assert names(rest) == everything[5:8]
    upto = query.fetch(end_cursor=pages.next_page_token)
    assert names(upto) == everything[:5]
    assert names(query.fetch(eventual=True, timeout=PATIENCE_SECONDS, retry=Retry())) == everything


@pytest.fixture(scope="module")
def large(server):
    client = fresh_client(server.host)
    for at in range(0, 2500, 500):
        client.put_multi(
            [
                entity(client, "Large", n + 1, family="North", alive=False, n=n)
                for n in range(at, at + 500)
            ]
        )
    return client.project


@pytest.mark.parametrize(
    "limit, offset, expected",
    [
        (None, None, range(2500)), (None, 900, range(900, 2500)), (200, 1100, range(1100, 1300)),
        (100, 2450, range(2450, 2500)), (200, 3500, []), (301, 0, range(301)), (0, 5, []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("grpc", [True, False])
def test_a_large_query(server, large, grpc, limit, offset, expected):
    client = client_of(server.host, large, _use_grpc=grpc)
    query = client.query(kind="Large", filters=[("family", "=", "North"), ("alive", "=", False)])
    assert [each["n"] for each in query.fetch(limit=limit, offset=offset or 0)] == list(expected)


def test_every_cursor_of_a_large_query(server, large):
    """Of each page and each result; from one on, and from one to another, in several batches."""
    client = client_of(server.host, large)
    query = client.query(kind="Large", order=["-n"])
    found = query.fetch()
    ends, count = [], 0
    for page in found.pages:
        count += len(list(page))
        ends.append((count, found.next_page_token))
    assert count == 2500 and len(ends) > 8
    for at, cursor in ends[:-1:3]:
        (after,) = query.fetch(start_cursor=cursor, limit=1)
        assert after["n"] == 2499 - at
    raw = Raw(client)
    asked = {"kind": [{"name": "Large"}], "order": [{"property": {"name": "n"}}]}
    everything = raw.query(**asked)
    assert len(everything) == 2500
    for start, end in (0, 2499), (700, 1800), (5, 6), (5, 5), (6, 5):
        part = raw.query(
            **asked, start_cursor=everything[start].cursor, end_cursor=everything[end].cursor
        )
        assert [each.entity.key for each in part] == [
            each.entity.key for each in everything[start + 1 : end + 1]
        ]


def test_a_query_may_begin_a_transaction(grpc_client):
    grpc_client.put(entity(grpc_client, "K", 1, n=1))
    request = {
        "project_id": grpc_client.project,
        "read_options": {"new_transaction": {"read_write": {}}},
    }
    query, raw = {"kind": [{"name": "K"}]}, Raw(grpc_client)
    api = grpc_client._datastore_api
    count = {"nested_query": query, "aggregations": [{"alias": "n", "count": {}}]}
    one = api.run_query(request={**request, "query": query}).transaction
    two = api.run_aggregation_query(request={**request, "aggregation_query": count}).transaction
    assert one and two and one != two
    raw.commit({"delete": raw.key("K", 1)}, transaction=one, mode="TRANSACTIONAL")
    with pytest.raises(exceptions.Aborted):
        raw.commit({"upsert": raw.entity("K", 2, n=1)}, transaction=two, mode="TRANSACTIONAL")


def test_explained(cast):
    options = query_profile.ExplainOptions(analyze=True)
    query = cast.query(kind="Person", order=["-appearances"], explain_options=options)
    found = query.fetch(limit=3)
    assert names(found) == ["Cleo", "Gus", "Fay"]
    metrics = found.explain_metrics
    (index,) = metrics.plan_summary.indexes_used
    assert index["properties"].startswith("(appearances DESC")
    assert metrics.execution_stats.results_returned == 3
    assert metrics.execution_stats.read_operations >= 3
    planned = cast.query(kind="Person", explain_options=query_profile.ExplainOptions()).fetch()
    assert list(planned) == [] and planned.explain_metrics.plan_summary.indexes_used
    with pytest.raises(query_profile.QueryExplainError):
        planned.explain_metrics.execution_stats  # noqa: B018


# --- aggregations ---


def test_aggregations(cast):
    def row(made):
        (found,) = made.fetch()
        return values(found)

    def asked(**options):
        return cast.aggregation_query(cast.query(kind="Person", **options))

    assert row(asked().count()) == {"property_1": 8}
    assert row(asked().count("a").sum("appearances", "b").avg("appearances", "c")) == {
        "a": 8, "b": 183, "c": 22.875,
    }  # fmt: skip
    made = asked(filters=[("appearances", ">", 30)])
    made.add_aggregation(aggregation.CountAggregation(alias="n"))
    made.add_aggregations(
        [
            aggregation.SumAggregation("appearances", alias="s"),
            aggregation.AvgAggregation("appearances", alias="m"),
        ]
    )
    assert row(made) == {"n": 3, "s": 96, "m": 32}
    alive = persons(cast, filters=[("alive", "=", True)])
    assert row(cast.aggregation_query(alive).count("n")) == {"n": 4}
    with pytest.raises(exceptions.BadRequest):
        row(asked().count("same").count("same"))
    words = "Aggregations are not supported for the property: __key__"
    with pytest.raises(exceptions.BadRequest, match=words):
        row(asked().sum("__key__"))
    six = asked()
    for at in range(6):
        six.count(f"c{at}")
    with pytest.raises(exceptions.BadRequest, match="is 5. Received: 6"):
        row(six)


def test_aggregations_of_nothing(grpc_client):
    """Of no entities, and of what are no numbers; the client shows what is null as 0.0."""
    grpc_client.put_multi([entity(grpc_client, "K", n + 1, n=n, word="w") for n in range(3)])

    def aggregated(kind, property_name):
        of = {"property": {"name": property_name}}
        answer = grpc_client._datastore_api.run_aggregation_query(
            request={
                "project_id": grpc_client.project,
                "aggregation_query": {
                    "nested_query": {"kind": [{"name": kind}]},
                    "aggregations": [{"alias": "sum", "sum": of}, {"alias": "avg", "avg": of}],
                },
            }
        )
        (row,) = answer.batch.aggregation_results
        return [types.Value.pb(row.aggregate_properties[name]) for name in ("sum", "avg")]

    for kind, name in ("K", "word"), ("K", "absent"), ("None", "n"):
        total, mean = aggregated(kind, name)
        assert total.WhichOneof("value_type") == "integer_value" and total.integer_value == 0
        assert mean.WhichOneof("value_type") == "null_value"
    total, mean = aggregated("K", "n")
    assert (total.integer_value, mean.double_value) == (3, 1.0)


def test_aggregations_in_transactions_and_explained(cast):
    with cast.transaction():
        (row,) = cast.aggregation_query(cast.query(kind="Person")).count("n").fetch()
        assert values(row) == {"n": 8}
    options = query_profile.ExplainOptions(analyze=True)
    made = cast.aggregation_query(cast.query(kind="Person"), explain_options=options).count("n")
    found = made.fetch()
    assert [values(row) for row in found] == [{"n": 8}]
    assert found.explain_metrics.plan_summary.indexes_used
    assert found.explain_metrics.execution_stats.results_returned == 1


def test_counts_up_to(grpc_client):
    grpc_client.put_multi([entity(grpc_client, "K", n + 1, n=n) for n in range(10)])

    def count(up_to, query):
        answer = grpc_client._datastore_api.run_aggregation_query(
            request={
                "project_id": grpc_client.project,
                "aggregation_query": {
                    "nested_query": query,
                    "aggregations": [{"alias": "n", "count": {"up_to": up_to}}],
                },
            }
        )
        (row,) = answer.batch.aggregation_results
        return row.aggregate_properties["n"].integer_value

    assert [count(n, {"kind": [{"name": "K"}]}) for n in (1, 5, 10, 11)] == [1, 5, 10, 10]
    assert count(5, {"kind": [{"name": "K"}], "offset": 7}) == 3
    assert count(5, {"kind": [{"name": "K"}], "limit": 2}) == 2
    assert count(0, {"kind": [{"name": "K"}]}) == 0
    with pytest.raises(exceptions.InvalidArgument, match="greater than or equal to zero"):
        count(-1, {"kind": [{"name": "K"}]})


# --- many at once ---


def test_one_client_of_many_threads(server, grpc_client):
    """Lookups, queries and commits side by side, on one connection."""
    failures = []

    def use(number):
        try:
            for at in range(10):
                grpc_client.put(entity(grpc_client, "T", f"{number}-{at}", n=number, at=at))
                assert grpc_client.get(grpc_client.key("T", f"{number}-{at}"))["at"] == at
                query = grpc_client.query(kind="T", filters=[("n", "=", number)])
                assert len(list(query.fetch())) == at + 1
        except Exception as error:  # for the test to see
            failures.append(error)

    threads = [threading.Thread(target=use, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    (row,) = grpc_client.aggregation_query(grpc_client.query(kind="T")).count("n").fetch()
    assert values(row) == {"n": 60}
