"""Composite indexes: queries that need one say which, it is made as they say, and then they are
served. Results are compared with a plain evaluation over all entities."""

import functools
import itertools
import random
import threading
import time

import pytest
from google.api_core import exceptions
from google.cloud import datastore_admin_v1 as admin
from google.cloud.datastore.query import PropertyFilter
from google.longrunning import operations_pb2 as lro
from google.longrunning import operations_pb2_grpc
from harness.datastore import Raw, client_of, entity, fresh_client
from harness.indexes import Indexes, State, definition, names_of
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.server import run_trestle

# --- what a query means ---


class Asked:
    """A query of the kind K. Filters are (property, operator, value), `-a` in the order is a
    descending; `keys_only` and `projection` as in the client."""

    def __init__(self, *filters, order=(), ancestor=None, projection=(), distinct=()):
        self.filters, self.order, self.ancestor = filters, list(order), ancestor
        self.projection, self.distinct = list(projection), list(distinct)

    def run(self, client):
        ancestor = client.key(*self.ancestor) if self.ancestor else None
        query = client.query(kind="K", ancestor=ancestor)
        for each in self.filters:
            query.add_filter(filter=PropertyFilter(*each))
        query.order, query.projection, query.distinct_on = (
            self.order, self.projection, self.distinct,
        )  # fmt: skip
        found = list(query.fetch())
        if self.projection:
            return [tuple(each[name] for name in self.projection) for each in found]
        return [each.key.flat_path for each in found]

    # --- plainly ---

    def ordered(self):
        """The properties that results are ordered by, with their directions."""
        named = [(each.lstrip("-"), each.startswith("-")) for each in self.order]
        ranges = {name for name, op, _ in self.filters if op not in ("=", "IN")}
        ranges |= set(self.projection)
        known = {name for name, _ in named}
        equal = {name for name, op, _ in self.filters if op == "="}
        return named + [(name, False) for name in sorted(ranges - known - equal - {"__key__"})]

    def positions(self, each):
        """Of an entity: the values of the ordered properties, in all combinations that fit."""
        if self.ancestor and each.key.flat_path[: len(self.ancestor)] != self.ancestor:
            return []
        for name, op, value in self.filters:
            if op == "=" and value not in values_of(each, name):
                return []
            if op == "IN" and not set(value) & set(values_of(each, name)):
                return []
        names = [name for name, _ in self.ordered()]
        choices = [[v for v in values_of(each, name) if self.fits(name, v)] for name in names]
        return itertools.product(*choices)

    def fits(self, name, value):
        compare = {
            "<": value.__lt__, "<=": value.__le__, ">": value.__gt__, ">=": value.__ge__,
            "!=": value.__ne__,
        }  # fmt: skip
        return all(
            compare[op](wanted)
            for other, op, wanted in self.filters
            if other == name and op in compare
        )

    def expected(self, entities):
        flips = [is_down for _, is_down in self.ordered()]

        def compare(a, b):
            for x, y, is_down in zip(a[0], b[0], [*flips, False], strict=True):
                if x != y:
                    return -1 if (x < y) != is_down else 1
            return 0

        found = [
            ((*position, path_of(each)), each)
            for each in entities
            for position in self.positions(each)
        ]
        found.sort(key=functools.cmp_to_key(compare))
        if self.projection:
            return self.projected(found)
        return list(dict.fromkeys(each.key.flat_path for _, each in found))

    def projected(self, found):
        names = [name for name, _ in self.ordered()]
        places = [names.index(name) for name in self.projection]
        rows = [tuple(position[place] for place in places) for position, _ in found]
        return list(dict.fromkeys(rows)) if self.distinct else rows


def values_of(each, name):
    """As they are indexed."""
    if name == "__key__":
        return [path_of(each)]
    outer, _, inner = name.partition(".")
    value = each.get(outer)
    if inner:
        value = value.get(inner) if value is not None else None
        return [] if value is None else [value]
    if isinstance(value, list):
        return list(dict.fromkeys(value))
    return [] if name not in each else [value]


def path_of(each):
    return tuple(
        (kind, isinstance(which, str), which)
        for kind, which in zip(each.key.flat_path[::2], each.key.flat_path[1::2], strict=True)
    )


ROOT = ("P", "root")
BELOW = (*ROOT, "K", 3)
SHAPES = {
    "equality, order": Asked(("a", "=", 1), order=["b"]),
    "equality, descending": Asked(("a", "=", 1), order=["-b"]),
    "two equalities, order": Asked(("a", "=", 1), ("c", "=", "x"), order=["-b"]),
    "equality, range": Asked(("a", "=", 2), ("b", ">=", 7)),
    "range between": Asked(("a", "=", 2), ("b", ">", 3), ("b", "<=", 15)),
    "range, descending": Asked(("c", "=", "y"), ("b", "<", 12), order=["-b"]),
    "two orders": Asked(order=["a", "b"]),
    "two directions": Asked(order=["a", "-b"]),
    "three orders": Asked(order=["-c", "a", "b"]),
    "two ranges": Asked(("a", ">", 0), ("b", "<", 15)),
    "range, other order": Asked(("b", ">", 3), order=["b", "-a"]),
    "ancestor, order": Asked(order=["b"], ancestor=ROOT),
    "ancestor, range": Asked(("b", ">", 5), ancestor=ROOT),
    "ancestor, equality, order": Asked(("a", "=", 0), order=["-b"], ancestor=ROOT),
    "deep ancestor": Asked(order=["-b"], ancestor=BELOW),
    "array, order": Asked(("tags", "=", 1), order=["b"]),
    "order of an array": Asked(("a", "=", 1), order=["tags"]),
    "order of an array, descending": Asked(("a", "=", 1), order=["-tags"]),
    "array twice": Asked(("tags", "=", 1), ("tags", "=", 7), order=["b"]),
    "within": Asked(("s.u", "=", 1), order=["b"]),
    "in, order": Asked(("a", "IN", [0, 2]), order=["b"]),
    "not equal, equality": Asked(("c", "=", "x"), ("a", "!=", 1)),
    "projection": Asked(projection=["a", "b"], order=["a", "b"]),
    "projection, equality": Asked(("c", "=", "x"), projection=["b"]),
    "projection of an array": Asked(projection=["tags", "b"], order=["tags", "b"]),
    "distinct": Asked(projection=["a", "c"], distinct=["a", "c"], order=["a", "c"]),
    "keys, descending": Asked(order=["-__key__"]),
    "equality, keys descending": Asked(("a", "=", 1), order=["-__key__"]),
    "order, keys descending": Asked(order=["b", "-__key__"]),
}


def some_entities(client):
    """Of the kind K, at three depths; some lack a property."""
    made = []
    for n in range(40):
        path = [(*ROOT, "K", n), ("K", n), (*BELOW, "K", n)][n % 3] if n else ("K", 999)
        each = entity(client, *path, a=n % 3, b=n * 7 % 20, c="xyz"[n % 2], tags=[n % 4, 7, n % 2])
        if n % 5 == 4:
            del each["b"]
        inner = entity(client, "S")
        inner["u"] = n % 2
        each["s"] = inner
        made.append(each)
    return made


@pytest.fixture
def client(server):
    return fresh_client(server.host)


@pytest.fixture
def indexes(client, server):
    opened = Indexes(server.host, client.project)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def filled(server):
    """A project with entities, and nothing written to it later; and the entities."""
    client = fresh_client(server.host)
    entities = some_entities(client)
    client.put_multi(entities)
    return client, entities


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_recommended_serves(filled, server, shape):
    client, entities = filled
    asked = SHAPES[shape]
    opened = Indexes(server.host, client.project)
    for each in opened.list():
        opened.delete(each.index_id)
    found, index = opened.for_query(lambda: asked.run(client))
    assert found == asked.expected(entities)
    assert found, "a query that finds nothing shows nothing"
    if not asked.filters or asked.filters[0][1] != "!=":
        assert [each.index_id for each in opened.list()] == [index.index_id]
    opened.close()


# --- indexes by themselves ---


def test_a_life(client, indexes, server):
    client.put_multi(some_entities(client))
    operation = indexes.begin(definition("K", "a", "-b"))
    index = operation.result(timeout=PATIENCE_SECONDS)
    assert (index.kind, names_of(index), index.state) == ("K", ["a", "-b"], State.READY)
    assert index.project_id == client.project
    metadata = operation.metadata
    assert metadata.index_id == index.index_id
    assert metadata.progress_entities.work_completed == 40
    assert metadata.common.state == admin.CommonMetadata.State.SUCCESSFUL
    assert metadata.common.operation_type == admin.OperationType.CREATE_INDEX
    assert metadata.common.start_time <= metadata.common.end_time
    assert operation.operation.name.startswith(f"projects/{client.project}/operations/")
    assert indexes.get(index.index_id) == index
    rest = Rest(server.host)
    shown = rest.call("GET", f"/v1/projects/{client.project}/indexes/{index.index_id}")
    assert shown == {
        "projectId": client.project, "indexId": index.index_id, "kind": "K", "ancestor": "NONE",
        "properties": [
            {"name": "a", "direction": "ASCENDING"}, {"name": "b", "direction": "DESCENDING"},
        ],
        "state": "READY",
    }  # fmt: skip
    assert rest.call("GET", f"/v1/projects/{client.project}/indexes") == {"indexes": [shown]}
    deletion = indexes.begin_deletion(index.index_id)
    assert deletion.result(timeout=PATIENCE_SECONDS).state == State.DELETING
    assert deletion.metadata.common.operation_type == admin.OperationType.DELETE_INDEX
    assert not indexes.list()
    for call in (indexes.get, indexes.begin_deletion):
        with pytest.raises(exceptions.NotFound):
            call(index.index_id)


def test_by_rest(client, server):
    rest = Rest(server.host)
    path = f"/v1/projects/{client.project}/indexes"
    body = {
        "kind": "K", "ancestor": "ALL_ANCESTORS",
        "properties": [{"name": "a", "direction": "ASCENDING"}],
    }  # fmt: skip
    operation = rest.call("POST", path, body)
    name = operation["name"]
    assert operation["metadata"]["common"]["operationType"] == "CREATE_INDEX"
    done = rest.call("POST", f"/v1/{name}:wait", "{}")
    assert (done["done"], done["response"]["state"]) == (True, "READY")
    listed = rest.call("GET", f"/v1/projects/{client.project}/operations")
    assert [each["name"] for each in listed["operations"]] == [name]
    index_id = done["response"]["indexId"]
    deletion = rest.call("DELETE", f"{path}/{index_id}")
    rest.call("POST", f"/v1/{deletion['name']}:wait", "{}")
    assert rest.call("GET", path) == {}
    condition = "metadata.common.operation_type=DELETE_INDEX"
    listed = rest.call("GET", f"/v1/projects/{client.project}/operations?filter={condition}")
    assert [each["name"] for each in listed["operations"]] == [deletion["name"]]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (definition("", "a", "b"), "kind"),
        (definition("K"), "1 to 100 properties"),
        (definition("K", *(f"p{n}" for n in range(101))), "1 to 100 properties"),
        (definition("K", "a"), "single property cannot be created"),
        (definition("K", "-a"), "single property cannot be created"),
        (definition("K", "a", "__key__"), "single property cannot be created"),
        (definition("K", "__key__"), "single property cannot be created"),
        (definition("K", "a", "b", "-a"), "twice"),
        (definition("K", "a", "__key__", "b"), "last property"),
        (definition("K", "", "b"), "property.name"),
        (definition("K", "a", "b" * 1501), "longer than 1500 bytes"),
        (admin.Index(kind="K", properties=[{"name": "a"}] * 2), "ancestor mode"),
        (admin.Index(kind="K", ancestor="NONE", properties=[{"name": "a"}] * 2), "direction"),
        (admin.Index(kind="K", project_id="q", ancestor="NONE"), "project"),
    ],
)
def test_what_is_no_index(indexes, index, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        indexes.begin(index)
    assert not indexes.list()


def test_what_is_there_already(indexes):
    indexes.create("K", "a", "b")
    with pytest.raises(exceptions.AlreadyExists, match="index already exists"):
        indexes.create("K", "a", "b")
    with pytest.raises(exceptions.AlreadyExists, match="index already exists"):
        indexes.create("K", "a", "b", "__key__")
    for other in (("K", "b", "a"), ("K", "a", "-b"), ("L", "a", "b"), ("K", "a", "b", "-__key__")):
        indexes.create(*other)
    indexes.create("K", "a", "b", ancestor=True)
    assert len(indexes.list()) == 6


def test_lists(indexes):
    made = [indexes.create(kind, "a", "b") for kind in "KLMN"]
    assert indexes.list() == made
    pages = indexes.client.list_indexes({"project_id": indexes.project, "page_size": 3}).pages
    assert [len(page.indexes) for page in pages] == [3, 1]
    assert indexes.list(filter='kind = "L"') == made[1:2]
    assert indexes.list(filter="state = READY AND kind:N") == made[3:]
    assert not indexes.list(filter="state = ERROR")
    for fields in ({"filter": "x = 1"}, {"page_size": -1}, {"page_token": "x"}):
        with pytest.raises(exceptions.InvalidArgument):
            indexes.list(**fields)


def test_there_are_200_at_most(fresh_server):
    indexes = Indexes(fresh_server().host, "p")
    begun = [indexes.begin(definition("K", "a", f"p{n}")) for n in range(200)]
    with pytest.raises(exceptions.ResourceExhausted, match="200 composite indexes"):
        indexes.create("K", "a", "b")
    made = [each.result(timeout=PATIENCE_SECONDS) for each in begun]
    assert len(indexes.list()) == 200
    indexes.delete(made[0].index_id)
    indexes.create("K", "a", "b")
    indexes.close()


def test_explain_names_it(client, indexes):
    client.put(entity(client, "K", 1, a=1, b=2))
    indexes.create("K", "a", "-b")
    query = client.query(kind="K")
    query.add_filter(filter=PropertyFilter("a", "=", 1))
    query.order = ["-b"]
    request = {
        "project_id": client.project,
        "query": {
            "kind": [{"name": "K"}],
            "filter": {"property_filter": {
                "property": {"name": "a"}, "op": "EQUAL", "value": {"integer_value": 1},
            }},
            "order": [{"property": {"name": "b"}, "direction": "DESCENDING"}],
        },
        "explain_options": {"analyze": True},
    }  # fmt: skip
    metrics = client._datastore_api.run_query(request=request).explain_metrics
    used = [dict(each) for each in metrics.plan_summary.indexes_used]
    assert [each["properties"] for each in used] == ["(a ASC, b DESC, __name__ ASC)"]
    assert metrics.execution_stats.results_returned == 1


# --- while others write ---


def rows_of(client, kind="K"):
    return list(client.query(kind=kind).fetch())


def put_many(client, count, **properties):
    """Of the kind K, 500 at a time."""
    for first in range(0, count, 500):
        client.put_multi(
            [
                entity(client, "K", n + 1, a=n % 3, b=n, **properties)
                for n in range(first, min(first + 500, count))
            ]
        )


def assert_indexed(client):
    """The indexes on (a, b) and (a, -b) say what the entities say."""
    entities = rows_of(client)
    for value, order in itertools.product(range(3), ("b", "-b")):
        asked = Asked(("a", "=", value), order=[order])
        assert asked.run(client) == asked.expected(entities)


class Writer(threading.Thread):
    """Puts and deletes what random numbers say, until told to stop."""

    def __init__(self, client, seed):
        super().__init__()
        self.client, self.random, self.done, self.writes = client, random.Random(seed), False, 0

    def run(self):
        while not self.done:
            key = self.client.key("K", self.random.randrange(1, 3000))
            if self.random.random() < 0.3:
                self.client.delete(key)
            else:
                made = entity(self.client, *key.flat_path, a=self.random.randrange(3))
                made["b"] = self.random.randrange(1000)
                self.client.put(made)
            self.writes += 1


def test_writes_meanwhile(fresh_server):
    server = fresh_server()
    client = client_of(server.host, "p")
    put_many(client, 2000)
    indexes = Indexes(server.host, "p")
    writers = [Writer(client_of(server.host, "p"), seed) for seed in range(3)]
    for each in writers:
        each.start()
    before = sum(each.writes for each in writers)
    made = [indexes.begin(definition("K", "a", name)) for name in ("b", "-b")]
    for each in made:
        each.result(timeout=PATIENCE_SECONDS)
    assert sum(each.writes for each in writers) > before
    for each in writers:
        each.done = True
        each.join()
    assert_indexed(client)
    indexes.close()
    server.stop()
    assert_whole(server)


def assert_whole(server):
    examined = run_trestle("doctor", server.data)
    assert examined.returncode == 0, examined.stdout + examined.stderr


def progress(stub, name):
    operation = stub.GetOperation(lro.GetOperationRequest(name=name))
    metadata = admin.IndexOperationMetadata()
    operation.metadata.Unpack(admin.IndexOperationMetadata.pb(metadata))
    return operation.done, metadata.progress_entities.work_completed


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_kill_in_the_middle(fresh_server, rounds):
    """What was made before the kill is not made again."""
    count = 6000
    server = fresh_server()
    put_many(client_of(server.host, "p"), count)
    indexes = Indexes(server.host, "p")
    name = indexes.begin(definition("K", "a", "b")).operation.name
    before = 0
    for _ in range(rounds):
        stub = operations_pb2_grpc.OperationsStub(indexes.channel)
        done = False
        while not done and (now := progress(stub, name))[1] <= before:
            done = now[0]
            time.sleep(0.01)
        before = now[1]
        server.kill()
        indexes.close()
        server.start()
        indexes = Indexes(server.host, "p")
    stub = operations_pb2_grpc.OperationsStub(indexes.channel)
    while not progress(stub, name)[0]:
        stub.WaitOperation(lro.WaitOperationRequest(name=name))
    assert progress(stub, name) == (True, count)
    assert [each.state for each in indexes.list()] == [State.READY]
    client = client_of(server.host, "p")
    asked = Asked(("a", "=", 1), order=["b"])
    assert asked.run(client) == asked.expected(rows_of(client))
    indexes.close()
    server.stop()
    assert_whole(server)


def test_a_stop_in_the_middle(fresh_server):
    server = fresh_server()
    put_many(client_of(server.host, "p"), 3000)
    indexes = Indexes(server.host, "p")
    indexes.begin(definition("K", "a", "b"))
    server.stop()
    indexes.close()
    assert_whole(server)
    server.start()
    indexes = Indexes(server.host, "p")
    while indexes.list()[0].state == State.CREATING:
        time.sleep(0.01)
    assert indexes.list()[0].state == State.READY
    indexes.delete(indexes.list()[0].index_id)
    indexes.close()
    server.stop()
    assert_whole(server)


def test_deletion_goes_on_after_a_kill(fresh_server):
    server = fresh_server()
    put_many(client_of(server.host, "p"), 1000)
    indexes = Indexes(server.host, "p")
    index = indexes.create("K", "a", "b")
    indexes.begin_deletion(index.index_id)
    server.kill()
    indexes.close()
    server.start()
    indexes = Indexes(server.host, "p")
    while indexes.list():
        time.sleep(0.01)
    indexes.close()
    server.stop()
    assert_whole(server)


# --- limits ---


def test_an_entity_has_20000_entries_at_most(client, indexes):
    """150 values in each of two arrays: 22,500 combinations."""
    many = entity(client, "K", 1, p=list(range(150)), q=list(range(150)))
    client.put(many)
    operation = indexes.begin(definition("K", "p", "q"))
    with pytest.raises(exceptions.InvalidArgument, match="too many index entries for entity"):
        operation.result(timeout=PATIENCE_SECONDS)
    assert operation.metadata.common.state == admin.CommonMetadata.State.FAILED
    (index,) = indexes.list()
    assert index.state == State.ERROR
    client.put(many)  # the index is not kept
    indexes.delete(index.index_id)
    client.put(entity(client, "K", 1, p=[1], q=[2]))
    indexes.create("K", "p", "q")
    with pytest.raises(exceptions.BadRequest, match="too many index entries for entity"):
        client.put(many)
    client.put(entity(client, "K", 2, p=list(range(100)), q=list(range(150))))


def test_their_rows_have_two_mebibytes_at_most(client, indexes):
    indexes.create("K", "p", "q")
    values = [f"{n:04}" + "x" * 1400 for n in range(40)]
    client.put(entity(client, "K", 1, p=values, q=values[:18]))
    with pytest.raises(exceptions.BadRequest, match="too many index entries for entity"):
        client.put(entity(client, "K", 2, p=values, q=values))


# --- transactions ---


def ordered_query(client, transaction):
    """Of the kind K: a is 1, by b."""
    equal = {"property": {"name": "a"}, "op": "EQUAL", "value": {"integer_value": 1}}
    query = {
        "kind": [{"name": "K"}],
        "filter": {"property_filter": equal},
        "order": [{"property": {"name": "b"}}],
    }
    request = {
        "project_id": client.project,
        "query": query,
        "read_options": {"transaction": transaction},
    }
    return client._datastore_api.run_query(request=request, retry=None).batch.entity_results


def test_a_deleted_index_is_missed(client, indexes):
    """What a transaction has read by it nobody has kept since: it has to be begun anew."""
    index = indexes.create("K", "a", "b")
    raw = Raw(client)
    client.put(entity(client, "K", 1, a=1, b=1))
    for is_deleted in (False, True):
        transaction = raw.begin()
        assert len(ordered_query(client, transaction)) == 1
        if is_deleted:
            indexes.delete(index.index_id)
            client.put(entity(client, "K", 2, a=1, b=2))
            with pytest.raises(exceptions.Aborted, match="too much contention"):
                commit_another(raw, transaction)
        else:
            commit_another(raw, transaction)


def commit_another(raw, transaction):
    upsert = {"upsert": raw.entity("L", 1, n=1)}
    return raw.commit(upsert, transaction=transaction, mode="TRANSACTIONAL")


def test_what_comes_to_be_in_an_index_is_noticed(client, indexes):
    """A phantom: an entity that a query of the transaction, by a composite index, would find."""
    indexes.create("K", "a", "b")
    raw = Raw(client)
    for value, fits in ((2, False), (1, True)):
        transaction = raw.begin()
        ordered_query(client, transaction)
        client.put(entity(client, "K", 7, a=value, b=7))
        if fits:
            with pytest.raises(exceptions.Aborted, match="too much contention"):
                commit_another(raw, transaction)
        else:
            commit_another(raw, transaction)


def test_the_past_by_an_index(client, indexes):
    """As of a time before the index was ready it is of no use; later ones see what was."""
    client.put(entity(client, "K", 1, a=1, b=1))
    before = Raw(client).moment()
    indexes.create("K", "a", "b")
    after = Raw(client).moment()
    client.put(entity(client, "K", 1, a=2, b=1))
    client.put(entity(client, "K", 3, a=1, b=0))
    asked = client.query(kind="K")
    asked.add_filter(filter=PropertyFilter("a", "=", 1))
    asked.order = ["b"]
    assert [each.key.id for each in asked.fetch()] == [3]
    assert [each.key.id for each in asked.fetch(read_time=after)] == [1]
    with pytest.raises(exceptions.FailedPrecondition, match="no matching index found"):
        list(asked.fetch(read_time=before))
