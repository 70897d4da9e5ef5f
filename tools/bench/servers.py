"""Servers that are measured: how they are started, and what the system knows of their processes."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRESTLE = os.environ.get("TRESTLE_BINARY") or str(ROOT / "build/trestle")
EMULATOR = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator"
START_SECONDS = 30
LOOK_SECONDS = 0.25  # between two looks at a process that shall come to rest
TICKS = os.sysconf("SC_CLK_TCK")


def trestle_command(*settings, program=TRESTLE):
    return [program, "serve", "--listen", "{endpoint}", "--data-dir", "{data}", *settings]


def emulator_command():
    """None if it is not installed."""
    program = EMULATOR if os.path.exists(EMULATOR) else shutil.which("cbtemulator")
    return [program, "-host", "127.0.0.1", "-port", "{port}"] if program else None


class Server:
    """A process with a port and a directory of its own, for a `with` statement."""

    def __init__(self, command):
        self.command = command

    def __enter__(self):
        beside = Path(TRESTLE).resolve().parent  # on the machine's own disk
        self.directory = tempfile.TemporaryDirectory(prefix="trestle-bench-", dir=beside)
        self.data = Path(self.directory.name) / "data"
        self.start(self.command)
        self.await_start()
        return self

    def start(self, command):
        port = free_port()
        self.endpoint = f"127.0.0.1:{port}"
        names = {"endpoint": self.endpoint, "port": port, "data": self.data}
        with open(Path(self.directory.name) / "log", "ab") as log:
            command = [part.format(**names) for part in command]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.pid = self.process.pid

    def await_start(self, seconds=START_SECONDS):
        wait_for(self.endpoint, self.process, seconds)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()

    look_seconds = LOOK_SECONDS

    def await_rest(self, seconds=30):
        """Waits until flushes and compactions are done: until it has used no CPU for two looks.

        Returns the seconds that this took.
        """
        began = time.monotonic()
        idle = 0
        before = cpu_ticks(self.pid)
        while idle < 2 and time.monotonic() < began + seconds:
            time.sleep(self.look_seconds)
            now = cpu_ticks(self.pid)
            idle = idle + 1 if now - before <= 1 else 0
            before = now
        return time.monotonic() - began

    def cpu_seconds(self):
        """Of the whole process so far."""
        return cpu_ticks(self.pid) / TICKS

    def loop_seconds(self):
        """CPU seconds of each event loop's thread so far."""
        tasks = Path(f"/proc/{self.pid}/task")
        loops = [
            task.name
            for task in tasks.iterdir()
            if (task / "comm").read_text().startswith("loop-")
        ]
        return {task: cpu_ticks(f"{self.pid}/task/{task}") / TICKS for task in loops}

    def metrics(self):
        """{name, with labels: value}"""
        with urllib.request.urlopen(f"http://{self.endpoint}/metrics", timeout=1) as answer:
            lines = answer.read().decode().splitlines()
        told = (line.removeprefix("trestle_").rsplit(" ", 1) for line in lines if line[:1] != "#")
        return {name: float(value) for name, value in told}

    def metric(self, name):
        return self.metrics()[name]

    def data_bytes(self):
        """Bytes on the disk of all of its data, logs included."""
        return sum(path.stat().st_blocks * 512 for path in self.data.iterdir())

    def resident_bytes(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise KeyError("VmRSS")

    def written_bytes(self):
        """Bytes written to the disk so far."""
        for line in Path(f"/proc/{self.pid}/io").read_text().splitlines():
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
        raise KeyError("write_bytes")


def serve(program):
    """A server of that program, with default settings."""
    return Server(trestle_command(program=program))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(endpoint, process, seconds=START_SECONDS):
    host, port = endpoint.split(":")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"no server at {endpoint}")


def cpu_ticks(process):
    """User and system time of a process, or of PID/task/TID."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])
