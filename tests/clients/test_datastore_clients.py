"""Google's Datastore clients for Go, Java and Node: the programs of tests/clients/datastore, by
each transport that they have. Each runs where its tools are."""

import uuid

import pytest
from harness.clients import BUILT, build_go, install_node, java_classpath, java_program, run_checks
from harness.server import ROOT

PROGRAMS = ROOT / "tests/clients/datastore"


def go():
    library = "cloud.google.com/go/datastore"
    return [build_go(PROGRAMS / "go", BUILT / "datastore/go/datastore", library)]


def java():
    classpath = java_classpath(PROGRAMS / "java", BUILT / "datastore/java/classpath")
    return java_program(classpath, PROGRAMS / "java/Entities.java")


def node():
    return ["node", install_node(PROGRAMS / "node", BUILT / "datastore/node", "datastore.mjs")]


@pytest.mark.parametrize(
    "make, transport, checks",
    [(go, "grpc", 16), (go, "rest", 6), (node, "grpc", 7), (node, "rest", 7), (java, None, 8)],
)
def test_a_client(server, make, transport, checks):
    program = make()
    project = f"p-{uuid.uuid4().hex[:12]}"
    arguments = [project, transport] if transport else [project]
    run_checks([*program, *arguments], {"DATASTORE_EMULATOR_HOST": server.host}, checks)
