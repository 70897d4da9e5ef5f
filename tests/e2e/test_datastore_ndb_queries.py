"""Datastore by ndb: queries, iterators, cursors, GQL, structures within entities."""

import datetime
import os

import pytest
from google.api_core import exceptions
from google.cloud import ndb
from google.cloud.ndb.exceptions import BadArgumentError
from harness.datastore import entity, fresh_client, ndb_client


class Colour(ndb.Model):
    name = ndb.StringProperty()
    depth = ndb.IntegerProperty()


class Item(ndb.Model):
    n = ndb.IntegerProperty()
    m = ndb.IntegerProperty()
    word = ndb.StringProperty()
    tags = ndb.StringProperty(repeated=True)
    when = ndb.DateTimeProperty()
    day = ndb.DateProperty()
    at = ndb.TimeProperty()
    ratio = ndb.FloatProperty()
    on = ndb.BooleanProperty()
    to = ndb.KeyProperty()
    point = ndb.GeoPtProperty()
    blob = ndb.BlobProperty(indexed=True)
    doubled = ndb.ComputedProperty(lambda self: self.n * 2)
    colour = ndb.StructuredProperty(Colour)
    colours = ndb.StructuredProperty(Colour, repeated=True)


class Beast(ndb.PolyModel):
    n = ndb.IntegerProperty()


class Dog(Beast):
    pass


def moment(n):
    return datetime.datetime(2024, 1, 1) + datetime.timedelta(days=n, seconds=n, microseconds=n)


def item(n, **more):
    return Item(
        id=n + 1, n=n, m=n % 3, word=f"w{n:02}", tags=[f"t{n % 2}", "all"], when=moment(n),
        day=moment(n).date(), at=moment(n).time(), ratio=n / 4, on=n % 2 == 0,
        to=ndb.Key("Item", n + 1), point=ndb.GeoPt(n, -n), blob=bytes([n]),
        colour=Colour(name="red" if n % 2 else "blue", depth=n), **more,
    )  # fmt: skip


@pytest.fixture
def low(server):
    return fresh_client(server.host)


@pytest.fixture
def client(server, low):
    return ndb_client(server.host, low.project)


@pytest.fixture
def context(client):
    with client.context(cache_policy=False, legacy_data=False) as opened:
        yield opened


@pytest.fixture
def items(context):
    """Twenty of them, of which the last ten are below a root."""
    ndb.put_multi([item(n) for n in range(10)])
    root = ndb.Key("Root", "r")
    ndb.put_multi([item(n, parent=root) for n in range(10, 20)])


def numbers(found):
    return [each.n for each in found]


# --- filters and orders ---


def test_all_of_a_kind(items):
    query = Item.query()
    assert sorted(numbers(query.fetch())) == list(range(20))
    assert sorted(numbers(query)) == list(range(20)) and query.count() == 20
    assert numbers(Item.query(ancestor=ndb.Key("Root", "r"))) == list(range(10, 20))
    assert len(ndb.Query(ancestor=ndb.Key("Root", "r")).fetch()) == 10
    assert Item.query(Item.n == 5).get().word == "w05" and Item.query(Item.n == 50).get() is None


@pytest.mark.parametrize(
    "name, value, found",
    [
        ("n", 7, [7]), ("word", "w07", [7]), ("tags", "t1", list(range(1, 20, 2))),
        ("when", moment(7), [7]), ("day", moment(7).date(), [7]), ("at", moment(7).time(), [7]),
        ("ratio", 1.75, [7]), ("on", True, list(range(0, 20, 2))), ("doubled", 14, [7]),
        ("point", ndb.GeoPt(7, -7), [7]), ("blob", b"\x07", [7]), ("word", None, []),
    ],
)  # fmt: skip
def test_equal_values_of_each_type(items, name, value, found):
    query = Item.query(getattr(Item, name) == value)
    assert sorted(numbers(query)) == found and query.count() == len(found)


def test_ranges(items):
    assert numbers(Item.query(Item.n >= 3, Item.n < 6).order(Item.n)) == [3, 4, 5]
    assert numbers(Item.query(Item.when > moment(17)).order(-Item.when)) == [19, 18]
    assert numbers(Item.query(Item.day <= moment(1).date())) == [0, 1]
    assert numbers(Item.query(Item.at > moment(17).time()).order(Item.at)) == [18, 19]
    assert numbers(Item.query(Item.ratio < 0.6).order(Item.ratio)) == [0, 1, 2]
    assert numbers(Item.query(Item.point >= ndb.GeoPt(18, -50)).order(Item.point)) == [18, 19]
    assert numbers(Item.query(Item.to == ndb.Key("Item", 4))) == [3]
    assert numbers(Item.query(Item.key > ndb.Key("Item", 8)))[:2] == [8, 9]
    assert numbers(Item.query(Item.key == ndb.Key("Item", 8))) == [7]
    assert numbers(Item.query().order(Item.key))[:3] == [0, 1, 2]
    assert numbers(Item.query().order("-n").fetch(2)) == [19, 18]


def test_equalities_are_joined(items):
    query = Item.query(Item.m == 1, Item.tags == "t0", Item.on == True)  # noqa: E712
    assert sorted(numbers(query)) == [n for n in range(20) if n % 3 == 1 and n % 2 == 0]
    assert numbers(query.filter(Item.n == 4)) == [4]


def test_unions(items):
    """ndb asks a query for each part, and merges them itself."""
    assert sorted(numbers(Item.query(Item.n.IN([3, 5, 99])))) == [3, 5]
    assert sorted(numbers(Item.query(Item.n != 5))) == [n for n in range(20) if n != 5]
    assert sorted(numbers(Item.query(Item.n.NOT_IN([0, 1])).order(Item.n))) == list(range(2, 20))
    query = Item.query(ndb.OR(Item.n == 3, ndb.AND(Item.m == 0, Item.tags == "t0")))
    assert sorted(numbers(query)) == [0, 3, 6, 12, 18]
    assert query.count() == 5 and len(query.fetch(2)) == 2
    assert len(query.fetch(10, offset=3)) == 2
    assert sorted(numbers(Item.query(ndb.OR(Item.word == "w01", Item.word > "w17")))) == [1, 18, 19]


def test_an_index_that_is_missing(items):
    with pytest.raises(exceptions.FailedPrecondition, match="recommended index is"):
        Item.query(Item.m == 1).order(-Item.n).fetch()


# --- parts ---


def test_projections(items):
    read = Item.query(Item.n < 3, projection=[Item.n]).fetch()
    assert numbers(read) == [0, 1, 2]
    with pytest.raises(ndb.UnprojectedPropertyError):
        read[0].word  # noqa: B018
    query = Item.query().order(Item.when)
    assert [each.when for each in query.fetch(3, projection=["when"])] == [
        moment(n) for n in range(3)
    ]
    for name in "day", "at", "ratio", "on", "to", "point", "doubled", "blob":
        (read,) = Item.query(Item.n == 3).fetch()
        found = Item.query(projection=[name]).order(getattr(Item, name)).fetch()
        assert getattr(read, name) in [getattr(each, name) for each in found], name
    assert [each.tags for each in Item.query(projection=["tags"]).order(Item.tags).fetch(21)] == (
        [["all"]] * 20 + [["t0"]]
    )


def test_distinct(items):
    query = Item.query(projection=["m"], distinct_on=["m"]).order(Item.m)
    assert [each.m for each in query] == [0, 1, 2] and query.is_distinct
    query = Item.query(projection=["tags"], distinct=True)
    assert sorted(each.tags[0] for each in query) == ["all", "t0", "t1"]
    assert sorted(each.m for each in Item.query(distinct_on=["m"]).order(Item.m)) == [0, 1, 2]


def test_keys_only(items):
    keys = Item.query(Item.n >= 18).order(Item.n).fetch(keys_only=True)
    assert keys == [ndb.Key("Root", "r", "Item", 19), ndb.Key("Root", "r", "Item", 20)]
    assert Item.query(Item.n == 3).get(keys_only=True) == ndb.Key("Item", 4)


# --- pages ---


def test_limits_and_offsets(items):
    query = Item.query().order(Item.n)
    assert numbers(query.fetch(3)) == [0, 1, 2]
    assert numbers(query.fetch(limit=3, offset=15)) == [15, 16, 17]
    assert numbers(query.fetch(offset=18)) == [18, 19]
    assert query.fetch(offset=30) == [] and query.fetch(limit=5, offset=20) == []


def test_counts(items, server, monkeypatch):
    """By skipping, as ndb does it; and by reading all keys, as it does for an emulator."""
    query = Item.query(Item.n > 4)
    for _ in range(2):
        assert (query.count(), query.count(3), query.count(limit=100)) == (15, 3, 15)
        assert Item.query(Item.n > 100).count() == 0
        monkeypatch.setenv("DATASTORE_EMULATOR_HOST", server.host)
    assert "DATASTORE_EMULATOR_HOST" in os.environ


def test_pages(items):
    query = Item.query().order(-Item.n)
    found, cursor, more = [], None, True
    while more:
        page, cursor, more = query.fetch_page(6, start_cursor=cursor)
        found += numbers(page)
        cursor = ndb.Cursor(urlsafe=cursor.urlsafe()) if cursor else None
    assert found == list(range(19, -1, -1))
    assert query.fetch_page(6, start_cursor=cursor)[0] == []


def test_iterators(items):
    found = Item.query().order(Item.n).iter()
    assert found.has_next() and found.next().n == 0
    with pytest.raises(BadArgumentError):
        found.cursor_before()
    second = found.next()
    before, after = found.cursor_before(), found.cursor_after()
    assert Item.query().order(Item.n).fetch(1, start_cursor=before)[0] == second
    assert Item.query().order(Item.n).fetch(1, start_cursor=after)[0].n == 2
    assert numbers(Item.query().order(Item.n).fetch(start_cursor=after, end_cursor=after)) == []
    assert len(list(found)) == 18
    part = Item.query().order(Item.n).fetch(end_cursor=after)
    assert numbers(part) == [0, 1]


def test_more_than_a_batch(context):
    """The server gives 300 results at a time; what is skipped is counted, too."""
    ndb.put_multi([Colour(id=n + 1, depth=n) for n in range(700)])
    assert [c.depth for c in Colour.query().order(-Colour.depth)] == list(range(699, -1, -1))
    assert Colour.query().count() == 700 and Colour.query().count(650) == 650
    assert [c.depth for c in Colour.query().order(Colour.depth).fetch(offset=698)] == [698, 699]
    assert len(Colour.query(Colour.depth != 3).fetch(keys_only=True)) == 699


def test_tasklets_and_maps(items):
    @ndb.tasklet
    def double(found):
        other = yield found.key.get_async()
        return other.n * 2

    assert Item.query(Item.n < 3).order(Item.n).map(double) == (0, 2, 4)
    one, two = Item.query(Item.n == 1).fetch_async(), Item.query(Item.n > 17).count_async()
    first = Item.query(Item.n == 2).get_async()
    assert (numbers(one.result()), two.result(), first.result().n) == ([1], 2, 2)
    assert Item.query(Item.n > 5).map_async(lambda i: i.n).result()[0] == 6

    @ndb.tasklet
    def walk():
        found, seen = Item.query(Item.n < 4).order(Item.n).iter(), []
        while (yield found.has_next_async()):
            seen.append(found.next().n)
        return seen

    assert walk().result() == [0, 1, 2, 3]


# --- texts ---


def test_gql(items):
    assert numbers(ndb.gql("SELECT * FROM Item WHERE n > 17 ORDER BY n DESC")) == [19, 18]
    query = ndb.gql("SELECT * FROM Item WHERE n >= :1 AND n < :end ORDER BY n")
    assert numbers(query.bind(3, end=5)) == [3, 4]
    assert numbers(Item.gql("WHERE tags = 't1' AND m = 0")) != []
    assert sorted(numbers(Item.gql("WHERE n IN (2, 4)"))) == [2, 4]
    assert numbers(Item.gql("ORDER BY n LIMIT 2 OFFSET 3")) == [3, 4]
    assert numbers(Item.gql("WHERE on = TRUE AND word = 'w04'")) == [4]
    assert numbers(ndb.gql("SELECT n FROM Item WHERE n > 17 ORDER BY n")) == [18, 19]
    assert [each.m for each in ndb.gql("SELECT DISTINCT m FROM Item ORDER BY m")] == [0, 1, 2]
    text = "SELECT * FROM Item WHERE when = DATETIME('2024-01-08 00:00:07') AND n = 7"
    assert numbers(ndb.gql(text)) == []
    assert numbers(ndb.gql("SELECT * FROM Item WHERE to = KEY('Item', 8)")) == [7]


# --- structures ---


@pytest.mark.parametrize("legacy", [False, True])
def test_structures(client, legacy):
    with client.context(cache_policy=False, legacy_data=legacy):
        ndb.put_multi([item(n) for n in range(6)])
        assert sorted(numbers(Item.query(Item.colour.name == "red"))) == [1, 3, 5]
        query = Item.query(Item.colour.name == "red", Item.colour.depth == 3)
        assert numbers(query) == [3]
        assert numbers(Item.query(Item.colour == Colour(name="blue", depth=2))) == [2]
        assert numbers(Item.query(Item.colour.depth > 3).order(Item.colour.depth)) == [4, 5]
        read = Item.query(projection=["colour.name"], distinct_on=["colour.name"])
        names = [each.colour.name for each in read.order(Item.colour.name)]
        assert names == ["blue", "red"]


@pytest.mark.parametrize("legacy", [False, True])
def test_repeated_structures(client, legacy):
    """Both values of one element: what the index finds ndb looks through itself."""
    with client.context(cache_policy=False, legacy_data=legacy):
        red, blue = Colour(name="red", depth=1), Colour(name="blue", depth=2)
        mixed = [Colour(name="red", depth=2), Colour(name="blue", depth=1)]
        Item(id=1, n=1, colours=[red, blue]).put()
        Item(id=2, n=2, colours=mixed).put()
        Item(id=3, n=3, colours=[]).put()
        assert numbers(Item.query(Item.colours.name == "red")) == [1, 2]
        both = Item.query(Item.colours.name == "red", Item.colours.depth == 1)
        assert numbers(both) == [1, 2]
        assert numbers(Item.query(Item.colours == Colour(name="red", depth=1))) == [1]
        two = Item.query(Item.colours == red, Item.colours == blue)
        assert numbers(two) == [1]


def test_structures_of_old(context, low):
    """Stored as App Engine's ndb did, and asked for by today's."""
    for at, name in enumerate(["red", "blue"]):
        properties = {"n": at, "colour.name": name, "colour.depth": at}
        low.put(entity(low, "Item", at + 1, **properties))
    assert numbers(Item.query(Item.colour.name == "blue")) == [1]
    assert Item.query(Item.colour.depth == 0).get().colour.name == "red"


def test_polymodels(context):
    Beast(n=1).put()
    Dog(n=2).put()
    assert {type(each) for each in Beast.query()} == {Beast, Dog}
    assert numbers(Dog.query()) == [2] and isinstance(Dog.query().get(), Beast)
    assert numbers(Dog.query(Dog.n == 2)) == [2] and Dog.query(Dog.n == 1).get() is None


# --- where and when ---


def test_namespaces(client):
    with client.context(cache_policy=False):
        Colour(id="a", depth=1).put()
        Colour(id="a", depth=2, namespace="other").put()
        assert [each.depth for each in Colour.query()] == [1]
        (read,) = Colour.query(namespace="other").fetch()
        assert read.depth == 2 and read.key.namespace() == "other"
        assert Colour.query(namespace="none").fetch() == []
    with client.context(namespace="other", cache_policy=False):
        assert [each.depth for each in Colour.query()] == [2]
        assert [each.depth for each in Colour.query(namespace="")] == [1]


def test_queries_in_transactions(items):
    """Of one moment, and any query, not only those with an ancestor."""

    @ndb.transactional()
    def work():
        before = Item.query(Item.m == 0).count()
        Item(id="more", n=300, m=0).put()
        assert Item.query(Item.m == 0).count() == before
        return before

    before = work()
    assert Item.query(Item.m == 0).count() == before + 1


def test_eventual_queries(items):
    found = Item.query(Item.n < 3).order(Item.n).fetch(read_consistency=ndb.EVENTUAL)
    assert numbers(found) == [0, 1, 2]
    assert Item.query(Item.n == 1).get(read_policy=ndb.EVENTUAL_CONSISTENCY).n == 1
