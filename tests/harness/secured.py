"""A server with access control, over TLS, as it would be off loopback."""

import json

import grpc
from harness.certificates import Authority
from harness.rpc import INSTANCE, Rpc
from harness.tokens import Key, token_line, write_jwks

TABLE = f"{INSTANCE}/tables/t"
OTHER_TABLE = f"{INSTANCE}/tables/other"
ADMIN = "user:ops@example.com"
POLICY = {
    "*": {"bindings": [{"role": "roles/owner", "members": [ADMIN]}]},
    "projects/p": {"bindings": [
        {"role": "roles/bigtable.reader", "members": ["user:reader@example.com"]},
        {"role": "roles/bigtable.viewer", "members": ["user:viewer@example.com"]},
    ]},
    TABLE: {"bindings": [
        {"role": "roles/bigtable.user",
         "members": ["user:alice@example.com", "cert:CN=alice,O=Example"]},
    ]},
}  # fmt: skip
TOKENS = {
    "admin": ADMIN,
    "alice": "user:alice@example.com",
    "reader": "user:reader@example.com",
    "viewer": "user:viewer@example.com",
    "stranger": "user:stranger@example.com",
}


MOVER = "mover@p.iam.gserviceaccount.com"


def account_key(secure, directory, name="account.json"):
    """A server that believes a service account's key, started by the fixture `secure`. The file of
    that name in the directory is as Google hands it out; the key is `key1` there."""
    key = Key(directory, "RS256", "key1")
    (directory / name).write_text(json.dumps({
        "type": "service_account", "client_email": MOVER, "private_key_id": key.name,
        "private_key": key.path.read_text(),
    }))  # fmt: skip
    owners = [ADMIN, f"serviceAccount:{MOVER}"]
    return secure(
        "--auth-jwks", write_jwks(directory / "jwks.json", key),
        "--auth-audience", "https://localhost/", "--auth-issuer", MOVER,
        policy={"*": {"bindings": [{"role": "roles/owner", "members": owners}]}},
    )  # fmt: skip


class Secured:
    """`rpc(token)` are the stubs of a caller, `credentials(token)` his to use elsewhere."""

    def __init__(self, directory, start, *arguments, policy=POLICY, tokens=()):
        self.directory = directory
        self.authority = Authority(directory)
        self.token_file, self.policy_file = directory / "tokens", directory / "policy.json"
        self.token_file.write_text(
            "# tokens of this test\n\n"
            + "".join(token_line(token, who) for token, who in {**TOKENS, **dict(tokens)}.items())
            + token_line("late", ADMIN, "2020-01-01T00:00:00Z")
            + token_line("early", ADMIN, "2120-01-01T00:00:00Z")
        )
        self.write_policy(policy)
        cert, key = self.authority.issue("server", "/CN=localhost")
        self.server = start(
            "--tls-cert", cert, "--tls-key", key, "--auth", "on",
            "--auth-tokens", self.token_file, "--auth-policy", self.policy_file, *arguments,
        )  # fmt: skip
        self.opened = []

    def write_policy(self, policy):
        self.policy_file.write_text(json.dumps(policy))

    def credentials(self, token=None, identity=None):
        certificate, key = identity or (None, None)
        channel = grpc.ssl_channel_credentials(
            self.authority.certificate.read_bytes(),
            key and key.read_bytes(),
            certificate and certificate.read_bytes(),
        )
        if token is None:
            return channel
        call = grpc.access_token_call_credentials(token)
        return grpc.composite_channel_credentials(channel, call)

    def rpc(self, token=None, identity=None):
        self.opened.append(Rpc(self.server.host, self.credentials(token, identity)))
        return self.opened[-1]

    def close(self):
        for each in self.opened:
            each.close()
