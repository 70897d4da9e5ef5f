"""Removing old whole backups removed the files of good ones, and said that all was well, when what
stood before a bucket answered in its place.

A second breaker found it: any answer of 200 was taken for a listing, a proxy's page, nothing at
all, a body that was cut. What it did not show was taken to be gone, manifests first of all."""

import re

import pytest
from harness.aws_services import ENVIRONMENT, Moto
from harness.lying_proxy import LyingProxy
from harness.server import EXTERNAL, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
PLACE = "s3://backups/of/this"
MADE = 3


@pytest.fixture
def moto(tmp_path):
    moto = Moto(tmp_path / "moto.log")
    moto.client_of("s3").create_bucket(Bucket="backups")
    yield moto
    moto.close()


@pytest.fixture
def proxy(moto):
    proxy = LyingProxy(moto.url)
    yield proxy
    proxy.close()


@pytest.fixture
def backup(proxy):
    def run(*arguments, code=0):
        env = {**ENVIRONMENT, "AWS_ENDPOINT_URL_S3": proxy.url}
        done = run_trestle("backup", *arguments, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture
def made(backup, fresh_server, connect):
    """Backups of a server to which something was added between each two."""
    server = fresh_server()
    for i in range(MADE):
        if i > 0:
            server.start()
        connect(server.host).create_table(f"t{i}")
        server.stop()
        backup("create", PLACE, "--data-dir", server.data)
    assert backup("verify", PLACE).count(": whole") == MADE


def cut_behind_the_first(body):
    end = b"</Contents>"
    return body[: body.find(end) + len(end)] if end in body else body


def without(pattern):
    return lambda body: re.sub(pattern, b"", body, flags=re.DOTALL)


ALTERED = {
    "nothing": lambda body: b"",
    "a page": lambda body: b"<html><body>maintenance</body></html>",
    "the first alone": cut_behind_the_first,
    "half": lambda body: body[: len(body) // 2],
    "no end": without(rb"</ListBucketResult>"),
    "no word of whether it goes on": without(rb"<IsTruncated>.*</IsTruncated>"),
    "no manifest, in a whole listing": without(rb"<Contents>.*</Contents>"),
}


@pytest.mark.parametrize("how", ALTERED)
def test_what_is_no_listing_removes_nothing(proxy, backup, made, how):
    def alter(method, path, body):
        is_listing = method == "GET" and "list-type" in path and "backups%2F" in path
        return ALTERED[how](body) if is_listing else body

    proxy.alter = alter
    said = backup("expire", PLACE, "--keep", "1", code=1)
    assert " removed" not in said or "none is removed" in said
    proxy.alter = None
    assert backup("verify", PLACE).count(": whole") == MADE
    assert f"{MADE - 1} backups and " in backup("expire", PLACE, "--keep", "1")
    assert backup("verify", PLACE).count(": whole") == 1


def test_one_that_is_left_out_is_told_by_the_second_listing(proxy, backup, made):
    """A whole listing that leaves out a good backup, once."""
    lies = iter([without(rb"<Contents>(?:(?!</Contents>).)*</Contents>(?=.*<Contents>)")])

    def alter(method, path, body):
        is_listing = method == "GET" and "list-type" in path and "backups%2F" in path
        if is_listing and b"<Contents>" in body:
            listings.append(path)
            if len(listings) == 2:  # the first one is the lock's look
                return next(lies)(body)
        return body

    listings = []
    proxy.alter = alter
    said = backup("expire", PLACE, "--keep", "2", code=1)
    assert "showed a moment ago" in said
    proxy.alter = None
    assert backup("verify", PLACE).count(": whole") == MADE
