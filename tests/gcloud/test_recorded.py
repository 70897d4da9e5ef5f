"""What gcloud sends, sent again: for machines that have no gcloud.

tests/data/gcloud has, of each chapter of tests/gcloud, the requests of gcloud 528.0.0 and what it
got. A chapter is sent in its order; of its answers everything must be the same but what is new each
time: etags and names of operations, of which only the same one may take the place of the same one,
and times, of which those that were sent must come back.
"""

import datetime
import http.client
import json
import os
import re
import time
from pathlib import Path

import pytest
from harness.gcloud import PROGRAM
from harness.patience import PATIENCE_SECONDS
from harness.server import EXTERNAL, ROOT, Server

RECORDINGS = ROOT / "tests/data/gcloud"
CHAPTERS = sorted(path.stem for path in RECORDINGS.glob("*.json"))
OPERATION = re.compile(r"operations/projects/\S+/operations/\d+")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

COMMANDS = {
    "app-profiles": "create delete describe list update",
    "authorized-views": "create delete describe list update IAM",
    "backups": "copy create delete describe list update IAM",
    "clusters": "create delete describe list update",
    "hot-tablets": "list",
    "instances": "create delete describe list update upgrade IAM",
    "instances tables": "create delete describe list restore undelete update IAM",
    "logical-views": "create delete describe list update",
    "materialized-views": "create delete describe list update",
    "operations": "describe list",
    "schema-bundles": "create delete describe",
}
IAM = "get-iam-policy set-iam-policy add-iam-policy-binding remove-iam-policy-binding"


def all_commands():
    return {
        f"{group} {command}"
        for group, commands in COMMANDS.items()
        for command in commands.replace("IAM", IAM).split()
    }


def recording(chapter):
    return json.loads((RECORDINGS / f"{chapter}.json").read_text())


class Replay:
    """`fresh` has for each etag, operation, time and size of the recording the one in its place
    now. Sizes of backups are RocksDB's, whose releases write tables of other lengths."""

    def __init__(self, host, recorded):
        self.host = host
        self.later = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(recorded)
        self.fresh = {}

    # --- requests ---

    def renew(self, value, key=None):
        """What to send in place of what was sent."""
        if isinstance(value, dict):
            return {name: self.renew(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self.renew(each) for each in value]
        if key == "etag":
            return self.fresh[value]
        if isinstance(value, str) and TIME.fullmatch(value):
            return self.fresh.setdefault(value, self.moved(value))
        return value

    def moved(self, then):
        """As long from now as it was from then."""
        now = datetime.datetime.fromisoformat(then) + self.later
        digits = f".{now.microsecond:06}" if now.microsecond % 1000 else f".{now:%f}"[:4]
        return f"{now:%Y-%m-%dT%H:%M:%S}{digits if now.microsecond else ''}Z"

    def send(self, exchange):
        path = OPERATION.sub(lambda name: self.fresh.get(name[0], name[0]), exchange["path"])
        body = json.dumps(self.renew(exchange["body"])) if "body" in exchange else None
        headers = {"Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_SECONDS)
        connection.request(exchange["method"], path, body, headers)
        answer = connection.getresponse()
        reply = json.loads(answer.read())
        connection.close()
        return answer.status, reply

    def run(self, exchange):
        status, reply = self.send(exchange)
        if exchange["path"].startswith("/v2/operations/") and exchange["reply"].get("done"):
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not reply.get("done") and time.monotonic() < deadline:
                status, reply = self.send(exchange)
        assert status == exchange["status"], reply
        self.compare(exchange["reply"], reply)

    # --- answers ---

    def compare(self, old, new, key=None):
        assert type(old) is type(new), f"{key}: {old} / {new}"
        if isinstance(old, dict):
            assert old.keys() == new.keys()
            for name in old:
                self.compare(old[name], new[name], name)
        elif isinstance(old, list):
            assert len(old) == len(new), f"{key}: {old} / {new}"
            for pair in zip(old, new, strict=True):
                self.compare(*pair)
        elif isinstance(old, str):
            self.compare_text(old, new, key)
        else:
            assert old == new, key

    def compare_text(self, old, new, key):
        for form in OPERATION, TIME:
            assert bool(form.fullmatch(old)) == bool(form.fullmatch(new)), f"{key}: {old} / {new}"
        if key in ("etag", "sizeBytes") or OPERATION.fullmatch(old) or TIME.fullmatch(old):
            assert self.fresh.setdefault(old, new) == new, key
        else:
            assert old == OPERATION.sub(self.recorded_name, new), key

    def recorded_name(self, name):
        """Messages name operations, too."""
        return next((old for old, new in self.fresh.items() if new == name[0]), name[0])


def is_waiting(exchange):
    """A look at an operation that went on."""
    return exchange["path"].startswith("/v2/operations/") and exchange["reply"].get("done") is False


@pytest.fixture(scope="module")
def untouched_server(tmp_path_factory):
    """One in which no chapter of gcloud has been played yet."""
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    running = Server(tmp_path_factory.mktemp("recorded")).start()
    yield running
    running.close()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_recorded(untouched_server, chapter):
    recorded = recording(chapter)
    replay = Replay(untouched_server.host, recorded["recorded"])
    for command in recorded["commands"]:
        for exchange in command["exchanges"]:
            if not is_waiting(exchange):
                replay.run(exchange)


def test_every_command_is_recorded():
    """Commands of one group may begin another's: `instances` and `instances tables`."""
    told = [each["command"] for chapter in CHAPTERS for each in recording(chapter)["commands"]]
    told = tuple(f"{line} " for line in told)
    assert not {each for each in all_commands() if not any(t.startswith(f"{each} ") for t in told)}
    assert len(all_commands()) == 66


@pytest.mark.skipif(PROGRAM is None, reason="there is no gcloud here")
def test_the_installed_gcloud_has_these_commands():
    """`config export`, in alpha, asks another service."""
    tree = Path(os.path.realpath(PROGRAM)).parents[1] / "lib/surface/bigtable"
    found = {
        str(path.relative_to(tree).with_suffix("")).replace("/", " ").replace("_", "-")
        for path in tree.rglob("*")
        if path.suffix in (".py", ".yaml") and path.stem != "__init__"
    }
    assert {each for each in found if "config export" not in each} == all_commands()
