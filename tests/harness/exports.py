"""Exports and imports of Datastore, by Google's client; and entities of all types."""

import json
import urllib.error
import urllib.request

import grpc
from google.api_core.future import polling
from google.cloud import datastore_admin_v1 as admin
from google.cloud.datastore_admin_v1.services.datastore_admin.transports.grpc import (
    DatastoreAdminGrpcTransport,
)
from google.cloud.datastore_v1 import types

SOON = polling.DEFAULT_POLLING.with_delay(initial=0.01, maximum=0.2).with_timeout(120)
SUFFIX = ".overall_export_metadata"


class Transfers:
    """Of one server. Files of gs://BUCKET/PATH are in `directory`/BUCKET/PATH."""

    def __init__(self, server, directory):
        self.channel = grpc.insecure_channel(server.host)
        self.client = admin.DatastoreAdminClient(
            transport=DatastoreAdminGrpcTransport(channel=self.channel)
        )
        self.directory = directory

    def close(self):
        self.channel.close()

    def begin_export(self, project, url, kinds=(), namespaces=(), labels=None):
        return self.client.export_entities(
            request={
                "project_id": project,
                "output_url_prefix": url,
                "entity_filter": {"kinds": kinds, "namespace_ids": namespaces},
                "labels": labels or {},
            }
        )

    def begin_import(self, project, url, kinds=(), namespaces=()):
        return self.client.import_entities(
            request={
                "project_id": project,
                "input_url": url,
                "entity_filter": {"kinds": kinds, "namespace_ids": namespaces},
            }
        )

    def export(self, project, url, **options):
        """The URL of what was made."""
        return finish(self.begin_export(project, url, **options)).output_url

    def import_(self, project, url, **options):
        """How many entities were put."""
        operation = self.begin_import(project, url, **options)
        finish(operation)
        return operation.metadata.progress_entities.work_completed

    def path(self, url):
        return self.directory / url.removeprefix("gs://")

    def files(self, url):
        """All files of an export, by their paths in its directory, without its name."""
        place = self.path(url).parent if url.endswith(SUFFIX) else self.path(url)
        return sorted(str(each.relative_to(place)) for each in place.rglob("*") if each.is_file())


def finish(operation):
    """What the operation comes to."""
    return operation.result(polling=SOON)


def post(host, path, body):
    """The answer to a request by REST, as JSON."""
    request = urllib.request.Request(
        f"http://{host}{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{path}: {error.code} {error.read().decode()}") from None


# --- entities ---


def key(project, *path, namespace=""):
    elements = [
        {"kind": kind, ("id" if isinstance(which, int) else "name"): which}
        for kind, which in zip(path[::2], path[1::2], strict=True)
    ]
    partition = {"project_id": project, "namespace_id": namespace}
    return {"partition_id": partition, "path": elements}


def values(project):
    """Properties of all types, as clients may put them on either of Google's emulators."""
    text = {"string_value": "p"}
    inner = {
        "a": {"integer_value": 1},
        "b": {"string_value": "x", "exclude_from_indexes": True},
        "t": {"array_value": {"values": [{"integer_value": 1}]}},
        "e": {"entity_value": {}},
    }
    user = {
        name: {"string_value": value, "exclude_from_indexes": True}
        for name, value in {"email": "a@b", "auth_domain": "g", "user_id": "7"}.items()
    }
    plain = {
        "null": {"null_value": 0},
        "yes": {"boolean_value": True},
        "no": {"boolean_value": False},
        "int": {"integer_value": -7},
        "double": {"double_value": 2.5},
        "infinite": {"double_value": float("-inf")},
        "when": {"timestamp_value": {"seconds": 1_600_000_000, "nanos": 123_456_000}},
        "early": {"timestamp_value": {"seconds": -62_135_596_800}},
        "key": {"key_value": key(project, "A", "x", "B", 7)},
        "elsewhere": {"key_value": key(project, "A", 1, namespace="other")},
        "text": {"string_value": "héllo \U0001f600"},
        "blob": {"blob_value": b"\x00\xff"},
        "geo": {"geo_point_value": {"latitude": 1.5, "longitude": -2.5}},
        "sub": {"entity_value": {"properties": inner}},
        "keyed": {"entity_value": {"key": key(project, "S", 3)}},
    }
    excluded = {
        f"x{name}": {**value, "exclude_from_indexes": True} for name, value in plain.items()
    }
    arrays = {
        "tags": {"array_value": {"values": [text, {"integer_value": 2}, {"null_value": 0}]}},
        "one": {"array_value": {"values": [{"integer_value": 5}]}},
        "empty": {"array_value": {}},
        "subs": {"array_value": {"values": [plain["sub"], {"double_value": 1}]}},
        "hidden": {"array_value": {"values": [{**text, "exclude_from_indexes": True}] * 2}},
        "user": {"entity_value": {"properties": user}, "meaning": 20},
        "long": {"string_value": "long " * 2000, "exclude_from_indexes": True},
        "zipped": {"blob_value": b"zz", "meaning": 22, "exclude_from_indexes": True},
        "said to be text": {**text, "meaning": 15, "exclude_from_indexes": True},
    }
    return {**plain, **excluded, **arrays}


def entities(project):
    """One of all types, one of each, and some of other kinds and namespaces."""
    properties = values(project)
    made = [types.Entity(key=key(project, "Every", 1), properties=properties)]
    made += [
        types.Entity(key=key(project, "One", name), properties={"value": value})
        for name, value in properties.items()
    ]
    made += [
        types.Entity(key=key(project, "One", 1, "Child", i, namespace=name_space))
        for i in (1, 2)
        for name_space in ("", "ns", "N_2.x")
    ]
    return made


def put(api, project, made):
    """By RPC, since the client has no words for some of it."""
    for start in range(0, len(made), 20):
        put_at_once(api, project, made[start : start + 20])


def put_at_once(api, project, made):
    mutations = [{"upsert": each} for each in made]
    request = {"project_id": project, "mode": "NON_TRANSACTIONAL", "mutations": mutations}
    api.commit(request=request, retry=None)


def plain_of(entity):
    """What is the same wherever the entity is stored: the message as a dict, with a set order."""
    message = types.Entity.to_dict(entity)
    message["key"]["partition_id"].pop("project_id")
    return json.dumps(without_projects(message), sort_keys=True, default=repr)


def without_projects(message):
    if isinstance(message, dict):
        return {
            name: without_projects(value)
            for name, value in message.items()
            if name != "project_id" and value is not None
        }
    if isinstance(message, list):
        return [without_projects(each) for each in message]
    return message


def read(api, project, keys):
    """The entities of these keys, as plain_of."""
    found = []
    for start in range(0, len(keys), 50):
        request = {"project_id": project, "keys": keys[start : start + 50]}
        answer = api.lookup(request=request, retry=None)
        assert not answer.deferred
        found += [plain_of(result.entity) for result in answer.found]
    return sorted(found)
