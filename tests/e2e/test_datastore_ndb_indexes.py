"""ndb's queries that need composite indexes, which the refusals recommend: orders behind filters,
of structures, merged by ndb itself from several queries."""

import pytest
from google.api_core.exceptions import FailedPrecondition
from google.cloud import ndb
from google.cloud.ndb.exceptions import NestedRetryException
from harness.datastore import entity, fresh_client, ndb_client
from harness.indexes import Indexes, names_of


class Part(ndb.Model):
    one = ndb.StringProperty()
    two = ndb.StringProperty()


class Stock(ndb.Model):
    n = ndb.IntegerProperty()
    m = ndb.IntegerProperty()
    tags = ndb.StringProperty(repeated=True)
    part = ndb.StructuredProperty(Part)
    parts = ndb.StructuredProperty(Part, repeated=True)


@pytest.fixture
def low(server):
    return fresh_client(server.host)


@pytest.fixture
def indexes(server, low):
    opened = Indexes(server.host, low.project)
    yield opened
    opened.close()


def fetched(query):
    """Of queries that run side by side ndb wraps the refusal, or not, as it happens."""
    try:
        return query.fetch()
    except NestedRetryException as error:
        raise FailedPrecondition(str(error)) from error


@pytest.fixture
def asked(indexes):
    """A function that asks a query, which needs an index: what is found, and the index."""

    def ask(query):
        found, index = indexes.for_query(lambda: fetched(query))
        return [each.n for each in found], names_of(index)

    return ask


@pytest.fixture(params=[False, True], ids=["today's data", "App Engine's data"])
def context(request, server, low):
    client = ndb_client(server.host, low.project)
    with client.context(cache_policy=False, legacy_data=request.param) as opened:
        yield opened


@pytest.fixture
def stock(context):
    root = ndb.Key("Root", "r")
    ndb.put_multi([
        Stock(
            parent=root if n < 6 else None, n=n, m=n % 3, tags=[f"t{n % 2}", "all"],
            part=Part(one="pish" if n % 2 else "bish", two="posh" if n < 9 else "bosh"),
        )
        for n in range(12)
    ])  # fmt: skip


def test_a_filter_and_an_order(stock, asked):
    found, index = asked(Stock.query(Stock.m == 1).order(-Stock.n))
    assert (found, index) == ([10, 7, 4, 1], ["m", "-n"])
    query = Stock.query(Stock.tags == "t1").order(Stock.n)
    assert asked(query) == ([1, 3, 5, 7, 9, 11], ["tags", "n"])
    assert query.count() == 6 and query.get().n == 1
    page, cursor, more = query.fetch_page(4)
    assert [each.n for each in page] == [1, 3, 5, 7] and more
    page, cursor, more = query.fetch_page(4, start_cursor=ndb.Cursor(urlsafe=cursor.urlsafe()))
    assert [each.n for each in page] == [9, 11]


def test_an_ancestor_and_an_order(stock, asked):
    query = Stock.query(Stock.n > 2, ancestor=ndb.Key("Root", "r")).order(-Stock.n)
    assert asked(query) == ([5, 4, 3], ["-n"])


def test_two_orders(stock, asked):
    found, index = asked(Stock.query().order(Stock.m, -Stock.n))
    assert found == [9, 6, 3, 0, 10, 7, 4, 1, 11, 8, 5, 2] and index == ["m", "-n"]
    found, index = asked(Stock.query(Stock.n < 100).order(Stock.n, -Stock.key))
    assert found == list(range(12)) and index == ["n", "-__key__"]


def test_projections_of_two(stock, indexes, asked):
    query = Stock.query(projection=["m", "n"]).order(Stock.m, Stock.n)
    assert asked(query) == ([0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11], ["m", "n"])
    query = Stock.query(projection=["m", "tags"], distinct=True).order(Stock.m, Stock.tags)
    found, index = indexes.for_query(query.fetch)
    assert [(each.m, each.tags[0]) for each in found] == [
        (m, tag) for m in range(3) for tag in ("all", "t0", "t1")
    ]
    assert names_of(index) == ["m", "tags"]


def test_unions_in_order(stock, asked):
    """ndb asks a query for each part, and merges them in the order."""
    query = Stock.query(ndb.OR(Stock.m == 0, Stock.m == 2)).order(Stock.n)
    assert asked(query) == ([0, 2, 3, 5, 6, 8, 9, 11], ["m", "n"])
    assert [each.n for each in query.fetch(offset=1, limit=3)] == [2, 3, 5]
    assert [each.n for each in Stock.query(Stock.m.IN([1, 2])).order(Stock.n).fetch(3)] == [1, 2, 4]
    assert query.count() == 8


def test_structures_in_order(stock, asked):
    query = Stock.query(Stock.part.one == "pish", Stock.part.two == "posh").order(-Stock.n)
    found, index = asked(query)
    assert found == [7, 5, 3, 1]
    assert index == ["part.one", "part.two", "-n"]


def test_repeated_structures_in_order(context, asked):
    pairs = [
        [("pish", "posh"), ("bish", "bosh")],
        [("bish", "bosh"), ("pish", "posh")],
        [("pish", "bosh"), ("bish", "posh")],
        [("pish", "posh")],
    ]
    for n, made in enumerate(pairs):
        Stock(n=n, parts=[Part(one=one, two=two) for one, two in made]).put()
    query = Stock.query(Stock.parts.one == "pish", Stock.parts.two == "posh").order(Stock.n)
    found, index = asked(query)
    assert (found, index) == ([0, 1, 2, 3], ["parts.one", "parts.two", "n"])
    one_element = Stock.query(Stock.parts == Part(one="pish", two="posh")).order(Stock.n)
    assert [each.n for each in one_element] == [0, 1, 3]


def test_structures_of_old_in_order(context, asked, low):
    for n in range(4):
        properties = {"n": n, "part.one": "pish", "part.two": "posh" if n else "bosh"}
        low.put(entity(low, "Stock", n + 1, **properties))
    query = Stock.query(Stock.part.one == "pish", Stock.part.two == "posh").order(-Stock.n)
    assert asked(query)[0] == [3, 2, 1]


def test_gql_in_order(stock, asked):
    query = ndb.gql("SELECT * FROM Stock WHERE m = :1 ORDER BY n DESC").bind(2)
    assert asked(query) == ([11, 8, 5, 2], ["m", "-n"])
