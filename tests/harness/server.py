"""The server under test: a process that a test starts, kills, restarts and looks at.

The binary is TRESTLE_BINARY, or what `./dev test` builds. The server gets port 0 and tells its
address on the file descriptor named by --ready-fd: one line, "READY 127.0.0.1:43117".
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from harness.patience import PATIENCE_SECONDS

# What the doctor exits with if nothing is damaged: 3 when the log may end in a write that was torn,
# as after a kill or a power cut.
UNDAMAGED = (0, 3)
EXTERNAL = os.environ.get("TRESTLE_E2E_HOST")  # test this instead of a server of ours
# Stores that each server's tables lie in: a setting of `trestle serve`, which takes it from here.
SHARDS = int(os.environ.get("TRESTLE_DEBUG_SHARDS", "1"))
SHARDS_TYPED = f"TRESTLE_DEBUG_SHARDS={SHARDS} " if SHARDS > 1 else ""  # before a command
ROOT = Path(__file__).resolve().parents[2]
# What must never stand in a server's stderr: sanitizers' reports and our own failed checks.
ALARMS = re.compile(
    r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|this is a bug in trestle|"
    r"check failed|Assertion .*failed"
)


def binary():
    """The path of the program under test."""
    return os.environ.get("TRESTLE_BINARY") or str(ROOT / "build-test/trestle")


def run_trestle(*arguments, env=None, timeout=PATIENCE_SECONDS):
    """Runs `trestle ARGUMENTS` to its end: a CompletedProcess with text."""
    return subprocess.run(
        [binary(), *map(str, arguments)],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


class Server:
    """A trestle on a directory of its own. `arguments` are added to `trestle serve`."""

    def __init__(self, directory, arguments=(), env=None):
        self.directory = Path(directory)
        self.data = self.directory / "data"
        self.stderr_path = self.directory / "stderr.log"
        self.arguments = list(arguments)
        self.env = dict(env or {})
        self.process = None
        self.host = None
        self.listen = "127.0.0.1:0"

    def command(self, ready_fd):
        return [
            binary(), "serve", "--listen", self.listen, "--data-dir", str(self.data),
            "--ready-fd", str(ready_fd), *map(str, self.arguments),
        ]  # fmt: skip

    def start(self):
        """Starts the process and waits until it serves."""
        assert self.process is None, "already running"
        ready, ready_fd = os.pipe()
        with open(self.stderr_path, "ab") as stderr:
            self.process = subprocess.Popen(
                self.command(ready_fd),
                env={**os.environ, **self.env},
                pass_fds=[ready_fd],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        os.close(ready_fd)
        with os.fdopen(ready, "rb") as pipe:
            line = read_line(pipe, PATIENCE_SECONDS)
        if not line:
            code = self.process.wait(PATIENCE_SECONDS)
            self.process = None
            raise RuntimeError(f"no server: exit {code}\n{self.stderr()}")
        self.host = line.split()[-1]
        return self

    def stderr(self):
        return self.stderr_path.read_text(errors="replace") if self.stderr_path.exists() else ""

    def alarms(self):
        """What the log says from its first alarm on; empty if all is well."""
        log = self.stderr()
        found = ALARMS.search(log)
        return log[max(found.start() - 200, 0) :][:8000] if found else ""

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Waits for the end of the process and returns its exit code."""
        code = self.process.wait(PATIENCE_SECONDS)
        self.process = None
        return code

    def kill(self):
        """As the power would go: SIGKILL."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self):
        """As an operator would: SIGTERM, a clean exit, no alarm in the log."""
        self.signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, f"exit {code}\n{self.stderr()[-4000:]}"
        self.check_log()

    def check_log(self):
        assert not self.alarms(), self.alarms()

    def check_data(self, words=""):
        """While it is down: the doctor finds nothing damaged, and says the words. It looks at one
        store: of several nothing is checked."""
        if SHARDS > 1:
            return
        done = run_trestle("doctor", self.data)
        assert done.returncode == 0, done.stdout + done.stderr
        assert words in done.stdout

    def restart(self):
        self.stop()
        return self.start()

    def close(self):
        """For the end of a test: stops what still runs, by force if need be; checks the log."""
        try:
            if self.process is not None:
                self.stop()
        finally:
            if self.process is not None:
                self.kill()
        self.check_log()

    def get(self, path):
        """(status, body) of an HTTP/1.1 GET."""
        return http_get(f"http://{self.host}{path}")

    def metric(self, name):
        """The value of a counter or gauge."""
        _, page = self.get("/metrics")
        return float(re.search(rf"^trestle_{name} (\S+)$", page, re.MULTILINE)[1])


class ExternalServer:
    """Something that somebody else started: TRESTLE_E2E_HOST."""

    def __init__(self, host):
        self.host = host

    def close(self):
        pass


def http_get(url, context=None):
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    with contextlib.closing(open_url(opener, url)) as response:
        return response.status, response.read().decode()


def open_url(opener, url):
    try:
        return opener.open(url, timeout=PATIENCE_SECONDS)
    except urllib.error.HTTPError as error:
        return error


def read_line(pipe, seconds):
    """A line of the pipe, or what came before its end; nothing if the time is over."""
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([pipe], [], [], seconds)
        byte = os.read(pipe.fileno(), 1) if readable else b""
        if not byte:
            break
        line += byte
    return line.decode()
