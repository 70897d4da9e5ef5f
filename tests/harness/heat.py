"""The heat of a table, as the server tells it."""

import time

from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest


def heat_path(table, **parameters):
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"/v1/{table}:heat?{query}"


def read_heat(server, table, **parameters):
    return Rest(server.host).call("GET", heat_path(table, **parameters))


def wait_for_window(server, table):
    """Until one has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any("isOpen" not in each for each in read_heat(server, table).get("times", [])):
        assert time.monotonic() < deadline
        time.sleep(0.1)
