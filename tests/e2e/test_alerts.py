"""The alerts for Prometheus, evaluated by its own promtool where there is one: each fires when it
should, not before its time, and not when all is well. That the metrics exist is test_grafana.py's,
that each alert has a section in the runbooks test_runbooks.py's."""

import re
import urllib.request

import pytest
from harness import promtool
from harness.promtool import PROMTOOL, RULES, alerts

INSTANCE = {"instance": "one", "job": "trestle"}

# Of each alert: when all is well and when not, series of one value a minute. "0+5" rises by 5.
CASES = {
    "TrestleDown": ({"up": "1"}, {"up": "0"}),
    "TrestleTakesNoWrites": ({"trestle_store_healthy": "1"}, {"trestle_store_healthy": "0"}),
    "TrestleRefusesMutations": (
        {"trestle_commit_refused_total": "7"},
        {"trestle_commit_refused_total": "0+1"},
    ),
    "TrestleWritesHeldBack": (
        {"trestle_store_stall_milliseconds_total": "0+2400"},
        {"trestle_store_stall_milliseconds_total": "0+3600"},
    ),
    "TrestleServerErrors": (
        {'trestle_rpcs_total{code="OK"}': "0+1000", 'trestle_rpcs_total{code="NOT_FOUND"}': "0+500",
         'trestle_rpcs_total{code="INTERNAL"}': "0+9"},
        {'trestle_rpcs_total{code="OK"}': "0+1000", 'trestle_rpcs_total{code="INTERNAL"}': "0+9",
         'trestle_rpcs_total{code="UNAVAILABLE"}': "0+9"},
    ),
    "TrestleDiskLow": (
        {"trestle_disk_free_bytes": "2147483648"},
        {"trestle_disk_free_bytes": "2147483647"},
    ),
    "TrestleDiskFillsUp": (
        {"trestle_disk_free_bytes": "100000000000-1000000",
         "trestle_store_table_bytes": "200000000000"},
        {"trestle_disk_free_bytes": "100000000000-100000000",
         "trestle_store_table_bytes": "200000000000"},
    ),
    "TrestleReloadFailed": (
        {'trestle_reload_failed{what="access"}': "0"},
        {'trestle_reload_failed{what="tls"}': "1"},
    ),
    "TrestleConnectionsRefused": (
        {"trestle_connections_refused_total": "7"},
        {"trestle_connections_refused_total": "0+1"},
    ),
    "TrestleSlowLoops": (
        {"trestle_loop_slow_turns_total": "0+50"},
        {"trestle_loop_slow_turns_total": "0+70"},
    ),
    "TrestleChangeLogNearBound": (
        {"trestle_change_log_bytes": "800", "trestle_change_log_quota_bytes": "1000"},
        {"trestle_change_log_bytes": "801", "trestle_change_log_quota_bytes": "1000"},
    ),
    "TrestleChangeStreamReaderBehind": (
        {'trestle_table_change_stream_lag_seconds{table="t"}': "900"},
        {'trestle_table_change_stream_lag_seconds{table="t"}': "901"},
    ),
    "TrestleChangeStreamReaderRunsOut": (
        {'trestle_table_change_stream_left_seconds{table="t"}': "14400"},
        {'trestle_table_change_stream_left_seconds{table="t"}': "14399"},
    ),
    "TrestleReplicationBehind": (
        {'trestle_replication_delay_seconds{peer="east"}': "60"},
        {'trestle_replication_delay_seconds{peer="east"}': "61"},
    ),
    "TrestlePeerClockAhead": (
        {'trestle_peer_clock_ahead_seconds{peer="east"}': "0.5"},
        {'trestle_peer_clock_ahead_seconds{peer="east"}': "0.51"},
    ),
    "TrestleCopiedAnew": (
        {'trestle_replication_parked_total{peer="east",reason="too_far_behind"}': "1",
         'trestle_replication_parked_total{peer="east",reason="table_unknown"}': "0+1"},
        {'trestle_replication_parked_total{peer="east",reason="too_far_behind"}': "0+1"},
    ),
    "TrestleBackupFailed": (
        {"trestle_backup_failures_total": "3", "trestle_whole_backup_failures_total": "1"},
        {"trestle_backup_failures_total": "3", "trestle_whole_backup_failures_total": "0+1"},
    ),
}  # fmt: skip


def cases_of(name, alert):
    """Those about a reason of health are alike."""
    reason = re.fullmatch(r'(trestle_health\{reason="\w+"\}) == 1', alert["expr"])
    return ({reason[1]: "0"}, {reason[1]: "1"}) if reason else CASES[name]


def minutes(duration):
    count, unit = re.fullmatch(r"(\d+)([mh])", duration).groups()
    return int(count) * (60 if unit == "h" else 1)


def labelled(name):
    """The series as a scrape has it."""
    labels = ",".join(f'{label}="{value}"' for label, value in INSTANCE.items())
    return name[:-1] + f",{labels}}}" if name.endswith("}") else f"{name}{{{labels}}}"


def series(values, last):
    """"5" stays, "0+1" and "9-1" change, each up to that minute."""
    return [
        {"series": labelled(name), "values": f"{value}x{last}"}
        for name, value in values.items()
    ]  # fmt: skip


def expected(alert, values):
    """As Prometheus would send it. Labels that all its series share are the alert's."""
    by_instance = "sum by (instance)" in alert["expr"]
    own = {} if by_instance else dict(re.findall(r'(\w+)="(\w+)"', " ".join(list(values)[-1:])))
    labels = {"instance": "one"} if by_instance else {**INSTANCE, **own}
    return {
        "exp_labels": {**labels, **alert["labels"]},
        "exp_annotations": {
            key: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda name: labels[name[1]], text)
            for key, text in alert["annotations"].items()
        },
    }


def at(name, time, *fires):
    return {"eval_time": f"{time}m", "alertname": name, "exp_alerts": list(fires)}


def evaluations_of(name, alert):
    well, ill = cases_of(name, alert)
    wait = minutes(alert.get("for", "0m"))
    last = wait + (75 if "[1h]" in alert["expr"] else 15)  # each minute takes promtool some time
    fires = expected(alert, ill)
    yield {"interval": "1m", "input_series": series(well, last),
           "alert_rule_test": [at(name, last)]}  # fmt: skip
    looks = [at(name, last, fires)]
    if wait > 0:
        looks.insert(0, at(name, wait - 1))
    yield {"interval": "1m", "input_series": series(ill, last), "alert_rule_test": looks}


def test_each_alert_has_a_case():
    for name, alert in alerts().items():
        well, ill = cases_of(name, alert)
        assert set(well) and set(ill)
    assert set(CASES) <= set(alerts())


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool here")
def test_alerts_fire_when_they_should(tmp_path):
    every = [test for name, alert in alerts().items() for test in evaluations_of(name, alert)]
    done = promtool.run("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert promtool.check_rules(tmp_path, every) == ""


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool here")
def test_prometheus_reads_the_page(server):
    """It would name two of the metrics otherwise, and nothing else."""
    with urllib.request.urlopen(f"http://{server.host}/metrics") as page:
        done = promtool.run("check", "metrics", text=page.read().decode())
    complaints = [line.split()[0] for line in done.stderr.splitlines()]
    assert complaints == ["trestle_commit_milliseconds", "trestle_store_stall_milliseconds_total"]
