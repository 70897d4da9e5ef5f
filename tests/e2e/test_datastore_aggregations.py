"""What aggregations read, and of which entities: sums and averages come from an index where there
is one, and a limit then takes the least values. By Google's client, by text and by raw messages."""

import pytest
from google.api_core import exceptions
from google.cloud.datastore import query_profile
from google.cloud.datastore.query import PropertyFilter
from harness.datastore import Raw, client_of, entity, fresh_client
from harness.indexes import Indexes

# As in the tests of Google's own client for Node: how often each of eight appears.
APPEARANCES = [9, 26, 33, 33, 31, 24, 0, 25]
BILLED = ("documents_billable", "index_entries_billable", "small_ops", "min_query_cost")


@pytest.fixture
def client(server):
    return fresh_client(server.host)


@pytest.fixture
def raw(client):
    return Raw(client)


@pytest.fixture
def create(client, server):
    """Makes an index."""
    indexes = Indexes(server.host, client.project)
    yield indexes.create
    indexes.close()


@pytest.fixture
def cast(client):
    """One below the other, the first below a book: their keys are not in the order of values."""
    path, made = ["Book", "GoT"], []
    for number, appearances in enumerate(APPEARANCES):
        path += ["Character", f"c{number}"]
        made.append(entity(client, *path, appearances=appearances, T=7, other="x"))
    client.put_multi(made)
    return client


def over_characters(client, *filters, below=True, **options):
    ancestor = client.key("Book", "GoT") if below else None
    query = client.query(kind="Character", ancestor=ancestor)
    for each in filters:
        query.add_filter(filter=PropertyFilter(*each))
    return client.aggregation_query(query, **options)


def values(made, **options):
    (row,) = made.fetch(**options)
    return {each.alias: each.value for each in row}


def explained(client, *filters, below=True):
    """A sum, an average and a count: the indexes of the plan, and what running it took."""
    options = query_profile.ExplainOptions(analyze=True)
    made = over_characters(client, *filters, below=below, explain_options=options)
    found = made.sum("appearances", "s").avg("appearances", "a").count("n").fetch()
    (row,) = list(found)
    assert {each.alias: each.value for each in row} == {"s": 181, "a": 22.625, "n": 8}
    metrics = found.explain_metrics
    used = metrics.plan_summary.indexes_used
    return [(each["properties"], each["query_scope"]) for each in used], metrics.execution_stats


def billed(stats):
    details = stats.debug_stats["billing_details"]
    assert set(details) == set(BILLED)
    return [details[name] for name in BILLED]


def test_a_sum_is_of_an_index(cast, create):
    create("Character", "appearances", ancestor=True)
    indexes, stats = explained(cast)
    assert indexes == [("(appearances ASC, __name__ ASC)", "Includes ancestors")]
    assert (stats.results_returned, stats.read_operations) == (1, 1)
    assert stats.debug_stats["documents_scanned"] == "0"
    assert stats.debug_stats["index_entries_scanned"] == "8"
    assert billed(stats) == ["0", "8", "0", "0"]


def test_the_built_in_index_will_do(cast):
    indexes, stats = explained(cast, below=False)
    assert indexes == [("(appearances ASC, __name__ ASC)", "Collection group")]
    assert stats.debug_stats["documents_scanned"] == "0"


def test_an_index_of_equalities_and_what_is_summed_up(cast, create):
    create("Character", "T", "appearances", ancestor=True)
    indexes, stats = explained(cast, ("T", "=", 7))
    assert indexes == [("(T ASC, appearances ASC, __name__ ASC)", "Includes ancestors")]
    assert stats.debug_stats["documents_scanned"] == "0"


def test_entities_where_there_is_no_index(cast):
    for filters in (), (("T", "=", 7),), (("other", "=", "x"), ("T", "=", 7)):
        _, stats = explained(cast, *filters)
        assert stats.debug_stats["documents_scanned"] == "8"
        assert billed(stats)[0] == "8"


def test_a_plan_alone(cast, create):
    create("Character", "appearances", ancestor=True)
    planned = over_characters(cast, explain_options=query_profile.ExplainOptions())
    found = planned.sum("appearances").fetch()
    assert list(found) == []
    (index,) = found.explain_metrics.plan_summary.indexes_used
    assert index["properties"] == "(appearances ASC, __name__ ASC)"


def test_a_limit_takes_the_least_values(cast, create):
    def limited(limit, **options):
        made = over_characters(cast, **options).sum("appearances", "s").avg("appearances", "a")
        return values(made.count("n"), limit=limit)

    least = sorted(APPEARANCES)
    assert limited(5, below=False) == {"s": sum(least[:5]), "a": sum(least[:5]) / 5, "n": 5}
    # Without an index, the first by their keys.
    assert limited(5) == {"s": sum(APPEARANCES[:5]), "a": sum(APPEARANCES[:5]) / 5, "n": 5}
    create("Character", "appearances", ancestor=True)
    assert limited(5) == {"s": 84, "a": 16.8, "n": 5}
    assert limited(7) == {"s": sum(least[:7]), "a": sum(least[:7]) / 7, "n": 7}


def test_a_limit_in_an_order_of_ones_own(cast):
    def total(order, **options):
        query = cast.query(kind="Character", order=order)
        return values(cast.aggregation_query(query).sum("appearances", "s"), **options)["s"]

    assert total(["-appearances"], limit=3) == 33 + 33 + 31
    assert total(["appearances"], limit=3) == 0 + 9 + 24
    assert total(["__key__"], limit=3) == 9 + 26 + 33


def test_values_of_arrays_count_each(client, create):
    """By an index or by entities: as indexes have them, each different one."""
    client.put(entity(client, "P", 1, "K", 1, n=[3, 3, 4], T=1))
    client.put(entity(client, "P", 1, "K", 2, n=10, T=1))
    client.put(entity(client, "P", 1, "K", 3, n=[], T=1))
    client.put(entity(client, "P", 1, "K", 4, T=1))
    client.put(entity(client, "P", 1, "K", 5, n="word", T=1))
    client.put(entity(client, "P", 1, "K", 6, n=[1.5, "x"], T=1))

    def total(equalities):
        query = client.query(kind="K")
        for name in equalities:
            query.add_filter(filter=PropertyFilter(name, "=", 1))
        made = client.aggregation_query(query).sum("n", "s").avg("n", "a").count("c")
        return values(made)

    expected = {"s": 18.5, "a": 18.5 / 4, "c": 6}
    assert total([]) == expected
    assert total(["T"]) == expected
    create("K", "T", "n")
    assert total(["T"]) == expected


def test_text(raw, cast, create):
    create("Character", "appearances", ancestor=True)

    def total(text):
        answer = raw.api.run_aggregation_query(
            request={
                "project_id": raw.project,
                "gql_query": {"query_string": text, "allow_literals": True},
            },
            retry=None,
        )
        (row,) = answer.batch.aggregation_results
        return row.aggregate_properties["s"].integer_value

    below = "WHERE __key__ HAS ANCESTOR KEY(Book, 'GoT')"
    nested = f"SELECT * FROM Character {below} LIMIT 5"
    assert total(f"AGGREGATE SUM(appearances) AS s OVER ({nested})") == 84
    assert total(f"SELECT SUM(appearances) AS s FROM Character {below}") == 181


def test_in_transactions_and_in_the_past(raw, cast):
    before = raw.moment()
    made = over_characters(cast, below=False).sum("appearances", "s")
    with cast.transaction():
        assert values(made, limit=3) == {"s": 33}
    cast.put(entity(cast, "Character", "late", appearances=1))
    assert values(made, limit=3) == {"s": 10}
    assert values(made, limit=3, read_time=before) == {"s": 33}
    assert values(made, read_time=before) == {"s": 181}


@pytest.mark.parametrize("changes", [{"appearances": 2}, {}])
def test_what_was_summed_up_has_changed(server, cast, changes):
    """No entity was read, but the rows of the index were: the sum is no more what it was, by a
    value that is another, or that is gone. What else changes of an entity does not matter."""
    first, second = ["Book", "GoT", "Character", "c0"], ["Character", "c1"]
    other = client_of(server.host, cast.project)
    made = over_characters(cast, below=False).sum("appearances", "s")
    with pytest.raises(exceptions.Aborted), cast.transaction():
        assert values(made) == {"s": 181}
        other.put(entity(other, *first, **changes))
        cast.put(entity(cast, "Total", 1, s=181))
    with cast.transaction():
        assert values(made) == {"s": 181 - APPEARANCES[0] + changes.get("appearances", 0)}
        other.put(entity(other, *first, *second, appearances=26, other="y"))
        cast.put(entity(cast, "Total", 1, s=0))


def test_what_queries_are_billed(raw, cast):
    def run(**query):
        answer = raw.api.run_query(
            request={
                "project_id": raw.project,
                "query": {"kind": [{"name": "Character"}], **query},
                "explain_options": {"analyze": True},
            },
            retry=None,
        )
        return billed(answer.explain_metrics.execution_stats)

    assert run() == ["8", "0", "0", "0"]
    assert run(projection=[{"property": {"name": "__key__"}}]) == ["0", "0", "8", "1"]
    assert run(projection=[{"property": {"name": "appearances"}}]) == ["0", "0", "8", "1"]
    assert run(kind=[{"name": "Nobody"}]) == ["0", "0", "0", "1"]
