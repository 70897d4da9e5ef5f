"""A server to be attacked, of each test module its own, and connections to it."""

import pytest
import watch
from harness.server import EXTERNAL, Server
from raw import Raw


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    server = Server(tmp_path_factory.mktemp("victim"), env=watch.ENVIRONMENT).start()
    yield watch.Victim(server)
    server.close()


@pytest.fixture
def attack(victim):
    """A function that opens a connection: attack(**Raw's arguments)."""
    opened = []

    def connect(**arguments):
        opened.append(Raw(victim.host, **arguments))
        return opened[-1]

    yield connect
    for raw in opened:
        raw.close()
