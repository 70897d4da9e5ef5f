"""Google's own two servers of the Datastore API, which come with the Cloud SDK: the classic
emulator, and the Firestore emulator in its Datastore mode. Each runs as a process of its own on
loopback, with nothing on disk and a bounded heap.

CLOUD_SDK   where the SDK is; default: where Debian's package or gcloud has put it
"""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import grpc

START_SECONDS = 120
STOP_SECONDS = 20
HEAP = "-Xmx768m"
PLACES = ["/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk", "~/google-cloud-sdk"]
CLASSIC, FIRESTORE = "classic", "firestore"
JARS = {
    CLASSIC: "platform/cloud-datastore-emulator/CloudDatastore.jar",
    FIRESTORE: "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar",
}
PROGRAMS = {
    CLASSIC: ["com.google.cloud.datastore.emulator.CloudDatastore", "start", "--testing",
              "--auto_id_policy=SCATTERED"],  # fmt: skip
    FIRESTORE: [
        "com.google.cloud.datastore.emulator.firestore.CloudFirestore",
        "--database-mode=datastore-mode",
    ],
}


def sdk_places():
    gcloud = shutil.which("gcloud")
    own = [os.environ["CLOUD_SDK"]] if os.environ.get("CLOUD_SDK") else []
    near = [Path(gcloud).resolve().parents[1]] if gcloud else []
    return [Path(each).expanduser() for each in [*own, *near, *PLACES]]


def jar_of(name):
    found = [place / JARS[name] for place in sdk_places() if (place / JARS[name]).is_file()]
    return found[0] if found else None


def missing(names=(CLASSIC, FIRESTORE)):
    """Why these cannot be run; empty if they can."""
    if shutil.which("java") is None:
        return "java is not installed"
    return ", ".join(f"the {name} emulator is not installed" for name in names if not jar_of(name))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Emulator:
    def __init__(self, name, directory):
        self.name, self.directory = name, Path(directory)
        self.process, self.host = None, None

    def start(self):
        port = free_port()
        self.host = f"127.0.0.1:{port}"
        command = ["java", HEAP, "-Duser.language=en", "-cp", str(jar_of(self.name))]
        with open(self.directory / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, *PROGRAMS[self.name], "--host=127.0.0.1", f"--port={port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
            )  # fmt: skip
        try:
            self.wait_until_it_serves()
        except BaseException:
            self.close()
            raise
        return self

    def wait_until_it_serves(self):
        deadline = time.monotonic() + START_SECONDS
        with grpc.insecure_channel(self.host) as channel:
            while True:
                try:
                    return grpc.channel_ready_future(channel).result(1)
                except grpc.FutureTimeoutError:
                    gone = self.process.poll() is not None
                    if gone or time.monotonic() > deadline:
                        log = self.directory / f"{self.name}.log"
                        raise RuntimeError(log.read_text(errors="replace")[-2000:]) from None

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
