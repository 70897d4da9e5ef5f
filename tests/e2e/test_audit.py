"""The audit log: what was made and changed, who was refused, what was read again. That each call of
administration has its line is test_access_rpcs.py's; the console's page is test_console_audit.py's.
"""

import json
import signal
import time

import grpc
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.protobuf.json_format import ParseDict
from grpc import StatusCode
from harness.console import Caller
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest
from harness.rpc import INSTANCE, fails_with, set_cell
from harness.secured import ADMIN, POLICY, TABLE
from harness.tokens import token_line

CLUSTER = f"{INSTANCE}/clusters/c"
VIEWER = "user:viewer@example.com"


class Log:
    """The lines that have come since the last look."""

    def __init__(self, path):
        self.path, self.seen = path, 0

    def lines(self):
        text = self.path.read_text() if self.path.exists() else ""
        assert text == "" or text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]

    def take(self, count):
        """So many, and no more."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.lines()) < self.seen + count and time.monotonic() < deadline:
            time.sleep(0.02)
        new = self.lines()[self.seen :]
        assert len(new) == count, new
        self.seen += count
        return new

    def skip(self):
        self.seen = len(self.lines())


class Admin:
    """Calls of administration by REST, as the administrator."""

    def __init__(self, secured):
        caller = Caller(secured, "HTTP/1.1")
        self.rest = Rest(caller.host, context=caller.context())

    def __call__(self, verb, path, body=None, token="admin"):
        return self.rest.ask(verb, path, body, {"authorization": f"Bearer {token}"})


def about(line, *names):
    return tuple(line.get(name) for name in names)


# --- what was made ---


def made(log):
    (line,) = log.take(1)
    assert (line["event"], line["principal"], line["status"]) == ("call", ADMIN, "OK"), line
    assert line["peer"].startswith("127.0.0.1:")
    return about(line, "method", "resource", "source")


def check_what_is_made(admin, log):
    view = f"{TABLE}/authorizedViews/v"
    for verb, path, body, expected in (
        ("POST", "projects/p/instances",
         {"parent": "projects/p", "instanceId": "made", "instance": {"displayName": "made one"},
          "clusters": {"c": {"location": "projects/p/locations/z"}}},
         ("CreateInstance", "projects/p/instances/made", None)),
        ("POST", f"{INSTANCE}/tables", {"tableId": "t", "table": {"columnFamilies": {"f": {}}}},
         ("CreateTable", TABLE, None)),
        ("POST", f"{TABLE}/authorizedViews?authorizedViewId=v", {"subsetView": {}},
         ("CreateAuthorizedView", view, None)),
        ("POST", f"{INSTANCE}/appProfiles?appProfileId=a",
         {"multiClusterRoutingUseAny": {}, "description": "d"},
         ("CreateAppProfile", f"{INSTANCE}/appProfiles/a", None)),
        ("DELETE", view, None, ("DeleteAuthorizedView", view, None)),
        ("POST", f"{TABLE}:modifyColumnFamilies", {"modifications": [{"id": "g", "create": {}}]},
         ("ModifyColumnFamilies", TABLE, None)),
    ):  # fmt: skip
        status, text = admin(verb, f"/v2/{path}", body)
        assert status == 200, text
        assert made(log) == expected


def check_a_backup(admin, log):
    """Where it was made from what is said, too, also if there is none."""
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 7 * 86400))
    body = {"sourceTable": f"{INSTANCE}/tables/none", "expireTime": end}
    status, text = admin("POST", f"/v2/{CLUSTER}/backups?backupId=b", body)
    assert status == 404, text
    (line,) = log.take(1)
    assert about(line, "method", "resource", "source", "status") == (
        "CreateBackup", f"{CLUSTER}/backups/b", f"{INSTANCE}/tables/none", "NOT_FOUND",
    )  # fmt: skip
    assert line["reason"]


# --- policies ---


def binding(role, *members):
    return {"role": role, "members": list(members)}


def check_policies(admin, log):
    def set_to(*bindings):
        body = {"policy": {"bindings": list(bindings)}}
        status, text = admin("POST", f"/v2/{TABLE}:setIamPolicy", body)
        assert status == 200, text
        (line,) = log.take(1)
        assert about(line, "method", "resource") == ("SetIamPolicy", TABLE)
        return line["changes"]

    reader, user = "roles/bigtable.reader", "roles/bigtable.user"
    assert set_to(binding(reader, "user:a", "user:b")) == [
        {"action": "ADD", "role": reader, "member": "user:a"},
        {"action": "ADD", "role": reader, "member": "user:b"},
    ]
    assert set_to(binding(user, "user:a"), binding(reader, "user:b")) == [
        {"action": "REMOVE", "role": reader, "member": "user:a"},
        {"action": "ADD", "role": user, "member": "user:a"},
    ]
    assert set_to(binding(reader, "user:b"), binding(user, "user:a")) == []
    status, text = admin(
        "POST", f"/v2/{TABLE}:setIamPolicy",
        {"policy": {"bindings": [binding("roles/none", "user:c")]}},
    )  # fmt: skip
    assert status == 400, text
    (line,) = log.take(1)
    assert "changes" not in line and line["status"] == "INVALID_ARGUMENT"
    entries = json.loads(admin("GET", "/v1/servers/self/auditEntries?pageSize=4")[1])["entries"]
    assert entries[2]["changes"] == (
        f"REMOVE role={reader} member=user:a; ADD role={user} member=user:a"
    )
    log.take(1)


# --- refusals ---


def check_refusals(secured, admin, log):
    viewer = secured.rpc("viewer")
    with fails_with(StatusCode.PERMISSION_DENIED):
        viewer.mutate(TABLE, b"k", set_cell("f", b"q", b"v", 1000))
    with fails_with(StatusCode.PERMISSION_DENIED):
        viewer.read(TABLE)
    wrote, read = log.take(2)
    assert about(wrote, "event", "principal", "method", "resource", "status") == (
        "refusal", VIEWER, "MutateRow", TABLE, "PERMISSION_DENIED",
    )  # fmt: skip
    assert "bigtable.tables.mutateRows" in wrote["reason"]
    assert read["method"] == "ReadRows" and "tables.readRows" in read["reason"]
    status, _ = admin("POST", f"/v2/{TABLE}:readRows", {}, token="nobody's")
    assert status == 401
    (line,) = log.take(1)
    assert about(line, "event", "principal", "method", "resource", "status") == (
        "refusal", "-", "ReadRows", TABLE, "UNAUTHENTICATED",
    )  # fmt: skip
    assert line["peer"].startswith("127.0.0.1:") and "nobody's" not in json.dumps(line)
    assert secured.rpc("alice").read(TABLE) == []
    assert Caller(secured, "HTTP/1.1").log_in("bad-token") == 401
    (line,) = log.take(1)
    assert about(line, "event", "page", "status") == ("refusal", "console", "UNAUTHENTICATED")
    assert "bad-token" not in json.dumps(line)


def check_that_refusals_are_bounded(secured, log):
    """Whatever comes is either told or counted."""
    stranger = secured.rpc("nobody's")
    for _ in range(200):
        with fails_with(StatusCode.UNAUTHENTICATED):
            stranger.read(TABLE)
    deadline = time.monotonic() + PATIENCE_SECONDS
    lines = []
    while time.monotonic() < deadline:
        lines = log.lines()[log.seen :]
        told = sum(line["event"] == "refusal" for line in lines)
        counted = sum(line.get("untold", 0) for line in lines)
        if told + counted == 200:
            break
        time.sleep(0.05)
    assert told + counted == 200
    seconds = {line["time"][:19] for line in lines}
    # The server counts by seconds of its own, one more than those of the clock at most.
    assert told <= 10 * (len(seconds) + 1), lines
    log.skip()


# --- files that are read again ---


def check_what_is_read_again(secured, log):
    """Whose tokens came, went, and end at another time; never the tokens or their hashes."""
    lines = secured.token_file.read_text().splitlines(keepends=True)
    kept = [line for line in lines if "stranger" not in line and "alice" not in line]
    alice = token_line("alice", "user:alice@example.com", "2120-01-01T00:00:00Z")
    new = token_line("a-new-secret", "user:new@example.com")
    secured.token_file.write_text("".join([*kept, alice, new]))
    policy = dict(POLICY)
    policy["projects/p"] = {
        "bindings": [
            binding("roles/bigtable.reader", "user:reader@example.com", "user:new@example.com")
        ]
    }
    secured.write_policy(policy)
    secured.server.signal(signal.SIGHUP)
    deadline = time.monotonic() + PATIENCE_SECONDS
    changes = []
    while len(changes) < 5 and time.monotonic() < deadline:  # it may have seen one file before
        time.sleep(0.05)
        lines = [line for line in log.lines()[log.seen :] if line["event"] == "reload"]
        changes = [change for line in lines for change in line["changes"]]
    assert {line["what"] for line in lines} <= {"access control", "TLS"}
    wanted = [
        {"action": "ADD", "token": "user:new@example.com", "expires": "never"},
        {"action": "REMOVE", "token": "user:stranger@example.com", "expires": "never"},
        {"action": "CHANGE", "token": "user:alice@example.com", "expires": "2120-01-01T00:00:00Z"},
        {"action": "ADD", "role": "roles/bigtable.reader", "member": "user:new@example.com",
         "resource": "projects/p"},
        {"action": "REMOVE", "role": "roles/bigtable.viewer", "member": VIEWER,
         "resource": "projects/p"},
    ]  # fmt: skip
    assert sorted(changes, key=str) == sorted(wanted, key=str)
    text = log.path.read_text() + secured.server.stderr()
    assert "a-new-secret" not in text and new.split()[0] not in text
    assert "ADD token=user:new@example.com expires=never" in secured.server.stderr()
    log.skip()
    secured.token_file.write_text("no token\n")
    secured.server.signal(signal.SIGHUP)
    while not log.lines()[log.seen :] and time.monotonic() < deadline:
        time.sleep(0.05)
    failed = [line for line in log.lines()[log.seen :] if line["status"] != "OK"]
    assert failed and "changes" not in failed[0] and "tokens:1" in failed[0]["reason"]


def data_sums(*paths):
    """The lines about calls for data, by who, how, and what."""
    lines = [line for path in paths for line in Log(path).lines() if line["event"] == "data"]
    return {about(line, "principal", "method", "resource"): line for line in lines}


def test_calls_and_refusals(secure, tmp_path):
    path = tmp_path / "audit.log"
    secured = secure("--audit-log", path, "--audit-refusals", 10, "--log-format", "logfmt")
    admin, log = Admin(secured), Log(path)
    check_what_is_made(admin, log)
    check_a_backup(admin, log)
    check_policies(admin, log)
    check_refusals(secured, admin, log)
    check_that_refusals_are_bounded(secured, log)
    check_what_is_read_again(secured, log)


def test_without_access_control_a_file_is_enough(fresh_server, tmp_path, connect):
    """Nobody is known, but where the call came from. And the file is bounded."""
    path = tmp_path / "audit.log"
    server = fresh_server(
        "--audit-log", path, "--audit-log-size", 2000, "--audit-log-files", 2, "--audit-data", "1d",
    )  # fmt: skip
    log, rpc = Log(path), connect(server.host)
    rpc.create_table("t")
    Rest(server.host).call("POST", f"/v2/{INSTANCE}/tables", {"tableId": "by-rest", "table": {}})
    by_grpc, by_rest = log.take(2)
    for line, table in ((by_grpc, "t"), (by_rest, "by-rest")):
        assert about(line, "event", "principal", "method", "resource", "status") == (
            "call", "-", "CreateTable", f"{INSTANCE}/tables/{table}", "OK",
        )  # fmt: skip
        assert line["peer"].startswith("127.0.0.1:")
    rpc.mutate(TABLE, b"k", set_cell("f", b"q", b"v", 1000))
    assert rpc.read(TABLE) != []
    policy = ParseDict({"bindings": [binding("roles/x", "group:g")]}, policy_pb2.Policy())
    channel = grpc.insecure_channel(server.host)
    channel.unary_unary(
        "/google.bigtable.admin.v2.BigtableTableAdmin/SetIamPolicy",
        request_serializer=iam_policy_pb2.SetIamPolicyRequest.SerializeToString,
    )(iam_policy_pb2.SetIamPolicyRequest(resource=TABLE, policy=policy), timeout=PATIENCE_SECONDS)
    channel.close()
    (line,) = log.take(1)
    assert line["changes"] == [{"action": "ADD", "role": "roles/x", "member": "group:g"}]
    answer = Rest(server.host).call("GET", "/v1/servers/self/auditEntries")
    assert answer["isAudited"] is True and len(answer["entries"]) == 3
    for _ in range(40):
        rpc.get_table(TABLE)
    names = {each.name for each in tmp_path.iterdir() if each.name.startswith("audit.log")}
    assert names == {"audit.log", "audit.log.1", "audit.log.2"}
    for name in names:
        assert (tmp_path / name).stat().st_size <= 2000
        assert {line["event"] for line in Log(tmp_path / name).lines()} == {"call"}
    server.stop()
    sums = data_sums(path.with_name("audit.log.1"), path)
    assert {key: line["calls"] for key, line in sums.items()} == {
        ("-", "MutateRow", TABLE): 1, ("-", "ReadRows", TABLE): 1,
    }  # fmt: skip
