"""`trestle tail --to`: files that are finished by size and time, and a topic of Kafka's own broker,
with kills of all sides."""

import json
import random
import re
import time

import pytest
from harness.change_streams import Writers, stream_config
from harness.kafka import Broker
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell
from harness.server import run_trestle
from harness.tail import Counts, Tail, now, wait_for

TABLE = "t"
NAME = "projects/p/instances/i/tables/t"
FINISHED = re.compile(r"(first|[0-9a-f]+(~[0-9a-f]{16})?)-\d{8}T\d{6}\.\d{6}Z(-\d+)?\.jsonl")


def with_two_partitions(server, rpc):
    rpc.create_table(TABLE, ("f",), [b"50"], change_stream_config=stream_config())
    return server, rpc


@pytest.fixture
def streamed(fresh_server, connect):
    """Its partitions split and merge."""
    server = fresh_server("--split-load", "100", "--merge-after", "1s")
    return with_two_partitions(server, connect(server.host))


@pytest.fixture
def resting(fresh_server, connect):
    """Its partitions stay as they are."""
    server = fresh_server("--balance=false")
    return with_two_partitions(server, connect(server.host))


def put(rpc, key, value=b"v"):
    rpc.mutate(NAME, key, set_cell("f", b"q", value, 1000))


# --- files ---


def files_of(directory):
    """By partition, in the order of the commit times in their names."""
    return sorted(path for path in directory.iterdir() if path.suffix == ".jsonl")


def lines_of(path):
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_files_are_named_by_partition_and_time(resting, tmp_path):
    server, rpc = resting
    directory, metrics = tmp_path / "changes", tmp_path / "metrics"
    long_key = b"x" * 200
    with Tail(server.host, TABLE, "--from", now(), "--to", f"file:{directory}",
              "--metrics-file", metrics) as tail:  # fmt: skip
        for key in (b"10", b"60", b"11", long_key):
            put(rpc, key)
            time.sleep(0.01)
        wait_for(lambda: directory.exists() and sum(
            path.read_text().count("\n") for path in directory.glob("*.part")
        ) == 4, "the lines are not there")  # fmt: skip
        assert all(path.name.endswith(".jsonl.part") for path in directory.glob("*[!k]"))
        tail.stop()
    first, second = files_of(directory)
    assert FINISHED.fullmatch(first.name).group(1) == "3530"
    assert FINISHED.fullmatch(second.name).group(1) == "first"
    assert [line["key"] for line in lines_of(first)] == ["60", long_key.decode()]
    keys, commits = zip(*[(line["key"], line["commit"]) for line in lines_of(second)], strict=True)
    assert keys == ("10", "11")
    assert f".{commits[0] % 1_000_000:06d}Z" in second.name
    told = metrics.read_text()
    assert 'trestle_tail_changes_total{table="t"} 4\n' in told
    assert re.search(r'trestle_tail_lag_seconds\{table="t"\} \d+\.\d{6}\n', told)


def test_files_are_finished_by_size_and_by_time(resting, tmp_path):
    server, rpc = resting
    directory = tmp_path / "changes"
    with Tail(server.host, TABLE, "--from", now(), "--to", f"file:{directory}",
              "--rotate-size", "1024", "--rotate-time", "1s") as tail:  # fmt: skip
        for i in range(5):
            put(rpc, b"10", b"%d" % i + b"x" * 600)
        put(rpc, b"60")
        wait_for(lambda: directory.exists() and len(files_of(directory)) == 4, "not finished")
        assert not list(directory.glob("*.part"))
        tail.stop()
    sizes = [len(lines_of(path)) for path in files_of(directory)]
    assert sizes == [1, 2, 2, 1]
    values = [line["mutations"][0]["set_cell"]["value"][0]
              for path in files_of(directory)[1:] for line in lines_of(path)]  # fmt: skip
    assert values == list("01234")


def test_what_was_left_is_finished(resting, tmp_path):
    server, rpc = resting
    directory = tmp_path / "changes"
    directory.mkdir()
    name = "first-20260101T000000.000000Z.jsonl"
    (directory / f"{name}.part").write_text('{"key":"whole"}\n{"key":"cut o')
    (directory / "3530-20260101T000000.000000Z.jsonl.part").write_text('{"key":"cut')
    (directory / "notes.part").write_text("not ours")
    with Tail(server.host, TABLE, "--from", now(), "--to", f"file:{directory}") as tail:
        wait_for((directory / name).exists, "not finished")
        other = run_trestle(
            "tail", TABLE, "--endpoint", server.host, "--to", f"file:{directory}"
        )
        assert other.returncode == 1
        assert ".lock" in other.stderr
        tail.stop()
    assert lines_of(directory / name) == [{"key": "whole"}]
    assert sorted(path.name for path in directory.iterdir()) == [".lock", name, "notes.part"]


@pytest.mark.long
def test_files_of_tails_that_are_killed_have_everything(streamed, tmp_path):
    """Each change is in some file at least once, and those of a row in their order."""
    server, rpc = streamed
    directory, place = tmp_path / "changes", tmp_path / "place"
    chance = random.Random(7)
    options = ["--from", now(), "--token-file", place, "--to", f"file:{directory}",
               "--rotate-size", "100KB", "--rotate-time", "1s"]  # fmt: skip
    with Writers(rpc, NAME, [b"%02d" % i for i in range(100)]) as writers:
        for _ in range(8):
            with Tail(server.host, TABLE, *options) as tail:
                time.sleep(chance.uniform(0.2, 2))
                tail.kill()
    last = {key: count - 1 for key, count in writers.written.items()}
    with Tail(server.host, TABLE, *options) as tail:
        put(rpc, b"zz", b"0")
        wait_for(lambda: "zz" in text_of(directory), "the last change is not there")
        time.sleep(0.5)
        tail.stop()
    got = {}
    lines = [line for path in files_of(directory) for line in lines_of(path)]
    for line in sorted(lines, key=lambda line: line["commit"]):
        value = int(line["mutations"][0]["set_cell"]["value"])
        assert value in (got.get(line["key"], -1) + 1, got.get(line["key"], -1)), line
        got[line["key"]] = value
    assert got == {**{key.decode(): value for key, value in last.items()}, "zz": 0}
    assert len(lines) > len({(line["key"], line["commit"]) for line in lines})


def text_of(directory):
    return "".join(path.read_text() for path in directory.glob("*-*.jsonl*"))


# --- Kafka ---


@pytest.fixture
def broker(tmp_path):
    made = Broker(tmp_path / "kafka")
    yield made
    made.close()


def hold_against(messages, last):
    """Of each row, in its partition: everything, in its order, at least once."""
    counts, places = Counts(), {}
    for partition, key, value in messages:
        line = json.loads(value)
        assert line["key"].encode() == key
        assert places.setdefault(key, partition) == partition
        counts.take([line], may_repeat=True)
    assert counts.got == last


@pytest.mark.long
def test_a_topic_has_everything_when_its_broker_is_killed(streamed, tmp_path, broker):
    """-9 for the broker in the middle, and for the tail."""
    server, rpc = streamed
    broker.make_topic("changes")
    options = ["--from", now(), "--token-file", tmp_path / "place",
               "--to", f"kafka://{broker.host}/changes"]  # fmt: skip
    with Writers(rpc, NAME, [b"%02d" % i for i in range(100)]) as writers:
        with Tail(server.host, TABLE, *options) as tail:
            time.sleep(3)
            broker.kill()
            time.sleep(1)
            broker.start()
            time.sleep(3)
            tail.kill()
        with Tail(server.host, TABLE, *options) as tail:
            time.sleep(2)
            broker.kill()
            tail.kill()
            broker.start()
    last = {key: count - 1 for key, count in writers.written.items()}
    with Tail(server.host, TABLE, *options) as tail:
        put(rpc, b"zz", b"0")
        wait_for(lambda: "zz" in {key.decode() for _, key, _ in broker.messages("changes")},
                 "the last change does not come")  # fmt: skip
        tail.stop()
    hold_against(broker.messages("changes"), {**last, b"zz": 0})


@pytest.mark.long
def test_a_topic_that_takes_no_such_messages_ends_it(streamed, tmp_path, broker):
    server, rpc = streamed
    place, config = tmp_path / "place", tmp_path / "config"
    broker.make_topic("small", most_bytes=10_000)
    options = ["--from", now(), "--token-file", place, "--to", f"kafka://{broker.host}/small"]
    put(rpc, b"a", b"x" * 20_000)
    with Tail(server.host, TABLE, *options) as tail:
        assert tail.process.wait(PATIENCE_SECONDS) == 1
        assert "a message of 20" in (told := tail.process.stderr.read())
        assert "has not been taken" in told
    with Tail(server.host, TABLE, *options[:4]) as tail:  # its place is before it, if it has one
        assert tail.next()["key"] == "a"
    config.write_text("# settings\nno.such.setting=1\n")
    done = run_trestle("tail", TABLE, "--endpoint", server.host, "--kafka-config", config,
                       *map(str, options))  # fmt: skip
    assert done.returncode == 1
    assert "no.such.setting" in done.stderr
