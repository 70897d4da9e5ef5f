"""All that clients see of a server's data, as plain JSON: what a fixture of tests/data/formats is
compared by. Rows have every cell with its timestamp; of resources there is what does not change
with the time, nor with how much an answer tells beside it."""

import json

from harness.rest import Rest


class Asker:
    """REST of one server."""

    def __init__(self, host):
        self.rest = Rest(host)

    def ask(self, verb, path, body=None):
        status, text = self.rest.ask(verb, path, body)
        assert status == 200, f"{verb} {path}: {status} {text[:500]}"
        return json.loads(text)

    def all_of(self, path, member):
        return self.ask("GET", path).get(member, [])

    def rows(self, path):
        """{key: [[family, qualifier, timestamp, value]]}, all bytes in base64."""
        rows, cells = {}, []
        key = family = qualifier = timestamp = None
        value = ""
        for message in self.ask("POST", f"{path}:readRows", {}):
            for chunk in message.get("chunks", []):
                key = chunk.get("rowKey", key)
                if "familyName" in chunk or "qualifier" in chunk:
                    family = chunk.get("familyName", family)
                    qualifier = chunk.get("qualifier", "")
                timestamp = chunk.get("timestampMicros", "0")
                assert not chunk.get("valueSize"), "rows of the fixture are small"
                value = chunk.get("value", "")
                cells.append([family, qualifier, timestamp, value])
                if chunk.get("commitRow"):
                    rows[key], cells = cells, []
        return rows


def parts_of(resource, *names):
    return {name: resource[name] for name in names if name in resource}


def list_bigtable(asker, instance):
    found = {"tables": {}, "resources": {}}
    for each in asker.all_of(f"/v2/{instance}/tables", "tables"):
        name = each["name"]
        table = asker.ask("GET", f"/v2/{name}?view=SCHEMA_VIEW")
        found["tables"][name] = {
            "families": table.get("columnFamilies", {}),
            "rows": asker.rows(f"/v2/{name}"),
        }
        policy = asker.ask("POST", f"/v2/{name}:getIamPolicy", {})
        found["resources"][f"{name} policy"] = policy.get("bindings", [])
        for view in asker.all_of(f"/v2/{name}/authorizedViews", "authorizedViews"):
            subset = asker.ask("GET", f"/v2/{view['name']}?view=FULL")
            found["resources"][view["name"]] = parts_of(subset, "subsetView", "deletionProtection")
            found["tables"][view["name"]] = {"rows": asker.rows(f"/v2/{view['name']}")}
    for kind, parts in RESOURCES.items():
        for each in asker.all_of(f"/v2/{instance}/{kind}", kind):
            found["resources"][each["name"]] = parts_of(each, *parts)
    return found


RESOURCES = {
    "appProfiles": ("description", "singleClusterRouting", "multiClusterRoutingUseAny"),
    "clusters": ("location", "defaultStorageType"),
    "logicalViews": ("query",),
    "materializedViews": ("query",),
}


def list_backups(asker, instance):
    """Their rows are seen when they are restored."""
    backups = asker.all_of(f"/v2/{instance}/clusters/-/backups", "backups")
    parts = "sourceTable", "startTime", "endTime", "expireTime", "state"
    return {each["name"]: parts_of(each, *parts) for each in backups}


def run_query(asker, project, query):
    """Its entities, without the times of their writes."""
    answer = asker.ask("POST", f"/v1/projects/{project}:runQuery", {"query": query})
    return [each["entity"] for each in answer["batch"].get("entityResults", [])]


def list_datastore(asker, project, kinds, queries):
    return {
        "entities": {
            kind: run_query(asker, project, {"kind": [{"name": kind}]}) for kind in kinds
        },
        "queries": [run_query(asker, project, query) for query in queries],
    }
