"""`trestle import dynamodb dynamodb://TABLE`: a table that AWS's SDK writes to, on moto's server;
scanned, followed by its stream, and killed.

TRESTLE_LIVE_ITEMS   how many items the large test has (default 2000)
TRESTLE_LIVE_KILLS   how often it kills the import (default 3)
"""

import base64
import json
import os
import random
import signal
import subprocess
import time

import pytest
from harness.certificates import Authority
from harness.dynamo_exports import item_json
from harness.dynamodb import LIVE_TYPES, DynamoDB, Writer, random_item
from harness.importer import Importer
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell

ITEMS = int(os.environ.get("TRESTLE_LIVE_ITEMS", "2000"))
KILLS = int(os.environ.get("TRESTLE_LIVE_KILLS", "3"))
LONG_SECONDS = max(PATIENCE_SECONDS, ITEMS // 50)

pytestmark = pytest.mark.timeout(10 * LONG_SECONDS)


@pytest.fixture(scope="module")
def dynamodb(tmp_path_factory):
    server = DynamoDB(tmp_path_factory.mktemp("moto") / "stderr.log")
    yield server
    server.close()


@pytest.fixture
def importer(rpc, server, dynamodb, tmp_path, new_table_id):
    made = Importer(rpc, server.host, tmp_path, new_table_id())
    made.partition_key = None
    made.env = dynamodb.environment()
    made.options = ("--dynamodb-endpoint", dynamodb.url, "--lossless")
    return made


def seed(dynamodb, table, count, **options):
    chance = random.Random(7)
    names = [f"item-{number:06}" for number in range(count)]
    dynamodb.create_table(table, **options)
    dynamodb.write(table, [random_item(chance, name) for name in names])
    return names


def in_order(value):
    """DynamoDB's JSON with its sets sorted: they have no order."""
    if isinstance(value, dict):
        return {
            name: sorted(each) if name in ("SS", "NS", "BS") else in_order(each)
            for name, each in value.items()
        }
    return [in_order(each) for each in value] if isinstance(value, list) else value


def from_sdk(value):
    """What the SDK gives, with bytes as DynamoDB's JSON has them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: from_sdk(each) for name, each in value.items()}
    return [from_sdk(each) for each in value] if isinstance(value, list) else value


def check_same(importer, dynamodb, table):
    """Every row is its item, whole, and there is no other row."""
    rows = {
        key.decode(): {
            name.removeprefix("item:"): json.loads(value) for name, (_, value) in cells.items()
        }
        for key, cells in importer.rows().items()
    }
    items = dynamodb.items(table)
    assert rows.keys() == items.keys()
    for name, item in items.items():
        assert in_order(rows[name]) == in_order(from_sdk(item)), name


def read_checkpoint(importer):
    path = importer.directory / f"{importer.table_id}.checkpoint"
    return json.loads(path.read_text()) if path.exists() else None


def wait_until(running, is_so):
    deadline = time.monotonic() + LONG_SECONDS
    while time.monotonic() < deadline and running.poll() is None and not is_so():
        time.sleep(0.02)


# --- scans ---


def test_a_table_is_scanned(importer, dynamodb):
    dynamodb.create_table("scanned", sort_key="Sort")
    items = [{"Id": ("S", f"k{n}"), "Sort": ("N", str(n)), **LIVE_TYPES} for n in range(30)]
    dynamodb.write("scanned", items)
    out = importer.run_well(
        "dynamodb://scanned", *importer.options, "--segments", 3, "--consistent-read",
        "--verify", "full",
    )  # fmt: skip
    assert out == (
        "30 items read, 30 written, 0 rejected\n30 rows compared, 0 different\n"
    )
    rows = importer.rows()
    assert list(rows) == sorted(f"k{n}#{n}".encode() for n in range(30))
    found = {name: json.loads(value) for name, (_, value) in rows[b"k7#7"].items()}
    expected = {f"item:{name}": value for name, value in item_json(items[7]).items()}
    assert in_order(found) == in_order(expected)


def test_it_is_imported_again_as_it_is_then(importer, dynamodb):
    """Attributes that are gone go from the row, too."""
    dynamodb.create_table("again")
    dynamodb.write("again", [{"Id": ("S", "k"), "a": ("S", "1"), "b": ("S", "1")}])
    importer.run_well("dynamodb://again", *importer.options)
    dynamodb.write("again", [{"Id": ("S", "k"), "b": ("S", "2")}])
    importer.run_well("dynamodb://again", *importer.options, "--verify", "full")
    check_same(importer, dynamodb, "again")


def test_items_that_fall_on_one_row_are_found(importer, dynamodb):
    """By the partition key alone, where the table has a sort key, too."""
    dynamodb.create_table("doubled", sort_key="Sort")
    dynamodb.write("doubled", [{"Id": ("S", "k"), "Sort": ("N", str(n))} for n in range(3)])
    importer.partition_key = "Id"
    done = importer.run("dynamodb://doubled", *importer.options)
    assert done.returncode == 1
    assert "3 items read, 1 written, 2 rejected" in done.stdout
    importer.partition_key = None
    importer.table_id += "-whole"
    importer.run_well("dynamodb://doubled", *importer.options)


def test_a_dry_run_reads_all(importer, dynamodb):
    seed(dynamodb, "dry", 40)
    out = importer.run_well("dynamodb://dry", *importer.options, "--dry-run")
    assert out == "40 items read, 40 fine, 0 rejected\n"


@pytest.mark.parametrize(
    "table, options, words",
    [
        ("none", [], "ResourceNotFoundException"),
        ("plain", ["--follow", "caught-up"], "has no stream"),
        ("keys", ["--follow", "caught-up"], "new images are needed"),
    ],
)
def test_what_cannot_be_read_is_told(importer, dynamodb, table, options, words):
    if table not in ("none", *dynamodb.client.list_tables()["TableNames"]):
        dynamodb.create_table(table, view={"plain": None, "keys": "KEYS_ONLY"}[table])
    done = importer.run(f"dynamodb://{table}", *importer.options, *options)
    assert done.returncode == 1
    assert words in done.stderr


def test_without_credentials_it_says_so(importer, tmp_path):
    importer.env = {**importer.env, "HOME": str(tmp_path)}
    del importer.env["AWS_ACCESS_KEY_ID"]
    done = importer.run("dynamodb://any", *importer.options)
    assert done.returncode == 1
    assert "no credentials for AWS" in done.stderr


def test_an_endpoint_that_is_none(importer):
    done = importer.run("dynamodb://any", "--dynamodb-endpoint", "localhost:8000")
    assert done.returncode == 1
    assert "is no endpoint" in done.stderr


def test_an_endpoint_by_tls(importer, tmp_path):
    authority = Authority(tmp_path)
    secured = DynamoDB(tmp_path / "stderr.log", authority)
    try:
        seed(secured, "secured", 20)
        command = ("dynamodb://secured", "--dynamodb-endpoint", secured.url, "--lossless")
        done = importer.run(*command)
        assert done.returncode == 1
        assert "certificate" in done.stderr
        importer.env = {**importer.env, "AWS_CA_BUNDLE": str(authority.certificate)}
        importer.run_well(*command, "--verify", "full")
        check_same(importer, secured, "secured")
    finally:
        secured.close()


def test_options_of_live_tables_are_theirs_alone(importer, tmp_path):
    importer.partition_key = "Id"
    done = importer.run(tmp_path, "--follow", "forever")
    assert done.returncode == 2
    assert "--follow" in done.stderr


# --- streams ---


def test_changes_are_followed_until_a_signal(importer, dynamodb):
    names = seed(dynamodb, "followed", 100)
    running = importer.start(
        "dynamodb://followed", *importer.options, "--follow", "forever",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(running, lambda: is_following(importer))
    dynamodb.write("followed", [{"Id": ("S", "late"), "v": ("N", "1")}], deletes=names[:3])
    wait_until(running, lambda: b"late" in importer.rows())
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0, err
    assert "0 different" in out
    check_same(importer, dynamodb, "followed")
    # It goes on where it was.
    dynamodb.write("followed", [{"Id": ("S", "later"), "v": ("N", "2")}], deletes=["late"])
    importer.run_well("dynamodb://followed", *importer.options, "--follow", "caught-up")
    check_same(importer, dynamodb, "followed")
    assert read_checkpoint(importer) is None


def test_a_row_that_the_table_no_longer_has_is_found(importer, dynamodb, rpc):
    """As of a change that was not applied: the full verification looks for such rows in a table
    that was made for the import."""
    seed(dynamodb, "strays", 30)
    running = importer.start(
        "dynamodb://strays", *importer.options, "--follow", "forever",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(running, lambda: is_following(importer))
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0, err
    rpc.mutate(importer.table, b"gone", set_cell("item", b"Id", b'{"S":"gone"}', 1000))
    followed = ("dynamodb://strays", *importer.options, "--follow", "caught-up")
    done = importer.run(*followed, "--verify", "full")
    assert done.returncode == 1
    assert "30 rows compared, 0 different\n" in done.stdout
    assert "1 rows are in the table, and not in the source\n" in done.stdout
    assert "the row gone is in the table, and not in the source\n" in done.stderr


def is_following(importer):
    checkpoint = read_checkpoint(importer)
    return checkpoint is not None and checkpoint["source"]["scan"] is None


def test_a_table_that_is_written_to_is_killed_and_goes_on(importer, dynamodb):
    """Killed KILLS times, in the scan and behind it, while items come, change and go."""
    names = seed(dynamodb, "large", ITEMS)
    writer = Writer(dynamodb, "large", names)
    followed = ("--follow", "caught-up", "--segments", 2)
    command = ("dynamodb://large", *importer.options, *followed)
    errors = importer.directory / "stderr.log"
    slowly = ("--rate", max(150, ITEMS // 20))
    done = 0
    for kill in range(KILLS):
        with open(errors, "wb") as stderr:
            running = importer.start(*command, *slowly, stderr=stderr)
        before = done

        def has_moved(before=before):
            writer.change(25)
            time.sleep(0.1)
            checkpoint = read_checkpoint(importer)
            return checkpoint is not None and checkpoint["records"] > before

        wait_until(running, has_moved)
        assert running.poll() is None, f"ended before kill {kill}: {errors.read_text()}"
        running.kill()
        running.wait(PATIENCE_SECONDS)
        done = read_checkpoint(importer)["records"]
        writer.change(50)
    assert done > 0
    running = importer.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(10):
        writer.change(25)
    out, err = running.communicate(timeout=LONG_SECONDS)
    assert running.returncode == 0, err
    assert " 0 rejected\n" in out
    assert " 0 different\n" in out
    check_same(importer, dynamodb, "large")
    print(out)
