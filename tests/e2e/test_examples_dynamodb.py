"""examples/dynamodb: the page's commands print what it says."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest
from harness.server import ROOT, binary

EXAMPLE = ROOT / "examples/dynamodb"


def commands():
    """(command, what the page shows behind it), in its order."""
    found = []
    for line in (EXAMPLE / "README.md").read_text().splitlines():
        text = line.removeprefix("    ")
        if text == line:
            continue
        if text.startswith("$ "):
            found.append((text[2:], []))
        else:
            found[-1][1].append(text)
    return [(command, expected) for command, expected in found if "venv && " not in command]


@pytest.fixture
def folder(tmp_path):
    """A copy: imports leave files."""
    shutil.copytree(EXAMPLE, tmp_path / "dynamodb")
    return tmp_path / "dynamodb"


def test_the_page_says_what_happens(fresh_server, folder):
    environment = {**os.environ, "BIGTABLE_EMULATOR_HOST": fresh_server().host}
    ran = 0
    for command, expected in commands():
        if command.startswith("export "):
            continue
        words = shlex.split(command)
        words[:1] = [{"trestle": binary(), "venv/bin/python": sys.executable}[words[0]]]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout.splitlines() == expected, command
        ran += 1
    assert ran == 19
    assert not list(folder.glob("*.rejects.jsonl")) + list(folder.glob("*.checkpoint*"))
