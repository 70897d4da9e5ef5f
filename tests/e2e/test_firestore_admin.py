"""Firestore's administration of the composite indexes of Datastore's databases, also of those with
names."""

import itertools

import pytest
from google.cloud.datastore.query import PropertyFilter
from harness.datastore import client_of, entity
from harness.rest import Rest

PROJECTS = itertools.count()
FIELDS = [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "DESCENDING"}]
INDEX = {"queryScope": "COLLECTION_GROUP", "apiScope": "DATASTORE_MODE_API", "fields": FIELDS}


class Databases:
    """One project's indexes, by REST."""

    def __init__(self, server):
        self.rest, self.project = Rest(server.host), f"firestore-{next(PROJECTS)}"

    def group(self, kind, database="(default)"):
        return f"projects/{self.project}/databases/{database}/collectionGroups/{kind}"

    def create(self, kind, database="(default)", expect=200, **fields):
        path = f"/v1/{self.group(kind, database)}/indexes"
        begun = self.rest.call("POST", path, {**INDEX, **fields}, expect=expect)
        if expect == 200:
            assert self.rest.call("POST", f"/v1/{begun['name']}:wait", "{}")["done"]
        return begun

    def list(self, kind="-", database="(default)", query=""):
        path = f"/v1/{self.group(kind, database)}/indexes{query}"
        return self.rest.call("GET", path).get("indexes", [])

    def wait_for_deletions(self):
        listed = self.rest.call("GET", f"/v1/projects/{self.project}/operations")
        for each in listed["operations"]:
            self.rest.call("POST", f"/v1/{each['name']}:wait", "{}")


@pytest.fixture
def databases(server):
    return Databases(server)


def test_a_life(databases):
    databases.create("K")
    (index,) = databases.list()
    assert index.pop("name").startswith(f"{databases.group('K')}/indexes/")
    assert index == {
        **INDEX, "density": "SPARSE_ALL", "state": "READY",
        "fields": [*FIELDS, {"fieldPath": "__name__", "order": "ASCENDING"}],
    }  # fmt: skip
    databases.create("L", queryScope="COLLECTION_RECURSIVE", fields=FIELDS[:1])
    (other,) = databases.list("L")
    assert other["queryScope"] == "COLLECTION_RECURSIVE"
    assert databases.rest.call("GET", f"/v1/{other['name']}") == other
    assert len(databases.list()) == 2
    assert databases.list(query="?filter=query_scope=COLLECTION_RECURSIVE") == [other]
    in_any = other["name"].replace("/L/", "/-/")
    assert databases.rest.call("DELETE", f"/v1/{in_any}") == {}
    assert [each["queryScope"] for each in databases.list()] == ["COLLECTION_GROUP"]
    databases.rest.call("GET", f"/v1/{other['name']}", expect=404)
    databases.wait_for_deletions()
    ours = databases.rest.call("GET", f"/v1/projects/{databases.project}/indexes")["indexes"]
    assert [each["kind"] for each in ours] == ["K"]


def test_keys_are_names(databases):
    down = {"fieldPath": "__name__", "order": "DESCENDING"}
    databases.create("K", fields=[FIELDS[0], down])
    assert databases.list()[0]["fields"] == [FIELDS[0], down]
    up = {"fieldPath": "__name__", "order": "ASCENDING"}
    databases.create("K", fields=[*FIELDS, up])
    refusal = databases.create("K", expect=409)
    assert refusal["error"]["message"] == "index already exists"


def test_databases_have_their_own(databases, server):
    """What a query of a database with a name needs can be made here, and nowhere else."""
    databases.create("K", "d")
    assert (len(databases.list(database="d")), databases.list()) == (1, [])
    client = client_of(server.host, databases.project, database="d")
    client.put_multi([entity(client, "K", n + 1, a=n % 2, b=n) for n in range(6)])
    query = client.query(kind="K")
    query.add_filter(filter=PropertyFilter("a", "=", 1))
    query.order = ["-b"]
    assert [each.key.id for each in query.fetch()] == [6, 4, 2]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"apiScope": "ANY_API"}, "api_scope must be DATASTORE_MODE_API"),
        ({"queryScope": "COLLECTION"}, "query_scope must be"),
        ({"fields": []}, "1 to 100 properties"),
        ({"fields": FIELDS[:1]}, "single property"),
        ({"fields": [{"fieldPath": "a"}, FIELDS[1]]}, "has no order"),
        ({"fields": [{"fieldPath": "a", "arrayConfig": "CONTAINS"}, FIELDS[1]]}, "has no order"),
        ({"fields": [FIELDS[0], FIELDS[0]]}, "twice"),
        (
            {"fields": [{"fieldPath": "v", "vectorConfig": {"dimension": 3, "flat": {}}}]},
            "neither vectors",
        ),
    ],
)
def test_what_is_no_index(databases, fields, words):
    assert words in databases.create("K", expect=400, **fields)["error"]["message"]
    assert not databases.list()


def test_names(databases):
    rest = databases.rest
    refusal = rest.call("GET", f"/v1/{databases.group('K', 'a%2Fb')}/indexes", expect=400)
    assert "Invalid name" in refusal["error"]["message"]
    databases.create("K")
    (index,) = databases.list()
    for name in (
        index["name"].replace("/K/", "/L/"),
        index["name"] + "1",
        index["name"].replace("(default)", "d"),
        f"{databases.group('K')}/indexes/x",
    ):
        rest.call("GET", f"/v1/{name}", expect=404)
        rest.call("DELETE", f"/v1/{name}", expect=404)
    assert databases.list() == [index]


def test_databases_are_listed(server, databases):
    """Those that have been written to, of one project or of all; a name is no prefix of others."""
    path = f"/v1/projects/{databases.project}/databases"
    assert databases.rest.call("GET", path) == {}
    written = [(databases.project, None), (databases.project, "second")]
    for project, name in [*written, (f"{databases.project}-too", None)]:
        client = client_of(server.host, project, database=name)
        client.put(entity(client, "K", 1))
    parent = f"projects/{databases.project}/databases"
    found = databases.rest.call("GET", path)["databases"]
    assert found == [
        {"name": f"{parent}/{name}", "locationId": "local", "type": "DATASTORE_MODE"}
        for name in ("(default)", "second")
    ]
    everywhere = databases.rest.call("GET", "/v1/projects/-/databases")["databases"]
    names = [each["name"] for each in everywhere]
    assert {*(each["name"] for each in found)} < {*names}
    assert f"projects/{databases.project}-too/databases/(default)" in names
    assert not [name for name in names if "/instances/" in name]
