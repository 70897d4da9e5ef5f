"""The suite of google-cloud-bigtable for Java: the classes *IT of the artifact's `tests` jar.

They ask a class CloudEnv where to dial; java/CloudEnv.java takes its place, and leads to the server
without TLS. java/Run.java runs a class by JUnit and prints what came of each test."""

import zipfile
from pathlib import Path

import junit
from fetching import cache, demand, fetch
from outcomes import UnavailableError, wanted
from servers import INSTANCE, PROJECT

EMULATOR_TOO = False  # it would skip two thirds; and instances cannot be made
BUILT = "google-cloud-bigtable/target/test-classes"  # in a checkout, by `mvn test-compile`
HERE = Path(__file__).resolve().parent / "java"


def prepare(suite, source):
    """(class path, names of the classes)."""
    demand("java", "javac", "mvn")
    folder = cache("java", suite["version"])
    listing, compiled = folder / "classpath", folder / "compiled"
    pom, stamp = (HERE / "pom.xml").read_text(), folder / "pom.xml"
    if not stamp.exists() or stamp.read_text() != pom:
        fetch("the suite for Java", [
            "mvn", "-q", "-B", "-f", HERE / "pom.xml", f"-Dsuite.version={suite['version']}",
            "dependency:build-classpath", f"-Dmdep.outputFile={listing}",
        ])  # fmt: skip
        stamp.write_text(pom)
    tests = Path(source, BUILT) if source else unpacked(listing.read_text(), folder / "tests")
    libraries = f"{tests}:{listing.read_text()}"
    sources = sorted(HERE.glob("*.java"))
    fetch("CloudEnv", ["javac", "-nowarn", "-cp", libraries, "-d", compiled, *sources])
    return f"{compiled}:{libraries}", classes_of(tests)


def unpacked(libraries, folder):
    """The folder into which the jar of tests is unpacked: some read files beside their classes."""
    jars = [jar for jar in libraries.split(":") if jar.endswith("-tests.jar")]
    if not jars:
        raise UnavailableError("the artifact has no jar of tests")
    with zipfile.ZipFile(jars[0]) as jar:
        jar.extractall(folder)
    return folder


def classes_of(tests):
    return sorted(
        ".".join(path.relative_to(tests).with_suffix("").parts)
        for path in tests.rglob("*IT.class") if path.match("v2/it/*.class") and "$" not in path.name
    )  # fmt: skip


def run_suite(suite, prepared, server):
    classpath, names = prepared
    for name in filter(lambda name: wanted(suite, name), names):
        yield from run_class(suite, classpath, server, name)


def run_class(suite, classpath, server, name):
    properties = {
        "bigtable.env": "cloud", "bigtable.data-endpoint": server.host,
        "bigtable.project": PROJECT, "bigtable.instance": INSTANCE,
        "bigtable.table": "suite-table",
    }  # fmt: skip
    return junit.run_class(name, classpath, properties, suite["seconds"])
