"""What becomes of Datastore's transactions is counted."""

import pytest
from google.api_core import exceptions
from harness.datastore import Raw, fresh_client

FATES = ["begun", "committed", "rolled_back", "expired"]


def counted(server):
    fates = [int(server.metric(f"datastore_transactions_{fate}_total")) for fate in FATES]
    others = ["datastore_transactions", "datastore_conflicts_total"]
    return fates, [int(server.metric(name)) for name in others]


def test_what_becomes_of_transactions(fresh_server):
    server = fresh_server()
    raw = Raw(fresh_client(server.host))
    raw.commit({"upsert": raw.entity("K", 1, n=1)})
    assert counted(server) == ([0, 0, 0, 0], [0, 0])
    late = raw.begin(read_write={})
    raw.lookup(raw.key("K", 1), transaction=late)
    raw.transact({"upsert": raw.entity("K", 1, n=2)})
    assert counted(server) == ([2, 1, 0, 0], [1, 0])
    with pytest.raises(exceptions.Aborted):
        raw.commit(
            {"upsert": raw.entity("K", 1, n=3)}, transaction=late, mode="TRANSACTIONAL"
        )
    raw.begin(read_only={})
    assert counted(server) == ([3, 1, 0, 0], [1, 1])
    gone = raw.begin(read_only={})
    for _ in range(2):
        raw.api.rollback(request={"project_id": raw.project, "transaction": gone})
    assert counted(server) == ([4, 1, 1, 0], [1, 1])
