"""Clusters that know each other: joining, numbers, what is refused, and what a kill leaves."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import grpc
import pytest
from grpc import StatusCode
from harness.certificates import Authority
from harness.change_streams import Change, Reader, stream_config
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
from harness.rpc import fails_with, set_cell
from harness.server import ROOT, Server, binary, run_trestle

# --- what peers say, by hand ---


def admission(location, address, identity):
    return {"peer": {"location": location, "address": address, "identity": identity}}


def exchange(number, identity, incarnation):
    return {"from": number, "identity": identity, "incarnation": incarnation}


def rows_of(said):
    return [(peer["number"], peer["location"], peer["address"]) for peer in said["list"]["peers"]]


def tiebreaker_of(server, number, table, connect):
    """That of a write that is served there."""
    rpc = connect(server.host)
    profile = {"app_profile_id": f"c{number}"}
    wait_for_table(rpc, table, f"c{number}")
    with Reader(rpc, table, **profile).begun() as reader:
        rpc.mutate(table, b"k", set_cell("f", b"q", b"v"), **profile)
        return reader.next_of(Change).tiebreaker


def state_of(said, number):
    return next(state for state in said["states"] if state["number"] == number)


def alone(tmp_path, own_servers, number, *arguments):
    server = peer_server(tmp_path / f"peer-{number}", number, *arguments)
    own_servers.append(server)
    return server


# --- joining ---


def test_two_servers_that_join_have_one_list(peers_of):
    first, second = peers_of(2)
    said = [list_peers(first), list_peers(second)]
    assert said[0]["list"] == said[1]["list"]
    assert rows_of(said[0]) == [(1, "zone-1", first.host), (2, "zone-2", second.host)]
    assert said[0]["list"]["leader"] == 1
    assert [each["ownNumber"] for each in said] == [1, 2]


def test_one_may_join_by_a_server_that_does_not_lead(peers_of, tmp_path, own_servers):
    servers = peers_of(2)
    third = alone(tmp_path, own_servers, 3)
    said = join(third, servers[1])
    assert said["ownNumber"] == 3 and said["list"]["leader"] == 1
    know_each_other([*servers, third])


def test_server_without_peers_has_no_number(tmp_path, own_servers):
    server = alone(tmp_path, own_servers, 1)
    said = list_peers(server)
    assert said.keys() == {"nowUs"}
    assert "trestle_peer_" not in server.get("/metrics")[1]


def test_numbers_and_lists_outlive_a_kill(peers_of):
    servers = peers_of(3)
    before = list_peers(servers[0])["list"]
    for server in servers:
        server.kill()
    for number, server in enumerate(servers, 1):
        server.start()
        assert list_peers(server)["ownNumber"] == number
    know_each_other(servers)
    assert list_peers(servers[2])["list"] == before


def test_peer_that_is_gone_delays_nobody_and_is_told(peers_of):
    servers = peers_of(3)
    servers[2].kill()
    said = wait_for_peers(
        servers[0], lambda said: "refused" in said["states"][1].get("failure", "")
    )
    assert not said["states"][0].get("failure")
    shown = run_trestle("cluster", "list", "--endpoint", servers[0].host)
    assert shown.returncode == 0 and "3 does not answer: " in shown.stdout
    servers[2].start()
    know_each_other(servers)
    wait_for_peers(servers[0], lambda _: "a peer answers again" in servers[0].stderr())


@pytest.mark.parametrize("moved", [0, 2])
def test_peer_gets_another_address(peers_of, moved):
    """Of the leader, and of another."""
    servers = peers_of(3)
    server, number = servers[moved], moved + 1
    server.stop()
    for other in servers:
        if other is not server:
            wait_for_peers(other, lambda said: state_of(said, number).get("failure"))
    server.listen = "127.0.0.1:0"
    server.start()
    says = join(server, servers[1], expect=400)["error"]
    assert "has peers already" in says["message"]
    said = join(server, servers[1], own_address=server.host)
    assert said["ownNumber"] == number and said["list"]["peers"][moved]["address"] == server.host
    know_each_other(servers)


def test_peer_that_answers_does_not_move(peers_of):
    servers = peers_of(2)
    elsewhere = servers[1].host.replace("127.0.0.1", "localhost")
    says = join(servers[1], servers[0], expect=409, own_address=elsewhere)["error"]
    assert "is a copy" in says["message"]


def test_peer_that_stands_still_holds_up_no_stop(peers_of):
    first, second = peers_of(2, "--drain-timeout", "1d")
    first.signal(signal.SIGSTOP)
    second.signal(signal.SIGTERM)
    assert second.wait() == 0
    first.signal(signal.SIGCONT)


def test_metrics_say_when_a_peer_was_heard(peers_of):
    first, _ = peers_of(2)
    _, page = first.get("/metrics")
    assert 'trestle_peer_heard_timestamp_seconds{peer="zone-2"} 1' in page
    assert 'trestle_peer_clock_ahead_seconds{peer="zone-2"} ' in page
    assert 'peer="zone-1"' not in page


def test_number_is_in_versions_from_then_on(peers_of, administer, connect):
    """A change's tiebreaker has the low 12 bits of its version above 18 others; the lowest five of
    these are the number."""
    servers = peers_of(2)
    admin = administer(servers[0].host)
    instance = spread_instance(admin, "spread", 2)
    table = admin.create_table(instance, "t", change_stream_config=stream_config())
    tiebreakers = [
        tiebreaker_of(server, number, table, connect) for number, server in enumerate(servers, 1)
    ]
    assert [(each >> 18) % 32 for each in tiebreakers] == [1, 2]


# --- refusals ---


def test_wrong_joins_are_refused(peers_of, tmp_path, own_servers):
    first, second = peers_of(2)
    says = join(second, first, expect=400)["error"]
    assert "has peers already: it is number 2" in says["message"]
    third = alone(tmp_path, own_servers, 3)
    says = join(third, "", expect=400)["error"]
    assert "address is not set" in says["message"]
    says = join(third, third, expect=409)["error"]
    assert "is joining others" in says["message"]
    assert "nowhere.invalid" in join(third, "nowhere.invalid:1", expect=400)["error"]["message"]
    says = join(third, "192.0.2.1:8086", expect=400)["error"]
    assert "peers need TLS" in says["message"]
    says = join(third, first, expect=400, own_address="192.0.2.1:8086")["error"]
    assert "peers need TLS" in says["message"]
    join(third, first, expect=400, own_address="nowhere")
    assert not list_peers(third).get("ownNumber")
    assert len(list_peers(first)["list"]["peers"]) == 2


def test_location_has_one_server(tmp_path, own_servers):
    first = alone(tmp_path, own_servers, 1)
    second = Server(tmp_path, ["--location", "zone-1"])
    own_servers.append(second.start())
    says = join(second, first, expect=400)["error"]
    assert "the location zone-1 has a server already" in says["message"]
    assert not list_peers(first).get("ownNumber")  # one that could not be joined leads nobody


def test_server_with_tables_joins_nobody(tmp_path, own_servers, connect):
    first, second = (alone(tmp_path, own_servers, number) for number in (1, 2))
    connect(second.host).create_table("t")
    says = join(second, first, expect=400)["error"]
    assert "this server has tables, such as projects/p/instances/i/tables/t" in says["message"]
    connect(first.host).create_table("t")  # the first one may have some
    third = alone(tmp_path, own_servers, 3)
    assert join(third, first)["ownNumber"] == 2


def admit(server, number):
    """Of one that is not there: the number that it gets."""
    answers = ask(
        server.host, "AdmitPeer", admission(f"z-{number}", f"127.0.0.1:{number}", f"i{number}")
    )
    return answers[0].number


def test_numbers_take_a_majority(peers_of):
    """What is not there does not answer either: but for one number without a majority."""
    first, _ = peers_of(2)
    assert [admit(first, number) for number in (3, 4)] == [3, 4]
    assert admit(first, 5) == 17
    assert admit(first, 5) == 17  # again: the same
    with fails_with(StatusCode.FAILED_PRECONDITION, "no majority of the peers answers"):
        admit(first, 6)
    with fails_with(StatusCode.ALREADY_EXISTS, "is a copy"):
        ask(first.host, "AdmitPeer", admission("z-7", "127.0.0.1:7", "i3"))


def test_who_has_another_identity_is_refused(peers_of):
    first, _ = peers_of(2)
    identity = list_peers(first)["list"]["peers"][1]["identity"]
    with fails_with(StatusCode.FAILED_PRECONDITION, "you are another server"):
        ask(first.host, "ExchangePeers", exchange(2, identity[::-1], 1))
    with fails_with(StatusCode.FAILED_PRECONDITION, "7 is the number of no peer"):
        ask(first.host, "ExchangePeers", exchange(7, identity, 1))


def test_copied_data_directory_is_refused_by_its_peers(peers_of, tmp_path, own_servers):
    servers = peers_of(2)
    servers[1].stop()
    shutil.copytree(servers[1].directory, tmp_path / "copy")
    servers[1].start()
    know_each_other(servers)
    copy = Server(tmp_path / "copy", servers[1].arguments)
    own_servers.append(copy.start())
    said = wait_for_peers(copy, lambda said: "is a copy" in said["states"][0].get("failure", ""))
    assert said["ownNumber"] == 2  # as its data says
    assert "two servers are one peer" in servers[0].stderr()
    wait_for_peers(servers[0], lambda said: said["states"][0].get("doubled"))
    doubled = 'health{reason="peer_doubled"}'
    wait_for_peers(servers[0], lambda _: servers[0].metric(doubled) == 1)
    copy.stop()
    wait_for_peers(servers[0], lambda _: servers[0].metric(doubled) == 0)
    know_each_other(servers)  # which go on


def test_restored_server_is_no_peer(peers_of, tmp_path, own_servers, connect):
    """It has another identity: versions in the name of the one whose data it has would be given
    twice."""
    place = tmp_path / "place"
    place.mkdir()
    _, second = peers_of(2, "--backup-places", place)
    made = run_trestle("backup", "create", place, "--endpoint", second.host)
    assert made.returncode == 0, made.stderr
    restored = tmp_path / "restored"
    restored.mkdir()
    done = run_trestle("backup", "restore", place, "--to", restored / "data")
    assert done.returncode == 0, done.stderr
    server = Server(restored, ["--location", "zone-9"])
    own_servers.append(server.start())
    assert not list_peers(server).get("ownNumber")
    assert "it has no peers" in server.stderr()
    rpc = connect(server.host)
    table = rpc.create_table("t")
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v"))
    before = server.metric("change_log_written_bytes_total")
    rpc.mutate(table, b"k", set_cell("f", b"q", b"v" * 10_000))
    assert server.metric("change_log_written_bytes_total") == before  # nothing is kept for peers


# --- who may ask ---

METHODS_AMONG_PEERS = (
    "AdmitPeer", "CopyRows", "DismissPeer", "ExchangePeers", "HandOver", "PreparePromotion",
    "PullChanges", "PullSchema", "TellProgress",
)  # fmt: skip


def test_with_access_control_loopback_is_no_peer(fresh_server):
    server = fresh_server("--auth", "on")
    for method in METHODS_AMONG_PEERS:
        with fails_with(StatusCode.PERMISSION_DENIED, "only a peer may ask this"):
            ask(server.host, method)
    with fails_with(StatusCode.UNAUTHENTICATED):
        ask(server.host, "ListPeers", {"name": "servers/self"})


def test_server_without_peers_tells_nobody_of_its_rows(fresh_server):
    server = fresh_server()
    for method in ("PullChanges", "CopyRows"):
        with fails_with(StatusCode.UNAVAILABLE, "This server tells no peers of its"):
            ask(server.host, method, {"from": 1})
    with fails_with(StatusCode.INVALID_ARGUMENT, "32 is no peer's number"):
        ask(server.host, "PullChanges", {"from": 32})


def test_who_does_not_lead_is_asked_for_no_schema(peers_of):
    leader, follower = peers_of(2)
    assert ask(leader.host, "PullSchema", {"from": 2})
    with fails_with(StatusCode.FAILED_PRECONDITION, "This server does not lead: peer 1 does"):
        ask(follower.host, "PullSchema", {"from": 1})


def tls_peer(tmp_path, own_servers, number, authority, *arguments):
    certificate, key = authority.issue(f"server-{number}", f"/CN=server-{number}")
    server = alone(
        tmp_path, own_servers, number,
        "--tls-cert", certificate, "--tls-key", key, *arguments,
    )  # fmt: skip
    server.authority = authority
    return server


def cluster(command, *arguments, server):
    done = run_trestle(
        "cluster", command, *arguments, "--endpoint", server.host,
        "--ca", server.authority.certificate, "--format", "json",
    )  # fmt: skip
    return done, json.loads(done.stdout or "{}")


def test_peers_know_each_other_by_certificates(tmp_path, own_servers):
    authority = Authority(tmp_path)
    servers = [
        tls_peer(tmp_path, own_servers, number, authority, "--peer-ca", authority.certificate)
        for number in (1, 2)
    ]
    done, said = cluster("join", servers[0].host, server=servers[1])
    assert done.returncode == 0 and said["ownNumber"] == 2, done.stderr
    for _ in range(600):
        _, said = cluster("list", server=servers[0])
        if said["states"][0].get("heardUs"):
            break
    assert not said["states"][0].get("failure")


@pytest.fixture
def authorities(tmp_path):
    return {name: Authority(tmp_path, name) for name in ("peers", "clients", "strangers")}


def test_certificates_of_others_are_no_peers(tmp_path, own_servers, authorities):
    server = tls_peer(
        tmp_path, own_servers, 1, authorities["peers"],
        "--peer-ca", authorities["peers"].certificate,
        "--tls-client-ca", authorities["clients"].certificate,
    )  # fmt: skip
    root = authorities["peers"].certificate.read_bytes()

    def credentials(name):
        certificate, key = authorities[name].issue(f"of-{name}", f"/CN=of-{name}")
        return grpc.ssl_channel_credentials(root, key.read_bytes(), certificate.read_bytes())

    asked = exchange(1, "x", 1)
    with fails_with(StatusCode.FAILED_PRECONDITION, "has no peers"):  # let through
        ask(server.host, "ExchangePeers", asked, credentials("peers"))
    with fails_with(StatusCode.PERMISSION_DENIED, "only a peer may ask this"):
        ask(server.host, "ExchangePeers", asked, credentials("clients"))
    with fails_with(StatusCode.UNAVAILABLE):
        ask(server.host, "ExchangePeers", asked, credentials("strangers"))
    with fails_with(StatusCode.UNAVAILABLE):  # tls-client-certs is required
        ask(server.host, "ExchangePeers", asked, grpc.ssl_channel_credentials(root))


def test_peers_certificate_is_no_principal(tmp_path, own_servers, authorities, secure):
    """One that leads to peer-ca alone is nobody to access control, whatever its subject says."""
    secured = secure("--peer-ca", authorities["peers"].certificate)
    identity = authorities["peers"].issue("alice", "/O=Example/CN=alice")
    rpc = secured.rpc(identity=identity)
    with fails_with(StatusCode.UNAUTHENTICATED):
        rpc.read("projects/p/instances/i/tables/t")


def test_peers_certificate_may_be_another(tmp_path, own_servers, authorities):
    """The one that a server shows as a client: what it serves with may be for servers alone."""
    servers = []
    for number in (1, 2):
        certificate, key = authorities["peers"].issue(f"client-{number}", f"/CN=client-{number}")
        servers.append(tls_peer(
            tmp_path, own_servers, number, authorities["peers"],
            "--peer-ca", authorities["peers"].certificate,
            "--peer-cert", certificate, "--peer-key", key,
        ))  # fmt: skip
    done, said = cluster("join", servers[0].host, server=servers[1])
    assert done.returncode == 0 and said["ownNumber"] == 2, done.stderr
    refused = run_trestle(
        "serve", "--check", "--data-dir", tmp_path / "none", "--listen", "127.0.0.1:0",
        "--tls-cert", certificate, "--tls-key", key,
        "--peer-ca", authorities["peers"].certificate, "--peer-cert", certificate,
        "--peer-key", tmp_path / "missing.pem",
    )  # fmt: skip
    assert "--peer-cert: cannot use key" in refused.stdout + refused.stderr


def test_tls_without_peer_ca_has_no_peers(tmp_path, own_servers):
    authority = Authority(tmp_path)
    server = tls_peer(tmp_path, own_servers, 1, authority)
    with fails_with(StatusCode.PERMISSION_DENIED, "only a peer may ask this"):
        credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
        ask(server.host, "AdmitPeer", {}, credentials)
    done, _ = cluster("join", "127.0.0.1:1", server=server)
    assert done.returncode == 1 and "peer-ca is not set" in done.stderr


# --- the command ---


def test_command_joins_and_lists(tmp_path, own_servers):
    first, second = (alone(tmp_path, own_servers, number) for number in (1, 2))
    shown = run_trestle("cluster", "list", "--endpoint", first.host)
    assert shown.stdout == f"{first.host} has no peers\n"
    own = second.host.replace("127.0.0.1", "localhost")
    joined = run_trestle(
        "cluster", "join", first.host, "--endpoint", second.host, "--own-address", own
    )
    assert joined.returncode == 0, joined.stderr
    rows = [[cell.strip() for cell in line.split("|")] for line in joined.stdout.splitlines()]
    head = ["number", "location", "address", "leads", "state", "lag", "not sent", "clock"]
    assert rows[0] == head
    assert rows[2][:4] == ["1", "zone-1", first.host, "leads"]
    assert rows[3][:5] == ["2", "zone-2", own, "", "itself"]
    again = run_trestle("cluster", "join", first.host, "--endpoint", second.host)
    assert again.returncode == 1 and "has peers already" in again.stderr
    wrong = run_trestle("cluster", "join", "--endpoint", second.host)
    assert wrong.returncode == 2 and "which server's peers?" in wrong.stderr
    know_each_other([first, second])


def test_status_tells_of_peers_where_there_are_some(peers_of, tmp_path, own_servers):
    def status(server, *arguments):
        shown = run_trestle("status", "--endpoint", server.host, "--interval", "100ms", *arguments)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    single = alone(tmp_path, own_servers, 9)
    assert "\npeers" not in status(single)
    assert "peers" not in json.loads(status(single, "--format", "json"))
    first, second = peers_of(2)
    wait_for_peers(second, lambda said: not said["states"][0].get("parked"))
    text = status(second)
    assert re.search(r"^peers +2, 0 silent; the most that is missing here is ", text, re.MULTILINE)
    assert re.search(r"^ +1 \| zone-1 +\|.*\| leads \| answers +\|", text, re.MULTILINE)
    told = json.loads(status(second, "--format", "json"))["peers"]
    assert told["ownNumber"] == 2 and told["list"] == list_peers(second)["list"]
    first.kill()
    wait_for_peers(second, lambda said: said["states"][0].get("failure"))
    assert "\n1 does not answer: " in status(second)


def free_ports(count):
    """The first of so many in a row, as far as one can tell."""
    for port in range(23000 + os.getpid() % 5000, 32000, count):
        with socket.socket() as first, socket.socket() as last:
            try:
                first.bind(("127.0.0.1", port))
                last.bind(("127.0.0.1", port + count - 1))
            except OSError:
                continue
            return port
    raise AssertionError("no ports")


def run_clusters(directory, port):
    """`./dev cluster` without the build, until it has told how to connect: the process, its words.
    """
    process = subprocess.Popen(
        [
            sys.executable, ROOT / "tools/cluster.py", "--clusters", "2", "--first-port", str(port),
            "--data-dir", directory,
        ],
        env={**os.environ, "TRESTLE_BINARY": binary()}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    said = ""
    while "Control-C ends them" not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    return process, said


def test_dev_starts_clusters_and_finds_them_again(tmp_path):
    port = free_ports(2)
    for _ in range(2):
        process, said = run_clusters(tmp_path / "clusters", port)
        assert f"zone-2    export BIGTABLE_EMULATOR_HOST=127.0.0.1:{port + 1}" in said
        assert "1 | zone-1" in said and "2 | zone-2" in said
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
        process.stdout.close()
