"""A worker of conflicts.py does what it is told, however late it sees what has become of the
server."""

import argparse
import multiprocessing
import socket
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

from conflicts import Worker  # noqa: E402
from histories import FAILED  # noqa: E402

CLIENTS = 3


def test_told_to_go_on_before_the_end_of_the_connection_is_seen():
    """On a busy machine the server has died and is back while what it had sent is still unread."""
    worker = Worker(0, argparse.Namespace(seed=1, clients=CLIENTS, only=["counters"]), [0])
    worker.begin_round(0)
    ours, theirs = multiprocessing.Pipe()
    again = ("go on", "127.0.0.1:1")
    ours.send(again)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert worker.run(f"127.0.0.1:{server.getsockname()[1]}", theirs) == again
    assert worker.calls.is_idle
    assert worker.ledger.outcomes == {FAILED: CLIENTS}
    assert not worker.ledger.problems
