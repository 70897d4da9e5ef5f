"""`gcloud bigtable` against the server: every test is a chapter, in a project of its own.

TRESTLE_GCLOUD     "all" (./dev gcloud): all chapters, not only those that ./dev test has time for;
                   "record" (./dev gcloud --record): besides, writes down what gcloud sent and got,
                   in tests/data/gcloud, for test_recorded.py
"""

import datetime
import json
import os

import pytest
from harness.gcloud import PROGRAM, Gcloud
from harness.recorder import Recorder
from harness.server import EXTERNAL, ROOT

MODE = os.environ.get("TRESTLE_GCLOUD")
RECORDINGS = ROOT / "tests/data/gcloud"


def pytest_collection_modifyitems(items):
    """Each command takes gcloud a second of CPU."""
    for item in items:
        if item.get_closest_marker("slow_gcloud") and MODE is None:
            item.add_marker(pytest.mark.skip(reason="only ./dev gcloud has time for it"))


class RecordedGcloud(Gcloud):
    """Keeps with each command what it sent and got."""

    def __init__(self, directory, recorder, project):
        super().__init__(directory, f"http://{recorder.host}", project)
        self.recorder = recorder
        self.began = datetime.datetime.now(datetime.UTC)
        self.commands = []

    def run(self, line):
        done = super().run(line)
        self.keep(line.removesuffix(" --format=json"))
        return done

    def post(self, path, body):
        answer = super().post(path, body)
        self.keep("")
        return answer

    def keep(self, command):
        self.commands.append({"command": command, "exchanges": self.recorder.take()})

    def save(self, chapter):
        RECORDINGS.mkdir(parents=True, exist_ok=True)
        recording = {"recorded": self.began.isoformat(), "commands": self.commands}
        text = json.dumps(recording, indent=1, sort_keys=True)
        (RECORDINGS / f"{chapter}.json").write_text(text + "\n")


@pytest.fixture
def gcloud(request, server, tmp_path):
    """gcloud, in a project that is called after the test."""
    if PROGRAM is None:
        pytest.skip("there is no gcloud here")
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    chapter = request.node.name.removeprefix("test_")
    project = f"gcloud-{chapter.replace('_', '-')}"
    if MODE != "record":
        yield Gcloud(tmp_path, f"http://{server.host}", project)
        return
    recorder, failed = Recorder(server.host), request.session.testsfailed
    recorded = RecordedGcloud(tmp_path, recorder, project)
    yield recorded
    recorder.close()
    if request.session.testsfailed == failed:
        recorded.save(chapter)


@pytest.fixture
def instance(gcloud):
    """An instance with one cluster, c, in the chapter's project: its name."""
    parent = f"projects/{gcloud.project}"
    cluster = {"location": f"{parent}/locations/us-east1-b", "serveNodes": 1}
    gcloud.post(f"{parent}/instances", {
        "instanceId": "i", "instance": {"displayName": "i"}, "clusters": {"c": cluster},
    })  # fmt: skip
    return f"{parent}/instances/i"


@pytest.fixture
def table(gcloud, instance):
    """A table, t, with the family f, of that instance: its name."""
    body = {"tableId": "t", "table": {"columnFamilies": {"f": {}}}}
    return gcloud.post(f"{instance}/tables", body)["name"]
