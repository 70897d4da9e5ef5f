"""h2spec, the conformance test of HTTP/2, against the port, plain and with TLS: each of its tests
passes. It is fetched by its pinned modules (tests/hostile/h2spec) where Go is installed; what it
found is also in test_hostile_frames.py, which needs nothing."""

import subprocess
import xml.etree.ElementTree

import pytest
from harness.clients import BUILT, demand, prepare
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

PACKAGE = "github.com/summerwind/h2spec/cmd/h2spec"
TESTS = 145


@pytest.fixture(scope="module")
def h2spec():
    """The program's path."""
    demand("h2spec", "go")
    program = BUILT / "h2spec"
    prepare("h2spec", ["go", "build", "-o", program, PACKAGE], cwd=ROOT / "tests/hostile/h2spec")
    return program


def run(program, host, report, *options):
    """Names of all tests; of those that failed; and what it printed."""
    address, port = host.rsplit(":", 1)
    command = [program, "-h", address, "-p", port, "-o", "30", "-j", report, *options]
    done = subprocess.run(
        [str(each) for each in command],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    names = [case.get("package") + ": " + case.get("classname") for case in cases]
    failed = [name for name, case in zip(names, cases, strict=True) if len(case)]
    return names, failed, done.stdout + done.stderr


def test_plain(victim, h2spec, tmp_path):
    with victim.attacked():
        names, failed, output = run(h2spec, victim.host, tmp_path / "report.xml")
    assert not failed, output
    assert len(names) == TESTS


def test_tls(secure, h2spec, tmp_path):
    secured = secure()
    options = "-t", "-k"
    names, failed, output = run(h2spec, secured.server.host, tmp_path / "report.xml", *options)
    assert not failed, output
    assert len(names) == TESTS
    assert secured.server.process.poll() is None
