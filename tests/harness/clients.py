"""Programs that use Google's clients for other languages: built where their tools are installed."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

BUILT = ROOT / "build-test/clients"  # kept: the first run compiles for minutes
# Where ./dev wants Node's packages kept, by content: to unpack them takes ten seconds of CPU.
CACHE = Path(os.environ.get("TRESTLE_DEV_CACHE", BUILT))
FETCH_SECONDS = 400
# A program that lives for seconds: half of its CPU time went into compiling what runs a few times.
JAVA_OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def demand(what, *programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{what} needs {program}, which is not installed")


def prepare(what, command, **options):
    """Runs what fetches a library; without a network that cannot be done."""
    try:
        done = subprocess.run(
            [str(each) for each in command],
            capture_output=True, text=True, timeout=FETCH_SECONDS, check=False, **options,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} is not there after {FETCH_SECONDS} s")
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        pytest.skip(f"{what} cannot be had: {lines[0] if lines else done.returncode}")


def build_go(folder, program, package):
    """The program's path. `package` is the library, fetched and compiled by itself first. One
    process at a time: whoever comes second finds it made, and leaves it to those who run it."""
    demand("the client for Go", "go")
    program.parent.mkdir(parents=True, exist_ok=True)
    with open(program.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prepare("the client for Go", ["go", "build", package], cwd=folder)
        subprocess.run(["go", "build", "-o", program, "."], cwd=folder, check=True)
    return program


def build_bigtable_go():
    """The program of two files of tests."""
    folder = ROOT / "tests/clients/bigtable/go"
    return build_go(folder, BUILT / "bigtable/go/bigtable", "cloud.google.com/go/bigtable")


def java_classpath(folder, listing):
    """The libraries of the folder's pom.xml; `listing` is a file to write them to."""
    demand("the client for Java", "java", "javac", "mvn")
    prepare("the client for Java", [
        "mvn", "-q", "-B", "-f", folder / "pom.xml", "dependency:build-classpath",
        f"-Dmdep.outputFile={listing}",
    ], env={**os.environ, "MAVEN_OPTS": " ".join(JAVA_OPTIONS)})  # fmt: skip
    return listing.read_text()


def java_program(classpath, program):
    """The command that compiles and runs a program of one file."""
    return ["java", *JAVA_OPTIONS, "-cp", classpath, program]


def java_classes(classpath, program, folder):
    """The folder with what is compiled of a program that belongs to a library's package."""
    subprocess.run(
        ["javac", "-nowarn", "-d", folder, "-cp", classpath, program], check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return folder


def node_packages(source):
    """The folder of what the lock file of `source` names. Others may be making it, too: whoever is
    first has made it, whole."""
    lock = (source / "package-lock.json").read_bytes()
    folder = CACHE / "node-packages" / hashlib.sha256(lock).hexdigest()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            new = Path(place, "new")
            new.mkdir()
            for name in "package.json", "package-lock.json":
                shutil.copy(source / name, new)
            prepare(
                "the client for Node", ["npm", "ci", "--ignore-scripts", "--no-audit"], cwd=new
            )
            with contextlib.suppress(OSError):  # it is there by now
                new.rename(folder)
    return folder / "node_modules"


def install_node(source, folder, program):
    """The program's path in `folder`, with its packages, since Node looks for them there."""
    demand("the client for Node", "node", "npm")
    packages = node_packages(source)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    (folder / "node_modules").symlink_to(packages)
    return folder / program


def run_checks(command, environment, checks):
    """Runs a program that prints "ok ..." for each of so many things that are as they should be."""
    done = subprocess.run(
        [str(each) for each in command],
        env={**os.environ, "METADATA_SERVER_DETECTION": "none", **environment},
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("ok ")]) == checks
