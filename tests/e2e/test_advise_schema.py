"""`trestle advise --schema`: tables that are not there yet. No server has a part in it. What is
read of a description, and which rules speak of one, is in src/design/."""

import json
import os

import pytest
from harness.sarif import check_sarif
from harness.server import run_trestle

EXAMPLES = os.path.join(os.path.dirname(__file__), "../../examples/schema")
SENSORS = os.path.join(EXAMPLES, "sensors.yaml")
ACCOUNTS = os.path.join(EXAMPLES, "accounts.yaml")
SHOP = os.path.join(EXAMPLES, "shop.yaml")


def run(path, *options):
    return run_trestle("advise", "--schema", str(path), *options)


def line_of(path, text):
    with open(path) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def test_the_examples_say_what_they_are_for():
    done = run(SENSORS, "--format", "json")
    assert done.returncode == 1
    by_time, of_stations = json.loads(done.stdout)
    rules = {finding["rule"]: finding for finding in by_time["findings"]}
    assert set(rules) == {"key-time-first", "hot-range", "filtered-scans"}
    assert rules["key-time-first"]["file"] == SENSORS
    assert rules["key-time-first"]["line"] == line_of(SENSORS, "kind: time")
    assert of_stations["findings"] == []
    done = run(ACCOUNTS)
    assert done.returncode == 0 and done.stdout.count("\nnothing was found\n") == 2


def test_kinds_of_datastore():
    """The example's first kind breaks what its second keeps; each has a report of its own."""
    done = run(SHOP, "--format", "json")
    assert done.returncode == 1
    order, purchase = json.loads(done.stdout)
    rules = {finding["rule"]: finding for finding in order["findings"]}
    assert set(rules) == {
        "entity-keys", "index-rising", "index-rows", "index-unused", "group-writes", "query-offsets"
    }  # fmt: skip
    assert rules["entity-keys"]["line"] == line_of(SHOP, "key:")
    assert rules["group-writes"]["line"] == line_of(SHOP, "access:")
    assert (order["table"], order["sample"]["rows"]) == ("Order", 1000)
    assert {each["kind"] for each in order["accesses"]} == {
        "write new", "read entity", "read query"
    }  # fmt: skip
    assert (purchase["table"], purchase["findings"]) == ("Purchase", [])
    text = run(SHOP).stdout
    assert text.startswith("Order: 1000 entities sampled at 100 places, made of the description\n")
    assert "\nnothing was found\n" in text and "line 20: read entity, 200/s\n" in text
    results = json.loads(run(SHOP, "--format", "sarif").stdout)["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == set(rules)


def test_the_map():
    """Keys that begin with a time are written in one range each minute, those of stations in all;
    as much as the rate says. As text, it has a line for each of some ranges."""
    by_time, of_stations = json.loads(run(SENSORS, "--format", "json").stdout)
    for table in by_time, of_stations:
        heat = table["heat"]
        written = heat["rowsWrittenPerSecond"]
        assert len(written) == len(heat["rowsReadPerSecond"]) == len(heat["starts"]) <= 128
        assert {len(minutes) for minutes in written} == {heat["minutes"]} == {60}
        for minute in range(60):
            assert sum(row[minute] for row in written) == pytest.approx(400, rel=0.01)
    hot = [sum(row[30] > 0 for row in table["heat"]["rowsWrittenPerSecond"])
           for table in (by_time, of_stations)]  # fmt: skip
    assert hot[0] <= 3 and hot[1] > 100
    assert [each["searches"] for each in by_time["accesses"]] == [False, True, False]
    assert by_time["accesses"][1]["rowsEach"] == pytest.approx(50_000_000)
    assert of_stations["accesses"][1]["rowsEach"] == pytest.approx(100)
    text = run(SENSORS).stdout
    maps = [line for line in text.splitlines() if line.startswith("  |")]
    assert len(maps) == 4 * 24 and all(line[63] == "|" for line in maps)
    written = text[text.index("rows written") : text.index("rows read")].splitlines()[1:25]
    assert "@@@" in written[-1] and "@" not in written[0]


def test_the_same_each_time():
    once, twice, other = (run(ACCOUNTS, "--format", "json", *seed).stdout
                          for seed in ([], ["--seed", "1"], ["--seed", "2"]))  # fmt: skip
    assert once == twice != other


def test_sarif_has_the_line(tmp_path):
    path = tmp_path / "a b.yaml"
    with open(SENSORS) as file:
        path.write_text(file.read())
    document = json.loads(run(path, "--format", "sarif").stdout)
    check_sarif(document)
    found = document["runs"][0]
    places = {result["ruleId"]: result["locations"][0] for result in found["results"]}
    time_first = places["key-time-first"]
    assert time_first["logicalLocations"][0]["fullyQualifiedName"] == "readings_by_time"
    physical = time_first["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == str(path).replace(" ", "%20")
    assert physical["region"]["startLine"] == line_of(SENSORS, "kind: time")
    assert places["hot-range"]["physicalLocation"]["region"]["startLine"] == line_of(
        SENSORS, "access: &load"
    )


def test_exit_status(tmp_path):
    assert run(SENSORS, "--fail-on", "critical").returncode == 0
    done = run(tmp_path / "none.yaml")
    assert done.returncode == 1 and "No such file" in done.stderr
    path = tmp_path / "bad.yaml"
    path.write_text("tables:\n  - {name: t, colums: []}\n")
    done = run(path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"trestle advise: {path}:2:15: colums is not a field of a table;")
    for other in ["t"], ["--all"], ["--database", "d"], ["--rules"], ["--by", "server"]:
        assert run_trestle("advise", *other, "--schema", SENSORS).returncode == 2


def described(path, tables, key, column, access):
    """A file of so many tables, which share what is said of them."""
    families = "{f: {gc: {versions: 1}}}"
    parts = f"key: {{parts: [{key}]}}, columns: [{column}], access: [{access}]"
    text = f"tables:\n- &t {{name: first, families: {families}, {parts}}}\n"
    for number in range(1, tables):
        text += f"- {{name: number{number:03}, families: {families}, {parts}}}\n"
    path.write_text(text)
    return path


def test_a_large_file_is_looked_at_within_seconds(tmp_path):
    """Many tables with all that is played of their accesses (of 200 it takes six seconds of a
    release build); and rows of a hundred thousand columns of which hardly any is there, each of
    which was drawn, for minutes."""
    load = "{write: new, rate: 900/s}, {read: row, rate: 900/s}"
    done = run(described(tmp_path / "many.yaml", 4, "{kind: uuid}", "{name: q}", load))
    assert done.returncode == 1
    assert done.stdout.count(" rows sampled at 100 places, made of the description\n") == 4
    sparse = ", ".join(
        f"{{name: {{kind: hash, digits: 12}}, count: 100000, in: 0.001%, size: {i}}}"
        for i in range(1, 101)
    )
    done = run(described(tmp_path / "sparse.yaml", 2, "{kind: uuid}", sparse, load))
    assert done.returncode in (0, 1) and done.stdout.count(" rows sampled at ") == 2
