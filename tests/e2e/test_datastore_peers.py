"""Datastore where servers are peers: its databases are at the one that leads, and calls may come to
any."""

import pytest
from google.api_core import exceptions
from harness.datastore import client_of, entity
from harness.patience import PATIENCE_SECONDS
from harness.peers import spread_instance, wait_for_table
from harness.rest import Rest
from harness.rpc import set_cell
from harness.views import comes_to as comes_to_within


@pytest.fixture
def two(peers_of):
    return peers_of(2)


@pytest.fixture
def clients(two):
    """Of the leader and of the other one."""
    return [client_of(server.host, "p") for server in two]


def test_all_see_one_database(clients):
    leader, follower = clients
    follower.put(entity(follower, "Task", "a", done=False))
    leader.put(entity(leader, "Task", "b", done=True))
    for client in clients:
        assert [each.key.name for each in client.query(kind="Task").fetch()] == ["a", "b"]
        assert client.get(client.key("Task", "a"))["done"] is False
    with follower.transaction():
        task = follower.get(follower.key("Task", "a"))
        task["done"] = True
        follower.put(task)
    assert leader.get(leader.key("Task", "a"))["done"] is True
    ids = [key.id for client in clients for key in client.allocate_ids(client.key("Task"), 50)]
    assert len(set(ids)) == 100


def test_transactions_meet_wherever_they_come_in(clients):
    leader, follower = clients
    leader.put(entity(leader, "Counter", "c", n=0))
    with pytest.raises(exceptions.Aborted), follower.transaction():
        counter = follower.get(follower.key("Counter", "c"))
        leader.put(entity(leader, "Counter", "c", n=10))
        counter["n"] += 1
        follower.put(counter)
    assert follower.get(follower.key("Counter", "c"))["n"] == 10


def test_json_and_administration_may_come_to_any(two, clients):
    clients[0].put(entity(clients[0], "Task", "a", done=False))
    rest = Rest(two[1].host)
    key = {"partitionId": {"projectId": "p"}, "path": [{"kind": "Task", "name": "a"}]}
    found = rest.call("POST", "/v1/projects/p:lookup", {"keys": [key]})
    assert found["found"][0]["entity"]["properties"] == {"done": {"booleanValue": False}}
    assert rest.call("GET", "/v1/projects/p/databases")["databases"]
    index = {"kind": "Task", "ancestor": "NONE", "properties": [
        {"name": name, "direction": "ASCENDING"} for name in ("done", "at")]}  # fmt: skip
    operation = rest.call("POST", "/v1/projects/p/indexes", index)
    name = operation["name"]
    comes_to_within(lambda: rest.call("GET", f"/v1/{name}").get("done"), True, PATIENCE_SECONDS)
    listed = [Rest(server.host).call("GET", "/v1/projects/p/indexes") for server in two]
    assert listed[0] == listed[1] and len(listed[0]["indexes"]) == 1
    operations = [Rest(server.host).call("GET", "/v1/projects/p/operations") for server in two]
    assert [each["name"] for each in operations[1]["operations"]] == [name]
    assert operations[0] == operations[1]


def test_without_its_leader_there_is_none(two, clients):
    clients[1].put(entity(clients[1], "Task", "a"))
    two[0].kill()
    with pytest.raises(exceptions.ServiceUnavailable, match=two[0].listen):
        clients[1]._datastore_api.lookup(
            request={"project_id": "p", "keys": [clients[1].key("Task", "a").to_protobuf()]},
            retry=None,
        )
    two[0].start()
    assert clients[1].get(clients[1].key("Task", "a")) is not None


def test_what_is_written_there_holds_up_no_other_changes(two, clients, connect, administer):
    """Of tables that peers do not share they are told nothing."""
    admin = administer(two[0].host)
    table = admin.create_table(spread_instance(admin, "spread", 2), "t", ("f",))
    rpcs = [connect(server.host) for server in two]
    wait_for_table(rpcs[1], table, "c2")
    for number in range(20):
        clients[0].put(entity(clients[0], "Task", f"t{number}", n=number))
        rpcs[0].mutate(table, b"k%02d" % number, set_cell("f", b"q", b"v", 1000))
    comes_to_within(
        lambda: len(rpcs[1].read(table, app_profile_id="c2")), 20, PATIENCE_SECONDS
    )
    assert two[1].metric('replication_changes_total{peer="zone-1"}') == 20
