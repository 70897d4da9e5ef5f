"""The servers that a suite is run against: Trestle, and Google's emulator if it is installed."""

import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EMULATOR = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator"
START_SECONDS = 120
PROJECT, INSTANCE = "suite-project", "suite-instance"
CLUSTERS = f"{INSTANCE}-c0", f"{INSTANCE}-c1"  # Java's suite looks for the first by this name


def binary():
    """The program under test."""
    return Path(os.environ.get("TRESTLE_BINARY") or ROOT / "build/trestle")


class Server:
    """A process on a free port of 127.0.0.1, for a `with` statement; `host` is its address."""

    name = "trestle"
    seconds = 3600  # that a test may take, whatever its suite says

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="trestle-suites-")
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.directory.cleanup()

    def restart(self):
        """For a server that does not live as long as a suite: Trestle does."""

    def start(self):
        place = Path(self.directory.name)
        ready, ready_fd = os.pipe()
        with open(place / "log", "wb") as log:
            self.process = subprocess.Popen(
                [binary(), "serve", "--listen", "127.0.0.1:0", "--data-dir", place / "data",
                 "--ready-fd", str(ready_fd)],
                pass_fds=[ready_fd], stdout=log, stderr=log,
            )  # fmt: skip
        os.close(ready_fd)
        with os.fdopen(ready) as pipe:
            line = pipe.readline() if select.select([pipe], [], [], START_SECONDS)[0] else ""
        if not line:
            raise RuntimeError(f"no server: {(place / 'log').read_text(errors='replace')}")
        self.host = line.split()[-1]
        self.make_instance()

    def stop(self):
        self.process.terminate()
        self.process.wait(START_SECONDS)

    def make_instance(self):
        """The instance that suites find there: two clusters, as Google's own has, of hard disks. A
        restore from there to solid state has an operation that optimizes it, for which they wait.
        """
        zones = "us-central1-b", "us-east1-c"
        clusters = {
            name: {
                "location": f"projects/{PROJECT}/locations/{zone}",
                "serveNodes": 1,
                "defaultStorageType": "HDD",
            }
            for name, zone in zip(CLUSTERS, zones, strict=True)
        }
        body = {
            "instanceId": INSTANCE,
            "instance": {"displayName": INSTANCE},
            "clusters": clusters,
        }
        request = urllib.request.Request(
            f"http://{self.host}/v2/projects/{PROJECT}/instances",
            json.dumps(body).encode(), {"content-type": "application/json"},
        )  # fmt: skip
        urllib.request.urlopen(request, timeout=START_SECONDS).close()


class Emulator(Server):
    """Google's. Some requests end its process, so that each test is given one of its own."""

    name = "emulator"
    seconds = 100  # clients go on asking a process that is gone

    def restart(self):
        self.stop()
        self.start()

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.host = f"127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [emulator_program(), "-host", "127.0.0.1", "-port", str(port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the emulator does not start")


def emulator_program():
    """None if it is not installed."""
    return EMULATOR if os.path.exists(EMULATOR) else shutil.which("cbtemulator")
