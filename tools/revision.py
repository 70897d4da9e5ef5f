#!/usr/bin/python3
"""Which commit this tree is: twelve digits of it, and "-dirty" if the tree was changed since. In a
copy without git's directory, or where git is not installed, "unknown": also below another
repository, whose commits would say nothing."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*arguments):
    done = subprocess.run(
        ["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def revision():
    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != ROOT:
            return "unknown"
        return git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


if __name__ == "__main__":
    print(revision())
