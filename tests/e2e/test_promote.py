"""Another server comes to lead: when the one that led is gone, and when it is not."""

import json
import threading
import time

import grpc
import pytest
from google.api_core import exceptions
from harness.patience import PATIENCE_SECONDS
from harness.peers import (
    ask,
    join,
    know_each_other,
    list_peers,
    peer_server,
    spread_instance,
    wait_for_peers,
    wait_for_table,
)
from harness.rest import Rest
from harness.rpc import fails_with, set_cell
from harness.server import Server, run_trestle
from harness.views import comes_to as comes_to_within

PROJECT = "projects/p"
INSTANCE = f"{PROJECT}/instances/spread"
TABLE = f"{INSTANCE}/tables/t"


def comes_to(look, expected):
    comes_to_within(look, expected, PATIENCE_SECONDS)


def becomes(condition):
    comes_to(lambda: bool(condition()), True)


def promote(server, expect=200, **fields):
    """What comes of it: {"peers": …, "notes": […]}."""
    return Rest(server.host).call("POST", "/v1/servers/self/peers:promote", fields, expect)


def leader_of(server):
    return list_peers(server)["list"]["leader"]


def follow(servers, number):
    for server in servers:
        wait_for_peers(server, lambda said: said["list"]["leader"] == number)


def make_table(admin, table_id, *families):
    return admin.create_table(INSTANCE, table_id, families or ("f",))


def add_family(admin, table, family):
    admin.tables.modify_column_families(
        request={"name": table, "modifications": [{"id": family, "create": {}}]}
    )


def families_at(admin, table):
    """None while it does not tell."""
    try:
        return sorted(admin.tables.get_table(name=table).column_families)
    except (exceptions.NotFound, exceptions.ServiceUnavailable):
        return None


def tables_at(admin):
    return sorted(table.name.rsplit("/")[-1] for table in admin.tables.list_tables(parent=INSTANCE))


def profiles_at(admin):
    try:
        return list(admin.instances.list_app_profiles(parent=INSTANCE))
    except exceptions.NotFound:
        return []


def values_at(rpc, table):
    """None while it does not tell."""
    try:
        return [(key, [cell.value for cell in cells]) for key, cells in rpc.read(table)]
    except grpc.RpcError:
        return None


def edits_of(server, epoch):
    """What the server kept of what was administered while it led."""
    return json.loads((server.directory / "data" / f"edits-of-epoch-{epoch}.json").read_text())


def is_copied(said):
    return all(int(state.get("appliedUntilUs", 0)) > 0 for state in said["states"])


class Group:
    """Servers that are peers, and clients of each; the first leads to begin with."""

    def __init__(self, servers, administer, connect):
        self.servers = servers
        self.admins = [administer(each.host) for each in servers]
        self.rpcs = [connect(each.host) for each in servers]
        for server in servers:
            wait_for_peers(server, is_copied)
        assert spread_instance(self.admins[0], "spread", len(servers)) == INSTANCE
        for admin in self.admins:
            becomes(lambda admin=admin: len(profiles_at(admin)) == len(servers) + 1)

    def have(self, table_id):
        for admin in self.admins:
            becomes(lambda admin=admin: table_id in tables_at(admin))
        for number, rpc in enumerate(self.rpcs, 1):
            wait_for_table(rpc, f"{INSTANCE}/tables/{table_id}", f"c{number}")


@pytest.fixture
def group_of(peers_of, administer, connect):
    return lambda count, *arguments: Group(peers_of(count, *arguments), administer, connect)


# --- the leader is gone ---


def test_one_leads_when_the_leader_is_gone(group_of):
    group = group_of(3)
    make_table(group.admins[0], "t")
    group.have("t")
    group.servers[0].kill()
    said = promote(group.servers[1])
    assert said["peers"]["list"]["leader"] == 2 and said["peers"]["list"]["epoch"] == "2"
    assert "Peer 1, in zone-1, led and does not answer" in said["notes"][0]
    follow(group.servers[1:], 2)
    made = make_table(group.admins[2], "made")  # by way of the new one
    for admin in group.admins[1:]:
        becomes(lambda admin=admin: "made" in tables_at(admin))
    add_family(group.admins[1], made, "g")
    group.servers[0].start()
    follow(group.servers, 2)
    know_each_other(group.servers)
    comes_to(lambda: families_at(group.admins[0], made), ["f", "g"])
    make_table(group.admins[0], "again")  # is sent on
    group.have("again")
    kept = edits_of(group.servers[0], 1)
    assert [(each["name"], "here" in each) for each in kept["differences"]] == [
        (made, False)
    ]  # which it has now; nothing of its own is lost


def test_what_the_former_leader_alone_had_is_kept_in_a_file(group_of):
    group = group_of(3)
    table = make_table(group.admins[0], "t")
    group.have("t")
    for server in group.servers[1:]:
        server.kill()
    alone = make_table(group.admins[0], "alone", "x")
    group.rpcs[0].mutate(alone, b"k", set_cell("x", b"q", b"v", 1000))
    add_family(group.admins[0], table, "lost")
    group.rpcs[0].mutate(table, b"k", set_cell("lost", b"q", b"of nobody", 1000))
    group.rpcs[0].mutate(table, b"k", set_cell("f", b"q", b"stays", 1000))
    group.servers[0].kill()
    for server in group.servers[1:]:
        server.start()
    know_half = lambda said: "refused" in said["states"][0].get("failure", "")
    for server in group.servers[1:]:
        wait_for_peers(server, know_half)
    promote(group.servers[2])
    add_family(group.admins[2], table, "mine")
    group.rpcs[2].mutate(table, b"k", set_cell("mine", b"q", b"m", 1000))
    group.servers[0].start()
    follow(group.servers, 3)
    for admin in group.admins:
        comes_to(lambda admin=admin: families_at(admin, table), ["f", "mine"])
        assert tables_at(admin) == ["t"]
    for rpc in group.rpcs:
        comes_to(lambda rpc=rpc: values_at(rpc, table), [(b"k", [b"stays", b"m"])])
    kept = edits_of(group.servers[0], 1)
    assert kept["epoch"] == "1" and kept["follows"] == 3
    differences = {each["name"]: each for each in kept["differences"]}
    assert sorted(differences) == [alone, table]
    assert [f["name"] for f in differences[alone]["here"]["families"]] == ["x"]
    assert "there" not in differences[alone]
    named = [f["name"] for f in differences[table]["here"]["families"]]
    assert "lost" in named and "mine" not in named
    assert "edits-of-epoch" in group.servers[0].stderr()


def test_table_that_the_former_leader_alone_had_is_undeleted_there(group_of):
    group = group_of(2)
    group.servers[1].kill()
    alone = make_table(group.admins[0], "alone")
    group.rpcs[0].mutate(alone, b"k", set_cell("f", b"q", b"v", 1000), app_profile_id="c1")
    group.servers[0].kill()
    group.servers[1].start()
    wait_for_peers(group.servers[1], lambda said: said["states"][0].get("failure"))
    promote(group.servers[1], force=True)
    group.servers[0].start()
    comes_to(lambda: tables_at(group.admins[0]), [])
    assert [each["name"] for each in edits_of(group.servers[0], 1)["differences"]] == [alone]
    know_each_other(group.servers)
    promote(group.servers[0])
    group.admins[0].tables.undelete_table(name=alone).result()
    group.have("alone")
    assert values_at(group.rpcs[0], alone) == [(b"k", [b"v"])]


def test_who_has_most_is_asked_before(group_of):
    """One that was not there when it was made does not lead without it."""
    group = group_of(3)
    group.servers[1].kill()
    make_table(group.admins[0], "late")
    becomes(lambda: "late" in tables_at(group.admins[2]))
    group.servers[0].kill()
    group.servers[1].start()
    for server in group.servers[1:]:
        wait_for_peers(
            server,
            lambda said: said["states"][0].get("failure")
            and said["states"][1].get("heardUs")
            and not said["states"][1].get("failure"),
        )
    assert tables_at(group.admins[1]) == []
    promote(group.servers[1])
    assert tables_at(group.admins[1]) == ["late"]
    group.servers[0].start()
    follow(group.servers, 2)
    group.have("late")


def test_no_cell_of_a_lost_family_lands_in_another(group_of):
    """A family that only the former leader had, and one that the new one makes."""
    group = group_of(2)
    table = make_table(group.admins[0], "t")
    group.have("t")
    group.servers[1].kill()
    add_family(group.admins[0], table, "lost")
    for number in range(20):
        group.rpcs[0].mutate(table, b"k%02d" % number, set_cell("lost", b"q", b"wrong", 1000))
    group.rpcs[0].mutate(table, b"last", set_cell("f", b"q", b"right", 1000))
    group.servers[0].kill()
    group.servers[1].start()
    wait_for_peers(group.servers[1], lambda said: said["states"][0].get("failure"))
    promote(group.servers[1], force=True)
    add_family(group.admins[1], table, "new")
    group.servers[0].start()
    follow(group.servers, 2)
    for rpc in group.rpcs:
        comes_to(lambda rpc=rpc: values_at(rpc, table), [(b"last", [b"right"])])


# --- a majority ---


def test_without_a_majority_it_takes_force(group_of):
    group = group_of(3)
    for server in (group.servers[0], group.servers[2]):
        server.kill()
    says = promote(group.servers[1], expect=400)["error"]
    assert "1 of the 3 known peers answer" in says["message"]
    assert "zone-1 (1), zone-3 (3)" in says["message"] and "--force" in says["message"]
    assert list_peers(group.servers[1])["list"]["epoch"] == "1"
    done = run_trestle("cluster", "promote", "--force", "--endpoint", group.servers[1].host)
    assert done.returncode == 0, done.stderr
    assert "No majority of the peers knows that this server leads" in done.stdout
    for server in (group.servers[0], group.servers[2]):
        server.start()
    follow(group.servers, 2)
    know_each_other(group.servers)


def test_two_that_were_forced_to_lead_meet_again(group_of, tmp_path, own_servers):
    """Each for itself on its side of what parts them: the numbers that they give differ."""
    group = group_of(2)
    first, second = group.servers
    second.kill()
    promote(first, force=True)
    third = peer_server(tmp_path / "peer-3", 3)
    own_servers.append(third)
    assert join(third, first)["ownNumber"] == 17
    make_table(group.admins[0], "of-first")
    first.kill()
    third.kill()
    second.start()
    wait_for_peers(second, lambda said: said["states"][0].get("failure"))
    promote(second, force=True)
    promote(second, force=True)  # its epoch is the greater one
    fourth = peer_server(tmp_path / "peer-4", 4)
    own_servers.append(fourth)
    assert join(fourth, second)["ownNumber"] == 18
    fifth = peer_server(tmp_path / "peer-5", 5)
    own_servers.append(fifth)
    says = join(fifth, second, expect=400)["error"]
    assert "no majority" in says["message"] and "has been given" in says["message"]
    first.start()
    follow([first, second, fourth], 2)
    assert join(fifth, second)["ownNumber"] == 3


# --- the leader is there ---


class Load:
    """Clients that administer, by one server or another, until it is ended: what was acknowledged.
    """

    def __init__(self, admins):
        self.made = []
        self.is_over = False
        self.threads = [
            threading.Thread(target=self.run, args=(number, admin))
            for number, admin in enumerate(admins)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, number, admin):
        at = 0
        while not self.is_over:
            name = f"t-{number}-{at}"
            at += 1
            try:
                make_table(admin, name)
            except (
                exceptions.ServiceUnavailable,
                exceptions.FailedPrecondition,
                exceptions.Unknown,
                exceptions.DeadlineExceeded,
            ):
                continue
            self.made.append(name)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def test_hand_over_under_load_loses_nothing(group_of):
    group = group_of(3)
    load = Load(group.admins)
    for number in (2, 3, 1, 2):
        count = len(load.made)
        becomes(lambda: len(load.made) > count + 3)
        said = promote(group.servers[number - 1])
        assert said["peers"]["list"]["leader"] == number
        assert "notes" not in said
        follow(group.servers, number)
    count = len(load.made)
    becomes(lambda: len(load.made) > count + 3)
    load.end()
    for admin in group.admins:
        becomes(lambda admin=admin: set(load.made) <= set(tables_at(admin)))
    first = tables_at(group.admins[0])
    for admin in group.admins:
        comes_to(lambda admin=admin: tables_at(admin), first)
    for server in group.servers:
        assert not list((server.directory / "data").glob("edits-of-epoch-*"))


def ask_as(number, group, method, fields):
    """Asks the leader as that peer would."""
    listed = list_peers(group.servers[0])["list"]["peers"]
    first, own = (next(p for p in listed if p["number"] == n) for n in (1, number))
    answer = ask(
        own["address"], "ExchangePeers", {"from": 1, "identity": first["identity"]}
    )[0]  # fmt: skip
    caller = {"identity": own["identity"], "incarnation": answer.incarnation}
    return ask(group.servers[0].host, method, {"from": number, **caller, **fields})[0]


def test_while_another_is_about_to_lead_nothing_is_administered(group_of):
    group = group_of(2)
    said = ask_as(2, group, "PreparePromotion", {"epoch": 9})
    assert said.is_promised and said.schema.epoch == 1
    with pytest.raises(exceptions.ServiceUnavailable, match="Another server is about to lead"):
        make_table(group.admins[0], "t")
    group.admins[0].tables.list_tables(parent=INSTANCE)
    said = ask_as(2, group, "PreparePromotion", {"epoch": 8})
    assert not said.is_promised and said.promised_epoch == 9
    ask_as(2, group, "PreparePromotion", {"epoch": 0})  # given up
    make_table(group.admins[0], "t")
    group.servers[0].kill()
    group.servers[0].start()  # what was promised is kept
    becomes(lambda: not ask_as(2, group, "PreparePromotion", {"epoch": 8}).is_promised)
    assert promote(group.servers[0])["peers"]["list"]["epoch"] == "10"
    follow(group.servers, 1)


def test_hand_over_of_what_has_changed_is_none(group_of):
    group = group_of(2)
    listed = list_peers(group.servers[0])["list"]
    peers = [
        {key: peer[key] for key in ("number", "location", "address", "identity")}
        for peer in listed["peers"]
    ]
    wanted = {"epoch": 2, "revision": 9, "leader": 2, "peers": peers}
    request = {"from": 2, "list": wanted, "digest": b"another"}
    with fails_with(grpc.StatusCode.ABORTED, "what is administered has changed"):
        ask(group.servers[0].host, "HandOver", request)
    assert leader_of(group.servers[0]) == 1
    make_table(group.admins[0], "t")
    group.have("t")
    with fails_with(grpc.StatusCode.INVALID_ARGUMENT, "the list is not of who is to lead"):
        ask(group.servers[0].host, "HandOver", {"from": 1, "list": wanted})


# --- leaving ---


def leave(server, expect=200, **fields):
    return Rest(server.host).call("POST", "/v1/servers/self/peers:leave", fields, expect)


def remove(server, location, expect=200, **fields):
    body = {"location": location, **fields}
    return Rest(server.host).call("POST", "/v1/servers/self/peers:remove", body, expect)


def numbers(said):
    return [peer["number"] for peer in said["list"]["peers"]]


def is_unwound(server, gone):
    """The one that has gone is neither listed nor followed: folds do not wait for it."""
    followed = [each.number for each in ask(server.host, "TellProgress")[0].applied]
    listed = [state["number"] for state in list_peers(server).get("states", [])]
    return gone not in [*followed, *listed]


def delete_cluster(group, number):
    """And what routes to it."""
    instances = group.admins[0].instances
    instances.delete_app_profile(
        name=f"{INSTANCE}/appProfiles/c{number}", ignore_warnings=True
    )
    instances.delete_cluster(name=f"{INSTANCE}/clusters/c{number}")


def write(rpc, table, key, value=b"v"):
    rpc.mutate(table, key, set_cell("f", b"q", value, 1000))


def follow_for_a_while(server, at):
    """Until it has of that state's server what was changed a second after now: what was applied
    before is older than that."""
    since_us = int(list_peers(server)["nowUs"]) + 1_000_000
    wait_for_peers(
        server, lambda said: int(said["states"][at].get("appliedUntilUs", 0)) > since_us
    )


def keys_at(rpc, table):
    return [key for key, _ in values_at(rpc, table) or []]


def refuses_data(rpc, table):
    """None while it serves."""
    try:
        rpc.read(table)
    except grpc.RpcError as error:
        return error.code() is grpc.StatusCode.UNAVAILABLE and error.details()
    return None


def test_server_leaves_and_its_changes_stay(group_of, tmp_path, own_servers):
    group = group_of(3)
    table = make_table(group.admins[0], "t")
    group.have("t")
    for number in range(50):
        write(group.rpcs[2], table, b"%02d" % number)
    says = leave(group.servers[2], expect=400)["error"]
    assert f"{INSTANCE}/clusters/c3 is in zone-3" in says["message"]
    assert values_at(group.rpcs[2], table) is not None  # it goes on
    says = leave(group.servers[0], expect=400)["error"]
    assert "this server leads" in says["message"]
    delete_cluster(group, 3)
    done = run_trestle("cluster", "leave", "--endpoint", group.servers[2].host)
    assert done.returncode == 0, done.stderr
    assert "3, in zone-3, has left" in done.stdout
    assert "was removed from these, and serves no data" in done.stdout
    for server in group.servers[:2]:
        said = wait_for_peers(server, lambda said: numbers(said) == [1, 2])
        assert [peer["number"] for peer in said["list"]["former"]] == [3]
    for rpc in group.rpcs[:2]:
        assert len(keys_at(rpc, table)) == 50
    becomes(lambda: "removed from its peers" in (refuses_data(group.rpcs[2], table) or ""))
    group.servers[2].kill()
    group.servers[2].start()
    said = list_peers(group.servers[2])
    assert said["hasLeft"] and not said.get("ownNumber")
    assert "removed from its peers" in refuses_data(group.rpcs[2], table)
    says = join(group.servers[2], group.servers[0], expect=400)["error"]
    assert "this server was removed from its peers" in says["message"]
    successor = peer_server(tmp_path / "successor", 3)  # its location is free
    own_servers.append(successor)
    assert join(successor, group.servers[0])["ownNumber"] == 4
    know_each_other([*group.servers[:2], successor])
    write(group.rpcs[0], table, b"last")
    becomes(lambda: b"last" in keys_at(group.rpcs[1], table))


def test_what_was_acknowledged_while_it_left_is_at_the_others(group_of):
    group = group_of(3)
    table = make_table(group.admins[0], "t")
    group.have("t")
    written = []

    def write_on():
        while True:
            key = b"%06d" % len(written)
            try:
                group.rpcs[2].mutate(
                    table, key, set_cell("f", b"q", b"v", 1000), app_profile_id="c3"
                )
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE, error
                return
            written.append(key)

    writers = [threading.Thread(target=write_on)]
    for writer in writers:
        writer.start()
    becomes(lambda: len(written) > 50)
    said = leave(group.servers[2], force=True)
    for writer in writers:
        writer.join()
    assert numbers(said["peers"]) == [1, 2]
    assert f"{INSTANCE}/clusters/c3 is in zone-3" in said["notes"][0]
    for rpc in group.rpcs[:2]:
        assert set(written) <= set(keys_at(rpc, table))


def test_nobody_waits_for_one_that_has_left(group_of):
    """What folds go by rises again: tombstones go, and its feed is not kept."""
    group = group_of(3)
    table = make_table(group.admins[0], "t")
    group.have("t")
    write(group.rpcs[2], table, b"k")
    for rpc in group.rpcs:
        comes_to(lambda rpc=rpc: keys_at(rpc, table), [b"k"])
    for server in group.servers[:2]:
        follow_for_a_while(server, 1)
    group.servers[2].kill()
    becomes(lambda: list_peers(group.servers[0])["states"][1].get("failure"))
    says = remove(group.servers[0], "zone-3", expect=400)["error"]
    assert f"{INSTANCE}/clusters/c3 is in zone-3" in says["message"]
    delete_cluster(group, 3)
    said = remove(group.servers[1], "zone-3")  # by way of the leader
    assert numbers(said["peers"]) == [1, 2]
    assert "acknowledged and nobody had pulled is lost" in said["notes"][-1]
    for server in group.servers[:2]:
        wait_for_peers(server, lambda said: numbers(said) == [1, 2])
        becomes(lambda server=server: is_unwound(server, 3))
    token = group.admins[0].tables.generate_consistency_token(name=table).consistency_token
    becomes(
        lambda: group.admins[0].tables.check_consistency(
            name=table, consistency_token=token
        ).consistent
    )  # fmt: skip
    group.servers[2].start()
    said = wait_for_peers(group.servers[2], lambda said: said.get("hasLeft"))
    assert numbers(said) == [1, 2]
    assert "was removed from its peers" in group.servers[2].stderr()
    assert "removed from its peers" in refuses_data(group.rpcs[2], table)
    shown = run_trestle("cluster", "list", "--endpoint", group.servers[2].host)
    assert "was removed from these" in shown.stdout
    write(group.rpcs[1], table, b"last")
    comes_to(lambda: keys_at(group.rpcs[0], table), [b"k", b"last"])


def test_what_speaks_against_a_removal_is_told(group_of):
    group = group_of(3)
    table = make_table(group.admins[0], "t")
    group.have("t")
    delete_cluster(group, 2)
    delete_cluster(group, 3)
    says = remove(group.servers[0], "zone-3", expect=400)["error"]
    assert "zone-3 answers: have it leave" in says["message"]
    says = remove(group.servers[0], "zone-1", expect=400)["error"]
    assert "that is this server" in says["message"]
    says = remove(group.servers[1], "zone-1", expect=400)["error"]
    assert "zone-1 leads: have another one promoted first" in says["message"]
    assert "no peer serves" in remove(group.servers[0], "zone-9", expect=404)["error"]["message"]
    group.servers[1].kill()
    group.rpcs[2].mutate(table, b"of-3", set_cell("f", b"q", b"v", 1000), app_profile_id="default")
    comes_to(lambda: keys_at(group.rpcs[0], table), [b"of-3"])
    group.servers[2].kill()
    group.servers[1].start()  # which has not that row, and cannot get it
    wait_for_peers(group.servers[0], lambda said: not said["states"][0].get("failure")
                   and said["states"][1].get("failure"))  # fmt: skip
    says = remove(group.servers[0], "zone-3", expect=400)["error"]
    assert "not all have the same" in says["message"] and "zone-2 (2) is known" in says["message"]
    said = remove(group.servers[0], "zone-3", force=True)
    assert "not all have the same" in said["notes"][0]
    assert numbers(said["peers"]) == [1, 2]


def test_removal_without_a_majority_takes_force(group_of):
    group = group_of(2)
    delete_cluster(group, 2)
    group.servers[1].kill()
    becomes(lambda: list_peers(group.servers[0])["states"][0].get("failure"))
    says = remove(group.servers[0], "zone-2", expect=400)["error"]
    assert "no majority of the peers answers" in says["message"]
    said = remove(group.servers[0], "zone-2", force=True)
    assert "no majority" in said["notes"][0]
    assert said["peers"]["list"]["voters"] == [1, 2]
    group.servers[1].start()
    wait_for_peers(group.servers[1], lambda said: said.get("hasLeft"))


# --- from a backup, when nobody is left ---


def restored(tmp_path, own_servers, place, location):
    directory = tmp_path / "restored"
    directory.mkdir()
    done = run_trestle("backup", "restore", place, "--to", directory / "data")
    assert done.returncode == 0, done.stderr
    server = Server(directory, ["--location", location])
    own_servers.append(server.start())
    server.listen = server.host
    return server


def test_restored_server_is_the_first_of_a_group_of_its_own(
    group_of, tmp_path, own_servers, administer, connect
):
    place = tmp_path / "place"
    place.mkdir()
    group = group_of(2, "--backup-places", place)
    table = make_table(group.admins[0], "t")
    group.have("t")
    write(group.rpcs[1], table, b"before")
    made = run_trestle("backup", "create", place, "--endpoint", group.servers[1].host)
    assert made.returncode == 0, made.stderr
    write(group.rpcs[1], table, b"after")
    for server in group.servers:
        server.kill()
    server = restored(tmp_path, own_servers, place, "zone-2")
    assert "this server has no peers" in promote(server, expect=400)["error"]["message"]
    done = run_trestle("cluster", "promote", "--from-backup", "--endpoint", server.host)
    assert done.returncode == 0, done.stderr
    assert "It has the data of peer 2, in zone-2, of epoch 1" in done.stdout
    assert "Lost, as far as it is not in these data" in done.stdout
    said = list_peers(server)
    assert said["ownNumber"] == 3 and said["list"]["leader"] == 3
    assert [peer["number"] for peer in said["list"]["former"]] == [1, 2]
    says = promote(server, expect=400, fromBackup=True)["error"]
    assert "this server has peers: it is number 3" in says["message"]
    rpc, admin = connect(server.host), administer(server.host)
    assert keys_at(rpc, table) == [b"before"]
    write(rpc, table, b"new")
    add_family(admin, table, "g")
    server.kill()
    server.start()
    assert list_peers(server)["ownNumber"] == 3
    second = peer_server(tmp_path / "second", 1)
    own_servers.append(second)
    assert join(second, server)["ownNumber"] == 4
    know_each_other([server, second])
    comes_to(lambda: keys_at(connect(second.host), table), [b"before", b"new"])
    assert families_at(administer(second.host), table) == ["f", "g"]


def test_server_that_was_no_peer_has_nothing_to_promote(fresh_server):
    says = promote(fresh_server(), expect=400, fromBackup=True)["error"]
    assert "the data here are no peer's" in says["message"]
