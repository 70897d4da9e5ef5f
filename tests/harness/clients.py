"""Programs that use Google's clients for other languages: built where their tools are installed."""

import os
import shutil
import subprocess

import pytest
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

BUILT = ROOT / "build-test/clients"  # kept: the first run compiles for minutes
FETCH_SECONDS = 400


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
    """The program's path. `package` is the library, fetched and compiled by itself first."""
    demand("the client for Go", "go")
    prepare("the client for Go", ["go", "build", package], cwd=folder)
    subprocess.run(["go", "build", "-o", program, "."], cwd=folder, check=True)
    return program


def java_classpath(folder, listing):
    """The libraries of the folder's pom.xml; `listing` is a file to write them to."""
    demand("the client for Java", "java", "javac", "mvn")
    prepare("the client for Java", [
        "mvn", "-q", "-B", "-f", folder / "pom.xml", "dependency:build-classpath",
        f"-Dmdep.outputFile={listing}",
    ])  # fmt: skip
    return listing.read_text()


def install_node(source, folder, program):
    """The program's path in `folder`, with its packages, since Node looks for them there."""
    demand("the client for Node", "node", "npm")
    lock, stamp = source / "package-lock.json", folder / "installed-lock.json"
    if not stamp.exists() or stamp.read_text() != lock.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        prepare("the client for Node", ["npm", "ci", "--ignore-scripts", "--no-audit"], cwd=folder)
        shutil.copy(lock, stamp)
    for each in source.glob("*.mjs"):
        shutil.copy(each, folder)
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
