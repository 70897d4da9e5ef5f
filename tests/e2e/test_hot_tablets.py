"""ListHotTablets names the tablets that a load makes hot, and when."""

import datetime
import time

import pytest
from google.api_core import exceptions
from harness.hot_load import scanning
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

CLUSTER = "projects/p/instances/i/clusters/trestle"
VALUE = bytes(1000)


def hot_tablets(admin, **fields):
    return list(admin.instances.list_hot_tablets(request={"parent": CLUSTER, **fields}))


def facts(hot):
    return (hot.name, hot.table_name, hot.start_time, hot.end_time, hot.start_key, hot.end_key)


def await_hot(admin, is_enough, **fields):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_enough(found := hot_tablets(admin, **fields)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def await_rest(admin):
    """What there is when the last window has ended: nothing moves any more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    found, before = hot_tablets(admin), None
    while found != before:
        assert time.monotonic() < deadline
        time.sleep(2)
        found, before = hot_tablets(admin), found
    return found


def quarter_of(hot):
    return int(hot.start_time.timestamp()) // 900


def test_what_is_scanned_is_hot(fresh_server, connect, administer):
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc, admin = connect(server.host), administer(server.host)
    name = rpc.create_table("t", splits=[b"m", b"\xff\x00"])
    assert hot_tablets(admin) == []
    rows = [(b"m%04d" % i, [set_cell("f", b"q", VALUE, 1000)]) for i in range(1000)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    with scanning(connect, server, name, b"m"):
        found = await_hot(admin, len)
    assert {each.start_key for each in found} == {"m"}
    assert {each.end_key for each in found} == {"\\xff\\x00"}
    assert {each.table_name for each in found} == {name}
    assert all(10 <= each.node_cpu_usage_percent <= 101 for each in found)
    assert all(each.start_time < each.end_time for each in found)
    assert len({each.name for each in found}) == len(found)
    assert found[0].name.startswith(f"{CLUSTER}/hotTablets/")


def test_a_range_is_told_once_in_a_quarter_of_an_hour(fresh_server, connect, administer):
    """As it was at its hottest. The times that are asked for choose among all times."""
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc, admin = connect(server.host), administer(server.host)
    name = rpc.create_table("t", splits=[b"m"])
    rows = [(b"m%04d" % i, [set_cell("f", b"q", VALUE, 1000)]) for i in range(1000)]
    assert set(rpc.mutate_rows(name, rows)) == {0}
    second = datetime.timedelta(seconds=1)
    with scanning(connect, server, name, b"m"):
        first = await_hot(admin, len)[0]
        await_hot(admin, len, start_time=first.start_time + second)
    found = await_rest(admin)
    told = [(each.start_key, each.end_key, quarter_of(each)) for each in found]
    assert len(told) == len(set(told))
    hottest = max(found, key=lambda each: each.node_cpu_usage_percent)
    assert found[0] == hottest
    then = hottest.start_time
    assert hot_tablets(admin, start_time=then, end_time=then) == [hottest]
    assert hot_tablets(admin, end_time=first.start_time - second) == []


def test_the_hottest_come_first_page_by_page(fresh_server, connect, administer):
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc, admin = connect(server.host), administer(server.host)
    names = [rpc.create_table(each, splits=[b"m"]) for each in ("t", "u", "v")]
    rows = [(b"%c%04d" % ("am"[i % 2].encode()[0], i), [set_cell("f", b"q", VALUE, 1000)])
            for i in range(1000)]  # fmt: skip
    for name in names:
        assert set(rpc.mutate_rows(name, rows)) == {0}
    for name in names:
        with scanning(connect, server, name, b"m"):
            await_hot(admin, lambda found, name=name: name in {each.table_name for each in found})
    found = await_rest(admin)
    assert {each.table_name for each in found} == set(names)
    shares = [each.node_cpu_usage_percent for each in found]
    assert shares == sorted(shares, reverse=True)
    for size in (1, 2, 100):
        request = {"parent": CLUSTER, "page_size": size}
        pages = list(admin.instances.list_hot_tablets(request=request).pages)
        assert [len(page.hot_tablets) for page in pages[:-1]] == [size] * (len(pages) - 1)
        assert [hot for page in pages for hot in page.hot_tablets] == found


def test_the_part_of_a_tablet_that_is_hot_is_named(fresh_server, connect, administer):
    """Also after a kill: what was told is kept."""
    server = fresh_server("--heat-window", "1s", "--balance=false")
    rpc, admin = connect(server.host), administer(server.host)
    name = rpc.create_table("t")
    rows = [(b"%c%04d" % (ord("a") + i // 100, i), [set_cell("f", b"q", VALUE, 1000)])
            for i in range(2000)]  # fmt: skip
    assert set(rpc.mutate_rows(name, rows)) == {0}
    with scanning(connect, server, name, b"f", b"g"):
        await_hot(admin, lambda found: any(each.start_key >= "e" and "" < each.end_key <= "h"
                                           for each in found))  # fmt: skip
    found = await_rest(admin)
    server.kill()
    server.start()
    assert [facts(each) for each in hot_tablets(administer(server.host))] == [
        facts(each) for each in found
    ]


@pytest.mark.parametrize("fields", [
    {"page_size": -1},
    {"page_token": "x"},
    {"page_token": "1"},
    {"page_token": "1."},
    {"page_token": "-1.1"},
    {"page_token": "1.1.1"},
    {"page_token": "1.99999999999999999999"},
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
