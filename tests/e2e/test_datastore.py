"""Datastore by Google's client: entities, commits, transactions, ids, and moments of the past."""

import datetime
import threading
import time

import pytest
from google.api_core import exceptions
from google.api_core.retry import Retry
from google.cloud import datastore
from google.cloud.datastore.helpers import GeoPoint
from google.cloud.datastore_v1 import types
from harness.datastore import Raw, client_of, entity, fresh_client

UTC = datetime.timezone.utc
ACCOUNTS, BALANCE = 10, 100
ONCE = Retry(predicate=lambda error: False)  # or a lookup is asked for a minute


@pytest.fixture
def client(server):
    return fresh_client(server.host)


@pytest.fixture
def raw(client):
    return Raw(client)


# --- entities ---


def test_values_of_each_type_come_back(client):
    key = client.key("Owner", 7, "Thing", "ünï")
    inner = datastore.Entity()
    inner.update(x=1, y="z")
    made = datastore.Entity(key, exclude_from_indexes=["long"])
    made.update(
        none=None, yes=True, number=-(2**63), double=1.5, text="é", blob=b"\x00\xff",
        when=datetime.datetime(2020, 2, 29, 1, 2, 3, 456789, UTC), where=GeoPoint(1.5, -2.5),
        other=client.key("Owner", 7), array=[1, "a", None, inner], inner=inner, long="x" * 100_000,
        empty=[],
    )  # fmt: skip
    client.put(made)
    read = client.get(key)
    assert dict(read) == dict(made)
    assert read.exclude_from_indexes == {"long"}
    assert read.key == key


def test_many_at_once(client):
    """A commit of several entities, a lookup of more, of which some are not there."""
    made = [entity(client, "K", number + 1, n=number) for number in range(200)]
    client.put_multi(made)
    keys = [client.key("K", number + 1) for number in range(300)]
    missing = []
    assert {e.key.id: e["n"] for e in client.get_multi(keys, missing=missing)} == {
        number + 1: number for number in range(200)
    }
    assert {e.key.id for e in missing} == set(range(201, 301))
    client.delete_multi(keys)
    assert client.get_multi(keys) == []


def test_databases_and_namespaces_are_apart(server, client):
    other = client_of(server.host, client.project, database="second")
    spaced = client_of(server.host, client.project, namespace="n")
    for at, of in enumerate((client, other, spaced)):
        of.put(entity(of, "K", "a", n=at))
    assert [of.get(of.key("K", "a"))["n"] for of in (client, other, spaced)] == [0, 1, 2]
    client.delete(client.key("K", "a"))
    assert [of.get(of.key("K", "a")) is None for of in (client, other, spaced)] == [1, 0, 0]


# --- mutations ---


def test_insert_and_update_want_what_is_there(raw):
    with pytest.raises(exceptions.NotFound, match="no entity to update"):
        raw.commit({"update": raw.entity("K", 1, n=1)})
    first = raw.commit({"insert": raw.entity("K", 1, n=1)})
    with pytest.raises(exceptions.AlreadyExists, match="entity already exists"):
        raw.commit({"insert": raw.entity("K", 1, n=2)})
    second = raw.commit({"update": raw.entity("K", 1, n=3)})
    one, two = first.mutation_results[0], second.mutation_results[0]
    assert two.version > one.version
    assert two.create_time == one.create_time == one.update_time < two.update_time
    (found,) = raw.lookup(raw.key("K", 1)).found
    assert (found.version, found.create_time) == (two.version, one.create_time)
    assert found.entity.properties["n"].integer_value == 3


def test_a_commit_is_all_or_nothing(raw):
    with pytest.raises(exceptions.NotFound):
        raw.transact({"upsert": raw.entity("K", 1, n=1)}, {"update": raw.entity("K", 2, n=1)})
    assert not raw.lookup(raw.key("K", 1)).found


@pytest.mark.parametrize(
    "before, after",
    [("insert", "insert"), ("upsert", "insert"), ("update", "insert"), ("delete", "update")],
)
def test_what_may_not_follow(raw, before, after):
    raw.commit({"upsert": raw.entity("K", 2, n=1)})
    of = {"insert": 1, "upsert": 1, "update": 2, "delete": 2}[before]
    first = {before: raw.key("K", of) if before == "delete" else raw.entity("K", of, n=1)}
    words = f"Cannot {before} then {after} an entity in the same request."
    with pytest.raises(exceptions.InvalidArgument, match=words):
        raw.transact(first, {after: raw.entity("K", of, n=2)})


def test_mutations_of_one_entity_follow_each_other(raw):
    answer = raw.transact(
        {"insert": raw.entity("K", 1, n=1)},
        {"update": raw.entity("K", 1, n=2)},
        {"delete": raw.key("K", 1)},
        {"upsert": raw.entity("K", 1, n=4)},
    )
    assert len(answer.mutation_results) == 4
    (found,) = raw.lookup(raw.key("K", 1)).found
    assert found.entity.properties["n"].integer_value == 4
    with pytest.raises(exceptions.InvalidArgument, match="multiple mutations affecting"):
        raw.commit({"upsert": raw.entity("K", 1, n=1)}, {"delete": raw.key("K", 1)})


def test_what_becomes_what_it_was_keeps_its_version(raw):
    def written(*mutations):
        raw.transact(*mutations)
        return raw.lookup(raw.key("K", 1)).found[0].version

    first = written({"upsert": raw.entity("K", 1, n=1, m=2)})
    assert written({"upsert": raw.entity("K", 1, m=2, n=1)}) == first
    back = {"update": raw.entity("K", 1, n=1, m=2)}
    assert written({"update": raw.entity("K", 1, n=5)}, back) == first
    assert written({"upsert": raw.entity("K", 1, n=1, m=3)}) > first


def test_base_versions(raw):
    version = raw.commit({"upsert": raw.entity("K", 1, n=1)}).mutation_results[0].version
    raw.commit({"upsert": raw.entity("K", 1, n=2), "base_version": version})
    (result,) = raw.commit(
        {"upsert": raw.entity("K", 1, n=3), "base_version": version}
    ).mutation_results
    assert result.conflict_detected and result.version > version
    with pytest.raises(exceptions.FailedPrecondition, match="does not match the required base"):
        raw.commit(
            {
                "upsert": raw.entity("K", 1, n=3),
                "base_version": version,
                "conflict_resolution_strategy": 3,
            }
        )
    assert raw.lookup(raw.key("K", 1)).found[0].entity.properties["n"].integer_value == 2


def test_masks_and_transforms(raw):
    raw.commit({"upsert": raw.entity("K", 1, a=1, b=2)})
    (result,) = raw.commit(
        {
            "upsert": raw.entity("K", 1, a=5, b=6),
            "property_mask": {"paths": ["a", "c"]},
            "property_transforms": [{"property": "b", "increment": {"integer_value": 10}}],
        }
    ).mutation_results
    assert result.transform_results[0].integer_value == 12
    (found,) = raw.lookup(raw.key("K", 1)).found
    assert {k: v.integer_value for k, v in found.entity.properties.items()} == {"a": 5, "b": 12}


def test_what_cannot_be_stored(raw):
    long = types.Entity(key=raw.key("K", 1), properties={"a": {"string_value": "x" * 1501}})
    with pytest.raises(exceptions.InvalidArgument, match='"a" is longer than 1500 bytes'):
        raw.commit({"upsert": long})
    with pytest.raises(exceptions.InvalidArgument, match="reserved"):
        raw.commit({"upsert": raw.entity("__bad__", 1, n=1)})
    with pytest.raises(exceptions.InvalidArgument):
        raw.commit({"upsert": types.Entity()})
    with pytest.raises(exceptions.InvalidArgument):
        raw.commit({})
    with pytest.raises(exceptions.InvalidArgument, match="more than 1000 keys"):
        raw.lookup(*(raw.key("K", n + 1) for n in range(1001)))


# --- transactions ---


def test_a_transaction_sees_one_moment(client, raw):
    client.put_multi([entity(client, "K", n + 1, v=0) for n in range(2)])
    with client.transaction(read_only=True):
        assert client.get(client.key("K", 1))["v"] == 0
        raw.commit({"upsert": raw.entity("K", 1, v=1)}, {"upsert": raw.entity("K", 2, v=1)})
        raw.commit({"delete": raw.key("K", 2)}, {"upsert": raw.entity("K", 3, v=1)})
        read = client.get_multi([client.key("K", n + 1) for n in range(3)])
        assert {e.key.id: e["v"] for e in read} == {1: 0, 2: 0}
    assert client.get(client.key("K", 1))["v"] == 1


def test_what_was_read_must_not_have_changed(client):
    client.put(entity(client, "K", "a", v=0))
    transaction = client.transaction()
    transaction.begin()
    read = client.get(client.key("K", "a"), transaction=transaction)
    client.put(entity(client, "K", "a", v=5))
    transaction.put(entity(client, "K", "b", v=read["v"] + 1))
    with pytest.raises(exceptions.Aborted, match="too much contention"):
        transaction.commit()
    assert client.get(client.key("K", "b")) is None


def test_what_was_not_there_must_not_have_come(client):
    transaction = client.transaction()
    transaction.begin()
    assert client.get(client.key("K", "a"), transaction=transaction) is None
    client.put(entity(client, "K", "a", v=5))
    transaction.put(entity(client, "K", "b", v=1))
    with pytest.raises(exceptions.Aborted):
        transaction.commit()


def test_write_skew(client):
    """Two that each read both and write one: the second fails."""
    client.put_multi([entity(client, "K", name, on=1) for name in "ab"])
    both = []
    for name in "ab":
        transaction = client.transaction()
        transaction.begin()
        keys = [client.key("K", each) for each in "ab"]
        assert sum(e["on"] for e in client.get_multi(keys, transaction=transaction)) == 2
        transaction.put(entity(client, "K", name, on=0))
        both.append(transaction)
    both[0].commit()
    with pytest.raises(exceptions.Aborted):
        both[1].commit()


def test_transactions_that_are_none(client, raw):
    raw.commit({"upsert": raw.entity("K", 1, n=1)})
    transaction = raw.begin(read_only={})
    with pytest.raises(exceptions.InvalidArgument, match="Cannot modify entities in a read-only"):
        raw.commit(
            {"upsert": raw.entity("K", 1, n=2)}, transaction=transaction, mode="TRANSACTIONAL"
        )
    with pytest.raises(exceptions.InvalidArgument, match="expired or is no longer valid"):
        raw.lookup(raw.key("K", 1), transaction=transaction)
    with pytest.raises(exceptions.InvalidArgument, match="Invalid transaction"):
        raw.lookup(raw.key("K", 1), transaction=b"nonsense")
    transaction = raw.begin()
    raw.api.rollback(request={"project_id": client.project, "transaction": transaction})
    with pytest.raises(exceptions.InvalidArgument):
        raw.commit({"delete": raw.key("K", 1)}, transaction=transaction, mode="TRANSACTIONAL")
    with pytest.raises(exceptions.InvalidArgument, match="requires a transaction"):
        raw.commit({"delete": raw.key("K", 1)}, mode="TRANSACTIONAL")
    answer = raw.lookup(raw.key("K", 1), new_transaction={"read_write": {}})
    raw.commit(
        {"upsert": raw.entity("K", 1, n=9)}, transaction=answer.transaction, mode="TRANSACTIONAL"
    )
    assert raw.lookup(raw.key("K", 1)).found[0].entity.properties["n"].integer_value == 9


def increment(client, key, times):
    for _ in range(times):
        while True:
            try:
                with client.transaction():
                    counter = client.get(key)
                    counter["n"] += 1
                    client.put(counter)
                break
            except exceptions.Aborted:
                pass


def test_no_increment_is_lost(server, client):
    key = client.key("Counter", "x")
    client.put(entity(client, "Counter", "x", n=0))
    threads = [
        threading.Thread(target=increment, args=(client_of(server.host, client.project), key, 15))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get(key)["n"] == 60


def test_only_transactions_have_a_commit_time(raw):
    """By google.datastore.v1, and in production; what a mutation made has its times in either."""
    in_transaction = raw.transact({"upsert": raw.entity("K", 1, n=1)})
    assert in_transaction.commit_time == in_transaction.mutation_results[0].update_time
    begun = raw.commit(
        {"upsert": raw.entity("K", 1, n=2)}, transaction=raw.begin(), mode="TRANSACTIONAL"
    )
    assert begun.commit_time == begun.mutation_results[0].update_time
    assert begun.commit_time > in_transaction.commit_time
    for mutations in [{"upsert": raw.entity("K", 1, n=3)}], []:
        alone = raw.commit(*mutations)
        assert "commit_time" not in alone
        assert all(each.update_time for each in alone.mutation_results)


# --- the past ---


def test_what_was(raw):
    moments = []
    for n in range(3):
        moments.append(raw.moment({"upsert": raw.entity("K", 1, n=n)}))
    moments.append(raw.moment({"delete": raw.key("K", 1)}))

    def at(moment):
        found = raw.lookup(raw.key("K", 1), read_time=moment).found
        return [each.entity.properties["n"].integer_value for each in found]

    assert [at(moment) for moment in moments] == [[0], [1], [2], []]
    just_before = moments[0] - datetime.timedelta(microseconds=1)
    assert at(just_before) == []
    transaction = raw.begin(read_only={"read_time": moments[1]})
    (found,) = raw.lookup(raw.key("K", 1), transaction=transaction).found
    assert found.entity.properties["n"].integer_value == 1
    now = datetime.datetime.now(UTC)
    with pytest.raises(exceptions.FailedPrecondition, match="too old"):
        at(now - datetime.timedelta(hours=1, seconds=5))
    with pytest.raises(exceptions.InvalidArgument, match="future"):
        at(now + datetime.timedelta(minutes=5))


def test_what_a_busy_entity_was(server, raw):
    """Its next commit begins with what the last one has left, and nothing of what it was is read;
    all of that is there, in the row's record and beside it."""
    times = 80  # 2 KB each: more than a record holds
    text = {"string_value": "x" * 2000, "exclude_from_indexes": True}
    key, moments = raw.key("Busy", 1), {}

    def change(n):
        written = raw.entity("Busy", 1, n=n)
        written.properties["text"] = text
        return {
            "upsert": written,
            "property_transforms": [{"property": "sum", "increment": {"integer_value": 1}}],
            "property_mask": {"paths": ["n", "text"]},
        }

    def found_at(**options):
        return [each.entity.properties for each in raw.lookup(key, **options).found]

    for n in range(1, times + 1):
        answer = raw.transact(change(n))
        moments[n] = answer.commit_time
        assert answer.mutation_results[0].transform_results[0].integer_value == n
    gone = raw.moment({"delete": key})
    again = raw.transact(change(0))
    assert again.mutation_results[0].transform_results[0].integer_value == 1
    for n, moment in moments.items():
        (found,) = found_at(read_time=moment)
        assert (found["n"].integer_value, found["sum"].integer_value) == (n, n)
    assert found_at(read_time=gone) == []
    assert [found["sum"].integer_value for found in found_at()] == [1]
    assert found_at(read_time=moments[1] - datetime.timedelta(microseconds=1)) == []


def test_writers_of_one_entity_each_count(server, client):
    """Without transactions: each begins with what the one before it has left."""
    writers, times = 4, 50
    own = Raw(client)
    key = own.key("Busy", "all")

    def write():
        writer = Raw(client_of(server.host, client.project))
        for _ in range(times):
            writer.commit(
                {
                    "upsert": writer.entity("Busy", "all"),
                    "property_mask": {"paths": ["n"]},
                    "property_transforms": [{"property": "sum", "increment": {"integer_value": 1}}],
                }
            )

    threads = [threading.Thread(target=write) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (found,) = own.lookup(key).found
    assert found.entity.properties["sum"].integer_value == writers * times


# --- ids ---


def test_ids_are_given_once(client):
    made = [entity(client, "K", n=n) for n in range(30)]
    client.put_multi(made)
    allocated = client.allocate_ids(client.key("K"), 30)
    ids = [e.key.id for e in made] + [key.id for key in allocated]
    assert len(set(ids)) == 60 and all(2**52 < number < 2**53 for number in ids)
    assert {each["n"]: each.key for each in client.query(kind="K").fetch()} == {
        each["n"]: each.key for each in made
    }


def test_ids_that_are_taken_are_not_given(server, client):
    """The ids that a fresh counter gives, as the notes have them: reserved, and put, beforehand."""
    first, second, third = 5629499534213120, 5066549580791808, 6192449487634432
    client.reserve_ids_multi([client.key("K", first)])
    client.put(entity(client, "K", second, n=1))
    client.delete(client.key("K", second))
    (key,) = client.allocate_ids(client.key("K"), 1)
    assert key.id == third


# --- after the plug was pulled ---


def transfer(client, number, stop):
    keys = [client.key("Account", n + 1) for n in range(ACCOUNTS)]
    turn = number
    while not stop.is_set():
        turn += 1
        source, target = keys[turn % ACCOUNTS], keys[(turn * 7 + number) % ACCOUNTS]
        if source == target:
            continue
        try:
            with client.transaction():
                one, two = client.get(source, retry=ONCE), client.get(target, retry=ONCE)
                one["balance"] -= 1
                two["balance"] += 1
                client.put_multi([one, two])
        except (exceptions.GoogleAPICallError, exceptions.RetryError):
            pass


def test_transfers_survive_kills(fresh_server):
    server = fresh_server()
    client = client_of(server.host, "p")
    client.put_multi(
        [entity(client, "Account", n + 1, balance=BALANCE) for n in range(ACCOUNTS)]
    )
    for _ in range(3):
        stop = threading.Event()
        threads = [
            threading.Thread(target=transfer, args=(client_of(server.host, "p"), n, stop))
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1)
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        server.start()
        client = client_of(server.host, "p")
        keys = [client.key("Account", n + 1) for n in range(ACCOUNTS)]
        read = client.get_multi(keys)
        assert sum(e["balance"] for e in read) == ACCOUNTS * BALANCE
    assert {e["balance"] for e in read} != {BALANCE}
