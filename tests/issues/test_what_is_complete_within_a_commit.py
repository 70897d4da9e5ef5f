"""Another cluster was told that nothing older comes any more, between two answers that had parts of
one commit: rows of the second part were of before that. From there on it kept deletions of before,
and adds apart, no more: an add that came again after a crash could have counted twice.

Found by reading: the place that was held against had the commit's number alone, not whether all of
it had been told."""

import grpc
import pytest
from harness.peers import ask, spread_instance
from harness.rpc import set_cell

ROWS, BYTES = 100, 20_000  # of one request, which are told in pieces of 256 KiB


def test_what_is_complete_is_not_said_within_a_commit(peers_of, connect, administer):
    first, _ = peers_of(2)
    admin, rpc = administer(first.host), connect(first.host)
    table = admin.tables.create_table(
        parent=spread_instance(admin, "spread", 2), table_id="t",
        table={"column_families": {"f": {}}},
    ).name  # fmt: skip
    rows = [(b"row-%03d" % i, [set_cell("f", b"q", b"v" * BYTES, 1000)]) for i in range(ROWS)]
    assert set(rpc.mutate_rows(table, rows)) == {0}
    seen, complete = 0, 0
    for answer in pull(first):
        assert all(change.version > complete for change in answer.changes)
        seen += len(answer.changes)
        complete = max(complete, answer.complete_version)
    assert seen == ROWS and complete > 0


def pull(server):
    """All answers until there is nothing more."""
    answers = []
    with pytest.raises(grpc.RpcError):
        ask(server.host, "PullChanges", {"from": 2}, timeout=3, into=answers)
    return answers
