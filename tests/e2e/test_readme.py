"""README.md's Python, the tour of docs/tour.md and the lines that `./dev run` prints, word for
word. The tour has a small copy of Debian's package index (test_debian_packages.py has it all)."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT, binary

# What the tour's queries show of the index. `apt-cache dumpavail` prints it.
PACKAGES = """\
Package: base58
Description: Command line encoder and decoder for Base58 format

Package: basex
Description: XML database and XPath/XQuery processor

Package: basez
Description: base 16/32/64 encode/decode data to standard output

Package: bash
Pre-Depends: libc6 (>= 2.36)
Description: GNU Bourne Again SHell

Package: libc6
Description: GNU C Library: Shared libraries
"""
ADDRESS = "127.0.0.1:8086"
# What prepares a machine for the tour; the tests' own environment has it.
PREPARATION = ("cd ", "python3 -m venv ", "export ")


def transcript(page):
    """(command, lines it is said to print) of a page's indented shell sessions."""
    session = []
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("    $ "):
            session.append((line.removeprefix("    $ "), []))
        elif line.startswith("    ") and session:
            session[-1][1].append(line.strip())
        else:
            session.append(("", []))  # a session ends where prose goes on
    return [(command, lines) for command, lines in session if command]


@pytest.fixture
def index(tmp_path):
    """A folder with an apt-cache that knows PACKAGES alone."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "packages").write_text(PACKAGES)
    program = folder / "apt-cache"
    program.write_text('#!/bin/sh\nexec cat "$(dirname "$0")/packages"\n')
    program.chmod(0o755)
    return folder


def run(command, host, data, index, cwd):
    words = shlex.split(re.sub(r"--seconds \d+", "--seconds 3", command.replace(ADDRESS, host)))
    known = {"venv/bin/python": sys.executable, "build/trestle": binary()}
    words = [known.get(word, word) for word in words]
    words = [str(data) if word == "data" else word for word in words]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={
            **os.environ,
            "BIGTABLE_EMULATOR_HOST": host,
            "PATH": f"{index}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    found = done.returncode == 1 and "advise" in words
    assert done.returncode == 0 or found, done.stderr
    return [line.strip() for line in done.stdout.splitlines()]


def without_numbers(lines, data):
    return [re.sub(r"\d+", "N", line.replace(str(data), "data")) for line in lines]


def doctest(text, host, tmp_path):
    """Runs the `>>>` lines of a text in a Python of their own; it compares what they print."""
    page = tmp_path / "page.txt"
    page.write_text(text)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "doctest", page],
        env={**os.environ, "BIGTABLE_EMULATOR_HOST": host},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout


def test_first_page(fresh_server, tmp_path):
    """A row is written and read, and read again after kill -9."""
    before, after = (ROOT / "README.md").read_text().split("kill -9 ", 1)
    assert before.count(">>> ") == 6 and after.count(">>> ") == 2
    server = fresh_server()
    doctest(before, server.host, tmp_path)
    server.kill()
    doctest(after, server.start().host, tmp_path)


def test_tour(fresh_server, index):
    """Numbers are those of the whole index, so they are not compared."""
    session = transcript("docs/tour.md")
    server, host, cwd = None, ADDRESS, ROOT
    ran = []
    for command, said in session:
        if command.startswith("./dev run"):
            server = server.start() if server else fresh_server(*shlex.split(command)[2:])
            host = server.host
            continue
        if command.startswith("cd "):
            cwd = ROOT / command.removeprefix("cd ")
        if command.startswith(PREPARATION):
            continue
        if "trestle doctor" in command:
            server.kill()
        place = ROOT if "build/" in command else cwd
        printed = run(command, host, server.data, index, place)
        ran.append(command.split()[0])
        if said:
            assert without_numbers(printed, server.data) == without_numbers(said, "data"), command
    assert set(ran) == {"venv/bin/python", "build/trestle", "curl"}


def test_pictures():
    """Those that the two pages show are there, small, and made by `./dev pictures`."""
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs/tour.md").read_text()
    shown = re.findall(r"\((?:docs/)?pictures/([\w-]+\.png)\)", pages)
    made = {path.name for path in (ROOT / "docs/pictures").iterdir()}
    assert set(shown) == made
    for picture in made:
        content = (ROOT / "docs/pictures" / picture).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 150_000


def said_by_run(start, end):
    """Lines of what `./dev run` prints, between two others."""
    text = (ROOT / "dev").read_text().replace("$1", ADDRESS)
    return text.split(start, 1)[1].split(end, 1)[0]


@pytest.fixture
def greetings(rpc):
    """The table of those lines."""
    name = rpc.create_table("greetings")
    yield name
    rpc.delete_table(name)


def test_python_of_dev_run(emulator_host, greetings):
    program = said_by_run("(pip install google-cloud-bigtable):\n", "  Any project")
    assert "BigtableDataClient" in program
    lines = [line.removeprefix("    ") for line in program.strip("\n").splitlines()]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={**os.environ, "BIGTABLE_EMULATOR_HOST": emulator_host},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "from Python" in done.stdout


@pytest.mark.skipif(shutil.which("cbt") is None, reason="there is no cbt here")
def test_cbt_of_dev_run(fresh_server, tmp_path):
    server = fresh_server()
    (tmp_path / ".cbtrc").write_text("creds = /dev/null\n")  # or it asks gcloud, for seconds
    lines = said_by_run("with cbt:\n", "in Python").strip().splitlines()
    assert len(lines) == 3
    for line in [*lines, "cbt -project p -instance i ls"]:
        done = subprocess.run(
            shlex.split(line),
            env={**os.environ, "BIGTABLE_EMULATOR_HOST": server.host, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        if "read" in line:
            assert '"world"' in done.stdout
    assert "greetings" in done.stdout
