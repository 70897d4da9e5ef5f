"""`gcloud datastore indexes` and `operations`, as an operator uses them with an index.yaml."""

import json
import subprocess

import pytest
from harness.gcloud import PROGRAM, environment
from harness.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no gcloud here")

ONE = """
- kind: K
  properties:
  - name: a
  - name: b
    direction: desc
"""
OTHER = """
- kind: L
  ancestor: yes
  properties:
  - name: a
"""


@pytest.fixture
def gcloud(server, tmp_path):
    """A function that runs `gcloud datastore WORDS`, and gives what it prints."""
    env = environment(
        tmp_path,
        CORE_PROJECT="gcloud-datastore",
        AUTH_DISABLE_CREDENTIALS="true",
        API_ENDPOINT_OVERRIDES_DATASTORE=f"http://{server.host}/",
        API_ENDPOINT_OVERRIDES_FIRESTORE=f"http://{server.host}/",
    )

    def run(*words):
        done = subprocess.run(
            [PROGRAM, "datastore", *map(str, words), "--format=json"],
            env=env, cwd=tmp_path, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


def directions(index):
    return [(each["name"], each["direction"]) for each in index["properties"]]


@pytest.mark.slow_gcloud
def test_index_yaml(gcloud, tmp_path):
    wanted = tmp_path / "index.yaml"
    wanted.write_text(f"indexes:\n{ONE}{OTHER}")
    gcloud("indexes", "create", wanted)
    gcloud("indexes", "create", wanted)  # what is there is not made again
    listed = sorted(gcloud("indexes", "list"), key=lambda each: each["kind"])
    assert [(each["kind"], each["ancestor"], directions(each)) for each in listed] == [
        ("K", "NONE", [("a", "ASCENDING"), ("b", "DESCENDING")]),
        ("L", "ALL_ANCESTORS", [("a", "ASCENDING")]),
    ]
    described = gcloud("indexes", "describe", listed[0]["indexId"])
    assert described == {**listed[0], "state": "READY"}
    condition = "metadata.common.operation_type=CREATE_INDEX AND done=true"
    operations = gcloud("operations", "list", f"--filter={condition}")
    assert {each["metadata"]["indexId"] for each in operations} == {
        each["indexId"] for each in listed
    }
    assert gcloud("operations", "describe", operations[0]["name"]) == operations[0]
    wanted.write_text(f"indexes:\n{OTHER}")
    gcloud("indexes", "cleanup", wanted)
    left = [each for each in gcloud("indexes", "list") if each["state"] != "DELETING"]
    assert [each["kind"] for each in left] == ["L"]
