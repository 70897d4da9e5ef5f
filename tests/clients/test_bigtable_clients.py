"""Google's Bigtable clients for Go, Java and Node: the programs of tests/clients/bigtable, which do
what applications do, at their sizes. Each runs where its tools are."""

import uuid

import pytest
from harness.clients import (
    BUILT,
    build_bigtable_go,
    install_node,
    java_classpath,
    java_program,
    run_checks,
)
from harness.server import ROOT

PROGRAMS = ROOT / "tests/clients/bigtable"


def go():
    return [build_bigtable_go()]


def node():
    return ["node", install_node(PROGRAMS / "node", BUILT / "bigtable/node", "bigtable.mjs")]


def java():
    classpath = java_classpath(PROGRAMS / "java", BUILT / "bigtable/java/classpath")
    return java_program(classpath, PROGRAMS / "java/Orders.java")


@pytest.mark.parametrize("make, checks", [(go, 19), (node, 16), (java, 18)])
def test_a_client(server, make, checks):
    project = f"p-{uuid.uuid4().hex[:12]}"
    run_checks([*make(), project], {"BIGTABLE_EMULATOR_HOST": server.host}, checks)
