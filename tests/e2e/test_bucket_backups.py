"""Whole backups in a bucket: moto's, by whose word S3 is imitated."""

import hashlib
import os
import re

import pytest
from grpc import StatusCode
from harness.aws_services import Moto
from harness.damage import flip, tables_with
from harness.rpc import fails_with, set_cell
from harness.server import EXTERNAL, Server, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")
PLACE = "s3://backups/of/this"
KEYS = 24  # of a megabyte: a table's file of more than a part


@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    moto = Moto(tmp_path_factory.mktemp("moto") / "log")
    moto.client_of("s3").create_bucket(Bucket="backups")
    yield moto
    moto.close()


@pytest.fixture
def environment(moto):
    return {"AWS_ENDPOINT_URL_S3": moto.url, "AWS_ACCESS_KEY_ID": "AKTEST",
            "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}  # fmt: skip


@pytest.fixture
def backup(environment):
    def run(*arguments, code=0, **changes):
        done = run_trestle("backup", *arguments, env={**environment, **changes})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if code else done.stdout

    return run


def test_a_bucket_keeps_them(tmp_path, moto, environment, backup, fresh_server, connect):
    """The server makes one, what has changed goes there, and it comes back."""
    server = fresh_server("--backup-places", "s3://backups/of", env=environment)
    rpc = connect(server.host)
    table = rpc.create_table("t")
    values = {b"%d" % i: os.urandom(1 << 20) for i in range(KEYS)}
    for key, value in values.items():
        rpc.mutate_rows(table, [(key, [set_cell("f", b"q", value, 1000)])])
    by_server = ("--endpoint", server.host)
    assert "were not there yet" in backup("create", PLACE, *by_server)
    objects = moto.client_of("s3").list_objects_v2(Bucket="backups")["Contents"]
    keys = [each["Key"] for each in objects]
    assert all(key.startswith("of/this/") for key in keys)
    assert not [key for key in keys if "/locks/" in key]
    assert max(each["Size"] for each in objects) > 16 << 20  # which came in parts
    server.stop()
    backup("create", PLACE, "--data-dir", server.data)
    assert len(backup("list", PLACE).splitlines()) == 2
    assert backup("verify", PLACE).count(": whole") == 2
    assert "\n1 backups and " in backup("expire", PLACE, "--keep", "1")
    to = tmp_path / "restored"
    backup("restore", PLACE, "--to", to)
    server.data.rename(tmp_path / "former")
    to.rename(server.data)
    server.start()
    found = {key: cells[0].value for key, cells in connect(server.host).read(table)}
    assert found == values


def test_what_is_wrong_is_told(tmp_path, moto, environment, backup, fresh_server):
    server = fresh_server()
    server.stop()
    data = server.data
    create = ("create", PLACE, "--data-dir", data)
    assert "NoSuchBucket" in backup("create", "s3://none/x", "--data-dir", data, code=1)
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    assert "no credentials for AWS" in backup(*create, code=1, **nobody)
    assert "is no place" in backup("list", "s3://", code=2)
    assert "a place is a directory, or s3://" in backup("list", "gs://b/x", code=1)
    lock = "of/this/locks/0123456789abcdef"
    moto.client_of("s3").put_object(Bucket="backups", Key=lock)
    assert "somebody else is writing" in backup(*create, code=1)
    moto.client_of("s3").delete_object(Bucket="backups", Key=lock)
    backup(*create)
    s3 = moto.client_of("s3")
    for each in s3.list_objects_v2(Bucket="backups", Prefix="of/this/files/")["Contents"]:
        s3.delete_object(Bucket="backups", Key=each["Key"])
    assert "it is missing" in backup("verify", PLACE, code=1)


def test_what_is_damaged_there_is_written_anew(tmp_path, moto, backup, fresh_server, connect):
    place, s3 = "s3://backups/damaged", moto.client_of("s3")
    server = fresh_server("--write-buffer", "4MB", "--disk-reserve", "1MB")
    rpc = connect(server.host)
    table = rpc.create_table("t")
    for number in range(50):
        value = os.urandom(100_000)
        rpc.mutate_rows(table, [(b"%d" % number, [set_cell("f", b"q", value, 1000)])])
    server.stop()
    server.start()  # flushes, the buffer being so small
    server.stop()
    create = ("create", place, "--data-dir", server.data)
    backup(*create)
    tables = {hashlib.sha256(each.read_bytes()).hexdigest() for each in server.data.glob("*.sst")}
    name = min(tables)
    damaged = {"Bucket": "backups", "Key": f"damaged/files/{name}"}
    content = bytearray(s3.get_object(**damaged)["Body"].read())
    content[len(content) // 2] ^= 1
    s3.put_object(**damaged, Body=bytes(content))
    for mending in (["verify", place, "--mark-damaged"], None):
        if mending:
            assert f"files/{name}: it is damaged" in backup(*mending, code=1)
        done = backup(*create, *([] if mending else ["--check-period", "1us"]))
        assert "or were damaged there" in done
        assert "damage" not in backup("verify", place)
        s3.put_object(**damaged, Body=bytes(content))
    marks = s3.list_objects_v2(Bucket="backups", Prefix="damaged/damaged/")
    assert "Contents" not in marks


def test_an_archive_in_a_bucket(tmp_path, moto, environment, backup, fresh_server, connect):
    """What came after the backup is put there, also after a kill, and comes back."""
    archive, whole = "s3://backups/archive", "s3://backups/w"
    server = fresh_server("--archive", archive, "--backup-places", whole, env=environment)
    rpc = connect(server.host)
    table = rpc.create_table("t")
    backup("create", whole, "--endpoint", server.host)
    rpc.mutate_rows(table, [(b"first", [set_cell("f", b"q", b"1", 1000)])])
    server.kill()
    server.start()
    rpc = connect(server.host)
    rpc.mutate_rows(table, [(b"second", [set_cell("f", b"q", b"2", 1000)])])
    server.stop()  # which puts what waits
    listed = run_trestle("archive", "list", archive, env=environment).stdout
    assert re.match(r"[0-9a-f]{16}: \d+ pieces?, after ", listed), listed
    to = tmp_path / "restored"
    backup("restore", whole, "--archive", archive, "--to", to)
    server.data.rename(tmp_path / "former")
    to.rename(server.data)
    restored = Server(server.directory).start()
    try:
        assert sorted(dict(connect(restored.host).read(table))) == [b"first", b"second"]
    finally:
        restored.close()


def test_rows_come_back_from_a_bucket_with_a_key(tmp_path, moto, environment, backup, fresh_server,
                                                 connect):  # fmt: skip
    """To a server that runs. A bucket that fails, and another key, leave them as they are."""
    place, key, other = "s3://backups/repair", tmp_path / "key", tmp_path / "other"
    for each, digit in ((key, "0"), (other, "f")):
        each.write_text(f"{digit * 64}\n")
        each.chmod(0o600)
    server = fresh_server("--backup-places", "s3://backups/repair,s3://none", "--backup-key",
                          str(key), "--write-buffer", "4MB", env=environment)  # fmt: skip
    rpc = connect(server.host)
    table = rpc.create_table("t")
    values = {b"k%04d" % i: os.urandom(3000) for i in range(1500)}
    rpc.mutate_rows(table, [(k, [set_cell("f", b"q", v, 1000)]) for k, v in values.items()])
    for _ in range(2):  # the second start flushes
        server.stop()
        server.start()
    backup("create", place, "--endpoint", server.host)
    server.stop()
    path = tables_with(server.data, b"k0000")[0]
    flip(path, 400_000)

    def repair(*arguments):
        done = run_trestle("repair", *arguments, "--in-place", "--lost", tmp_path / "lost",
                           env=environment)  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    for wrong, words in (
        ([place, "--backup-key", other], "another key"),
        ([place], "is encrypted"),
        (["s3://none/x", "--backup-key", key], "NoSuchBucket"),
    ):
        code, said = repair(server.data, "--from", *wrong)
        assert code == 1 and words in said, said
    rpc = connect(server.start().host)
    with fails_with(StatusCode.DATA_LOSS):
        rpc.read(table)
        rpc.read(table)
    code, said = repair("--endpoint", server.host, "--from", "s3://none/x")
    assert code == 1 and "NoSuchBucket" in said, said
    assert server.metric("damaged_ranges") == 1 and not (tmp_path / "lost").exists()
    code, said = repair("--endpoint", server.host, "--from", place)
    assert code == 0 and "rows come from the whole backup" in said, said
    assert {key: cells[0].value for key, cells in rpc.read(table)} == values
