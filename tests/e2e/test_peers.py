"""Clusters that know each other: joining, numbers, what is refused, and what a kill leaves."""

from harness.peers import list_peers


def numbers(said):
    return [(peer["number"], peer["location"], peer["address"]) for peer in said["list"]["peers"]]


def test_two_servers_that_join_have_one_list(peers_of):
    first, second = peers_of(2)
    said = [list_peers(first), list_peers(second)]
    assert said[0]["list"] == said[1]["list"]
    assert numbers(said[0]) == [(1, "zone-1", first.host), (2, "zone-2", second.host)]
    assert said[0]["list"]["leader"] == 1
    assert [each["ownNumber"] for each in said] == [1, 2]
