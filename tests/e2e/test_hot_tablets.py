"""ListHotTablets names the tablets that a load makes hot, and when."""

import datetime
import time

import pytest
from google.api_core import exceptions
from harness.hot_load import scanning
from harness.rpc import set_cell

WAIT_SECONDS = 240
CLUSTER = "projects/p/instances/i/clusters/trestle"
VALUE = bytes(1000)


def hot_tablets(admin, **fields):
    return list(admin.instances.list_hot_tablets(request={"parent": CLUSTER, **fields}))


def facts(hot):
    return (hot.name, hot.table_name, hot.start_time, hot.end_time, hot.start_key, hot.end_key)


def wait_for(admin, count):
    deadline = time.monotonic() + WAIT_SECONDS
    while len(found := hot_tablets(admin)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_what_is_scanned_is_hot(fresh_server, connect, administer):
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc, admin = connect(server.host), administer(server.host)
    name = rpc.create_table("t", splits=[b"m", b"\xff\x00"])
    assert hot_tablets(admin) == []
    rows = [(b"m%04d" % i, [set_cell("f", b"q", VALUE, 1000)]) for i in range(1000)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    with scanning(connect, server.host, name, b"m"):
        found = wait_for(admin, 2)
    assert {each.start_key for each in found} == {"m"}
    assert {each.end_key for each in found} == {"\\xff\\x00"}
    assert {each.table_name for each in found} == {name}
    assert all(10 <= each.node_cpu_usage_percent <= 101 for each in found)
    assert all(each.start_time < each.end_time for each in found)
    assert len({each.name for each in found}) == len(found)
    assert found[0].name.startswith(f"{CLUSTER}/hotTablets/")

    pages = admin.instances.list_hot_tablets(request={"parent": CLUSTER, "page_size": 1}).pages
    assert [next(pages).hot_tablets[0] for _ in range(2)] == found[:2]
    second = datetime.timedelta(seconds=1)
    later = found[0].start_time + second / 2
    assert hot_tablets(admin, start_time=later)[0] == found[1]
    assert hot_tablets(admin, end_time=later) == found[:1]
    assert hot_tablets(admin, end_time=found[0].start_time - second) == []


def test_the_part_of_a_tablet_that_is_hot_is_named(fresh_server, connect, administer):
    """Also after a kill: what was told is kept."""
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc, admin = connect(server.host), administer(server.host)
    name = rpc.create_table("t")
    rows = [(b"%c%04d" % (ord("a") + i // 100, i), [set_cell("f", b"q", VALUE, 1000)])
            for i in range(2000)]  # fmt: skip
    assert set(rpc.mutate_rows(name, rows)) == {0}
    with scanning(connect, server.host, name, b"f", b"g"):
        deadline = time.monotonic() + WAIT_SECONDS
        while not any(each.start_key >= "e" and "" < each.end_key <= "h"
                      for each in hot_tablets(admin)):  # fmt: skip
            assert time.monotonic() < deadline
            time.sleep(0.1)
    found = hot_tablets(admin)
    server.kill()
    server.start()
    again = hot_tablets(administer(server.host))
    assert [facts(each) for each in again[: len(found)]] == [facts(each) for each in found]


@pytest.mark.parametrize("fields", [
    {"page_size": -1},
    {"page_token": "x"},
    {"page_token": "-1"},
    {"page_token": "99999999999999999999"},
    {"start_time": {"seconds": 2}, "end_time": {"seconds": 1}},
    {"start_time": {"seconds": -1}},
    {"end_time": {"seconds": 1 << 62}},
])  # fmt: skip
def test_what_is_refused(admin, new_instance, fields):
    parent = f"{new_instance('c')}/clusters/c"
    with pytest.raises(exceptions.InvalidArgument):
        admin.instances.list_hot_tablets(request={"parent": parent, **fields})


def test_a_cluster_that_is_not_there(admin, new_instance):
    with pytest.raises(exceptions.NotFound):
        admin.instances.list_hot_tablets(parent=f"{new_instance('c')}/clusters/d")
