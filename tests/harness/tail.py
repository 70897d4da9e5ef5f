"""Running `trestle tail`: its lines as they come, and what they tell."""

import base64
import json
import queue
import signal
import subprocess
import threading
import time
from datetime import UTC, datetime

from harness.patience import PATIENCE_SECONDS
from harness.server import binary


def now():
    """For --from: nothing was written before."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def bytes_of(told):
    """What a line has as a string, or as an object with base64."""
    if isinstance(told, str):
        return told.encode()
    text = told["base64"]
    return base64.b64decode(text + "=" * (-len(text) % 4))


class Tail:
    """A tail whose lines are read by a thread of its own."""

    def __init__(self, host, table, *options):
        command = [binary(), "tail", table, "--endpoint", host, *map(str, options)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="strict"
        )
        self.lines = queue.Queue()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        for line in self.process.stdout:
            if line.endswith("\n"):  # a kill may cut the last one off
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.kill()
        self.thread.join(PATIENCE_SECONDS)
        self.process.communicate()

    def next(self):
        line = self.lines.get(timeout=PATIENCE_SECONDS)
        assert line is not None, self.process.stderr.read()
        return line

    def take(self, count):
        return [self.next() for _ in range(count)]

    def take_here(self):
        """Those that have come."""
        lines = []
        while not self.lines.empty():
            line = self.lines.get()
            if line is not None:
                lines.append(line)
        return lines

    def until(self, condition):
        """All lines up to the one with which the condition holds."""
        lines = []
        while not condition(lines):
            lines.append(self.next())
        return lines

    def kill(self):
        """kill -9, and the rest of its lines."""
        self.process.kill()
        return self.rest()

    def stop(self, number=signal.SIGTERM):
        """Ends it in order; the rest of its lines."""
        self.process.send_signal(number)
        lines = self.rest()
        assert self.process.wait(PATIENCE_SECONDS) == 0, self.process.stderr.read()
        return lines

    def rest(self):
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()
        return self.take_here()


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Counts:
    """Held against changes that each set a cell of their row to how many there were before: each is
    told, in its row's order. `again`: those that a kill lets come twice."""

    def __init__(self):
        self.got = {}
        self.again = 0

    def take(self, lines, may_repeat=False):
        for line in lines:
            key = bytes_of(line["key"])
            value = int(line["mutations"][0]["set_cell"]["value"])
            due = self.got.get(key, -1) + 1
            if may_repeat and value < due:
                self.again += 1
                continue
            assert value == due, (key, "lost, or twice, or out of order", line)
            self.got[key] = value
