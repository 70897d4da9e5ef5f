"""With --gc-on-read=false Datastore read the oldest version of large entities.

Read in the core by somebody who looked for lost writes. An entity has one version, and the table's
rule sees to it; but with that setting reads show what the rule condemns until it is collected,
which of cells in records of their own is late. Of several the oldest was taken, by commits, too, so
that their index rows were wrong. The newest counts now, and the setting is for Bigtable's tables
alone."""

import pytest
from google.cloud.datastore.query import PropertyFilter
from harness.backups import check_doctor
from harness.datastore import client_of, entity


@pytest.mark.parametrize("size", [100, 100_000])
def test_the_last_write_counts(fresh_server, size):
    server = fresh_server("--gc-on-read=false")
    client = client_of(server.host, "p")
    for n in (1, 2, 3):
        client.put(entity(client, "K", 1, exclude=("x",), n=n, x=b"x" * size))
        assert client.get(client.key("K", 1))["n"] == n
        query = client.query(kind="K", filters=[PropertyFilter("n", "=", n)])
        assert [each["n"] for each in query.fetch()] == [n]
    query = client.query(kind="K", filters=[PropertyFilter("n", "<", 3)])
    assert not list(query.fetch())
    client.close()
    server.stop()
    check_doctor(server.data)
