"""Certificates for tests of TLS, made anew by each with the program `openssl`."""

import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """Signs certificates; `certificate` is the PEM file of its own."""

    def __init__(self, directory, name="authority"):
        self.directory = directory
        self.certificate, self.key = directory / f"{name}.pem", directory / f"{name}-key.pem"
        openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.certificate,
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",  # Python 3.13 insists on it
        )  # fmt: skip

    def issue(self, name, subject, days=2):
        """(certificate, key): PEM files for this subject, good for localhost, too."""
        certificate, key = self.directory / f"{name}.pem", self.directory / f"{name}-key.pem"
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", subject, "-keyout", key, "-out", request,
        )  # fmt: skip
        openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
            "-days", days, "-extfile", extensions, "-out", certificate,
        )  # fmt: skip
        return certificate, key
