"""Bearer tokens of both kinds, and the files by which a server knows them."""

import base64
import hashlib
import json
import subprocess
import time

ISSUER, AUDIENCE = "https://issuer.example", "https://bigtable.example"
KEY_KINDS = {
    "RS256": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    "ES256": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "EdDSA": ["ED25519"],
}


def token_line(token, principal, expiry=""):
    return f"{hashlib.sha256(token.encode()).hexdigest()} {principal} {expiry}\n"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments, data=b""):
    command = ["openssl", *map(str, arguments)]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


class Key:
    """A private key that signs tokens, with what a server must know of it: `jwk`."""

    def __init__(self, directory, algorithm, name):
        self.algorithm, self.name = algorithm, name
        self.path = directory / f"{name}.pem"
        kind, *options = KEY_KINDS[algorithm]
        openssl("genpkey", "-algorithm", kind, *options, "-out", self.path)
        self.jwk = {"kid": name, "use": "sig", "alg": algorithm, **self.public_members()}

    def public_members(self):
        if self.algorithm == "RS256":
            text = openssl("rsa", "-in", self.path, "-noout", "-modulus").decode()
            modulus = bytes.fromhex(text.strip().removeprefix("Modulus="))
            return {"kty": "RSA", "n": encode(modulus), "e": "AQAB"}
        der = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if self.algorithm == "EdDSA":
            return {"kty": "OKP", "crv": "Ed25519", "x": encode(der[-32:])}
        return {"kty": "EC", "crv": "P-256", "x": encode(der[-64:-32]), "y": encode(der[-32:])}

    def signature(self, text):
        if self.algorithm == "EdDSA":
            message = self.path.with_suffix(".msg")  # openssl wants a file of a known size here
            message.write_bytes(text)
            return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", message)
        signed = openssl("dgst", "-sha256", "-sign", self.path, data=text)
        return signed if self.algorithm == "RS256" else raw_of(signed)

    def sign(self, header=(), **claims):
        """A token for alice@example.com, good for an hour; what is given replaces that. A claim of
        None is left out."""
        claims = {
            "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3600,
            "email": "alice@example.com", **claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.name, "typ": "JWT", **dict(header)}
        text = ".".join(encode(json.dumps(part).encode()) for part in (header, claims))
        return f"{text}.{encode(self.signature(text.encode()))}"


def raw_of(signature):
    """The two numbers of an ECDSA signature, each 32 bytes, out of its ASN.1."""
    r_size = signature[3]
    r = signature[4 : 4 + r_size]
    s = signature[6 + r_size :]
    return b"".join(number.lstrip(b"\0").rjust(32, b"\0") for number in (r, s))


def write_jwks(path, *keys):
    path.write_text(json.dumps({"keys": [key.jwk for key in keys]}))
    return path
