"""The dashboard for Grafana and the alerts for Prometheus: what they ask for is there, and what is
there is shown. Neither program runs here; the queries are read for the metrics that they name."""

import importlib.util
import json
import re

import pytest
import yaml
from harness.server import ROOT, run_trestle

GRAFANA = ROOT / "packaging/grafana"
RULES = ROOT / "packaging/prometheus/trestle.rules.yml"
# The words of PromQL that look like names of metrics.
METRIC = re.compile(r"\b((?:trestle|process)_\w+)(?:\{([^}]*)\})?")
# Labels that Prometheus and Grafana add.
ADDED = {"instance", "job", "le"}


@pytest.fixture(scope="module")
def documented():
    """{name: (type, labels)} of every series that a server can have."""
    page = run_trestle("serve", "--metrics-markdown").stdout
    rows = re.findall(r"^\| `(\w+)(?:\{(.*)\})?` \| (\w+) \|", page, re.MULTILINE)
    found = {}
    for name, labels, kind in rows:
        own = set(labels.split(",")) - {""}
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        found.update({name + suffix: (kind, own) for suffix in suffixes})
    assert len(found) > 80
    return found


@pytest.fixture(scope="module")
def dashboard():
    return json.loads((GRAFANA / "trestle.json").read_text())


def expressions(dashboard):
    return [
        target["expr"]
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    ]  # fmt: skip


def check(expression, documented):
    """The metrics of it, which must exist, with the labels that it asks for."""
    names = set()
    for name, matchers in METRIC.findall(expression):
        assert name in documented, f"{name} in {expression}"
        asked = set(re.findall(r"(\w+)\s*[=!]~?", matchers))
        assert asked <= documented[name][1] | ADDED, expression
        names.add(name)
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    labels = set.union(set(), *(documented[name][1] for name in names))
    for group in grouped:
        assert set(re.split(r",\s*", group)) <= labels | ADDED, expression
    return names


def test_panels_ask_for_metrics_that_there_are(dashboard, documented):
    for expression in expressions(dashboard):
        assert check(expression, documented), expression


def test_every_metric_is_in_a_panel(dashboard, documented):
    shown = set()
    for expression in expressions(dashboard):
        shown |= check(expression, documented)
    # Of a histogram the buckets tell the rest.
    wanted = {name for name, (kind, _) in documented.items()
              if kind != "histogram" or name.endswith("_bucket")}  # fmt: skip
    assert wanted - shown == set()


def test_counters_are_asked_for_their_rates(dashboard, documented):
    for expression in expressions(dashboard):
        for name in check(expression, documented):
            if documented[name][0] == "gauge":
                continue
            assert re.search(rf"(rate|increase)\({name}\b", expression), expression


def test_the_dashboard_is_one_of_grafana(dashboard):
    assert dashboard["schemaVersion"] >= 38
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + dx, place["y"] + dy)
                 for dx in range(place["w"]) for dy in range(place["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["targets"], panel["title"]
    for name in ("datasource", "instance"):
        assert name in [variable["name"] for variable in dashboard["templating"]["list"]]


def test_the_dashboard_is_what_its_table_says(tmp_path):
    spec = importlib.util.spec_from_file_location("dashboard", GRAFANA / "dashboard.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (GRAFANA / "trestle.json").read_text()
    assert json.dumps(module.dashboard(), indent=1) + "\n" == written, "run dashboard.py"


def test_alerts_ask_for_metrics_that_there_are(documented):
    groups = yaml.safe_load(RULES.read_text())["groups"]
    alerts = [rule for group in groups for rule in group["rules"]]
    assert len(alerts) >= 5
    assert len({alert["alert"] for alert in alerts}) == len(alerts)
    for alert in alerts:
        assert alert["annotations"]["summary"]
        assert alert["labels"]["severity"] in ("warning", "critical")
        if "up{" not in alert["expr"]:
            assert check(alert["expr"], documented), alert["alert"]


def test_a_metric_that_is_not_there_is_found(documented):
    with pytest.raises(AssertionError):
        check('rate(trestle_nothing_total{instance=~"x"}[1m])', documented)
    with pytest.raises(AssertionError):
        check('trestle_tables{pool="x"}', documented)
    with pytest.raises(AssertionError):
        check("sum by (pool) (trestle_tables)", documented)
