"""The drill of docs/operating/runbooks.md, from each damage to health: its commands, word for word
but for addresses, paths and how many rows there are, and what the page says that they say. systemd
is not there: `systemctl` and `journalctl` are played by this file, which also lets time pass."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from harness.certificates import Authority
from harness.moved_server import DAY_SECONDS, MovedServer
from harness.patience import PATIENCE_SECONDS
from harness.rpc import Rpc, set_cell
from harness.server import EXTERNAL, ROOT, binary

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
PAGE = (ROOT / "docs/operating/runbooks.md").read_text().split("\n## The drill:")[1]
HOUR_SECONDS = 3600
LARGE_FILE = 1_000_000  # far more than where the drill writes into one, and than the catalog has
# Commands that tell by their exit status what they have found.
TELLERS = ("trestle export", "trestle repair", "trestle doctor", "trestle status")


def days():
    """{title: [(command, lines that it is said to print)]}"""
    found = {}
    for line in PAGE.splitlines():
        if line.startswith("### "):
            session = found[line.removeprefix("### ")] = []
        elif line.startswith("    $ "):
            session.append((line.removeprefix("    $ "), []))
        elif line.startswith("    "):
            session[-1][1].append(line.strip())
    return found


def pattern_of(line):
    """"…" is anything, and numbers are any."""
    parts = [re.sub(r"\d[\d,]*", lambda _: r"\d[\d,]*", re.escape(part).replace(r"\,", ","))
             for part in line.split("…")]  # fmt: skip
    return ".*".join(parts)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class DrilledServer(MovedServer):
    """On the same port each time."""

    def __init__(self, directory, arguments, port):
        super().__init__(directory, arguments)
        self.address = f"127.0.0.1:{port}"

    def command(self, ready_fd):
        words = super().command(ready_fd)
        words[words.index("127.0.0.1:0")] = self.address
        return words


class Machine:
    """Where a day is played."""

    def __init__(self, place):
        self.place = place
        for name in ("bin", "backups", "archive", "tmp", "etc"):
            (place / name).mkdir()
        (place / "bin/trestle").symlink_to(binary())
        self.server = DrilledServer(place, ["--write-buffer", "4MB"], free_port())
        self.environment, self.beside = {}, None
        self.known = {
            "http://127.0.0.1:8086": f"http://{self.server.address}",
            "127.0.0.1:8086": self.server.address,
            "localhost:8086": self.server.address.replace("127.0.0.1", "localhost"),
            "127.0.0.1:8087": f"127.0.0.1:{free_port()}",
            "/var/lib/trestle": str(self.server.data),
            "/var/lib/restored": str(place / "restored"),
            "/etc/trestle": str(place / "etc"),
            "/mnt/": f"{place}/",
            "/tmp/": f"{place}/tmp/",
            "--rows 200000": "--rows 8000",
        }

    def here(self, text):
        """All at once: what is put in is not looked at again."""
        names = "|".join(map(re.escape, self.known))
        return re.sub(names, lambda name: self.known[name[0]], text)

    # --- systemd ---

    def systemctl(self, verb, what):
        """What it prints."""
        if verb == "set-environment":
            self.environment.update([what.split("=")])
        elif verb == "unset-environment":
            del self.environment[what]
        elif verb == "reload":
            self.server.signal(signal.SIGHUP)
        if verb in ("stop", "restart"):
            self.server.stop()
        if verb in ("start", "restart"):
            return self.start()
        return ""

    def start(self):
        usual, self.server.env = self.server.env, {**self.server.env, **self.environment}
        try:
            self.server.start()
        except RuntimeError:
            return "Job for trestle.service failed because the control process exited."
        finally:
            self.server.env = usual
        return ""

    def journal(self, words):
        """Waits for them: a reload may be under way."""
        return f'until grep -E "{words}" "{self.server.stderr_path}"; do sleep 0.1; done'

    # --- a day ---

    def await_table_file(self):
        """What 200,000 rows have surely: 8,000 may all be in write buffers still when the server is
        stopped, and then the largest file is the catalog's, of 2 KB, which the drill's dd made
        longer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.server.metric("store_flushed_bytes_total") < LARGE_FILE:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def play(self, command):
        """What it prints."""
        if command.startswith("systemctl"):
            return self.systemctl(*command.replace(" trestle", " -").split()[1:3])
        if command.endswith(" &"):
            self.beside = subprocess.Popen(
                ["bash", "-c", f"exec {self.here(command)[:-2]}"], env=self.variables(),
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            while "msg=serving" not in self.beside.stderr.readline():
                assert self.beside.poll() is None
            return ""
        if command == "kill %1":
            self.beside.terminate()
            self.beside.communicate(timeout=PATIENCE_SECONDS)
            return ""
        journal = re.fullmatch(r"journalctl -u trestle -g '(.*)'", command)
        ours = self.journal(journal[1]) if journal else self.here(command)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", ours], env=self.variables(),
            capture_output=True, text=True, timeout=PATIENCE_SECONDS, cwd=self.place,
        )  # fmt: skip
        may_tell = (0, 1) if command.startswith(TELLERS) else (0,)
        assert done.returncode in may_tell, f"{command}: {done.stdout}{done.stderr}"
        if "--rows 200000" in command:
            self.await_table_file()
        return done.stdout + done.stderr

    def variables(self):
        return {
            **os.environ,
            "PATH": f"{self.place}/bin:{os.environ['PATH']}",
            "BIGTABLE_EMULATOR_HOST": self.server.address,
        }

    def close(self):
        if self.beside is not None and self.beside.poll() is None:
            self.beside.kill()
        self.server.close()


# --- what the page does not do: time that passes, and what a machine has from elsewhere ---


def a_certificate(machine):
    """One that has lived for all but ten hours of its five days; another lies ready."""
    server = machine.server
    renewed = machine.place / "tmp/renewed"
    renewed.mkdir()
    authority = Authority(machine.place / "etc")
    pair = authority.issue("server", "/CN=localhost", days=5)
    server.arguments += ["--tls-cert", pair[0], "--tls-key", pair[1]]
    authority.directory = renewed
    authority.issue("server", "/CN=localhost", days=90)
    server.move(5 * DAY_SECONDS - 10 * HOUR_SECONDS)


def a_clock(machine):
    """It was three hours ahead while something was written, and has been set right."""
    rpc = Rpc(machine.server.host)
    table = rpc.create_table("t")
    machine.server.move(3 * HOUR_SECONDS)
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v"))
    machine.server.move(0)
    rpc.close()


def settled(machine):
    """After a start versions are a moment ahead, and moments are told by them."""
    subprocess.run(["bash", "-c", machine.here(
        "until curl -s http://127.0.0.1:8086/metrics | grep -q '^trestle_clock_lead_seconds 0$'; "
        "do sleep 0.1; done")], check=True, timeout=PATIENCE_SECONDS)  # fmt: skip


def an_archive(machine):
    places = {"--backup-places": "backups", "--archive": "archive"}
    for option, name in places.items():
        machine.server.arguments += [option, machine.place / name]


BEFORE_THE_START = {
    "A certificate near its end": a_certificate,
    "Rows that were dropped by mistake": an_archive,
}
AFTER_THE_START = {"A clock that was ahead": a_clock, "Rows that were dropped by mistake": settled}
BEFORE_THE_END = {"A clock that was ahead": lambda machine: machine.server.move(4 * HOUR_SECONDS)}


def nothing(machine):
    pass


def test_there_are_six():
    assert len(days()) == 6
    for session in days().values():
        last, lines = session[-1]
        assert (last.endswith("/readyz") and lines == ["ok"]) or last.startswith("trestle sql")
    assert set(BEFORE_THE_START) | set(AFTER_THE_START) | set(BEFORE_THE_END) < set(days())


@pytest.mark.long
@pytest.mark.parametrize("day", days())
def test_a_day(day, tmp_path):
    machine = Machine(tmp_path)
    session = days()[day]
    try:
        BEFORE_THE_START.get(day, nothing)(machine)
        machine.server.start()
        AFTER_THE_START.get(day, nothing)(machine)
        for number, (command, lines) in enumerate(session, start=1):
            if number == len(session):
                BEFORE_THE_END.get(day, nothing)(machine)
            said = machine.play(command)
            for line in lines:
                assert re.search(pattern_of(machine.here(line)), said), f"{command}:\n{said}"
    finally:
        machine.close()
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
