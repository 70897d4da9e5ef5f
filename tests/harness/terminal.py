"""A program on a terminal of its own: what a person would type, and what he would see."""

import os
import pty
import re
import select
import subprocess
import time

from harness.patience import PATIENCE_SECONDS

CONTROL_C = "\x03"
CONTROL_D = "\x04"
UP = "\x1b[A"


class Terminal:
    def __init__(self, arguments, env):
        self.seen = ""  # all so far
        self.read_to = 0  # of it, what a test has waited for
        self.fd, terminal = pty.openpty()
        # The terminal must be the session's, or Ctrl-C is no signal.
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *map(str, arguments)],
            env=env, stdin=terminal, stdout=terminal, stderr=terminal,
        )  # fmt: skip
        os.close(terminal)

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self):
        """Waits for more; false if there will be none."""
        ready, _, _ = select.select([self.fd], [], [], 1)
        if not ready:
            return True
        try:
            more = os.read(self.fd, 65536)
        except OSError:  # how a terminal says that its program is gone
            return False
        self.seen += more.decode(errors="replace")
        return bool(more)

    def wait_for(self, pattern):
        """Waits until what was not waited for yet matches: gives it up to the match's end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.compile(pattern).search(self.seen, self.read_to)):
            rest = self.seen[self.read_to :]
            assert time.monotonic() < deadline, f"no {pattern!r} in {rest!r}"
            assert self.read(), f"ended without {pattern!r}: {rest!r}"
        text = self.seen[self.read_to : found.end()]
        self.read_to = found.end()
        return text

    def wait(self):
        """Waits for the program's end: its exit status."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.read():
            assert time.monotonic() < deadline, self.seen
        return self.process.wait(PATIENCE_SECONDS)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)
