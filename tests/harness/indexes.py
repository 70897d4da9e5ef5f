"""Composite indexes of Datastore, by Google's administrative client."""

import re

import grpc
from google.api_core import exceptions
from google.cloud import datastore_admin_v1 as admin
from google.cloud.datastore_admin_v1.services.datastore_admin.transports.grpc import (
    DatastoreAdminGrpcTransport,
)
from harness.patience import PATIENCE_SECONDS

State = admin.Index.State


def definition(kind, *properties, ancestor=False):
    """`-a` is a, descending."""
    index = admin.Index(kind=kind, ancestor="ALL_ANCESTORS" if ancestor else "NONE")
    for name in properties:
        direction = "DESCENDING" if name.startswith("-") else "ASCENDING"
        index.properties.append({"name": name.lstrip("-"), "direction": direction})
    return index


def recommended(refusal):
    """The definition that the text of a refused query recommends."""
    lines = str(refusal).split("recommended index is:\n")[1].split("\n")
    kind, ancestor, properties = None, False, []
    for line in lines:
        if found := re.fullmatch(r"- kind: (.+)", line):
            kind = found[1]
        elif line == "  ancestor: yes":
            ancestor = True
        elif found := re.fullmatch(r"  - name: (.+)", line):
            properties.append(found[1])
        elif line == "    direction: desc":
            properties[-1] = f"-{properties[-1]}"
    return definition(kind, *properties, ancestor=ancestor)


def names_of(index):
    """As `definition` takes them."""
    descending = admin.Index.Direction.DESCENDING
    return ["-" * (each.direction == descending) + each.name for each in index.properties]


class Indexes:
    def __init__(self, host, project):
        self.channel = grpc.insecure_channel(host)
        self.client = admin.DatastoreAdminClient(
            transport=DatastoreAdminGrpcTransport(channel=self.channel)
        )
        self.project = project

    def close(self):
        self.channel.close()

    def begin(self, index):
        """The operation, a future."""
        request = {"project_id": self.project, "index": index}
        return self.client.create_index(request, retry=None, timeout=PATIENCE_SECONDS)

    def create(self, kind, *properties, ancestor=False):
        """The index, ready."""
        return self.make(definition(kind, *properties, ancestor=ancestor))

    def make(self, index):
        return self.begin(index).result(timeout=PATIENCE_SECONDS)

    def begin_deletion(self, index_id):
        request = {"project_id": self.project, "index_id": index_id}
        return self.client.delete_index(request, retry=None, timeout=PATIENCE_SECONDS)

    def delete(self, index_id):
        return self.begin_deletion(index_id).result(timeout=PATIENCE_SECONDS)

    def get(self, index_id):
        request = {"project_id": self.project, "index_id": index_id}
        return self.client.get_index(request, retry=None, timeout=PATIENCE_SECONDS)

    def list(self, **fields):
        request = {"project_id": self.project, **fields}
        return list(self.client.list_indexes(request, retry=None, timeout=PATIENCE_SECONDS))

    def for_query(self, run):
        """Runs the query, which needs an index, creates that which is recommended, and runs it
        again: the results, and the index."""
        try:
            run()
        except exceptions.FailedPrecondition as refusal:
            index = self.make(recommended(refusal))
            return run(), index
        raise AssertionError("the query needs no index")
