"""The suite of google-cloud-bigtable for Java: the classes *IT of the artifact's `tests` jar.

They ask a class CloudEnv where to dial; java/CloudEnv.java takes its place, and leads to the server
without TLS. java/Run.java runs a class by JUnit and prints what came of each test."""

import re
import zipfile
from pathlib import Path

import junit
from fetching import cache, demand, fetch
from outcomes import UnavailableError, wanted
from servers import INSTANCE, PROJECT

EMULATOR_TOO = False  # it would skip two thirds; and instances cannot be made
HERE = Path(__file__).resolve().parent / "java"


def prepare(suite, source):
    """(class path, names of the classes)."""
    demand("java", "javac", "mvn")
    folder = cache("java", suite["version"])
    listing, compiled = folder / "classpath", folder / "compiled"
    if not listing.exists():
        fetch("the suite for Java", [
            "mvn", "-q", "-B", "-f", HERE / "pom.xml", f"-Dsuite.version={suite['version']}",
            "dependency:build-classpath", f"-Dmdep.outputFile={listing}",
        ])  # fmt: skip
    libraries = listing.read_text()
    if source:
        libraries = f"{Path(source) / 'google-cloud-bigtable/target/test-classes'}:{libraries}"
    sources = sorted(HERE.glob("*.java"))
    fetch("CloudEnv", ["javac", "-nowarn", "-cp", libraries, "-d", compiled, *sources])
    return f"{compiled}:{libraries}", classes_of(libraries)


def classes_of(libraries):
    for jar in libraries.split(":"):
        if jar.endswith("-tests.jar"):
            names = zipfile.ZipFile(jar).namelist()
            return sorted(
                name.removesuffix(".class").replace("/", ".")
                for name in names if re.search(r"/v2/it/\w+IT\.class$", name)
            )  # fmt: skip
    raise UnavailableError("the artifact has no jar of tests")


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
