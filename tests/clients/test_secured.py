"""Google's clients for five languages with TLS and a token: the programs of examples/secured, of
which docs/operating/security.md shows the parts that connect. Each runs where its tools are."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from harness.clients import BUILT, build_go, demand, install_node, java_classpath, java_program
from harness.patience import PATIENCE_SECONDS
from harness.server import EXTERNAL, ROOT

EXAMPLES = ROOT / "examples/secured"
PAGE = ROOT / "docs/operating/security.md"
DENIED = "Access denied. Missing IAM permission: bigtable.tables.mutateRows."


def python():
    return [sys.executable, EXAMPLES / "python/secured.py"], {}


def go():
    return [build_go(EXAMPLES / "go", BUILT / "go/secured", "cloud.google.com/go/bigtable")], {}


def java():
    classpath = java_classpath(EXAMPLES / "java", BUILT / "java/classpath")
    return java_program(classpath, EXAMPLES / "java/Secured.java"), {}


def node():
    program = install_node(EXAMPLES / "node", BUILT / "node", "secured.mjs")
    return ["node", program], {"METADATA_SERVER_DETECTION": "none"}


def cbt():
    """With nothing else in PATH: cbt asks gcloud for credentials, which takes seconds."""
    demand("cbt", "cbt")
    folder = BUILT / "cbt"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "cbt"
    link.unlink(missing_ok=True)
    link.symlink_to(shutil.which("cbt"))
    return [EXAMPLES / "cbt/secured.sh"], {"PATH": str(folder)}


CLIENTS = [python, go, java, node, cbt]


def run(client, environment, arguments):
    command, own = client
    names = ("BIGTABLE_EMULATOR_HOST", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        [str(each) for each in [*command, *arguments]],
        env={**inherited, **own, **environment},
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("make", CLIENTS)
def test_with_tls_and_a_token(secure, tmp_path, make):
    client, secured = make(), secure()
    for token in "admin", "reader":
        (tmp_path / f"{token}-token").write_text(f"{token}\n")

    def run_as(token, *steps):
        where = secured.server.host, secured.authority.certificate, tmp_path / f"{token}-token"
        return run(client, {}, [*where, *steps])

    done = run_as("admin", "create", "write", "read")
    assert done.returncode == 0, done.stderr
    assert "world" in done.stdout
    assert "monitoring" not in done.stderr.lower()
    read = run_as("reader", "read", "write")
    assert read.returncode != 0
    assert "world" in read.stdout
    assert DENIED in read.stderr


@pytest.mark.parametrize("make", [go, java, node, cbt])
def test_without(fresh_server, tmp_path, make):
    """The same programs on a plain port, as everywhere else in these tests and in Python."""
    client, server = make(), fresh_server()
    environment = {"BIGTABLE_EMULATOR_HOST": server.host}
    done = run(client, environment, ["", "", "", "create", "write", "read"])
    assert done.returncode == 0, done.stderr
    assert "world" in done.stdout


@pytest.mark.skipif(EXTERNAL is not None, reason="is about the tree")
def test_the_page_shows_what_runs():
    """Each block that follows a file's name in a comment is a part of that file."""
    shown = re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {path.split("/")[2] for path, _ in shown}
    assert names == {make.__name__ for make in CLIENTS}
    for path, text in shown:
        assert f"\n{text}" in (ROOT / path).read_text(), path
