"""moto's services of AWS as a process, for its clients: DynamoDB (dynamodb.py), buckets of S3."""

import os
import subprocess
import sys
from pathlib import Path

import boto3
from botocore.config import Config

REGION = "us-east-1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKTEST", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": REGION,
}  # fmt: skip
PATIENT = Config(read_timeout=300)  # moto is slow with large tables


class Moto:
    """`authority`: of harness/certificates.py, by whose certificate it speaks TLS."""

    def __init__(self, log, authority=None):
        tls = authority.issue("moto", "/CN=moto") if authority else ()
        script = Path(__file__).with_name("moto_server.py")
        with open(log, "wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, script, *tls], stdout=subprocess.PIPE, stderr=stderr, text=True
            )
        scheme = "https" if authority else "http"
        self.url = f"{scheme}://127.0.0.1:{int(self.process.stdout.readline())}"
        self.verify = str(authority.certificate) if authority else None

    def client_of(self, service):
        return boto3.client(
            service, endpoint_url=self.url, region_name=REGION, config=PATIENT,
            aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], verify=self.verify,
        )  # fmt: skip

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def environment(self):
        """Of a process that is this one's client."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {**kept, **ENVIRONMENT}
