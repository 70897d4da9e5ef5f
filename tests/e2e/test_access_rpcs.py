"""Access control of every RPC, by gRPC and by REST, over all rows of the reference of permissions,
which is written from the table that the server goes by. With it the audit log, which has a line for
each call of administration."""

import collections
import contextlib
import http.client
import importlib
import json
import re
import ssl
import time

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from harness.patience import PATIENCE_SECONDS
from harness.rpc import CHANNEL_OPTIONS
from harness.secured import POLICY
from harness.server import ROOT, run_trestle
from harness.tokens import AUDIENCE, ISSUER, Key, write_jwks

DATA = {"google.bigtable.v2.Bigtable", "google.datastore.v1.Datastore"}
# Each role has what those of its API before it have.
LEVELS = {
    "bigtable": ["viewer", "reader", "user", "editor", "admin"],
    "datastore": ["viewer", "user", "owner"],
}
POLLS = {"GetOperation", "ListWholeBackupRuns", "WaitOperation"}  # a line only if they fail
ROLES = [f"{api}.{level}" for api, levels in LEVELS.items() for level in levels]
PLACES = {"role": "projects/p", "server-role": "*"}  # a server is in no project
ROLE_TOKENS = {
    f"{place}-{role}": f"user:{place}-{role}@roles.example" for place in PLACES for role in ROLES
}
ROLE_BINDINGS = {
    resource: [
        {"role": f"roles/{role}", "members": [f"user:{place}-{role}@roles.example"]}
        for role in ROLES
    ]
    for place, resource in PLACES.items()
}
ROLE_POLICY = {
    "*": {"bindings": POLICY["*"]["bindings"] + ROLE_BINDINGS["*"]},
    "projects/p": {"bindings": ROLE_BINDINGS["projects/p"]},
}
# A call of these is UNIMPLEMENTED for everybody.
UNBUILT = {
    "CreateTableFromSnapshot", "DeleteSnapshot", "GetSnapshot", "ListSnapshots",
    "SnapshotTable", "UndeleteTable",
}  # fmt: skip
WITHOUT_REST = {"GetClientConfiguration"}

# --- the reference ---


def rows_of_the_reference():
    """(service, method, field, form of the name, permission), and the permissions' least roles. A
    row that depends on another field is left out: see test_some_fields_need_more."""
    rows, least, service = [], {}, None
    for line in run_trestle("permissions").stdout.splitlines():
        heading = re.match(r"## ((?:google|trestle)\S+)", line)
        row = re.fullmatch(r"\| (\w+) \| `([\w.]+)` \| `(\S+)` \| (\S+) \|", line)
        roles = re.fullmatch(r"\| ((?:bigtable|datastore)\.\S+) \| ([\w, ]+) \|", line)
        if heading:
            service = heading[1]
        elif row:
            rows.append((service, *row.groups()))
        elif roles:
            least[roles[1]] = roles[2].split(", ")[0]
    return rows, least


def name_of(form):
    """A name of the form: what is in capitals is free."""
    if form == "PROJECT_ID":
        return "p"
    name = re.sub(r"/[A-Z](?=/|$)", "/x", form.replace("/…", "/instances/x/operations/1"))
    return name.replace("projects/x", "projects/p", 1)


Question = collections.namedtuple("Question", "service method field name permissions")


def questions():
    """One for each RPC, field and kind of name, and the levels of the permissions."""
    rows, least = rows_of_the_reference()
    assert len({row[:2] for row in rows}) == 12 + 31 + 35 + 5 + 2 + 8 + 6 + 8 + 20 + 4 + 5
    permissions = collections.defaultdict(list)
    for service, method, field, form, permission in rows:
        permissions[service, method, field, name_of(form)].append(permission)
    levels = {
        permission: LEVELS[permission.split(".")[0]].index(role)
        for permission, role in least.items()
    }
    return [Question(*key, value) for key, value in permissions.items()], levels


# --- two ways to ask: the status's name and words, or None if the way does not lead there ---


class Grpc:
    def __init__(self, secured):
        self.channel = grpc.secure_channel(
            secured.server.host, secured.credentials(), CHANNEL_OPTIONS
        )
        self.pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))

    def close(self):
        self.channel.close()

    def request(self, question):
        """The serialised request with the field set."""
        methods = self.pool.FindServiceByName(question.service).methods_by_name
        built = message_factory.GetMessageClass(methods[question.method].input_type)()
        *parents, last = question.field.split(".")
        place = built
        for parent in parents:
            place = getattr(place, parent)
        setattr(place, last, question.name)
        return built.SerializeToString()

    def ask(self, question, token):
        call = self.channel.unary_stream(f"/{question.service}/{question.method}")
        metadata = [("authorization", f"Bearer {token}")] if token else []
        try:
            list(call(self.request(question), metadata=metadata, timeout=PATIENCE_SECONDS))
        except grpc.RpcError as error:
            return error.code().name, error.details()
        return "OK", ""


def http_rules(verb, *uris, **more):
    return [{"method": verb, "uri": uri, **more} for uri in uris]


OPERATION_URIS = (
    "/v2/{name=operations/**}",
    "/v1/{name=projects/*/operations/*}",
    "/v1/{name=projects/*/databases/*/operations/*}",
)
OPERATIONS_HTTP = {
    "GetOperation": http_rules("get", *OPERATION_URIS),
    "DeleteOperation": http_rules("delete", *OPERATION_URIS),
    "CancelOperation": http_rules("post", *(f"{uri}:cancel" for uri in OPERATION_URIS), body="*"),
    "WaitOperation": http_rules("post", *(f"{uri}:wait" for uri in OPERATION_URIS), body="*"),
    "ListOperations": http_rules(
        "get",
        "/v2/{name=operations/projects/**}/operations",
        "/v1/{name=projects/*}/operations",
        "/v1/{name=projects/*/databases/*}/operations",
    ),
}
KIND_URI = "projects/*/databases/*/collectionGroups/*"
FIRESTORE_HTTP = {
    "CreateIndex": http_rules("post", f"/v1/{{parent={KIND_URI}}}/indexes", body="index"),
    "ListIndexes": http_rules("get", f"/v1/{{parent={KIND_URI}}}/indexes"),
    "GetIndex": http_rules("get", f"/v1/{{name={KIND_URI}/indexes/*}}"),
    "DeleteIndex": http_rules("delete", f"/v1/{{name={KIND_URI}/indexes/*}}"),
    "GetField": http_rules("get", f"/v1/{{name={KIND_URI}/fields/*}}"),
    "UpdateField": http_rules("patch", f"/v1/{{field.name={KIND_URI}/fields/*}}", body="field"),
    "ListFields": http_rules("get", f"/v1/{{parent={KIND_URI}}}/fields"),
    "ListDatabases": http_rules("get", "/v1/{parent=projects/*}/databases"),
}


OWN_PROTOS = {
    "trestle.backup.v1.WholeBackups": "backup/v1/whole_backups.proto",
    "trestle.insight.v1.Insight": "insight/v1/insight.proto",
    "trestle.replica.v1.Replication": "replica/v1/replica.proto",
}


def http_options(service, method):
    """The HTTP rules of Google's own client: dictionaries of method, uri and body."""
    if service == "google.longrunning.Operations":
        return OPERATIONS_HTTP.get(method, [])
    if service == "google.firestore.admin.v1.FirestoreAdmin":
        return FIRESTORE_HTTP[method]
    if service == "google.cloud.location.Locations":
        end = "/locations" if method == "ListLocations" else ""
        form = "projects/*" if end else "projects/*/locations/*"
        return [{"method": "get", "uri": f"/v2/{{name={form}}}{end}"}]
    if service in OWN_PROTOS:
        proto = (ROOT / "proto/trestle" / OWN_PROTOS[service]).read_text()
        rule = re.search(rf'rpc {method}\(.*?(get|post): "([^"]+)"', proto, re.DOTALL)
        return http_rules(rule[1], rule[2], **({"body": "*"} if rule[1] == "post" else {}))
    package, name = service.rsplit(".", 1)
    folder = package.removeprefix("google.").replace(".", "_")
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    module = importlib.import_module(f"google.cloud.{folder}.services.{snake}.transports.rest_base")
    transport = getattr(module, f"_Base{name}RestTransport")
    call = getattr(transport, f"_Base{method}", None)
    return call._get_http_options() if hasattr(call, "_get_http_options") else []


def path_of(uri, field, name):
    """The path with the name in its place, None if it does not fit."""
    uri = uri.replace("{index_id}", "1")
    variable = re.search(r"\{([\w.]+)(?:=([^}]+))?\}", uri)
    if variable is None or variable[1] != field:
        return None
    form = re.escape(variable[2] or "*").replace(r"\*\*", ".+").replace(r"\*", "[^/]+")
    return uri.replace(variable[0], name) if re.fullmatch(form, name) else None


class Rest:
    def __init__(self, secured):
        context = ssl.create_default_context(cafile=str(secured.authority.certificate))
        self.connection = http.client.HTTPSConnection(
            secured.server.host, timeout=PATIENCE_SECONDS, context=context
        )

    def close(self):
        self.connection.close()

    def ask(self, question, token):
        for option in http_options(question.service, question.method):
            path = path_of(option["uri"], question.field, question.name)
            if path is not None:
                return self.send(option["method"].upper(), path, "body" in option, token)
        return None

    def send(self, verb, path, has_body, token):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.connection.request(verb, path, "{}" if has_body else None, headers)
        answer = json.loads(self.connection.getresponse().read())
        element = answer[-1] if isinstance(answer, list) and answer else answer
        error = element.get("error") if isinstance(element, dict) else None
        return (error["status"], error["message"]) if error else ("OK", "")


@pytest.fixture(params=[Grpc, Rest])
def way(request):
    return request.param


# --- who may, and what is written down of it ---


class Audited:
    """Asks, and notes what the audit log must say."""

    def __init__(self, way, expected):
        self.way, self.expected = way, expected

    def ask(self, question, token, principal):
        answer = self.way.ask(question, token)
        if answer is None or is_unbuilt(answer):
            return None
        is_poll = question.method in POLLS and answer[0] == "OK"
        if question.service not in DATA and not is_poll:
            self.expected[
                principal, question.service, question.method, question.name, answer[0]
            ] += 1
        return answer


def is_unbuilt(answer):
    return answer[0] == "UNIMPLEMENTED" and "unknown method" in answer[1]


def audited(path):
    """What the audit log says, each line without times."""
    fields = ("principal", "service", "method", "resource", "status")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    calls = [line for line in lines if line["event"] == "call"]  # others: refused ones for data
    assert all(line["peer"].startswith("127.0.0.1:") for line in calls)
    assert all(line["duration_us"] >= 0 for line in calls)
    return collections.Counter(tuple(line[field] for field in fields) for line in calls)


def wait_until_equal(left, right):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left() != right and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left() == right


def check(audited_way, question, levels):
    """Without the permission: PERMISSION_DENIED that names it, also with the role below. With it:
    whatever the method says, but not that. False if the way does not lead there."""
    answer = audited_way.ask(question, "stranger", "user:stranger@example.com")
    if answer is None:
        return False
    if question.permissions == ["none"]:
        assert answer[0] != "PERMISSION_DENIED"
        return True
    missing = f"Access denied. Missing IAM permission: {question.permissions[0]}."
    assert answer == ("PERMISSION_DENIED", missing)
    needed = max(levels[permission] for permission in question.permissions)
    api = question.permissions[0].split(".")[0]
    place = "server-role" if question.name.startswith("servers/") else "role"
    for level, may in ((needed - 1, False), (needed, True)):
        if level < 0:
            continue
        role = f"{place}-{api}.{LEVELS[api][level]}"
        code, _ = audited_way.ask(question, role, ROLE_TOKENS[role])
        assert (code not in ("PERMISSION_DENIED", "UNAUTHENTICATED")) == may, (question, code)
    return True


def test_every_rpc(secure, tmp_path, way):
    log = tmp_path / "audit.log"
    secured = secure(
        "--audit-log", log, policy=ROLE_POLICY, tokens=ROLE_TOKENS
    )
    expected = collections.Counter()
    asked, levels = questions()
    with contextlib.closing(way(secured)) as opened:
        caller = Audited(opened, expected)
        answered = {each[:2] for each in asked if check(caller, each, levels)}
    missing = {each.method for each in asked} - {method for _, method in answered}
    assert missing <= UNBUILT | (WITHOUT_REST if way is Rest else set())
    wait_until_equal(lambda: audited(log), expected)


def test_some_fields_need_more(secure):
    """The end of a transaction that has only read is a Commit without mutations. Writers of the
    other API may do neither. A repair that takes rows from a backup is for those who restore."""
    secured = secure(policy=ROLE_POLICY, tokens=ROLE_TOKENS)
    written = b"\x42\x01p\x32\x00"  # project_id, and one mutation
    commit = "google.datastore.v1.Datastore/Commit"
    allowed = {
        (role, request)
        for role in ROLES
        for request in (b"\x42\x01p", written)
        if may(secured, role, commit, request)
    }
    assert allowed == {
        ("datastore.viewer", b"\x42\x01p"),
        *((f"datastore.{role}", b"\x42\x01p") for role in ("user", "owner")),
        *((f"datastore.{role}", written) for role in ("user", "owner")),
    }
    table = b"projects/p/instances/i/tables/t"
    repair = b"\x0a" + bytes([len(table)]) + table
    from_place = repair + b"\x22\x02/x"
    method = "trestle.insight.v1.Insight/RepairTable"
    assert [role for role in ROLES if may(secured, role, method, repair)] == [
        "bigtable.editor",
        "bigtable.admin",
    ]
    assert [role for role in ROLES if may(secured, role, method, from_place)] == ["bigtable.admin"]


def may(secured, role, method, request):
    with grpc.secure_channel(secured.server.host, secured.credentials(f"role-{role}")) as channel:
        try:
            channel.unary_unary(f"/{method}")(request, timeout=PATIENCE_SECONDS)
        except grpc.RpcError as error:
            # What the server's places are is no matter of who may do what.
            is_place = "--backup-places" in error.details()
            return is_place or error.code() != grpc.StatusCode.PERMISSION_DENIED
        return True


def bad_tokens(directory):
    """Tokens for the administrator that are not good, and the set of keys that says so."""
    now = int(time.time())
    key, other = Key(directory, "ES256", "es256"), Key(directory, "RS256", "rs256")
    (directory / "stranger").mkdir()
    stranger = Key(directory / "stranger", "ES256", "es256")
    jwks = write_jwks(directory / "jwks.json", key, other)
    admin = {"email": "ops@example.com"}
    head, claims, _ = key.sign(**admin).split(".")
    return jwks, key.sign(**admin), {
        "none": None,
        "unknown": "nobody's",
        "withdrawn by its date": "late",
        "expired": key.sign(**admin, exp=now - 61),
        "not valid yet": key.sign(**admin, nbf=now + 300),
        "wrongly signed": stranger.sign(**admin),
        "signed by another key": other.sign({"kid": "es256"}, **admin),
        "for another audience": key.sign(**admin, aud="https://elsewhere.example"),
        "of another issuer": key.sign(**admin, iss="https://elsewhere.example"),
        "of an unknown key": key.sign({"kid": "unheard-of"}, **admin),
        "not signed": f"{head}.{claims}.",
        "alg none": key.sign({"alg": "none"}, **admin),
        "a shared secret": key.sign({"alg": "HS256"}, **admin),
    }  # fmt: skip


def test_every_rpc_wants_a_good_token(secure, tmp_path, way):
    """The audit log has a line for each of these, too, though it cannot say who it was."""
    jwks, good, bad = bad_tokens(tmp_path)
    log = tmp_path / "audit.log"
    secured = secure(
        "--audit-log", log, "--audit-refusals", 1_000_000,
        "--auth-jwks", jwks, "--auth-audience", AUDIENCE, "--auth-issuer", ISSUER,
    )  # fmt: skip
    expected = collections.Counter()
    with contextlib.closing(way(secured)) as opened:
        caller = Audited(opened, expected)
        for question in {each[:2]: each for each in questions()[0]}.values():
            for what, token in bad.items():
                answer = caller.ask(question, token, "-")
                if answer is None:
                    break
                if token or question.permissions != ["none"]:  # which nobody at all has, too
                    assert answer[0] == "UNAUTHENTICATED", (question, what, answer)
            else:
                answer = caller.ask(question, good, "user:ops@example.com")
                assert answer[0] not in ("UNAUTHENTICATED", "PERMISSION_DENIED")
    wait_until_equal(lambda: audited(log), expected)
