"""The suite of the HBase adapter, java-bigtable-hbase: the integration tests for HBase 2.

They are in none of the artifacts that Maven has, so that they are compiled out of a checkout
(--source) and run with the adapter as published, which properties tell where the server is."""

from pathlib import Path

import junit
from fetching import cache, demand, fetch
from outcomes import NotPublishedError
from servers import INSTANCE, PROJECT

EMULATOR_TOO = True
HERE = Path(__file__).resolve().parent / "java"
ADAPTER = "bigtable-hbase-2.x:{}", "bigtable-hbase:{}", "bigtable-metrics-api:1.29.2"
COMMON = "bigtable-client-core-parent/bigtable-hbase-integration-tests-common/src/test/java"
TESTS = "bigtable-hbase-2.x-parent/bigtable-hbase-2.x-integration-tests/src/test/java"
ELSEWHERE = "MiniClusterEnv.java", "EmulatorEnv.java"  # hbase/OtherEnvs.java stands for them


def prepare(suite, source):
    """The class path."""
    if source is None:
        raise NotPublishedError(
            "the adapter publishes no integration tests; "
            "`./dev clients hbase --source DIR` runs a checkout's"
        )
    demand("java", "javac", "mvn")
    folder = cache("hbase", suite["version"])
    listing, compiled = folder / "classpath", folder / "compiled"
    stamp = folder / "fetched"
    if not stamp.exists():
        fetch("what the adapter for HBase needs", [
            "mvn", "-q", "-B", "-f", HERE / "hbase/pom.xml", "dependency:build-classpath",
            f"-Dmdep.outputFile={listing}",
        ])  # fmt: skip
        for artifact in ADAPTER:
            name = f"com.google.cloud.bigtable:{artifact.format(suite['version'])}"
            fetch(name, ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={name}",
                         f"-DoutputDirectory={folder}"])  # fmt: skip
        stamp.touch()
    libraries = ":".join([*map(str, folder.glob("*.jar")), listing.read_text()])
    sources = [HERE / "Run.java", HERE / "hbase/OtherEnvs.java", *tests_of(source)]
    fetch("the suite for HBase", ["javac", "-nowarn", "-cp", libraries, "-d", compiled, *sources])
    return f"{compiled}:{libraries}"


def tests_of(source):
    """The source files: those for HBase 2 replace common ones of the same name."""
    found = {}
    for place in COMMON, TESTS:
        for path in sorted(Path(source, place).rglob("*.java")):
            found[path.relative_to(Path(source, place))] = path
    return [path for path in found.values() if path.name not in ELSEWHERE]


def run_suite(suite, classpath, server):
    properties = {
        "google.bigtable.test_env": "cloud",
        "google.bigtable.project.id": PROJECT,
        "google.bigtable.instance.id": INSTANCE,
        "google.bigtable.emulator.endpoint.host": server.host,
    }
    name = "com.google.cloud.bigtable.hbase.IntegrationTests"
    return junit.run_class(name, classpath, properties, suite["seconds"])
