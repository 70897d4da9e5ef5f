"""The release build, for tests that measure memory: sanitizers multiply it."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.server import ROOT


@pytest.fixture(scope="session")
def release_binary():
    """TRESTLE_RELEASE, or build/trestle, made if it is missing or old."""
    given = os.environ.get("TRESTLE_RELEASE")
    if given:
        return given
    done = subprocess.run(
        [str(ROOT / "dev"), "build"], cwd=ROOT, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return str(ROOT / "build/trestle")


def memory(server, field="VmRSS"):
    """Bytes of /proc/PID/status: VmRSS is now, VmHWM the peak."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith(field + ":")]
    return int(line.split()[1]) * 1024
