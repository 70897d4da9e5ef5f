"""Pessimistic transactions by Google's client: who has read something keeps others from it."""

import threading
import time

import pytest
from google.api_core import exceptions
from harness.datastore import Raw, entity, fresh_client

COUNTERS, THREADS, TIMES = 2, 4, 10


@pytest.fixture
def own(fresh_server):
    return fresh_server("--datastore-concurrency", "pessimistic")


@pytest.fixture
def client(own):
    return fresh_client(own.host)


@pytest.fixture
def raw(client):
    made = Raw(client)
    made.commit(*({"upsert": made.entity("K", number, n=0)} for number in range(1, 4)))
    return made


def read(raw, transaction, *numbers):
    found = raw.lookup(*(raw.key("K", number) for number in numbers), transaction=transaction).found
    return [each.entity.properties["n"].integer_value for each in found]


def write(raw, transaction, number, n):
    mutation = {"upsert": raw.entity("K", number, n=n)}
    return raw.commit(mutation, transaction=transaction, mode="TRANSACTIONAL")


class Thread(threading.Thread):
    """Runs what it is given, and has what came of it."""

    def __init__(self, function, *arguments):
        super().__init__()
        self.call = lambda: function(*arguments)
        self.error = self.result = None
        self.start()

    def run(self):
        try:
            self.result = self.call()
        except Exception as error:
            self.error = error

    def wait(self):
        self.join()
        if self.error is not None:
            raise self.error
        return self.result


def await_waits(server, count):
    """Until so many requests have waited for locks."""
    while server.metric("datastore_lock_waits_total") < count:
        time.sleep(0.01)


def test_who_writes_waits_for_who_has_read(client, raw):
    reader = raw.begin(read_write={})
    assert read(raw, reader, 1) == [0]
    with pytest.raises(exceptions.Aborted, match="Transaction lock timeout."):
        raw.commit({"upsert": raw.entity("K", 1, n=1)})
    raw.commit({"upsert": raw.entity("K", 2, n=1)})
    assert read(raw, reader, 2) == [1]  # as of when it is read
    write(raw, reader, 1, 5)
    raw.commit({"upsert": raw.entity("K", 1, n=6)})
    assert client.get(client.key("K", 1))["n"] == 6


def test_rollback_lets_others_in_at_once(client, raw, own):
    reader = raw.begin(read_write={})
    read(raw, reader, 1, 2, 3)
    writer = Thread(raw.commit, {"upsert": raw.entity("K", 3, n=1)})
    await_waits(own, 1)
    raw.api.rollback(request={"project_id": client.project, "transaction": reader})
    writer.wait()
    assert client.get(client.key("K", 3))["n"] == 1


def test_a_query_keeps_new_entities_out(client, raw):
    with client.transaction() as transaction:
        query = client.query(kind="K")
        assert len(list(query.fetch())) == 3
        with pytest.raises(exceptions.Aborted):
            raw.commit({"insert": raw.entity("K", 9, n=9)})
        raw.commit({"insert": raw.entity("Other", 9, n=9)})
        transaction.put(entity(client, "K", 10, n=1))
    raw.commit({"insert": raw.entity("K", 9, n=9)})
    assert len(list(client.query(kind="K").fetch())) == 5


def test_of_two_that_wait_for_each_other_the_younger_gives_way(raw, own):
    older, younger = raw.begin(read_write={}), raw.begin(read_write={})
    assert read(raw, older, 1) == read(raw, younger, 1) == [0]
    writer = Thread(write, raw, older, 1, 1)
    await_waits(own, 1)
    with pytest.raises(exceptions.Aborted, match="cross-transaction contention"):
        write(raw, younger, 1, 2)
    writer.wait()


def test_who_begins_anew_is_as_old_as_before(client, raw, own):
    first = raw.begin(read_write={})
    raw.api.rollback(request={"project_id": client.project, "transaction": first})
    middle = raw.begin(read_write={})
    again = raw.begin(read_write={"previous_transaction": first})
    assert read(raw, middle, 1) == read(raw, again, 1) == [0]
    writer = Thread(write, raw, again, 1, 1)
    await_waits(own, 1)
    with pytest.raises(exceptions.Aborted):
        write(raw, middle, 1, 2)
    writer.wait()


def test_who_gave_way_is_gone_but_for_its_rollback(client, raw, own):
    older, younger = raw.begin(read_write={}), raw.begin(read_write={})
    read(raw, younger, 2)
    both = [{"upsert": raw.entity("K", number, n=1)} for number in (2, 3)]
    writer = Thread(lambda: raw.commit(*both, transaction=older, mode="TRANSACTIONAL"))
    await_waits(own, 1)
    for _ in range(2):
        with pytest.raises(exceptions.Aborted):
            read(raw, younger, 3)  # the commit that waits for it would wait for ever
    writer.wait()
    raw.api.rollback(request={"project_id": client.project, "transaction": younger})
    with pytest.raises(exceptions.InvalidArgument):
        write(raw, younger, 1, 1)


def test_counters_lose_nothing(client):
    def count(name):
        for _ in range(TIMES):
            while True:
                try:
                    with client.transaction():
                        counter = client.get(client.key("Counter", name))
                        counter = counter or entity(client, "Counter", name, n=0)
                        counter["n"] += 1
                        client.put(counter)
                    break
                except exceptions.Aborted:
                    pass

    names = [f"counter {number % COUNTERS}" for number in range(THREADS)]
    for thread in [Thread(count, name) for name in names]:
        thread.wait()
    for name in set(names):
        assert client.get(client.key("Counter", name))["n"] == TIMES * THREADS / COUNTERS


def test_who_only_reads_waits_for_nobody(client, raw):
    reader = raw.begin(read_write={})
    read(raw, reader, 1)
    with client.transaction(read_only=True):
        assert client.get(client.key("K", 1))["n"] == 0
        assert len(list(client.query(kind="K").fetch())) == 3
    write(raw, reader, 1, 1)
    assert client.get(client.key("K", 1))["n"] == 1
