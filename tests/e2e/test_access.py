"""Access control: who calls, and what policies let him do. Everything goes over TLS, as it would
off loopback. test_access_rpcs.py goes over all RPCs."""

import json
import re
import signal
import stat
import time

import grpc
import pytest
from google.cloud.bigtable_admin_v2.types import bigtable_table_admin as table_admin
from google.cloud.bigtable_v2 import BigtableClient
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport
from google.cloud.bigtable_v2.types import bigtable as data_types
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.type import expr_pb2
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness.certificates import Authority
from harness.patience import PATIENCE_SECONDS
from harness.rpc import CHANNEL_OPTIONS, INSTANCE, fails_with, set_cell
from harness.secured import ADMIN, OTHER_TABLE, POLICY, TABLE
from harness.server import run_trestle
from harness.tokens import AUDIENCE, ISSUER, Key, token_line, write_jwks


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    return {name: Key(directory, name, name.lower()) for name in ("RS256", "ES256", "EdDSA")}


@pytest.fixture
def signed(secure, keys, tmp_path):
    """A server that knows three keys for signed tokens."""
    jwks = write_jwks(tmp_path / "jwks.json", *keys.values())
    secured = secure(
        "--auth-jwks", jwks, "--auth-audience", AUDIENCE, "--auth-issuer", ISSUER
    )
    secured.rpc("admin").create_table("t")
    return secured


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- tokens ---


def test_static_tokens(secure):
    secured = secure()
    assert secured.rpc("admin").create_table("t") == TABLE
    alice = secured.rpc("alice")
    alice.mutate(TABLE, b"k", set_cell("f", b"q", b"v", 1000))
    assert alice.read_row(TABLE, b"k")[0].value == b"v"
    assert secured.rpc("early").read(TABLE)
    with fails_with(StatusCode.UNAUTHENTICATED, "the token has expired"):
        secured.rpc("late").read(TABLE)
    with fails_with(StatusCode.UNAUTHENTICATED, "Request had invalid authentication credentials"):
        secured.rpc("nobody's").read(TABLE)
    with fails_with(StatusCode.UNAUTHENTICATED, "missing required authentication credential"):
        secured.rpc().read(TABLE)


def test_the_error_says_what_is_missing(secure):
    secured = secure()
    secured.rpc("admin").create_table("t")
    with fails_with(
        StatusCode.PERMISSION_DENIED,
        "Access denied. Missing IAM permission: bigtable.tables.mutateRows.",
    ):
        secured.rpc("reader").mutate(TABLE, b"k", set_cell("f", b"q", b"v"))


def test_policies_are_inherited(secure):
    """A policy holds for what lies in its resource, and for nothing beside it."""
    secured = secure()
    admin = secured.rpc("admin")
    admin.create_table("t")
    admin.create_table("other")
    for token, table, may_read in (
        ("alice", TABLE, True), ("alice", OTHER_TABLE, False), ("reader", TABLE, True),
        ("reader", OTHER_TABLE, True), ("viewer", TABLE, False), ("stranger", TABLE, False),
        ("reader", "projects/pp/instances/i/tables/t", False),
    ):  # fmt: skip
        if may_read:
            assert secured.rpc(token).read(table) == []
        else:
            with fails_with(StatusCode.PERMISSION_DENIED):
                secured.rpc(token).read(table)


def test_a_view_for_who_may_not_see_the_table(secure):
    """A policy of the view grants what is in it; one of the table grants its views, too."""
    view = f"{TABLE}/authorizedViews/v"
    role = {"role": "roles/bigtable.user", "members": ["user:stranger@example.com"]}
    secured = secure(policy={**POLICY, view: {"bindings": [role]}})
    admin, stranger = secured.rpc("admin"), secured.rpc("stranger")
    admin.create_table("t", ["f", "g"])
    columns = {"f": {"qualifier_prefixes": [b""]}}
    admin.admin.create_authorized_view(
        table_admin.CreateAuthorizedViewRequest(
            parent=TABLE,
            authorized_view_id="v",
            authorized_view={"subset_view": {"row_prefixes": [b"a"], "family_subsets": columns}},
        )
    )
    stranger.mutate(view, b"a", set_cell("f", b"q", b"v"))
    for reader in (stranger, secured.rpc("alice"), secured.rpc("reader")):
        assert [key for key, _ in reader.read(view)] == [b"a"]
    assert stranger.sample_row_keys(view)
    outside = "outside the Authorized View"
    for key, family in ((b"b", "f"), (b"a", "g")):
        with fails_with(StatusCode.PERMISSION_DENIED, outside):
            stranger.mutate(view, key, set_cell(family, b"q", b"v"))
    with fails_with(StatusCode.PERMISSION_DENIED, "bigtable.tables.readRows"):
        stranger.read(TABLE)
    with fails_with(StatusCode.PERMISSION_DENIED, "bigtable.tables.mutateRows"):
        stranger.mutate(TABLE, b"a", set_cell("f", b"q", b"v"))
    with fails_with(StatusCode.PERMISSION_DENIED, "bigtable.authorizedViews.mutateRows"):
        secured.rpc("reader").mutate(view, b"a", set_cell("f", b"q", b"v"))
    with fails_with(StatusCode.PERMISSION_DENIED, "bigtable.authorizedViews.readRows"):
        secured.rpc("viewer").read(view)


def test_several_tokens_on_one_connection(secure):
    """What was found out about one caller is not taken for another."""
    secured = secure()
    secured.rpc("admin").create_table("t")
    rpc = secured.rpc()
    request = data_types.MutateRowRequest(
        table_name=TABLE, row_key=b"k", mutations=[set_cell("f", b"q", b"v", 1000)]
    )
    for token, code in [("alice", None), ("reader", StatusCode.PERMISSION_DENIED),
                        ("bad", StatusCode.UNAUTHENTICATED), ("alice", None),
                        (None, StatusCode.UNAUTHENTICATED), ("alice", None)] * 3:  # fmt: skip
        metadata = [("authorization", f"Bearer {token}")] if token else []
        if code is None:
            rpc.data.mutate_row(request, metadata=metadata)
        else:
            with fails_with(code):
                rpc.data.mutate_row(request, metadata=metadata)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_signed_tokens(signed, keys, algorithm):
    assert signed.rpc(keys[algorithm].sign()).read(TABLE) == []
    with fails_with(StatusCode.PERMISSION_DENIED):
        signed.rpc(keys[algorithm].sign(email="stranger@example.com")).read(TABLE)


def test_refused_signed_tokens(signed, keys, tmp_path):
    now = int(time.time())
    rsa, other = keys["RS256"], Key(tmp_path, "ES256", "es256")
    head, claims, signature = rsa.sign().split(".")
    stranger = rsa.sign(email="ops@example.com").split(".")[1]
    for token, why in (
        (rsa.sign(exp=now - 61), "expired"),
        (rsa.sign(exp=None), "no expiry"),
        (rsa.sign(exp="soon"), "no expiry"),
        (rsa.sign(nbf=now + 120), "not valid yet"),
        (rsa.sign(aud="https://elsewhere.example"), "another audience"),
        (rsa.sign(aud=[]), "another audience"),
        (rsa.sign(iss="https://elsewhere.example"), "another issuer"),
        (rsa.sign(email="a@example.com", email_verified=False), "not verified"),
        (rsa.sign(email=None), "whose it is"),
        (rsa.sign(email="a b"), "whose it is"),
        (other.sign(), "signature is wrong"),
        (rsa.sign({"kid": "unheard-of"}), "unknown key"),
        (rsa.sign({"alg": "none"}), "signature is wrong"),
        (rsa.sign({"alg": "HS256"}), "signature is wrong"),
        (rsa.sign({"crit": ["b64"]}), "not known"),
        (f"{head}.{stranger}.{signature}", "signature is wrong"),
        (f"{head}.{claims}.", "signature is wrong"),
        (f"{head}.{claims}", "not known"),
    ):
        with fails_with(StatusCode.UNAUTHENTICATED, why):
            signed.rpc(token).read(TABLE)
    for token in (
        rsa.sign(exp=now - 30),  # clocks may differ by a minute
        rsa.sign(nbf=now + 30),
        rsa.sign(aud=["https://elsewhere.example", AUDIENCE]),
        rsa.sign(email=None, sub="alice@example.com"),
    ):
        assert signed.rpc(token).read(TABLE) == []


def test_a_token_expires_on_a_connection(signed, keys):
    """What was good before is refused once its time is over."""
    rpc = signed.rpc(keys["ES256"].sign(exp=int(time.time()) - 57))
    assert may_read(rpc)
    wait_until(lambda: not may_read(rpc, StatusCode.UNAUTHENTICATED))


# --- certificates ---


def test_the_subject_of_a_certificate(secure, tmp_path):
    """It counts where there is no token."""
    authority = Authority(tmp_path, "clients")
    secured = secure("--tls-client-ca", authority.certificate, "--tls-client-certs", "optional")
    secured.rpc("admin").create_table("t")
    alice = authority.issue("alice", "/O=Example/CN=alice")
    bob = authority.issue("bob", "/O=Example/CN=bob")
    assert secured.rpc(identity=alice).read(TABLE) == []
    with fails_with(StatusCode.PERMISSION_DENIED):
        secured.rpc(identity=bob).read(TABLE)
    with fails_with(StatusCode.PERMISSION_DENIED):
        secured.rpc("viewer", identity=alice).read(TABLE)
    with fails_with(StatusCode.UNAUTHENTICATED):
        secured.rpc("nobody's", identity=alice).read(TABLE)
    with fails_with(StatusCode.UNAUTHENTICATED):
        secured.rpc().read(TABLE)


# --- files that change ---


def may_read(rpc, refusal=StatusCode.PERMISSION_DENIED):
    try:
        return rpc.read(TABLE) == []
    except grpc.RpcError as error:
        assert error.code() == refusal
        return False


def check_withdrawal_beside_a_broken_file(secured):
    """The file of policies does not parse; a token that is withdrawn meanwhile is no good, and that
    the policies still count is told until they are read."""
    log, reader = secured.server.stderr, secured.rpc("reader")
    assert may_read(reader)
    secured.policy_file.write_text("{")
    wait_until(lambda: "cannot read files again" in log())
    lines = secured.token_file.read_text().splitlines(True)
    secured.token_file.write_text("".join(line for line in lines if "user:reader" not in line))
    wait_until(lambda: not may_read(reader, StatusCode.UNAUTHENTICATED))
    assert re.search(r"cannot read files again.*policy\.json.*REMOVE token=user:reader", log())
    assert re.search(r"degraded reason=access_unread why=.*still counts: .*policy\.json", log())
    assert "no longer so" not in log()


def test_changed_files(secure):
    """Tokens and policies, without a restart; what was in a broken file goes on to count."""
    secured = secure()
    secured.rpc("admin").create_table("t")
    alice, stranger = secured.rpc("alice"), secured.rpc("stranger")
    assert may_read(alice)
    assert not may_read(stranger)

    check_withdrawal_beside_a_broken_file(secured)
    assert may_read(alice)

    binding = {"role": "roles/bigtable.reader", "members": ["user:stranger@example.com"]}
    secured.write_policy({**POLICY, TABLE: {"bindings": [binding]}})
    wait_until(lambda: may_read(stranger))
    assert not may_read(alice)
    wait_until(lambda: re.search("no longer so.*reason=access_unread", secured.server.stderr()))

    lines = secured.token_file.read_text().splitlines(True)
    secured.token_file.write_text("".join(line for line in lines if "stranger" not in line))
    secured.server.signal(signal.SIGHUP)
    wait_until(lambda: not may_read(stranger, StatusCode.UNAUTHENTICATED))


def test_an_exchange_of_keys(signed, keys, tmp_path):
    """A key is good from when it is in the file until it is not, also for tokens that were good."""
    jwks = tmp_path / "jwks.json"
    (tmp_path / "fresh").mkdir()
    fresh = Key(tmp_path / "fresh", "ES256", "fresh")
    old = signed.rpc(keys["ES256"].sign())
    new = signed.rpc(fresh.sign())
    assert may_read(old)
    assert not may_read(new, StatusCode.UNAUTHENTICATED)
    write_jwks(jwks, keys["ES256"], fresh)
    wait_until(lambda: may_read(new, StatusCode.UNAUTHENTICATED))
    assert may_read(old)
    write_jwks(jwks, fresh)
    signed.server.signal(signal.SIGHUP)
    wait_until(lambda: not may_read(old, StatusCode.UNAUTHENTICATED))
    assert may_read(new)


def test_a_token_file_that_others_may_write(secure, tmp_path):
    token_file = tmp_path / "open-tokens"
    token_file.write_text(token_line("t", ADMIN))
    token_file.chmod(0o622)
    done = run_trestle(
        "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "d", "--auth", "on",
        "--auth-tokens", token_file,
    )  # fmt: skip
    assert done.returncode == 1
    assert "may change it" in done.stderr


# --- the first administrator ---


def test_the_first_administrator(fresh_server, connect):
    server = fresh_server("--auth", "on")
    path = server.data / "admin-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text().strip()
    assert token not in server.stderr()
    assert str(path) in server.stderr()
    metadata = [("authorization", f"Bearer {token}")]
    rpc = connect(server.host)
    request = table_admin.ListTablesRequest(parent=INSTANCE)
    with fails_with(StatusCode.UNAUTHENTICATED):
        rpc.admin.list_tables(request)
    assert not rpc.admin.list_tables(request, metadata=metadata).tables
    server.restart()
    assert path.read_text().strip() == token
    rpc = connect(server.host)
    assert not rpc.admin.list_tables(request, metadata=metadata).tables
    assert server.stderr().count("made a token") == 1


def test_no_token_where_an_administrator_is_known(secure):
    assert not (secure().server.data / "admin-token").exists()


def test_trestle_token(secure, tmp_path):
    made = run_trestle("token", "--principal", ADMIN, "--expires", "1h", "--file", tmp_path / "new")
    assert made.returncode == 0
    token = made.stdout.strip()
    assert token not in (tmp_path / "new").read_text()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    secured = secure()
    with secured.token_file.open("a") as file:
        file.write((tmp_path / "new").read_text())
    secured.server.signal(signal.SIGHUP)

    def is_known():
        try:
            return bool(secured.rpc(token).create_table("t"))
        except grpc.RpcError as error:
            assert error.code() == StatusCode.UNAUTHENTICATED
            return False

    wait_until(is_known)
    refused = run_trestle("token", "--principal", "alice")
    assert refused.returncode == 2
    assert "user:" in refused.stderr


# --- what is open ---


def test_health_is_everybodys(secure):
    secured = secure()
    with grpc.secure_channel(secured.server.host, secured.credentials()) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_SECONDS).status == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--auth", "on"],
        ["--tls-cert", "cert", "--tls-key", "key"],
    ],
)
def test_off_loopback(tmp_path, arguments):
    done = run_trestle(
        "serve", "--listen", "0.0.0.0:0", "--data-dir", tmp_path / "d", *arguments
    )
    assert done.returncode == 2
    assert "give tls-cert, tls-key and auth=on, or say insecure" in done.stderr


# --- audit ---


def test_the_audit_log(secure, tmp_path):
    log = tmp_path / "audit.log"
    secured = secure("--audit-log", log, "--log-format", "json", "--log-level", "error")
    secured.rpc("admin").create_table("t")
    with fails_with(StatusCode.PERMISSION_DENIED):
        secured.rpc("viewer").create_table("u")
    with fails_with(StatusCode.UNAUTHENTICATED):
        secured.rpc("nobody's").create_table("v")
    assert secured.rpc("alice").read(TABLE) == []  # data is not audited

    def lines():
        return [json.loads(line) for line in log.read_text().splitlines()]

    wait_until(lambda: len(lines()) >= 3)
    created, denied, unknown = sorted(lines(), key=lambda line: line["time"])
    assert created["principal"] == ADMIN
    assert created["service"] == "google.bigtable.admin.v2.BigtableTableAdmin"
    assert created["method"] == "CreateTable"
    assert created["resource"] == TABLE
    assert created["status"] == "OK"
    assert "reason" not in created
    assert created["duration_us"] > 0
    assert created["peer"].startswith("127.0.0.1:")
    assert denied["principal"] == "user:viewer@example.com"
    assert denied["status"] == "PERMISSION_DENIED"
    assert (unknown["principal"], unknown["status"]) == ("-", "UNAUTHENTICATED")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600

    log.rename(tmp_path / "audit.1")
    secured.server.signal(signal.SIGHUP)
    wait_until(log.exists)
    secured.rpc("admin").create_table("w")
    wait_until(lambda: [line["event"] for line in lines()] == ["reload", "call"])


# --- Google's client ---


def test_googles_client(secure):
    """As docs/operating/security.md shows it."""
    secured = secure()
    secured.rpc("admin").create_table("t")
    channel = grpc.secure_channel(
        secured.server.host, secured.credentials("alice"), CHANNEL_OPTIONS
    )
    client = BigtableClient(transport=BigtableGrpcTransport(channel=channel))
    client.mutate_row(
        table_name=TABLE, row_key=b"k", mutations=[set_cell("f", b"q", b"v", 1000)]
    )
    (response,) = client.read_rows(table_name=TABLE)
    assert response.chunks[0].value == b"v"
    channel.close()


# --- policies that clients set ---


def instance_stub(secured, token):
    channel = grpc.secure_channel(secured.server.host, secured.credentials(token), CHANNEL_OPTIONS)
    secured.opened.append(channel)
    return {
        name: channel.unary_unary(
            f"/google.bigtable.admin.v2.BigtableTableAdmin/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=kind.FromString,
        )
        for name, kind in (
            ("SetIamPolicy", policy_pb2.Policy),
            ("GetIamPolicy", policy_pb2.Policy),
            ("TestIamPermissions", iam_policy_pb2.TestIamPermissionsResponse),
        )
    }


def set_policy(stub, resource, role, *members, **fields):
    binding = policy_pb2.Binding(role=role, members=members, **fields)
    policy = policy_pb2.Policy(version=3, bindings=[binding])
    request = iam_policy_pb2.SetIamPolicyRequest(resource=resource, policy=policy)
    return stub["SetIamPolicy"](request, timeout=PATIENCE_SECONDS)


def test_a_policy_of_a_table(secure):
    """It counts for the next call, after a restart, and no longer than its table."""
    secured = secure()
    admin, stranger = secured.rpc("admin"), secured.rpc("stranger")
    admin.create_table("other")
    stub = instance_stub(secured, "admin")
    asked = ["bigtable.tables.readRows", "bigtable.tables.mutateRows", "bigtable.no.such"]
    test = iam_policy_pb2.TestIamPermissionsRequest(resource=OTHER_TABLE, permissions=asked)
    assert not instance_stub(secured, "stranger")["TestIamPermissions"](test).permissions
    with fails_with(StatusCode.PERMISSION_DENIED):
        stranger.read(OTHER_TABLE)
    set_policy(stub, OTHER_TABLE, "roles/bigtable.reader", "user:stranger@example.com")
    assert stranger.read(OTHER_TABLE) == []
    granted = instance_stub(secured, "stranger")["TestIamPermissions"](test).permissions
    assert granted == asked[:1]
    assert instance_stub(secured, "admin")["TestIamPermissions"](test).permissions == asked[:2]
    with fails_with(StatusCode.PERMISSION_DENIED):
        set_policy(
            instance_stub(secured, "stranger"),
            OTHER_TABLE,
            "roles/owner",
            "user:stranger@example.com",
        )

    secured.close()
    secured.opened.clear()
    secured.server.restart()
    assert secured.rpc("stranger").read(OTHER_TABLE) == []
    secured.rpc("admin").delete_table(OTHER_TABLE)
    secured.rpc("admin").create_table("other")
    with fails_with(StatusCode.PERMISSION_DENIED):
        secured.rpc("stranger").read(OTHER_TABLE)


def test_policies_that_cannot_be_enforced(secure):
    secured = secure()
    secured.rpc("admin").create_table("other")
    stub = instance_stub(secured, "admin")
    with fails_with(StatusCode.INVALID_ARGUMENT, "Role roles/no.such is not supported"):
        set_policy(stub, OTHER_TABLE, "roles/no.such", "user:a@example.com")
    with fails_with(StatusCode.INVALID_ARGUMENT, "group:all@example.com is of an unknown type"):
        set_policy(stub, OTHER_TABLE, "roles/bigtable.user", "group:all@example.com")
    condition = expr_pb2.Expr(expression="request.time < timestamp('2030-01-01T00:00:00Z')")
    with fails_with(StatusCode.UNIMPLEMENTED, "Conditions in bindings are not supported"):
        set_policy(
            stub, OTHER_TABLE, "roles/bigtable.user", "user:a@example.com", condition=condition
        )


# --- calls that run ---

SCAN_ROWS, SCAN_VALUE = 80, bytes(512 << 10)  # more than waits on the way to a client


@pytest.fixture
def scanned(signed):
    """A server with a table that takes a while to read, which nobody but the admin may."""
    admin = signed.rpc("admin")
    admin.create_table("other")
    for number in range(SCAN_ROWS):
        admin.mutate(OTHER_TABLE, b"%03d" % number, set_cell("f", b"q", SCAN_VALUE, 1000))
    return signed


def begin_scan(rpc):
    """A scan of which the first message has come."""
    stream = rpc.read_stream(OTHER_TABLE)
    assert next(stream).chunks
    return stream


def refusal_of(rpc):
    """Of a read that the caller may not do, known or not."""
    with pytest.raises(grpc.RpcError) as error:
        rpc.read(TABLE)
    return error.value.code()


def let_read(secured, *members):
    set_policy(instance_stub(secured, "admin"), OTHER_TABLE, "roles/bigtable.reader", *members)


def test_a_scan_ends_with_the_policy_that_allowed_it(scanned):
    let_read(scanned, "user:alice@example.com", "user:stranger@example.com")
    ending, going_on = (begin_scan(scanned.rpc(token)) for token in ("stranger", "alice"))
    let_read(scanned, "user:alice@example.com")
    with fails_with(StatusCode.PERMISSION_DENIED, "bigtable.tables.readRows"):
        list(ending)
    assert sum(chunk.commit_row for message in going_on for chunk in message.chunks) > SCAN_ROWS / 2


def test_a_scan_ends_with_the_token_that_was_withdrawn(scanned):
    let_read(scanned, "user:stranger@example.com")
    stream = begin_scan(scanned.rpc("stranger"))
    lines = scanned.token_file.read_text().splitlines(True)
    scanned.token_file.write_text("".join(line for line in lines if "stranger" not in line))
    scanned.server.signal(signal.SIGHUP)
    wait_until(lambda: refusal_of(scanned.rpc("stranger")) == StatusCode.UNAUTHENTICATED)
    with fails_with(StatusCode.UNAUTHENTICATED, "the token is not known"):
        list(stream)


def test_a_scan_ends_when_its_token_expires(scanned, keys):
    let_read(scanned, "user:alice@example.com")
    rpc = scanned.rpc(keys["ES256"].sign(exp=int(time.time()) - 55))
    stream = begin_scan(rpc)
    wait_until(lambda: not may_read(rpc, StatusCode.UNAUTHENTICATED))
    with fails_with(StatusCode.UNAUTHENTICATED, "expired"):
        list(stream)
