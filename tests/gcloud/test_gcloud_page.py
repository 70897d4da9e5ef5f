"""docs/operating/gcloud.md: its lines are run, and say what the page shows."""

import re
import shlex
import subprocess

import pytest
from harness.gcloud import PROGRAM, environment
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

PAGE = ROOT / "docs/operating/gcloud.md"

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no gcloud here")


def example(heading):
    """The commands of a section's example, each with what the page says that it prints."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    block = re.search(r"(    \$ .*\n(    .*\n)*)", section)[0]
    commands = []
    for line in re.findall(r"^    (.*)$", block, re.MULTILINE):
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def run(example, host, directory):
    """In one shell's environment; the port is the test's."""
    env = environment(directory / "config")
    for command, expected in example:
        here = command.replace("8086", host.rsplit(":", 1)[1]).replace("$PWD", str(directory))
        words = shlex.split(here)
        if words[0] == "export":
            env.update([words[1].split("=", 1)])
            continue
        assert words[0] == "gcloud"
        done = subprocess.run(
            words, env=env, cwd=directory, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert not expected or done.stdout.splitlines() == expected, command


ORDERS = """
indexes:
- kind: Order
  properties:
  - name: customer
  - name: placed
    direction: desc
"""


@pytest.mark.slow_gcloud
def test_datastore(fresh_server, tmp_path):
    (tmp_path / "index.yaml").write_text(ORDERS)
    run(example("Datastore's indexes"), fresh_server().host, tmp_path)


@pytest.mark.slow_gcloud
def test_without_tls(fresh_server, tmp_path):
    run(example("Without TLS"), fresh_server().host, tmp_path)


def test_with_tls_and_a_token(secure, tmp_path):
    server = secure()
    (tmp_path / "token").write_text("admin\n")
    (tmp_path / "server-ca.pem").write_bytes(server.authority.certificate.read_bytes())
    run(example("With TLS and a token"), server.server.host, tmp_path)
    (tmp_path / "token").write_text("nobody\n")
    with pytest.raises(AssertionError, match="UNAUTHENTICATED|invalid authentication credentials"):
        run(example("With TLS and a token"), server.server.host, tmp_path)


def test_entities_that_expire(fresh_server, tmp_path):
    run(example("Datastore: entities that expire"), fresh_server().host, tmp_path)
