"""docs/operating/runbooks.md: each alert has its section, and the commands there do what they are
for on a server. systemd is not there: what asks it gets the server's log, or nothing."""

import os
import re
import subprocess
import time

import pytest
import yaml
from harness.backups import from_now
from harness.certificates import Authority
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import Rpc
from harness.server import EXTERNAL, ROOT, Server, binary, run_trestle

PAGE = ROOT / "docs/operating/runbooks.md"
RULES = ROOT / "packaging/prometheus/trestle.rules.yml"
ALERTS, DRILL = PAGE.read_text().split("\n## The drill:")  # test_drill.py plays the latter
COMMANDS = re.findall(r"^    \$ (.*)$", ALERTS, re.MULTILINE)
FAKES = {
    "journalctl": '[ "$*" = "-u trestle -g $4" ] && { grep -E -- "$4" "$LOG" || true; }',
    "systemctl": '[[ "$*" =~ ^(status|start|stop|restart|reload)\\ trestle$ ]]',
}


def alerts():
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def sections():
    """{title: text}"""
    title, *rest = re.split(r"^## (\w+)$", ALERTS, flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2], strict=True))


def test_each_alert_has_a_section_and_each_section_an_alert():
    assert set(sections()) == {alert["alert"] for alert in alerts()}
    for alert in alerts():
        anchor = alert["alert"].lower()
        assert alert["annotations"]["runbook"] == f"docs/operating/runbooks.md#{anchor}"
    for title, text in sections().items():
        for part in ("**It means**", "**Look", "do**" if "and **do**" in text else "**Do"):
            assert part in text, title


def test_each_reason_is_in_a_section():
    reasons = re.findall(r"^REASON\((\w+), (\w+),", (ROOT / "src/base/reasons.def").read_text(),
                         re.MULTILINE)  # fmt: skip
    assert len(reasons) >= 6
    for level, name in reasons:
        asked = [alert for alert in alerts() if f'reason="{name}"' in alert["expr"]]
        if level == "NO_WRITES":
            assert f"| `{name}` |" in sections()["TrestleTakesNoWrites"]
        else:
            (alert,) = asked
            assert alert["labels"]["severity"] == "warning"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """What a machine with the package has: programs, a certificate, and a server's data."""
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    place = tmp_path_factory.mktemp("machine")
    programs = place / "bin"
    programs.mkdir()
    (programs / "trestle").symlink_to(binary())
    for name, body in FAKES.items():
        (programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (programs / name).chmod(0o755)
    Authority(place).issue("server", "/CN=localhost")
    return place


def on(machine, server, command):
    known = {"127.0.0.1:8086": server.host, "/var/lib/trestle": str(server.data),
             "/etc/trestle": str(machine), "/mnt/backups": str(machine / "backups")}  # fmt: skip
    for name, ours in known.items():
        command = command.replace(name, ours)
    return command


def back_up(server, machine, table):
    """A backup of each kind: the doctor and others say so where there is none."""
    cluster = table.replace("/tables/t", "/clusters/trestle")
    backup = {"sourceTable": table, "expireTime": from_now(days=7).isoformat()}
    rest = Rest(server.host)
    operation = rest.call("POST", f"/v2/{cluster}/backups?backupId=b", backup)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not rest.call("GET", f"/v2/{operation['name']}").get("done"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    made = run_trestle("backup", "create", machine / "backups/whole", "--endpoint", server.host)
    assert made.returncode == 0, made.stderr


def begin_schedule(server, machine):
    """And its first backup: while that is made no command makes one."""
    server.arguments = ["--backup-places", str(machine / "backups/whole"),
                        "--backup-schedule", "24h"]  # fmt: skip
    server.restart()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while server.metric("whole_backups_made_total") == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def used(tmp_path_factory, machine):
    (machine / "backups").mkdir()
    places = ["--backup-places", str(machine / "backups")]
    server = Server(tmp_path_factory.mktemp("used"), places).start()
    rpc = Rpc(server.host)
    name = rpc.create_table("t")
    rpc.close()
    back_up(server, machine, name)
    begin_schedule(server, machine)
    yield server
    server.close()


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_commands(machine, used, command):
    if "doctor /var" in command:
        used.stop()
    path = f"{machine}/bin:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", on(machine, used, command)],
        env={**os.environ, "PATH": path, "LOG": str(used.stderr_path),
             "BIGTABLE_EMULATOR_HOST": used.host},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    if used.process is None:
        used.start()
    assert done.returncode == 0, done.stdout + done.stderr
    if not command.startswith(("systemctl", "journalctl")) and "|| true" not in command:
        assert done.stdout, command


def test_what_the_log_is_searched_for_is_what_it_says():
    """Each word after -g is one of the program's."""
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.c"))
    definitions = (ROOT / "src/base/reasons.def").read_text()
    for pattern in re.findall(r"journalctl -u trestle -g '([^']+)'", "\n".join(COMMANDS)):
        for words in pattern.split("|"):
            assert words in source + definitions or words == "level=error", words
