"""The gcloud that is installed, if one is, as an operator uses it: a process for each command."""

import json
import os
import shlex
import shutil
import subprocess
import urllib.request
from pathlib import Path

from harness.patience import PATIENCE_SECONDS

PROGRAM = shutil.which("gcloud")


def environment(directory, **settings):
    """What a command sees: no setting but these, which have CLOUDSDK_ before their names. The
    library under gcloud trusts *_CA_BUNDLE more than gcloud's own setting."""
    foreign = ("CLOUDSDK_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY")
    kept = {name: each for name, each in os.environ.items() if not name.upper().startswith(foreign)}
    ours = {
        "CONFIG": directory,
        "CORE_DISABLE_PROMPTS": 1,
        "CORE_DISABLE_FILE_LOGGING": 1,
        "COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": 1,
        **settings,
    }
    return {**kept, **{f"CLOUDSDK_{name}": str(value) for name, value in ours.items()}}


class GcloudFailed(AssertionError):
    """A command that should have done its work; says what gcloud said."""


class Gcloud:
    """`gcloud bigtable` of one project against the server at `url`; its files are in
    `directory`."""

    def __init__(self, directory, url, project):
        self.directory = Path(directory)
        self.url = url
        self.project = project
        self.environment = environment(
            directory,
            CORE_PROJECT=project,
            AUTH_DISABLE_CREDENTIALS="true",
            API_ENDPOINT_OVERRIDES_BIGTABLEADMIN=f"{url}/",
        )

    def run(self, line):
        """A CompletedProcess of `gcloud bigtable LINE`, whether it fails or not."""
        return subprocess.run(
            [PROGRAM, "bigtable", *shlex.split(line)],
            env=self.environment,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def __call__(self, line):
        """What the command answered, from its JSON; None if it printed nothing."""
        done = self.run(f"{line} --format=json")
        if done.returncode != 0:
            raise GcloudFailed(f"gcloud bigtable {line}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def refused(self, line):
        """What a command that must fail said."""
        done = self.run(line)
        assert done.returncode == 1, f"gcloud bigtable {line}: {done.stdout}{done.stderr}"
        return done.stderr

    def file(self, name, content):
        """Writes a file for a command to read, by its name alone. Returns the name."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (self.directory / name).write_bytes(data)
        return name

    def post(self, path, body):
        """A request of our own, not gcloud's: makes what a command needs. Returns the answer."""
        request = urllib.request.Request(f"{self.url}/v2/{path}", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE_SECONDS) as response:
            return json.load(response)
