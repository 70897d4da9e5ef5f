"""The suite of @google-cloud/bigtable for Node.js: system-test/ of its repository.

The npm package has no tests in it, so that they are run out of a checkout (--source), in a copy.
One line of the client is changed: beside BIGTABLE_EMULATOR_HOST it does not ask for the project
that GCLOUD_PROJECT names."""

import json
import shutil
import tarfile

from fetching import cache, clean_environment, demand, fetch, run
from outcomes import (
    FAILED,
    PASSED,
    SKIPPED,
    NotPublishedError,
    Outcome,
    UnavailableError,
    wanted,
)
from servers import PROJECT

EMULATOR_TOO = False  # its first hook makes an instance, which the emulator cannot
CLIENT = "build/src/index.js"
PROJECT_OF = "this.projectId = options.projectId || '{{projectId}}'"
FILES = (
    "bigtable", "cluster", "app-profile", "read-rows", "mutate-rows",
    "read-rows-acceptance-tests", "read-modify-write-row-interceptors",
)  # fmt: skip


def prepare(suite, source):
    """The folder in which the suite is compiled."""
    demand("node", "npm")
    if source is None:
        look_for_tests(suite)
    copy = cache("node", "checkout")
    shutil.rmtree(copy)
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git", "node_modules", "build"))
    fetch("what the suite for Node needs", ["npm", "install", "--ignore-scripts", "--no-audit"],
          cwd=copy)  # fmt: skip
    fetch("the suite for Node", ["npx", "--no-install", "tsc"], cwd=copy)
    shutil.copytree(copy / "protos", copy / "build/protos", dirs_exist_ok=True)
    name_the_project(copy / CLIENT)
    return copy


def look_for_tests(suite):
    folder = cache("node", suite["version"])
    if not list(folder.glob("*.tgz")):
        name = f"{suite['package']}@{suite['version']}"
        fetch(name, ["npm", "pack", "--silent", name], cwd=folder)
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        tests = [name for name in packed.getnames() if "system-test" in name]
    raise NotPublishedError(
        "the npm package has tests, which this program does not know" if tests else
        "the npm package has no tests in it; `./dev clients node --source DIR` runs a checkout's"
    )  # fmt: skip


def name_the_project(path):
    text = path.read_text()
    if PROJECT_OF not in text:
        raise UnavailableError(f"{path.name} finds its project otherwise than was known")
    named = PROJECT_OF.replace("||", "|| process.env.GCLOUD_PROJECT ||")
    path.write_text(text.replace(PROJECT_OF, named))


def run_suite(suite, folder, server):
    for name in filter(lambda name: wanted(suite, name), FILES):
        yield from run_file(suite, folder, server, name)


def run_file(suite, folder, server, name):
    report = cache("node") / "report.json"
    report.unlink(missing_ok=True)
    environment = clean_environment(BIGTABLE_EMULATOR_HOST=server.host, GCLOUD_PROJECT=PROJECT)
    code, output = run(
        ["npx", "--no-install", "mocha", "--timeout", "600000", "--exit", "--reporter", "json",
         "--reporter-option", f"output={report}", f"build/system-test/{name}.js"],
        suite["seconds"], environment, cwd=folder,
    )  # fmt: skip
    if not report.exists():
        return [Outcome(f"{name} (whole)", FAILED, output if code else "no report")]
    return list(outcomes_of(name, json.loads(report.read_text())))


def outcomes_of(name, report):
    pending = {each["fullTitle"] for each in report["pending"]}
    for each in report["tests"]:
        title = f"{name}: {each['fullTitle']}"
        if each["fullTitle"] in pending:
            yield Outcome(title, SKIPPED)
        else:
            yield Outcome(title, FAILED if each["err"] else PASSED, each["err"].get("message", ""))
    tested = {each["fullTitle"] for each in report["tests"]}
    for each in report["failures"]:  # hooks, which stop the rest
        if each["fullTitle"] not in tested:
            yield Outcome(f"{name}: {each['fullTitle']}", FAILED, each["err"].get("message", ""))
