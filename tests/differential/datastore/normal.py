"""Answers as text and numbers that must be the same on all sides: versions become what they are
beside those before, allocated ids and times become words."""

import base64

from google.protobuf import json_format


FIRST_OF_ALLOCATED = 1 << 32  # all below are of the operations themselves


def element_text(element, parent, ids):
    which = element.WhichOneof("id_type")
    if which is None:
        return element.kind
    if which == "name":
        return f"{element.kind}:{element.name!r}"
    return f"{element.kind}:{ids.get((parent, element.kind, element.id), element.id)}"


class Normaliser:
    """Of one side's session: what it has seen."""

    def __init__(self, project):
        self.project = project
        self.versions = {}  # of each key, in the order in which they came
        self.ids = {}  # allocated: their names

    # --- keys and values ---

    def key(self, key):
        path = self.path(key.path)
        of = key.partition_id
        parts = [
            each for each in (of.project_id, of.database_id) if each not in ("", self.project)
        ]
        parts += [of.namespace_id] if of.namespace_id else []
        return "|".join([*parts, path])

    def path(self, elements):
        text = ""
        for each in elements:
            parent, slash = text, "/" if text else ""
            text += slash + element_text(each, parent, self.ids)
        return text

    def value(self, value):
        text = self.content(value)
        text += f"~{value.meaning}" if value.meaning else ""
        return text + ("!" if value.exclude_from_indexes else "")

    def content(self, value):
        kind = value.WhichOneof("value_type")
        if kind is None:
            return "nothing"
        content = getattr(value, kind)
        if kind == "null_value":
            return "null"
        if kind == "timestamp_value":
            return f"t{content.seconds}.{content.nanos:09}"
        if kind == "geo_point_value":
            return f"geo({content.latitude},{content.longitude})"
        if kind == "key_value":
            return f"key({self.key(content)})"
        if kind == "array_value":
            return "[" + ", ".join(map(self.value, content.values)) + "]"
        if kind == "entity_value":
            return self.entity(content)
        return repr(content)

    def entity(self, entity):
        properties = entity.properties
        shown = ", ".join(f"{name}={self.value(properties[name])}" for name in sorted(properties))
        return (self.key(entity.key) if entity.key.path else "") + "{" + shown + "}"

    def version(self, key, version):
        """How it stands to those that the key has had: a newer one, the newest, or an older."""
        seen = self.versions.setdefault(key, [])
        if not version:
            return "v0"
        if not seen or version > seen[-1]:
            seen.append(version)
            return "v+"
        if version == seen[-1]:
            return "v="
        return "v-" if version in seen else "v?"

    def name_ids(self, label, place, key):
        last = key.path[-1]
        if last.id >= FIRST_OF_ALLOCATED:
            self.ids.setdefault((self.path(key.path[:-1]), last.kind, last.id), f"{label}.{place}")

    # --- answers ---

    def result(self, result):
        key = self.key(result.entity.key)
        return f"{self.entity(result.entity)} {self.version(key, result.version)}"

    def lookup(self, answer):
        return {
            "found": sorted(map(self.result, answer.found)),
            "missing": sorted(self.key(each.entity.key) for each in answer.missing),
            "deferred": len(answer.deferred),
            "transaction": bool(answer.transaction),
        }

    def query(self, answer):
        batch = answer.batch
        kind = batch.DESCRIPTOR.fields_by_name["entity_result_type"].enum_type
        more = batch.DESCRIPTOR.fields_by_name["more_results"].enum_type
        return {
            "type": kind.values_by_number[batch.entity_result_type].name,
            "results": [self.result(each) for each in batch.entity_results],
            "more": more.values_by_number[batch.more_results].name,
            "skipped": batch.skipped_results,
            "transaction": bool(answer.transaction),
            "cursors": self.has_cursors(batch),
            "query": self.message(answer.query) if answer.HasField("query") else None,
        }

    @staticmethod
    def has_cursors(batch):
        """Of each result; and behind the last, if there is one."""
        results = batch.entity_results
        return not results or (all(each.cursor for each in results) and bool(batch.end_cursor))

    def message(self, message):
        """A message's JSON, without what says the project."""
        text = json_format.MessageToDict(message)
        return strip(text, self.project)

    def aggregation(self, answer):
        (result,) = answer.batch.aggregation_results or [None]
        values = result.aggregate_properties if result else {}
        return {
            "values": {name: rounded(values[name], self) for name in sorted(values)},
            "more": answer.batch.more_results,
            "transaction": bool(answer.transaction),
            "query": self.message(answer.query) if answer.HasField("query") else None,
        }

    def commit(self, answer, label, keys):
        results = []
        for place, (result, key) in enumerate(zip(answer.mutation_results, keys, strict=True)):
            if result.HasField("key"):
                self.name_ids(label, place, result.key)
                key = self.key(result.key)
            text = f"{key} {self.version(key, result.version)}"
            text += " conflict" if result.conflict_detected else ""
            if result.transform_results:
                text += " " + ", ".join(map(self.value, result.transform_results))
            results.append(text)
        return {"results": results}

    def allocate(self, answer, label):
        for place, key in enumerate(answer.keys):
            self.name_ids(label, place, key)
        return {"keys": [self.key(each) for each in answer.keys]}


def rounded(value, normaliser):
    """Sums of doubles depend on the order in which they are added."""
    if value.WhichOneof("value_type") == "double_value":
        return f"{value.double_value:.12g}d"
    return normaliser.value(value)


def strip(text, project):
    if isinstance(text, list):
        return [strip(each, project) for each in text]
    if not isinstance(text, dict):
        return text
    made = {}
    for name, value in text.items():
        if name == "projectId" and value == project:
            continue
        stripped = strip(value, project)
        if name == "partitionId" and not stripped:
            continue
        made[name] = stripped
    return made


def base64_of(data):
    return base64.b64encode(data).decode()
