"""Entities were deleted years before they expired, since the clock had been ahead for one write.

Found in a review. The pass over what has expired asked the clock that versions come from, which
never goes back: after one write by a clock ten days ahead all that would expire within ten days
went. The wall clock says what has expired. The server's clock is moved by tests/crash/powercut."""

import datetime
import time

import pytest
from harness.datastore import entity, fresh_client
from harness.moved_server import DAY_SECONDS, MovedServer
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest


@pytest.fixture
def server(tmp_path):
    server = MovedServer(tmp_path, ["--datastore-ttl-interval", "1s"]).start()
    yield server
    server.stop()


def expiring(client, number, days):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return entity(client, "K", number, until=at)


def ids_of(client):
    return sorted(found.key.id for found in client.query(kind="K").fetch())


def test_what_has_not_expired_stays(server):
    client = fresh_client(server.host)
    server.move(10 * DAY_SECONDS)
    client.put(entity(client, "Other", 1))
    server.move(0)
    client.put_multi([expiring(client, 1, 5), expiring(client, 2, -1), expiring(client, 3, 20)])
    field = f"projects/{client.project}/databases/(default)/collectionGroups/K/fields/until"
    Rest(server.host).call("PATCH", f"/v1/{field}?updateMask=ttlConfig", {"ttlConfig": {}})
    end = time.monotonic() + PATIENCE_SECONDS
    while 2 in ids_of(client):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert ids_of(client) == [1, 3]
