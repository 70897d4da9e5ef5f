"""Projections failed as soon as what they project had changed: "The datastore is damaged".

Read in the core by somebody who looked for lost writes. An index row that has ended is shown from
what was kept of it. That was kept with the types of the row as it *became*: none if it went, those
of the new value if that was of another type. So projections, DISTINCT and GQL failed in any
transaction that another client's commit came in between of, as of any moment of the past, and now
and then in the present beside writers; of a string that had become a blob they gave the blob. A
pass over what expires ended at the first such row. The types are the entity's of the moment now."""

import pytest
from harness.datastore import Raw, fresh_client


@pytest.fixture
def raw(server):
    return Raw(fresh_client(server.host))


def projected(raw, *names, **options):
    """The values, by the first of them, as they were sent: pairs of their type and them."""
    query = {
        "kind": [{"name": "K"}],
        "projection": [{"property": {"name": name}} for name in names],
        "order": [{"property": {"name": names[0]}}],
    }
    return values(run(raw, query=query, **options), *names)


def run(raw, **request):
    request = {"project_id": raw.project, **request}
    return raw.api.run_query(request=request, retry=None).batch.entity_results


def values(results, *names):
    found = [each.entity.properties for each in results]
    return [tuple(shown(each[name]) for name in names) for each in found]


def shown(value):
    which = type(value).pb(value).WhichOneof("value_type")
    return getattr(value, which)


def put(raw, number, n):
    return raw.moment({"upsert": raw.entity("K", number, n=n)})


@pytest.fixture
def moment(raw):
    """When there were 1, 2 and 3; then one changed, one went, and one came."""
    for number in (1, 2):
        put(raw, number, number)
    made = put(raw, 3, 3)
    put(raw, 2, 20)
    raw.commit({"delete": raw.key("K", 3)})
    put(raw, 4, 4)
    return made


def test_a_projection_of_the_past(raw, moment):
    assert projected(raw, "n") == [(1,), (4,), (20,)]
    assert projected(raw, "n", read_options={"read_time": moment}) == [(1,), (2,), (3,)]


def test_downwards_and_distinct(raw, moment):
    query = {
        "kind": [{"name": "K"}],
        "projection": [{"property": {"name": "n"}}],
        "distinct_on": [{"name": "n"}],
        "order": [{"property": {"name": "n"}, "direction": "DESCENDING"}],
    }
    options = {"read_time": moment}
    assert values(run(raw, query=query, read_options=options), "n") == [(3,), (2,), (1,)]
    text = {"query_string": "SELECT DISTINCT n FROM K ORDER BY n DESC", "allow_literals": True}
    assert values(run(raw, gql_query=text, read_options=options), "n") == [(3,), (2,), (1,)]


@pytest.mark.parametrize("mode", ["read_only", "read_write"])
def test_a_transaction_that_others_come_in_between_of(raw, mode):
    for number in (1, 2, 3):
        put(raw, number, number)
    options = {"transaction": raw.begin(**{mode: {}})}
    assert projected(raw, "n", read_options=options) == [(1,), (2,), (3,)]
    put(raw, 2, 20)
    raw.commit({"delete": raw.key("K", 1)})
    assert projected(raw, "n", read_options=options) == [(1,), (2,), (3,)]


def test_a_value_that_has_become_one_of_another_type(raw):
    def write(**value):
        entity = {"key": raw.key("K", 1), "properties": {"v": value}}
        return raw.moment({"upsert": entity})

    was_text = write(string_value="abc")
    was_bytes = write(blob_value=b"abc")
    write(integer_value=5)
    assert projected(raw, "v", read_options={"read_time": was_text}) == [("abc",)]
    assert projected(raw, "v", read_options={"read_time": was_bytes}) == [(b"abc",)]
    assert projected(raw, "v") == [(5,)]
