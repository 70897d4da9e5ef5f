"""Where fetched suites are kept, and how programs are run that fetch, build and test them.

Everything is had from the registry that the machine's own client of the language is set to. What is
fetched stays outside the tree: under the folder that
SUITES_CACHE names (./dev sets it)."""

import os
import shutil
import subprocess
from pathlib import Path

from outcomes import UnavailableError

FETCH_SECONDS = 1800


def cache(*parts):
    """A folder of ours in the cache."""
    root = os.environ.get("SUITES_CACHE") or Path.home() / ".cache/trestle/clients"
    folder = Path(root, *parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def demand(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise UnavailableError(f"{program} is not installed")


def fetch(what, command, **options):
    """What a command prints that fetches or builds `what`."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, timeout=FETCH_SECONDS, check=False, **options,
    )  # fmt: skip
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or [str(done.returncode)]
        told = [line for line in lines if "error" in line.lower()] or lines[-1:]
        raise UnavailableError(f"{what} cannot be had: {told[0]}")
    return done.stdout


def run(command, seconds, environment, **options):
    """(exit code, output) of a test; one that takes too long is ended."""
    command = [str(part) for part in command]
    environment = {name: value for name, value in environment.items() if value is not None}
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds, check=False,
            **options,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        output = late.output or b""
        text = output.decode(errors="replace") if isinstance(output, bytes) else output
        return 124, f"{text}\nerror: not done after {seconds} s"
    return done.returncode, done.stdout


def clean_environment(**more):
    """This one's, without what leads a client elsewhere."""
    names = ("BIGTABLE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "DATASTORE_EMULATOR_HOST")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "METADATA_SERVER_DETECTION": "none", "NO_GCE_CHECK": "true", **more}
