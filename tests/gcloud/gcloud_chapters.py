"""What the chapters of gcloud share."""

import pytest
from google.api_core import exceptions
from google.protobuf import json_format

MEMBER = "user:alice@example.com"


def shown(message):
    """A message as gcloud shows it."""
    plain = type(message).pb(message) if hasattr(type(message), "pb") else message
    return json_format.MessageToDict(plain)


def only(answer):
    """What the commands that make something answer: a list of one, or that alone."""
    return answer[0] if isinstance(answer, list) else answer


def gone(ask):
    with pytest.raises(exceptions.NotFound):
        ask()


def check_iam(gcloud, group, resource, ask):
    """The four commands on the access policy of a resource; `ask` gets the policy by gRPC."""

    def bindings():
        return shown(ask()).get("bindings", [])

    assert "bindings" not in gcloud(f"{group} get-iam-policy {resource}")
    one = {"role": "roles/bigtable.viewer", "members": [MEMBER]}
    policy = gcloud.file("policy.json", {"bindings": [one]})
    assert gcloud(f"{group} set-iam-policy {resource} {policy}")["bindings"] == [one]
    assert bindings() == [one]

    two = {"role": "roles/bigtable.reader", "members": [MEMBER]}
    words = f"{resource} --role={two['role']} --member={MEMBER}"
    gcloud(f"{group} add-iam-policy-binding {words}")
    assert sorted(bindings(), key=str) == sorted([one, two], key=str)
    assert gcloud(f"{group} get-iam-policy {resource}") == shown(ask())
    gcloud(f"{group} remove-iam-policy-binding {words}")
    assert bindings() == [one]
