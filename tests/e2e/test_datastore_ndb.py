"""Datastore by ndb, the library of App Engine: models, keys, caches, tasklets and transactions."""

import datetime
import pickle
import threading
import time
import zlib
from unittest import mock

import pytest
from google.api_core import exceptions
from google.cloud import ndb
from google.cloud.ndb import _cache, global_cache, metadata, stats
from google.cloud.ndb.exceptions import BadRequestError, BadValueError, NestedRetryException
from harness.datastore import client_of, entity, fresh_client, ndb_client
from harness.patience import PATIENCE_SECONDS

UTC = datetime.timezone.utc
NOON = datetime.datetime(2024, 2, 29, 12, 30, 15, 250001)


class Address(ndb.Model):
    street = ndb.StringProperty()
    number = ndb.IntegerProperty()


class Room(ndb.Model):
    name = ndb.StringProperty()


class Everything(ndb.Model):
    boolean = ndb.BooleanProperty()
    integer = ndb.IntegerProperty()
    double = ndb.FloatProperty()
    string = ndb.StringProperty()
    text = ndb.TextProperty()
    packed_text = ndb.TextProperty(compressed=True)
    blob = ndb.BlobProperty()
    packed_blob = ndb.BlobProperty(compressed=True)
    json = ndb.JsonProperty()
    packed_json = ndb.JsonProperty(compressed=True)
    pickled = ndb.PickleProperty()
    moment = ndb.DateTimeProperty()
    zoned = ndb.DateTimeProperty(tzinfo=datetime.timezone(datetime.timedelta(hours=-4)))
    date = ndb.DateProperty()
    time = ndb.TimeProperty()
    key_of = ndb.KeyProperty()
    point = ndb.GeoPtProperty()
    user = ndb.UserProperty()
    generic = ndb.GenericProperty()
    address = ndb.StructuredProperty(Address)
    room = ndb.LocalStructuredProperty(Room)
    packed_room = ndb.LocalStructuredProperty(Room, compressed=True)
    even = ndb.ComputedProperty(lambda self: (self.integer or 0) // 2 * 2)


class Repeated(ndb.Model):
    boolean = ndb.BooleanProperty(repeated=True)
    integer = ndb.IntegerProperty(repeated=True)
    double = ndb.FloatProperty(repeated=True)
    string = ndb.StringProperty(repeated=True)
    packed_text = ndb.TextProperty(compressed=True, repeated=True)
    blob = ndb.BlobProperty(repeated=True)
    json = ndb.JsonProperty(repeated=True)
    moment = ndb.DateTimeProperty(repeated=True)
    key_of = ndb.KeyProperty(repeated=True)
    point = ndb.GeoPtProperty(repeated=True)
    address = ndb.StructuredProperty(Address, repeated=True)
    room = ndb.LocalStructuredProperty(Room, repeated=True, compressed=True)


class Counter(ndb.Model):
    n = ndb.IntegerProperty(default=0)


class Animal(ndb.PolyModel):
    name = ndb.StringProperty()


class Cat(Animal):
    lives = ndb.IntegerProperty()


FILLED = {
    "boolean": True, "integer": -(2**63), "double": 1.5, "string": "é\U0001f600",
    "text": "x" * 5000, "packed_text": "y" * 5000, "blob": b"\x00\xff" * 1000,
    "packed_blob": b"abc" * 1000, "json": {"a": [1, None, "é"]},
    "packed_json": {str(n): n for n in range(500)}, "pickled": {(1, 2): {3}},
    "moment": NOON, "date": datetime.date(1969, 7, 20), "time": datetime.time(23, 59, 58, 7),
    "zoned": NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-4))),
    "point": ndb.GeoPt(52.25, -9.5), "user": ndb.User("somebody@example.com", "example.com"),
    "generic": "of any type",
    "address": Address(street="High Street", number=7), "room": Room(name="hall"),
    "packed_room": Room(name="attic"),
}  # fmt: skip


@pytest.fixture
def low(server):
    """Google's other client, of the same project."""
    return fresh_client(server.host)


@pytest.fixture
def client(server, low):
    return ndb_client(server.host, low.project)


@pytest.fixture
def context(client):
    """Without caches: what is read has been asked of the server."""
    with client.context(cache_policy=False, legacy_data=False) as opened:
        yield opened


# --- properties ---


@pytest.mark.parametrize("legacy", [False, True])
def test_properties_of_every_type(client, legacy):
    """As ndb stores them today, and as App Engine's did: structures as dotted names."""
    with client.context(cache_policy=False, legacy_data=legacy):
        made = Everything(**FILLED, key_of=ndb.Key("Thing", 5, "Part", "ü"))
        read = made.put().get()
        assert read is not made and read.to_dict() == made.to_dict()
        assert read.key_of == made.key_of and read.even == -(2**63)
        assert read.address.street == "High Street" and read.packed_room.name == "attic"
        empty = Everything().put().get()
        assert [getattr(empty, name) for name in FILLED] == [None] * len(FILLED)


@pytest.mark.parametrize("legacy", [False, True])
def test_repeated_properties(client, legacy):
    with client.context(cache_policy=False, legacy_data=legacy):
        made = Repeated(
            boolean=[True, False], integer=[3, 1, 3], double=[0.5, float("inf")],
            string=["", "", "a"], packed_text=["x" * 99, ""], blob=[b"\x00", b"b" * 5000],
            json=[{"a": 1}, [2]], moment=[NOON, datetime.datetime(1960, 1, 1)],
            key_of=[ndb.Key("A", 1), ndb.Key("A", "b", "C", 2)],
            point=[ndb.GeoPt(-90, 180), ndb.GeoPt(0, 0)],
            address=[Address(street="a", number=1), Address(number=2)],
            room=[Room(name="hall"), Room(name="attic")],
        )  # fmt: skip
        assert made.put().get().to_dict() == made.to_dict()
        empty = Repeated().put().get()
        assert (empty.integer, empty.string, empty.address, empty.room) == ([], [], [], [])


def test_what_lies_beneath(context, low):
    """The other client sees what ndb wrote, each value of its type."""
    key = Everything(**FILLED).put()
    read = low.get(key._key)
    assert read["string"] == FILLED["string"] and read["blob"] == FILLED["blob"]
    assert read["moment"] == NOON.replace(tzinfo=UTC)
    assert read["zoned"] == NOON.replace(tzinfo=UTC) + datetime.timedelta(hours=4)
    assert read["date"] == datetime.datetime(1969, 7, 20, tzinfo=UTC)
    assert zlib.decompress(read["packed_text"]) == b"y" * 5000
    assert (read["point"].latitude, read["point"].longitude) == (52.25, -9.5)
    assert dict(read["address"]) == {"street": "High Street", "number": 7}
    assert read["generic"] == "of any type" and read["even"] == -(2**63)
    assert "text" in read.exclude_from_indexes and "string" not in read.exclude_from_indexes


def test_structures_of_old(client, low):
    """What App Engine's ndb left behind: structures as properties with dots in their names."""

    class House(ndb.Model):
        address = ndb.StructuredProperty(Address)
        others = ndb.StructuredProperty(Address, repeated=True)

    low.put(entity(low, "House", 1, **{
        "address.street": "a", "address.number": 1,
        "others.street": ["b", "c"], "others.number": [2, 3],
    }))  # fmt: skip
    with client.context(cache_policy=False):
        read = House.get_by_id(1)
        assert read.address.to_dict() == {"street": "a", "number": 1}
        assert [other.street + str(other.number) for other in read.others] == ["b2", "c3"]
        read.put()
    stored = low.get(low.key("House", 1))
    assert stored["address.street"] == "a" and stored["others.number"] == [2, 3]


def test_options_of_properties(context, low):
    class Strict(ndb.Model):
        needed = ndb.StringProperty(required=True)
        given = ndb.IntegerProperty(default=42)
        chosen = ndb.StringProperty(choices=["a", "b"])
        short = ndb.StringProperty("s", validator=lambda prop, value: value.strip())
        hidden = ndb.IntegerProperty(indexed=False)
        began = ndb.DateTimeProperty(auto_now_add=True)
        changed = ndb.DateTimeProperty(auto_now=True)

    with pytest.raises(BadValueError):
        Strict().put()
    with pytest.raises(BadValueError):
        Strict(chosen="c")
    key = Strict(needed="n", short=" x ", hidden=1).put()
    first = key.get()
    assert (first.given, first.short) == (42, "x")
    stored = low.get(key._key)
    assert stored["s"] == "x" and stored.exclude_from_indexes == {"hidden"}
    first.put()
    second = key.get()
    assert second.began == first.began and second.changed > second.began
    assert Strict.query(Strict.given == 42).get() == second


def test_expandos_and_polymodels(context):
    class Loose(ndb.Expando):
        n = ndb.IntegerProperty()

    made = Loose(n=1, anything="goes")
    made.when = NOON
    read = made.put().get()
    assert (read.n, read.anything, read.when) == (1, "goes", NOON.replace(tzinfo=UTC))
    del read.anything
    assert not hasattr(read.put().get(), "anything")

    cat = Cat(name="Tom", lives=9).put().get()
    assert isinstance(cat, Cat) and cat.class_ == ["Animal", "Cat"] and cat.key.kind() == "Animal"
    assert type(Animal(name="it").put().get()) is Animal


def test_pickling_and_hooks(context):
    class Hooked(ndb.Model):
        n = ndb.IntegerProperty()
        seen: list = []

        def _pre_put_hook(self):
            self.seen.append("pre put")

        def _post_put_hook(self, future):
            self.seen.append(future.result().kind())

        @classmethod
        def _pre_delete_hook(cls, key):
            cls.seen.append("pre delete")

        @classmethod
        def _post_get_hook(cls, key, future):
            cls.seen.append(future.result().n)

    key = Hooked(n=5).put()
    key.get()
    key.delete()
    assert Hooked.seen == ["pre put", "Hooked", 5, "pre delete"]
    kept = Everything(address=Address(number=1)).put().get()
    assert pickle.loads(pickle.dumps(kept)).to_dict() == kept.to_dict()


# --- keys, many at once ---


def test_keys(client, server):
    with client.context(cache_policy=False):
        key = ndb.Key("A", 1, "B", "ü")
        again = ndb.Key(urlsafe=key.urlsafe())
        assert again == key and again.pairs() == (("A", 1), ("B", "ü"))
        assert (key.root(), key.parent(), key.id()) == (ndb.Key("A", 1), ndb.Key("A", 1), "ü")
        assert key.get() is None and key.delete() is None
        below = Room(parent=key, name="below").put()
        assert below.parent() == key and below.integer_id() > 0 and below.get().name == "below"
    with client.context(namespace="other", cache_policy=False):
        assert Room.query(ancestor=ndb.Key("A", 1, "B", "ü")).get() is None
        spaced = Room(id="x", name="spaced").put()
        assert spaced.namespace() == "other"
    with client.context(cache_policy=False):
        assert Room.get_by_id("x") is None
        assert Room.get_by_id("x", namespace="other").name == "spaced"
        assert ndb.Key("Room", "x", namespace="other").get().name == "spaced"
    second = ndb_client(server.host, client.project, database="second")
    with second.context(cache_policy=False):
        assert Room.query().fetch() == []
        assert Room(name="of the second").put().database() == "second"


def test_many_at_once(context):
    """More than a lookup takes, and more than a commit of ndb."""
    keys = ndb.put_multi([Counter(n=n) for n in range(1001)])
    assert [counter.n for counter in ndb.get_multi(keys)] == list(range(1001))
    ndb.delete_multi(keys)
    assert ndb.get_multi(keys) == [None] * 1001


def test_ids(context):
    keys = Counter.allocate_ids(1001)
    assert len({key.id() for key in keys}) == 1001 and keys[0].get() is None
    below = Counter.allocate_ids(2, parent=ndb.Key("A", 1))
    assert [key.parent() for key in below] == [ndb.Key("A", 1)] * 2
    assert Counter.get_or_insert("a", n=1).n == 1
    assert Counter.get_or_insert("a", n=2).n == 1
    assert Counter.get_by_id("a").n == 1 and Counter.get_by_id("b") is None
    assert Counter(id=7, n=3).put() == ndb.Key("Counter", 7)


# --- caches ---


def test_the_cache_of_a_context(client, low):
    with client.context() as context:
        key = Counter(n=1).put()
        assert key.get() is key.get()
        low.put(entity(low, "Counter", key.id(), n=2))
        assert key.get().n == 1
        assert key.get(use_cache=False, use_global_cache=False).n == 2
        context.clear_cache()
        assert key.get().n == 2
        key.delete()
        assert key.get() is None


def test_a_cache_of_many_contexts(client, low):
    shared = global_cache._InProcessGlobalCache()
    shared.cache.clear()
    with client.context(global_cache=shared, cache_policy=False):
        key = Counter(n=1).put()
        assert _cache.global_cache_key(key._key) not in shared.cache
        assert key.get().n == 1
        assert _cache.global_cache_key(key._key) in shared.cache
        with mock.patch("google.cloud.ndb._datastore_api._LookupBatch.add", side_effect=KeyError):
            assert key.get().n == 1
        changed = key.get()
        changed.n = 5
        changed.put()
        assert key.get().n == 5 and low.get(key._key)["n"] == 5
        key.delete()
        assert key.get() is None
        ndb.transaction(lambda: Counter(key=key, n=6).put())
        assert key.get().n == 6


def test_without_datastore(client, low):
    with client.context(global_cache=global_cache._InProcessGlobalCache()) as context:
        context.set_datastore_policy(False)
        key = Counter(id="only cached", n=1).put()
        assert key.get().n == 1
    assert low.get(key._key) is None


# --- tasklets ---


def test_tasklets(context):
    @ndb.tasklet
    def increment(key):
        counter = yield key.get_async()
        counter.n += 1
        key = yield counter.put_async()
        return key

    @ndb.tasklet
    def both(one, two):
        made = yield increment(one), increment(two)
        nothing = yield []
        return made, nothing

    one, two = Counter(n=1).put(), Counter(n=10).put()
    assert both(one, two).result() == ((one, two), ())
    assert [counter.n for counter in ndb.get_multi([one, two])] == [2, 11]

    @ndb.synctasklet
    def delete(*keys):
        yield ndb.delete_multi_async(keys)
        left = yield ndb.get_multi_async(keys)
        return left

    assert delete(one, two) == (None, None)

    @ndb.toplevel
    def main():
        Counter(id="at the end", n=1).put_async()

    main()
    assert Counter.get_by_id("at the end").n == 1


def test_threads(client):
    failures = []

    def use(n):
        try:
            with client.context(cache_policy=False):
                for _ in range(5):
                    assert Counter(n=n).put().get().n == n
        except Exception as error:  # for the test to see
            failures.append(error)

    threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_eventual_reads(context):
    key = Counter(n=1).put()
    assert key.get(read_consistency=ndb.EVENTUAL).n == 1
    assert key.get(read_policy=ndb.EVENTUAL_CONSISTENCY, timeout=PATIENCE_SECONDS).n == 1


# --- transactions ---


def test_a_transaction(context):
    called = []

    def work():
        ndb.get_context().call_on_commit(lambda: called.append("committed"))
        assert ndb.in_transaction()
        key = Counter(id="a", n=1).put()
        assert key.get(use_cache=False) is None  # seen when it is committed
        return key

    assert ndb.transaction(work).get().n == 1
    assert called == ["committed"] and not ndb.in_transaction()

    def fail():
        key = ndb.Key("Counter", "a")
        key.delete()
        Counter(id="b", n=1).put()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ndb.transaction(fail)
    assert Counter.get_by_id("a").n == 1 and Counter.get_by_id("b") is None


def test_a_transaction_is_run_again(context, low):
    """Others came in between, even; the third time it goes through."""
    key = Counter(id="a", n=0).put()
    turns = []

    def work():
        counter = key.get()
        turns.append(counter.n)
        if len(turns) < 3:
            low.put(entity(low, "Counter", "a", n=counter.n + 10))
        counter.n += 1
        counter.put()

    ndb.transaction(work)
    assert turns == [0, 10, 20] and key.get().n == 21
    turns.clear()
    with pytest.raises(exceptions.Aborted):
        ndb.transaction(work, retries=0)
    assert key.get().n == 31


def test_decorators_and_joining(context):
    key = Counter(id="a", n=0).put()

    @ndb.transactional()
    def inner(by):
        counter = key.get()
        counter.n += by
        counter.put()
        return ndb.get_context().transaction

    @ndb.transactional()
    def outer():
        mine = ndb.get_context().transaction
        return mine, inner(1)

    mine, its = outer()
    assert mine == its and key.get().n == 1

    @ndb.non_transactional()
    def apart():
        assert not ndb.in_transaction()
        return Counter(id="apart", n=1).put()

    def fails_behind():
        apart()
        inner(5)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ndb.transaction(fails_behind)
    assert Counter.get_by_id("apart").n == 1 and key.get().n == 1

    with pytest.raises(NotImplementedError):
        ndb.transaction(lambda: ndb.transaction(lambda: None))
    options = ndb.TransactionOptions
    with pytest.raises(BadRequestError):
        ndb.transaction(lambda: None, propagation=options.MANDATORY)
    with pytest.raises(BadRequestError):
        ndb.transaction(lambda: None, propagation=options.NESTED)

    def pausing():
        own = Counter(id="own", n=2)
        ndb.transaction(own.put, propagation=options.INDEPENDENT)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ndb.transaction(pausing)
    assert Counter.get_by_id("own").n == 2


def test_transactions_side_by_side(context):
    """Of tasklets; whichever comes second is run again."""
    key = Counter(id="a", n=42).put()

    @ndb.transactional_tasklet()
    def add(by):
        counter = yield key.get_async()
        yield ndb.sleep(0.2)
        counter.n += by
        yield counter.put_async()

    @ndb.tasklet
    def both():
        yield add(100), add(100)

    both().result()
    assert key.get().n == 242
    one = ndb.transaction_async(lambda: ndb.get_context().transaction)
    two = ndb.transaction_async(lambda: ndb.get_context().transaction)
    assert one.result() != two.result()


def test_no_increment_is_lost(server, low):
    def increment():
        client = ndb_client(server.host, low.project)
        with client.context():

            def work():
                counter = Counter.get_or_insert("shared")
                counter.n += 1
                counter.put()

            for _ in range(8):
                ndb.transaction(work, retries=100)

    threads = [threading.Thread(target=increment) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert low.get(low.key("Counter", "shared"))["n"] == 24


def test_many_in_a_transaction(context):
    keys = ndb.put_multi([Counter(n=n) for n in range(10)])

    @ndb.transactional()
    def turn():
        read = ndb.get_multi(keys)
        ndb.delete_multi(keys[:5])
        fresh = ndb.put_multi([Counter(n=counter.n + 100) for counter in read[:5]])
        assert sum(counter.n for counter in Counter.query().fetch()) == 45
        return fresh

    fresh = turn()
    assert ndb.get_multi(keys[:5]) == [None] * 5
    assert [counter.n for counter in ndb.get_multi(fresh)] == [100, 101, 102, 103, 104]


def test_a_transaction_that_only_reads(context):
    key = Counter(id="a", n=1).put()
    assert ndb.transaction(lambda: key.get().n, read_only=True) == 1
    with pytest.raises((exceptions.InvalidArgument, NestedRetryException), match="read-only"):
        ndb.transaction(Counter(id="b", n=1).put, read_only=True)
    assert Counter.get_by_id("b") is None


def test_get_or_insert_in_a_transaction(context, low):
    """Somebody else is faster, and the transaction sees that when it is run again."""
    turns = []

    def work():
        if not turns:
            Counter.get_by_id("a")
            low.put(entity(low, "Counter", "a", n=42))
        turns.append(1)
        return Counter.get_or_insert("a", n=21)

    assert ndb.transaction(work).n == 42 and len(turns) == 2
    assert Counter.get_by_id("a").n == 42


# --- what there is ---


def test_kinds_namespaces_and_properties(client):
    class Apple(ndb.Model):
        colour = ndb.StringProperty()
        grams = ndb.IntegerProperty()
        sold = ndb.FloatProperty(repeated=True)
        note = ndb.TextProperty()

    class Melon(ndb.Model):
        grams = ndb.IntegerProperty()

    with client.context(cache_policy=False):
        Apple(colour="red", grams=150, sold=[1.5], note="x").put()
        Apple(colour=None, grams=None).put()
        Melon(grams=900).put()
        for namespace in "east", "west":
            Melon(namespace=namespace, grams=1).put()
        assert metadata.get_kinds() == ["Apple", "Melon"]
        assert metadata.get_kinds(start="B") == ["Melon"]
        assert metadata.get_kinds(start="A", end="B") == ["Apple"]
        assert metadata.get_namespaces() == ["", "east", "west"]
        assert metadata.get_namespaces(start="f") == ["west"]
        assert metadata.get_namespaces(start="a", end="f") == ["east"]
        assert metadata.get_properties_of_kind("Apple") == ["colour", "grams", "sold"]
        assert metadata.get_properties_of_kind("Apple", start="d", end="h") == ["grams"]
        types = metadata.get_representations_of_kind("Apple")
        assert {name: set(of) for name, of in types.items()} == {
            "colour": {"NULL", "STRING"}, "grams": {"INT64", "NULL"}, "sold": {"DOUBLE"},
        }  # fmt: skip
        assert [kind.kind_name for kind in metadata.Kind.query()] == ["Apple", "Melon"]
        assert [n.namespace_name for n in metadata.Namespace.query()] == ["", "east", "west"]
        found = metadata.Property.query(ancestor=ndb.Key("__kind__", "Melon")).fetch()
        assert [(prop.kind_name, prop.property_name) for prop in found] == [("Melon", "grams")]
    with client.context(namespace="east"):
        assert metadata.get_kinds() == ["Melon"]
        assert metadata.get_properties_of_kind("Melon") == ["grams"]


def test_statistics(fresh_server):
    """Each of ndb's models of them, in the empty namespace and in another."""
    server = fresh_server("--datastore-statistics-interval", "1s")
    client = ndb_client(server.host, "p")
    with client.context(cache_policy=False):
        ndb.put_multi([Counter(id=n + 1, n=n) for n in range(5)])
        Room(parent=ndb.Key("Counter", 1), name="r").put()
        ndb.put_multi([Counter(n=n, namespace="east") for n in range(2)])
        end = time.monotonic() + PATIENCE_SECONDS
        while (total := stats.GlobalStat.query().get()) is None or total.count < 8:
            assert time.monotonic() < end, "nothing was counted"
            time.sleep(0.1)
        assert total.bytes > total.entity_bytes > 0 and total.builtin_index_count > 0
        kinds = {kind.kind_name: kind for kind in stats.KindStat.query()}
        assert {name: kind.count for name, kind in kinds.items()} == {"Counter": 7, "Room": 1}
        assert kinds["Room"].timestamp.date() == datetime.datetime.now(UTC).date()
        assert [kind.kind_name for kind in stats.KindNonRootEntityStat.query()] == ["Room"]
        assert stats.KindRootEntityStat.query().get().count == 7
        spaces = stats.NamespaceStat.query().fetch()
        assert {space.subject_namespace: space.count for space in spaces} == {"": 6, "east": 2}
        types = stats.KindPropertyNamePropertyTypeStat.query().fetch()
        assert {(t.kind_name, t.property_name, t.property_type, t.count) for t in types} == {
            ("Counter", "n", "Integer", 7), ("Room", "name", "String", 1),
        }  # fmt: skip
        assert {each.property_type for each in stats.PropertyTypeStat.query()} == {
            "Integer", "String",
        }  # fmt: skip
    with client.context(namespace="east", cache_policy=False):
        assert stats.NamespaceGlobalStat.query().get().count == 2
        assert stats.NamespaceKindStat.query().get().kind_name == "Counter"


def test_what_one_client_writes_the_other_reads(client, low, server):
    """In a namespace."""
    with client.context(cache_policy=False, namespace="n"):
        Counter(id="x", n=3).put()
    other = client_of(server.host, low.project, namespace="n")
    assert other.get(other.key("Counter", "x"))["n"] == 3
