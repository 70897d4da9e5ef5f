"""Prometheus's own promtool, which evaluates alerts: the one that is installed, or that `./dev
install test` has taken out of Debian's package prometheus."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import yaml
from harness.server import ROOT

RULES = ROOT / "packaging/prometheus/trestle.rules.yml"


def find():
    """Its path; None where there is none."""
    home = os.environ.get("HOME", "/root")
    caches = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    caches = os.environ.get("TRESTLE_DEV_CACHE") or f"{caches}/trestle"
    taken = Path(caches) / "promtool/promtool"
    return shutil.which("promtool") or (str(taken) if os.access(taken, os.X_OK) else None)


PROMTOOL = find()


def run(*arguments, text=None):
    command = [PROMTOOL, *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True)


@functools.cache
def alerts():
    """{name: rule} of the file that the package has."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def check_rules(directory, tests, interval="1m"):
    """Runs `promtool test rules` with these tests; what it complains about, or nothing. It has
    samples up to the last multiple of the interval."""
    file = directory / "alerts.test.yml"
    file.write_text(yaml.safe_dump(
        {"rule_files": [str(RULES)], "evaluation_interval": interval, "tests": tests}
    ))  # fmt: skip
    done = run("test", "rules", file)
    return "" if done.returncode == 0 else done.stdout + done.stderr
