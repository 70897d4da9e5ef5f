"""Datastore's clients: Google's, and the messages underneath."""

import uuid

import pytest
from google.cloud import datastore, ndb
from google.cloud.datastore_v1 import types


def client_of(host, project, **options):
    """As an application has it: the variable says where the server is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATASTORE_EMULATOR_HOST", host)
        return datastore.Client(project=project, **options)


def ndb_client(host, project, **options):
    """App Engine's way of using it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATASTORE_EMULATOR_HOST", host)
        return ndb.Client(project=project, **options)


def fresh_client(host):
    """Of a project of its own, so that tests do not see each other's entities."""
    return client_of(host, f"p-{uuid.uuid4().hex[:12]}")


def entity(client, *path, exclude=(), **properties):
    made = datastore.Entity(client.key(*path), exclude_from_indexes=exclude)
    made.update(properties)
    return made


class Raw:
    """The messages underneath, of one project."""

    def __init__(self, client):
        self.api, self.project = client._datastore_api, client.project

    def key(self, *path):
        elements = [
            {"kind": kind, ("id" if isinstance(which, int) else "name"): which}
            for kind, which in zip(path[::2], path[1::2], strict=True)
        ]
        return types.Key(partition_id={"project_id": self.project}, path=elements)

    def entity(self, *path, **properties):
        return types.Entity(
            key=self.key(*path),
            properties={name: {"integer_value": value} for name, value in properties.items()},
        )

    def commit(self, *mutations, transaction=None, mode="NON_TRANSACTIONAL"):
        request = {"project_id": self.project, "mode": mode, "mutations": mutations}
        if transaction is not None:
            request["transaction"] = transaction
        return self.api.commit(request=request, retry=None)

    def transact(self, *mutations):
        """In a transaction of its own."""
        request = {
            "project_id": self.project,
            "mode": "TRANSACTIONAL",
            "single_use_transaction": {"read_write": {}},
            "mutations": mutations,
        }
        return self.api.commit(request=request, retry=None)

    def moment(self, *mutations):
        """When a transaction of these mutations, or of none, committed."""
        return self.transact(*mutations).commit_time

    def lookup(self, *keys, **options):
        return self.api.lookup(
            request={"project_id": self.project, "keys": keys, "read_options": options}, retry=None
        )

    def begin(self, **options):
        request = {"project_id": self.project, "transaction_options": options}
        return self.api.begin_transaction(request=request, retry=None).transaction

    def gql(self, text, **bindings):
        query = {"query_string": text, "allow_literals": True, **bindings}
        return self.api.run_query(
            request={"project_id": self.project, "gql_query": query}, retry=None
        )

    def query(self, **query):
        """All results, however many batches they come in."""
        results = []
        while True:
            request = {"project_id": self.project, "query": query}
            batch = self.api.run_query(request=request, retry=None).batch
            results += batch.entity_results
            if batch.more_results != types.QueryResultBatch.MoreResultsType.NOT_FINISHED:
                return results
            query = {**query, "start_cursor": batch.end_cursor}
