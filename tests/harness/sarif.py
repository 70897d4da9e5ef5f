"""What the published schema of SARIF 2.1.0 says of the objects that `trestle advise` writes: that
they have no members but these, which are required, and what each may be. A member that is allowed
and that no report has is left out here: one that comes to be written fails until its line is here.

`python -m harness.sarif SCHEMA`, with the schema as OASIS publishes it, holds these lines against
it.
"""

import json
import re
import sys

URI = r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*"  # a reference (RFC 3986), of its characters
LEVEL = ("none", "note", "warning", "error")
TEXT, NUMBER, TRUTH = str, int, bool


class Each:
    """A list of what is named."""

    def __init__(self, of):
        self.of = of


class Texts:
    """An object of any members that are texts."""


# {name of the definition: {member: what it is}}; "!" behind a member that is required. The log
# itself is the schema's root.
OBJECTS = {
    "": {"$schema": TEXT, "version!": ("2.1.0",), "runs!": Each("run")},
    "run": {"tool!": "tool", "invocations": Each("invocation"), "results": Each("result")},
    "tool": {"driver!": "toolComponent"},
    "toolComponent": {"name!": TEXT, "version": TEXT, "rules": Each("reportingDescriptor")},
    "reportingDescriptor": {
        "id!": TEXT,
        "shortDescription": "multiformatMessageString",
        "fullDescription": "multiformatMessageString",
        "help": "multiformatMessageString",
        "defaultConfiguration": "reportingConfiguration",
    },
    "multiformatMessageString": {"text!": TEXT},
    "reportingConfiguration": {"level": LEVEL},
    "invocation": {
        "executionSuccessful!": TRUTH,
        "toolExecutionNotifications": Each("notification"),
    },
    "notification": {"message!": "message", "level": LEVEL},
    "message": {"text": TEXT},
    "result": {
        "ruleId": TEXT,
        "ruleIndex": NUMBER,
        "level": LEVEL,
        "message!": "message",
        "locations": Each("location"),
        "partialFingerprints": Texts(),
        "suppressions": Each("suppression"),
    },
    "suppression": {
        "kind!": ("inSource", "external"),
        "status": ("accepted", "underReview", "rejected"),
        "justification": TEXT,
    },
    "location": {
        "physicalLocation": "physicalLocation",
        "logicalLocations": Each("logicalLocation"),
    },
    "physicalLocation": {"artifactLocation": "artifactLocation", "region": "region"},
    "artifactLocation": {"uri": re.compile(URI)},
    "region": {"startLine": NUMBER},
    "logicalLocation": {"fullyQualifiedName": TEXT, "kind": TEXT},
}


def check_sarif(value, name=""):
    """That it is such an object; all mistakes are assertions that name the place."""
    members = {each.rstrip("!"): kind for each, kind in OBJECTS[name].items()}
    where = name or "the log"
    assert isinstance(value, dict), where
    assert set(value) <= set(members), f"{where}: {set(value) - set(members)}"
    missing = {each[:-1] for each in OBJECTS[name] if each.endswith("!")} - set(value)
    assert not missing, f"{where}: {missing}"
    for member, held in value.items():
        check_value(held, members[member], f"{where}.{member}")


def check_value(value, kind, where):
    if isinstance(kind, str):
        check_sarif(value, kind)
    elif isinstance(kind, Each):
        assert isinstance(value, list), where
        for each in value:
            check_value(each, kind.of, where)
    elif isinstance(kind, Texts):
        assert all(isinstance(each, str) for each in value.values()), where
    elif isinstance(kind, tuple):
        assert value in kind, f"{where}: {value}"
    elif isinstance(kind, re.Pattern):
        assert kind.fullmatch(value), f"{where}: {value}"
    else:
        assert type(value) is kind, f"{where}: {value}"
        assert kind is not NUMBER or value >= 0, f"{where}: {value}"


# --- these lines against the schema ---


def type_of(kind):
    """As the schema says it, without what it says beside."""
    if isinstance(kind, str):
        return {"$ref": f"#/definitions/{kind}"}
    if isinstance(kind, Each):
        return {"type": "array", "items": type_of(kind.of)}
    if isinstance(kind, Texts):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if isinstance(kind, tuple):
        return {"enum": list(kind)}
    if isinstance(kind, re.Pattern):
        return {"type": "string", "format": "uri-reference"}
    return {"type": {TEXT: "string", NUMBER: "integer", TRUTH: "boolean"}[kind]}


def says(said, wanted):
    """Whether the schema says all that."""
    if isinstance(wanted, dict):
        return all(key in said and says(said[key], held) for key, held in wanted.items())
    if isinstance(wanted, list):
        return set(wanted) == set(said)
    return wanted in said if isinstance(said, list) else said == wanted


def differences(schema):
    """What the schema says otherwise."""
    for name, members in OBJECTS.items():
        object_of_it = schema["definitions"][name] if name else schema
        required = {each[:-1] for each in members if each.endswith("!")}
        if set(object_of_it.get("required", ())) != required:
            yield f"{name or 'the log'}: required are {object_of_it.get('required')}"
        if object_of_it.get("additionalProperties", True) is not False:
            yield f"{name or 'the log'}: may have more members"
        for member, kind in members.items():
            said = object_of_it["properties"].get(member.rstrip("!"))
            if said is None or not says(said, type_of(kind)):
                yield f"{name or 'the log'}.{member}: {said}"


def main():
    with open(sys.argv[1]) as file:
        found = list(differences(json.load(file)))
    print("\n".join(found) or "nothing differs")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
