"""The suite of cloud.google.com/go/bigtable: integration_test.go of the module, in a copy.

It is run as against production (-it.use-prod). One line of the client is changed, where it dials
what BIGTABLE_EMULATOR_HOST names: with production's limit of 256 MiB a message, not gRPC's of 4.
Each test has a process of its own, since some end theirs."""

import json
import re
import shutil
from pathlib import Path

from fetching import cache, clean_environment, demand, fetch, run
from outcomes import FAILED, PASSED, SKIPPED, Outcome, UnavailableError, wanted
from servers import CLUSTERS, INSTANCE, PROJECT

EMULATOR_TOO = True
# Of a key that nobody looks for: it is kept and shown.
KEYS = f"projects/{PROJECT}/locations/us-central1/keyRings/suite"
DIALS = "internal/option/option.go"
DIALED = "grpc.WithTransportCredentials(insecure.NewCredentials())"
LIMITS = (
    "grpc.WithDefaultCallOptions("
    "grpc.MaxCallRecvMsgSize(1<<28), grpc.MaxCallSendMsgSize(1<<28))"
)


def prepare(suite, source):
    """The test's program."""
    demand("go")
    folder = cache("go", suite["version"])
    program = folder / "integration.test"
    if source is None and program.exists():
        return program
    copy = folder / "module"
    shutil.rmtree(copy, ignore_errors=True)
    copy_writable(source or download(suite), copy)
    dial_with_limits(copy / DIALS)
    fetch("the suite for Go", ["go", "test", "-c", "-o", program, "."], cwd=copy)
    return program


def download(suite):
    name = f"{suite['module']}@{suite['version']}"
    told = fetch(name, ["go", "mod", "download", "-json", name], cwd=cache("go"))
    return json.loads(told)["Dir"]


def copy_writable(source, target):
    shutil.copytree(source, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)


def dial_with_limits(path):
    text = path.read_text()
    if text.count(DIALED) != 1:
        raise UnavailableError(f"{path.name} dials otherwise than in the version that is pinned")
    path.write_text(text.replace(DIALED, f"{DIALED}, {LIMITS}"))


def run_suite(suite, program, server):
    names = run([program, "-test.list", suite["tests"]], 120, clean_environment())[1].split()
    for name in names:
        if wanted(suite, name) and not re.search(suite["without"], name):
            server.restart()
            yield run_test(suite, program, server, name)


def run_test(suite, program, server, name):
    code, output = run(
        [program, "-test.v", "-test.run", f"^{name}$", "-it.use-prod", "-it.project", PROJECT,
         "-it.instance", INSTANCE, "-it.cluster", CLUSTERS[0], "-it.cluster2", CLUSTERS[1]],
        min(suite["seconds"], server.seconds),
        clean_environment(BIGTABLE_EMULATOR_HOST=server.host, GCLOUD_TESTS_BIGTABLE_KEYRING=KEYS),
        cwd=Path(program).parent / "module",
    )  # fmt: skip
    if re.search(rf"^--- SKIP: {name}\b", output, re.MULTILINE):
        return Outcome(name, SKIPPED, output)
    passed = code == 0 and re.search(rf"^--- PASS: {name}\b", output, re.MULTILINE)
    return Outcome(name, PASSED if passed else FAILED, output)
