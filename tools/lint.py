#!/usr/bin/python3
"""Runs clang-tidy over the files named on stdin, but not over what was clean before.

    lint.py BUILD_DIRECTORY CACHE_DIRECTORY ARGUMENT... <FILES

The arguments are clang-tidy's. A file that passed leaves an empty file in the cache, whose name is
a hash of all that the outcome follows from: clang-tidy itself and its settings, the arguments, how
the file is compiled, its text, and that of everything that it includes. A file that did not pass
leaves nothing, so it is looked at again. An entry holds nothing, so none can be half written.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ENTRIES = 20000  # the cache's bound: ten times the tree, in files of no bytes


@functools.cache
def digest(path):
    """The hash of a file's bytes; of one that is not there, of its name."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return f"none: {path}"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def compilations(build):
    """{file: (command, its object)} by the paths that ninja was told."""
    entries = json.loads((build / "compile_commands.json").read_text())
    return {
        os.path.normpath(build / entry["file"]): (entry["command"], entry["output"])
        for entry in entries
    }


def dependencies(build):
    """{object: paths of all that it was compiled from}, as the last build noted them."""
    found, current = {}, None
    for line in run("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line.startswith(" "):
            current.append(os.path.normpath(build / line.strip()))
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], [])
    return found


class Keys:
    def __init__(self, build, arguments):
        self.commands = compilations(build)
        self.included = dependencies(build)
        self.common = [run("clang-tidy", "--version"), digest(".clang-tidy"), *arguments]

    @functools.cached_property
    def all_headers(self):
        return sorted(run("git", "ls-files", "src/*.h").split())

    def key(self, path):
        """A file that this build does not compile (a fuzzer) may include any header."""
        command, output = self.commands.get(os.path.normpath(path), ("", None))
        read = self.included.get(output) or [path, *self.all_headers]
        parts = [*self.common, path, command, *(digest(each) for each in sorted(read))]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def drop_oldest(cache):
    entries = sorted(cache.iterdir(), key=lambda entry: entry.stat().st_mtime)
    for entry in entries[: max(len(entries) - ENTRIES, 0)]:
        entry.unlink(missing_ok=True)


def tidy(path, build, arguments):
    """What clang-tidy prints of a file that does not pass, or None."""
    command = ["clang-tidy", "--quiet", "-p", str(build), *arguments, path]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout or done.stderr


def lint(paths, build, cache, arguments):
    keys = Keys(build, arguments)
    entries = {path: cache / keys.key(path) for path in paths}
    waiting = [path for path in paths if not entries[path].exists()]
    for path in set(paths) - set(waiting):
        entries[path].touch()
    clean = len(paths) - len(waiting)
    print(f"   {clean} of {len(paths)} files were clean before", file=sys.stderr)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda path: tidy(path, build, arguments), waiting)
        for path, said in zip(waiting, outcomes):
            if said is None:
                entries[path].touch()
            else:
                failed += 1
                print(said)
    return failed


def main(build, cache, *arguments):
    cache = Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    failed = lint(sys.stdin.read().split(), Path(build), cache, arguments)
    drop_oldest(cache)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
