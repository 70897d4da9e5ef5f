"""ReadHeat by REST: what was asked for by ranges of keys and times, as the console asks it. (What
is counted, kept and meant is in cluster/heat/heat_*_test.c.)"""

import base64
import json
import time

import pytest
from harness.heat import heat_path, read_heat, wait_for_window
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import set_cell

LONG_AGO = "2000-01-01T00:00:00Z"


def write(rpc, table, prefix, count, value=b"v"):
    rows = [(b"%s%05d" % (prefix, i * 7919 % 100000), [set_cell("f", b"q", value)])
            for i in range(count)]  # fmt: skip
    assert set(rpc.mutate_rows(table, rows)) == {0}


def sums(heat):
    """(key that the range begins with, sum) of all times."""
    starts = [base64.b64decode(key) for key in heat["startKeys"]]
    return [(starts[each.get("range", 0)], each)
            for when in heat.get("times", []) for each in when["sums"]]  # fmt: skip


def total(heat, name):
    return sum(int(each.get(name, 0)) for _, each in sums(heat))


def test_what_was_just_asked_for_is_there(server, rpc, make_table):
    """The window that has not ended (a minute) is the last column."""
    table = make_table({"f": None})
    assert "times" not in read_heat(server, table)
    write(rpc, table, b"a", 300)
    assert len(rpc.read(table, rows={"row_keys": [b"a00000"]})) == 1
    heat = read_heat(server, table)
    assert heat["counts"] is True
    assert heat["startKeys"][0] == ""
    assert heat["times"][-1]["isOpen"] is True
    assert total(heat, "rowsWritten") == total(heat, "writeRequests") == 300
    assert total(heat, "rowsRead") == total(heat, "readRequests") == 1
    assert total(heat, "bytesWritten") > 300
    written = [each for _, each in sums(heat) if "rowsWritten" in each]
    assert all(each["writeLatency"].endswith("s") for each in written)
    times = heat["times"][-1]
    assert heat["startTime"] < times["startTime"] < heat["endTime"]
    assert times["startTime"] < times["endTime"]


def test_windows_are_kept_and_ranges_told_apart(fresh_server, connect):
    server = fresh_server("--heat-window", "1s")
    rpc = connect(server.host)
    table = rpc.create_table("t")
    for prefix in (b"a", b"m", b"z"):
        write(rpc, table, prefix, 1000, bytes(100))
    deadline = time.monotonic() + PATIENCE_SECONDS
    wait_for_window(server, table)
    since = read_heat(server, table)["endTime"]
    while total(heat := read_heat(server, table, startTime=since), "rowsWritten") < 400:
        assert time.monotonic() < deadline
        write(rpc, table, b"m", 400)
    hot = sum(int(each.get("rowsWritten", 0)) for start, each in sums(heat) if start[:1] in b"m")
    assert hot >= 0.9 * total(heat, "rowsWritten")
    assert len(read_heat(server, table, maxRanges=5)["startKeys"]) <= 5
    whole = read_heat(server, table)
    one = read_heat(server, table, maxTimes=1)
    assert len(one["times"]) == 1
    assert total(one, "rowsWritten") >= total(whole, "rowsWritten")
    assert one["times"][0]["startTime"] == whole["times"][0]["startTime"]


def test_signs_name_their_range(server, rpc, make_table):
    table = make_table({"f": None})
    rows = [(b"%010d" % i, [set_cell("f", b"q", b"v")]) for i in range(2000)]
    assert set(rpc.mutate_rows(table, rows)) == {0}
    (sign,) = read_heat(server, table)["signs"]
    assert sign["kind"] == "WRITE_FRONTIER"
    assert sign["sentence"].startswith("Write frontier: ")
    assert sign["share"] > 0.5
    assert base64.b64decode(sign["key"]).startswith(b"00000")


def test_nothing_is_counted_with_heat_off(fresh_server, connect):
    server = fresh_server("--heat=false")
    rpc = connect(server.host)
    table = rpc.create_table("t")
    write(rpc, table, b"a", 10)
    heat = read_heat(server, table)
    assert "counts" not in heat
    assert "times" not in heat


@pytest.mark.parametrize(("parameters", "words"), [
    ({"maxRanges": 1025}, "max_ranges must be between 0 and 1024, and is 1025"),
    ({"maxRanges": -1}, "max_ranges must be between 0 and 1024, and is -1"),
    ({"maxTimes": 1025}, "max_times must be between 0 and 1024, and is 1025"),
    ({"startTime": "1900-01-01T00:00:00Z"}, "start_time is no time between 1970 and 9999"),
    ({"endTime": "1969-01-01T00:00:00Z"}, "end_time is no time between 1970 and 9999"),
    ({"startTime": LONG_AGO, "endTime": LONG_AGO}, "start_time must be before end_time"),
    ({"startTime": "2999-01-01T00:00:00Z"}, "start_time must be before end_time"),
])  # fmt: skip
def test_what_is_refused(server, make_table, parameters, words):
    status, text = Rest(server.host).ask("GET", heat_path(make_table({"f": None}), **parameters))
    assert status == 400
    assert json.loads(text)["error"]["message"] == words


def test_a_table_that_is_not_there(server):
    status, text = Rest(server.host).ask("GET", heat_path("projects/p/instances/i/tables/none"))
    assert status == 404
    assert json.loads(text)["error"]["status"] == "NOT_FOUND"
