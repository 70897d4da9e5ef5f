"""Plants each fault of faults.py into a copy of its file, links the unit test that is to trip over
it with that in place of the sound one, and expects the self check (src/base/check.h) to end it by
name. The tree itself is not touched. Needs a build with a sanitizer: build-test, as ./dev test has.

Each day has its share, the first of them runs each time; ./dev test --long planted runs all.
"""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from faults import FAULTS
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

BUILD = ROOT / "build-test"
# Of a compile command, what is about a file that the compiler writes beside the object.
DEPENDENCIES = {"-MQ", "-MF"}

pytestmark = pytest.mark.skipif(
    not (BUILD / "compile_commands.json").exists(), reason="needs build-test"
)


def run(words, **options):
    done = subprocess.run(
        words, cwd=BUILD, capture_output=True, text=True, errors="replace", **options
    )
    return done.returncode, done.stdout + done.stderr


def must(words):
    code, said = run(words)
    assert code == 0, f"{shlex.join(map(str, words))}\n{said}"
    return said


def planted(fault, directory):
    """A copy of the file with the fault in it."""
    text = (ROOT / "src" / fault.file).read_text()
    assert text.count(fault.old) == 1, f"{fault.file} has changed: {fault.old!r} is not there once"
    copy = directory / os.path.basename(fault.file)
    copy.write_text(text.replace(fault.old, fault.new))
    return copy


def compiled(fault, directory):
    """The object of that copy, by the command that the build has for the file."""
    source = os.path.realpath(ROOT / "src" / fault.file)
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    (command,) = [
        each["command"]
        for each in commands
        if os.path.realpath(os.path.join(each["directory"], each["file"])) == source
    ]
    words = shlex.split(command)
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in {"-MD", *DEPENDENCIES} and before not in DEPENDENCIES
    ]
    kept[kept.index("-o") + 1] = str(directory / "planted.o")
    kept[kept.index("-c") + 1] = str(planted(fault, directory))
    must([*kept, "-Wno-error"])
    return directory / "planted.o"


def linked(fault, directory, target):
    """The program with that object before all others: what it defines is taken from nowhere
    else."""
    must(["ninja", "--quiet", target])
    words = shlex.split(must(["ninja", "-t", "commands", target]).splitlines()[-1])
    at = words.index("-o") + 1
    assert words[at] == target
    program = directory / "planted"
    must([*words[:at], str(program), str(compiled(fault, directory)), *words[at + 1 :]])
    return program


def cases():
    first, *others = FAULTS
    yield pytest.param(first, id=first.name)
    for fault in others:
        yield pytest.param(fault, id=fault.name, marks=pytest.mark.long)


@pytest.mark.timeout(4 * PATIENCE_SECONDS)  # a program may have hundreds of lives before
@pytest.mark.parametrize("fault", list(cases()))
def test_fault_is_caught_by_name(fault, tmp_path):
    program = linked(fault, tmp_path, f"src/{fault.program}")
    code, said = run([program], timeout=3 * PATIENCE_SECONDS)
    expected = fault.check if fault.is_compared else f"this is a bug in trestle: {fault.check}"
    assert code != 0, "nothing fails"
    assert expected in said, said[-4000:]


OF_VIEWS = [fault for fault in FAULTS if fault.file.startswith("views/")]


@pytest.mark.long
@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in OF_VIEWS])
def test_fault_of_views_is_found_by_crashes(fault, tmp_path):
    """By ./dev crash views, over a server that has it."""
    server = linked(fault, tmp_path, "trestle")
    words = [sys.executable, str(ROOT / "tests/crash/views.py"), "--cycles", "10", "--seed", "1",
             "--settle-seconds", "5", "--directory", str(tmp_path / "crash")]  # fmt: skip
    environment = {**os.environ, "TRESTLE_BINARY": str(server)}
    code, said = run(words, timeout=PATIENCE_SECONDS, env=environment)
    assert code != 0, "nothing is found"
    assert re.search(r"v_\w+: misses \[.*\], has \[", said), said[-4000:]


def test_each_fault_has_its_place():
    """Of all faults in each run: most of them are planted on one day of seven."""
    for fault in FAULTS:
        text = (ROOT / "src" / fault.file).read_text()
        assert text.count(fault.old) == 1, f"{fault.name}: not once in {fault.file}"


def test_names_are_there_once():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
