"""docs/operating/moving.md, word for word: a Trestle stands for Google's service, with TLS and a
service account, another one for itself; writers write as an application would."""

import os
import re
import signal
import subprocess
import time

import pytest
from harness.following import Changes, Writers, create_followed, expect_same
from harness.patience import PATIENCE_SECONDS
from harness.rpc import Rpc
from harness.secured import account_key
from harness.server import EXTERNAL, ROOT, binary

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
INSTANCE = "projects/shop/instances/main"
NAME = f"{INSTANCE}/tables/orders"
GOOGLE, OURS = "bigtable.googleapis.com:443", "db.example.com:8086"


def commands(section):
    """Those of a section of the page, whole."""
    page = (ROOT / "docs/operating/moving.md").read_text()
    (text,) = [part for part in page.split("\n## ") if part.startswith(section + "\n")]
    return re.findall(r"^    \$ (.*)$", text, re.MULTILINE)


class Mover:
    """Runs the page's commands in a shell, as one session of it. Of those that say where the tables
    are, the addresses are the test's."""

    def __init__(self, directory, section, google, certificate, ours):
        self.directory, self.commands = directory, iter(commands(section))
        self.google, self.certificate, self.ours = google, certificate, ours
        self.variables = ""
        programs = directory / "bin"
        programs.mkdir()
        (programs / "trestle").symlink_to(binary())
        self.env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def next(self):
        """The next command that is none of these."""
        command = next(self.commands)
        while re.match(r"[A-Z_]+=", command):
            prefix = "--from-" if command.startswith("FROM_") else "--"
            command = command.replace(GOOGLE, f"{self.google} {prefix}ca {self.certificate}")
            command = re.sub(rf"{OURS} \S+ ca.pem \S+ token", self.ours, command)
            self.variables += f"{command}\n"
            command = next(self.commands)
        return command

    def start(self, command):
        return subprocess.Popen(
            ["bash", "-c", f"{self.variables}exec {command}"], cwd=self.directory, env=self.env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self):
        running = self.start(self.next())
        said, _ = running.communicate(timeout=PATIENCE_SECONDS)
        assert running.returncode == 0, said
        return said

    def follow(self, meanwhile):
        """Until it follows, and then for as long as that takes; ^C."""
        running = self.start(self.next())
        line = ""
        while " behind, " not in line:
            line = running.stdout.readline()
            assert line, running.wait(PATIENCE_SECONDS)
        meanwhile()
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=PATIENCE_SECONDS)
        assert running.returncode == 0, said
        assert "; stopped: " in said


@pytest.fixture
def sides(secure, fresh_server, connect, tmp_path):
    """What stands for Google's service, ours, the stubs of both, and what makes a Mover."""
    secured = account_key(secure, tmp_path, "key.json")
    ours = fresh_server()

    def make_mover(section):
        google = secured.server.host.replace("127.0.0.1", "localhost")
        return Mover(tmp_path, section, google, secured.authority.certificate, ours.host)

    return secured, ours, secured.rpc("admin"), connect(ours.host), make_mover


def fill(rpc, seed):
    rpc.mutate_rows(NAME, Changes(seed, 300).rows_of(300))


def create(rpc):
    create_followed(rpc, "orders", instance=INSTANCE, change_stream_config=None)
    fill(rpc, 1)


def test_from_google_to_trestle_and_the_way_back(sides):
    _, _, google, ours, make_mover = sides
    create(google)
    mover = make_mover("From Google's Bigtable to Trestle")
    mover.follow(lambda: fill(google, 2))
    fill(google, 3)
    assert "; caught up: the row orders of the target's table trestle-follow" in mover.run()
    expect_same(google, ours, NAME)
    assert re.search(r"\n\d+ rows compared, 0 different\n", mover.run())
    mover.follow(lambda: fill(ours, 4))
    command = "trestle copy orders $FROM_TRESTLE $TO_GOOGLE --follow --state orders.back"
    mover.commands = iter([f"{command} --changes-only --until-caught-up"])
    fill(ours, 5)
    mover.run()
    expect_same(google, ours, NAME)


def test_from_trestle_to_google(sides):
    """The application writes until its writers are stopped."""
    _, server, google, ours, make_mover = sides
    create(ours)
    mover = make_mover("From Trestle to Google's Bigtable")
    with Writers(server.host, NAME, count=1, rows=300, rate=100):
        mover.follow(lambda: time.sleep(1))
    assert "; caught up: the file orders.follow" in mover.run()
    expect_same(google, ours, NAME)
    assert re.search(r"\n\d+ rows compared, 0 different\n", mover.run())
    assert list(mover.commands) == []


def test_each_side_has_its_stubs(sides):
    """What stands for Google's service lets nobody in without a token."""
    secured, _, _, _, _ = sides
    other = Rpc(secured.server.host, secured.credentials())
    with pytest.raises(Exception, match="UNAUTHENTICATED|credential"):
        other.read(NAME)
    other.close()
