#!/usr/bin/python3
"""Lists unit test programs, and counts the cases of all tests.

    unit_tests.py names|programs BUILD_DIRECTORY [PATTERN]
        Meson's tests whose path has PATTERN in it, one a line: their names, or their paths, which
        are what ninja builds.
    unit_tests.py count FILE...
        Reads what Meson (testlog.json) and pytest (JUnit XML) left, names what failed, and ends
        with the line `N passed, N failed`. Exit 1 if a case failed or none ran.

A C program's cases are the lines of its TAP output. A program that ends badly after cases that all
passed (a sanitizer's report, a crash) counts as one failed case more; so does one without cases.
"""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

TAP_LINE = re.compile(r"^(ok|not ok) \d+(?: - (.*?))?(\s+# SKIP.*)?$", re.MULTILINE | re.IGNORECASE)


def list_tests(what, build, pattern):
    command = ["meson", "introspect", "--tests", build]
    tests = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    for test in tests:
        path = test["cmd"][0].removeprefix(f"{Path(build).resolve()}/")
        if re.search(pattern, path):
            print(path if what == "programs" else test["name"])


def count_program(record):
    """(passed, names of failed) of one line of testlog.json."""
    lines = TAP_LINE.findall(record.get("stdout") or "")
    passed = sum(1 for result, _, _ in lines if result.lower() == "ok")
    failed = [f"{record['name']}: {name}" for result, name, _ in lines if result.lower() != "ok"]
    if not failed and (record["result"] != "OK" or not lines):
        failed = [f"{record['name']}: {record['result'].lower()}, {len(lines)} cases ran"]
    return passed, failed


def count_meson(path):
    passed, failed = 0, []
    for line in path.read_text().splitlines():
        program_passed, program_failed = count_program(json.loads(line))
        passed += program_passed
        failed += program_failed
    return passed, failed


def count_pytest(path):
    passed, failed = 0, []
    for case in xml.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is None:
            passed += 1
    return passed, failed


def count(paths):
    passed, failed = 0, []
    for path in map(Path, paths):
        if not path.exists():
            failed.append(f"{path}: the runner left no results")
            continue
        file_passed, file_failed = (count_pytest if path.suffix == ".xml" else count_meson)(path)
        passed += file_passed
        failed += file_failed
    for name in failed:
        print("FAILED", name)
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or passed == 0 else 0


def main(arguments):
    if len(arguments) >= 2 and arguments[0] in ("names", "programs"):
        return list_tests(arguments[0], arguments[1], "".join(arguments[2:3]))
    if len(arguments) >= 2 and arguments[0] == "count":
        return count(arguments[1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
