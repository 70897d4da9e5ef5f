"""Plants each fault of faults.py into a copy of its file, links the unit test that is to trip over
it with that in place of the sound one, and expects the self check (src/base/check.h) to end it by
name. The tree itself is not touched. Needs a build with a sanitizer: build-test, as ./dev test has.

Each day has its share, the first of them runs each time; ./dev test --long planted runs all.
"""

import json
import os
import shlex
import subprocess

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


def linked(fault, directory):
    """The unit test with that object before all others: what it defines is taken from nowhere
    else."""
    target = f"src/{fault.program}"
    must(["ninja", "--quiet", target])
    words = shlex.split(must(["ninja", "-t", "commands", target]).splitlines()[-1])
    at = words.index("-o") + 1
    assert words[at] == target
    program = directory / "planted_test"
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
    code, said = run([linked(fault, tmp_path)], timeout=3 * PATIENCE_SECONDS)
    assert code != 0, "nothing fails"
    assert f"this is a bug in trestle: {fault.check}" in said, said[-4000:]


def test_each_fault_has_its_place():
    """Of all faults in each run: most of them are planted on one day of seven."""
    for fault in FAULTS:
        text = (ROOT / "src" / fault.file).read_text()
        assert text.count(fault.old) == 1, f"{fault.name}: not once in {fault.file}"


def test_names_are_there_once():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
