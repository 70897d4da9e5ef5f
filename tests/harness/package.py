"""Packages of the release binary, made for the tests that look into them."""

import os
import subprocess

from harness.server import ROOT


def run(*words, **options):
    """What a program printed that must succeed."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(program, directory):
    """The path of a fresh Debian package of the program."""
    no_symbols = {**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym"}  # they take as long again
    run(ROOT / "packaging/deb", program, directory, env=no_symbols)
    (package,) = directory.glob("trestle_*.deb")
    return package
