"""Kafka's own broker, a single node, out of Maven's repository."""

import base64
import os
import signal
import socket
import subprocess
import time

from harness.clients import JAVA_OPTIONS, java_classpath
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

FOLDER = ROOT / "tests/clients/kafka"
CLUSTER = "dHJlc3RsZS10ZXN0LTEyMw"  # what its storage is formatted for
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={directory}/data
offsets.topic.replication.factor=1
auto.create.topics.enable=false
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    """`directory`: its own, for what it keeps. Its topics survive a kill."""

    def __init__(self, directory):
        directory.mkdir()
        self.directory = directory
        self.classpath = java_classpath(FOLDER, directory / "classpath")
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.settings = directory / "settings"
        self.settings.write_text(
            SETTINGS.format(port=self.port, controller=free_port(), directory=directory)
        )
        self.java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", self.settings)
        self.process = None
        self.start()

    def command(self, *arguments):
        return ["java", *JAVA_OPTIONS, "-cp", self.classpath, *map(str, arguments)]

    def java(self, *arguments):
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self):
        log = os.open(self.directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.process = subprocess.Popen(
            self.command("kafka.Kafka", self.settings), stdout=log, stderr=log
        )
        os.close(log)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.answers():
            assert self.process.poll() is None, (self.directory / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)

    def close(self):
        if self.process is not None:
            self.kill()

    def make_topic(self, name, partitions=3, most_bytes=1_000_000):
        self.java(FOLDER / "Topic.java", self.host, "make", name, partitions, most_bytes)

    def messages(self, name, partitions=3):
        """Partition, key, value of each, in the order of their partition."""
        told = self.java(FOLDER / "Topic.java", self.host, "read", name, partitions)
        return [
            (int(partition), base64.b64decode(key), base64.b64decode(value))
            for partition, key, value in map(str.split, told.splitlines())
        ]
