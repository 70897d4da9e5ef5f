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


LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def leveled(heat):
    """(key that the range begins with, number) of what levels of all times tell."""
    starts = [base64.b64decode(key) for key in heat["startKeys"]]
    return {start: heat["mostLevel"] * heat["levelRatio"] ** (LEVELS.index(level) - 63)
            for when in heat["times"] for start, level in zip(starts, when["levels"])
            if level != "A"}  # fmt: skip


NUMBERS = {
    "ROWS": ["rowsRead", "rowsWritten"],
    "ROWS_READ": ["rowsRead"],
    "ROWS_WRITTEN": ["rowsWritten"],
    "BYTES_READ": ["bytesRead"],
    "BYTES_WRITTEN": ["bytesWritten"],
    "LARGEST_ROW": ["largestRow"],
}


@pytest.fixture
def spread(fresh_server, connect):
    """(server, table, an end of the time): whose windows tell many ranges apart."""
    server = fresh_server("--heat-window", "1s")
    rpc = connect(server.host)
    table = rpc.create_table("t")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len((heat := read_heat(server, table))["startKeys"]) < 30 or len(heat["times"]) < 4:
        assert time.monotonic() < deadline
        for prefix, size in ((b"a", 30), (b"k", 40), (b"m", 700), (b"z", 2000)):
            write(rpc, table, prefix, size, bytes(size))
            assert len(rpc.read(table, rows={"row_keys": [prefix + b"00000"]})) == 1
    return server, table, heat["endTime"]


def test_levels_are_within_a_tenth(spread):
    server, table, end = spread
    heat = read_heat(server, table, maxTimes=1, endTime=end)
    for number, names in NUMBERS.items():
        told = {}
        for start, each in sums(heat):
            value = sum(int(each.get(name, 0)) for name in names)
            if value > 0:
                told[start] = value
        levels = read_heat(server, table, maxTimes=1, endTime=end, levelsOf=number)
        assert levels["startKeys"] == heat["startKeys"] and len(told) > 1
        assert levels["mostLevel"] == max(told.values())
        assert "sums" not in levels["times"][0]
        assert leveled(levels) == pytest.approx(told, rel=0.1)


def test_levels_of_latencies_are_means(server, rpc, make_table):
    table = make_table({"f": None})
    write(rpc, table, b"a", 300)
    (each,) = (each for _, each in sums(read_heat(server, table, maxTimes=1, maxRanges=1)))
    mean = float(each["writeLatency"][:-1]) / int(each["writeRequests"])
    levels = read_heat(server, table, maxTimes=1, maxRanges=1, levelsOf="WRITE_LATENCY")
    assert levels["mostLevel"] == pytest.approx(mean)
    assert levels["times"][0]["levels"] == "_"
    none = read_heat(server, table, maxTimes=1, maxRanges=1, levelsOf="READ_LATENCY")
    assert "levels" not in none["times"][0] and "mostLevel" not in none


def test_there_are_no_more_cells_than_asked_for(spread):
    server, table, end = spread
    whole = read_heat(server, table, levelsOf="ROWS", endTime=end)
    assert len(leveled(whole)) * len(whole["times"]) > 100
    written = total(read_heat(server, table, endTime=end), "rowsWritten")
    for cells in (1, 7, 60):
        heat = read_heat(server, table, levelsOf="ROWS", endTime=end, maxCells=cells)
        assert 0 < len(leveled(heat)) * len(heat["times"]) <= cells
        sums_too = read_heat(server, table, endTime=end, maxCells=cells)
        assert len(sums(sums_too)) <= cells and total(sums_too, "rowsWritten") == written
    for wrong in ("maxCells=-1", "levelsOf=77"):
        Rest(server.host).call("GET", f"/v1/{table}:heat?{wrong}", expect=400)


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
