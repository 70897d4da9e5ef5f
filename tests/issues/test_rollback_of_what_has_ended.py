"""ndb never ran a transaction again that others came in between of.

Found by tests/e2e/test_datastore_ndb.py. When a commit is ABORTED ndb rolls the transaction back,
and begins it again if that, too, was well. Rollback answered INVALID_ARGUMENT, since a commit ends
its transaction whether it succeeds or not; ndb took that for the transaction's error and gave up.
So rolling back what has ended is no error."""

import pytest
from google.api_core import exceptions
from harness.datastore import Raw, fresh_client


def roll_back(raw, transaction):
    raw.api.rollback(request={"project_id": raw.project, "transaction": transaction}, retry=None)


@pytest.fixture
def raw(server):
    return Raw(fresh_client(server.host))


def test_rollback_after_a_commit_that_failed(raw):
    transaction = raw.begin()
    raw.lookup(raw.key("K", 1), transaction=transaction)
    raw.commit({"upsert": raw.entity("K", 1, n=1)})
    with pytest.raises(exceptions.Aborted):
        raw.commit(
            {"upsert": raw.entity("K", 1, n=2)}, transaction=transaction, mode="TRANSACTIONAL"
        )
    roll_back(raw, transaction)
    assert raw.lookup(raw.key("K", 1)).found[0].entity.properties["n"].integer_value == 1


def test_rollback_after_rollback_and_commit(raw):
    transaction = raw.begin()
    roll_back(raw, transaction)
    roll_back(raw, transaction)
    with pytest.raises(exceptions.InvalidArgument, match="no longer valid"):
        raw.lookup(raw.key("K", 1), transaction=transaction)
    transaction = raw.begin()
    raw.commit({"upsert": raw.entity("K", 1, n=1)}, transaction=transaction, mode="TRANSACTIONAL")
    roll_back(raw, transaction)
    assert raw.lookup(raw.key("K", 1)).found
    with pytest.raises(exceptions.InvalidArgument, match="Invalid transaction"):
        roll_back(raw, b"nonsense")
