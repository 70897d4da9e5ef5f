"""`trestle tail`: changes as lines, through splits, merges and kills of either side."""

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest
from google.cloud.bigtable_v2 import types
from harness.change_streams import (
    Writers,
    now_micros,
    partitions_of,
    stream_config,
    update_stream,
)
from harness.patience import PATIENCE_SECONDS
from harness.proxy import FailingProxy, FollowingProxy
from harness.rpc import delete_row, set_cell
from harness.secured import ADMIN
from harness.server import binary, run_trestle
from harness.tail import Counts, Tail, bytes_of, now, wait_for
from harness.tokens import Key, write_jwks

TABLE = "t"
NAME = "projects/p/instances/i/tables/t"


@pytest.fixture
def streamed(fresh_server, connect):
    def make(*arguments, families=("f",), splits=(), **fields):
        server = fresh_server(*arguments)
        rpc = connect(server.host)
        rpc.create_table(TABLE, families, splits, change_stream_config=stream_config(), **fields)
        return server, rpc

    return make


STOPS = (signal.SIGINT, signal.SIGTERM)


def put(rpc, key, value=b"v"):
    rpc.mutate(NAME, key, set_cell("f", b"q", value, 1000))


def set_to(value):
    return {"set_cell": {"family": "f", "qualifier": "q", "timestamp": 1000, "value": value}}


# --- what is told ---


def test_every_kind_of_change_is_a_line(streamed):
    kinds = {"int64_type": {"encoding": {"big_endian_bytes": {}}}}
    server, rpc = streamed(families=(), column_families={
        "f": {}, "g": {},
        "s": {"value_type": {"aggregate_type": {"input_type": kinds, "sum": {}}}},
    })  # fmt: skip
    aggregate = {
        "family_name": "s", "column_qualifier": {"raw_value": b"n"},
        "timestamp": {"raw_timestamp_micros": 1000},
    }  # fmt: skip
    before = now_micros()
    with Tail(server.host, TABLE, "--from", now()) as tail:
        rpc.mutate(
            NAME, b"k\xff", set_cell("f", b"q", b"v", 1000), set_cell("f", b"\x80", b"\xfe", 2000),
            types.Mutation(delete_from_column={
                "family_name": "f", "column_qualifier": b"d",
                "time_range": {"start_timestamp_micros": 1000, "end_timestamp_micros": 5000},
            }),
            types.Mutation(delete_from_column={"family_name": "f", "column_qualifier": b"e"}),
            types.Mutation(delete_from_family={"family_name": "g"}),
            types.Mutation(add_to_cell={**aggregate, "input": {"int_value": -5}}),
            types.Mutation(merge_to_cell={**aggregate, "input": {"bytes_value": b"\0" * 8}}),
        )  # fmt: skip
        put(rpc, "ü".encode(), b'"\\\n')
        rpc.mutate(NAME, "ü".encode(), delete_row())
        all_kinds, umlaut, deletion = tail.take(3)
        assert tail.stop() == []
    assert before <= all_kinds.pop("commit") <= now_micros()
    assert bytes_of(all_kinds.pop("key")) == b"k\xff"
    assert all_kinds == {
        "tiebreaker": 0, "cluster": "trestle", "mutations": [
            set_to("v"),
            {"set_cell": {
                "family": "f", "qualifier": {"base64": "gA=="}, "timestamp": 2000,
                "value": {"base64": "/g=="},
            }},
            {"delete_from_column": {"family": "f", "qualifier": "d", "start": 1000, "end": 5000}},
            {"delete_from_column": {"family": "f", "qualifier": "e"}},
            {"delete_from_family": {"family": "g"}},
            {"add_to_cell": {"family": "s", "qualifier": "n", "timestamp": 1000, "input": -5}},
            {"merge_to_cell": {
                "family": "s", "qualifier": "n", "timestamp": 1000, "input": "\0" * 8,
            }},
        ],
    }  # fmt: skip
    assert (umlaut["key"], umlaut["mutations"]) == ("ü", [set_to('"\\\n')])
    assert deletion["mutations"] == [{"delete_from_family": {"family": "f"}}]


# --- splits, merges, kills ---


@pytest.mark.long
def test_partitions_split_and_merge_meanwhile(streamed):
    server, rpc = streamed("--split-load", "100", "--merge-after", "1s")
    keys = [b"%02d" % i for i in range(100)]
    counts = Counts()
    with Tail(server.host, TABLE, "--from", now(), "--status", "100ms") as tail:
        with Writers(rpc, NAME, keys) as writers:
            wait_for(lambda: len(partitions_of(rpc, NAME)) >= 3, "no split")
            counts.take(tail.take_here())
        last = {key: count - 1 for key, count in writers.written.items()}
        while counts.got != last:
            counts.take([tail.next()])
        wait_for(lambda: partitions_of(rpc, NAME) == [(b"", b"")], "no merge")
        put(rpc, b"00", b"%d" % (last[b"00"] + 1))
        counts.take([tail.next()])
        assert tail.stop() == []
        told = tail.process.stderr.read()
    assert " partitions\n" in told
    assert told.splitlines()[-1].endswith("; 1 partition")


def test_it_goes_on_where_it_stopped(streamed, tmp_path):
    server, rpc = streamed(splits=[b"m"])
    place = tmp_path / "place"
    counts = Counts()
    options = ["--from", now(), "--token-file", place]
    for round_ in range(4):
        for key in (b"a", b"z"):
            put(rpc, key, b"%d" % round_)
        with Tail(server.host, TABLE, *options) as tail:
            lines = tail.take(2)
            counts.take(lines + tail.stop(random.Random(round_).choice(list(STOPS))))
    assert counts.got == {b"a": 3, b"z": 3}
    assert json.loads(place.read_text().splitlines()[0])["table"] == NAME


def test_a_tail_that_is_killed_at_once_goes_on_where_it_began(streamed, tmp_path):
    """Until all partitions had answered, a second, it had kept no place, and began anew, later."""
    server, rpc = streamed(splits=[b"m"])
    time.sleep(1)  # what it takes for its start may be of a little before
    place = tmp_path / "place"
    with Tail(server.host, TABLE, "--token-file", place) as tail:
        wait_for(lambda: put(rpc, b"a") or not tail.lines.empty(), "no change")
        tail.kill()
    assert json.loads(place.read_text().splitlines()[0])["from"] > 0
    for key in (b"b", b"z"):
        put(rpc, key)
    with Tail(server.host, TABLE, "--token-file", place) as tail:
        keys = tail.until(lambda lines: {"b", "z"} <= {line["key"] for line in lines})
        assert {line["key"] for line in keys} <= {"a", "b", "z"}


@pytest.mark.parametrize("start", ["now", "given"])
def test_a_sink_that_fails_at_once_loses_nothing(streamed, tmp_path, start):
    """Each start of it was from a later "now", and what had come between was lost."""
    server, rpc = streamed(splits=[b"m"])
    time.sleep(1)  # what it takes for its start may be of a little before
    place = tmp_path / "place"
    options = [TABLE, "--endpoint", server.host, "--token-file", str(place)]
    begins = {"now": [], "given": ["--from", now()]}[start]
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen(
            [binary(), "tail", *options, *begins], stdout=full, stderr=subprocess.PIPE
        )
        written = itertools.count()
        wait_for(
            lambda: put(rpc, b"a", b"%d" % next(written)) or process.poll() is not None, "no end"
        )
    assert process.communicate()[1].endswith(b"No space left on device\n")
    assert process.returncode == 1
    assert json.loads(place.read_text().splitlines()[0])["from"] > 0
    put(rpc, b"z")
    with Tail(server.host, TABLE, "--from", "0s", "--token-file", place) as tail:
        lines = tail.until(lambda lines: any(line["key"] == "z" for line in lines))
        lines += [] if lines[0]["key"] == "a" else [tail.next()]
    values = [int(bytes_of(line["mutations"][0]["set_cell"]["value"])) for line in lines
              if line["key"] == "a"]  # fmt: skip
    assert start == "now" or values[0] == 0
    assert values == list(range(values[0], values[0] + len(values)))


def test_a_change_that_the_sink_refuses_is_not_passed_over(streamed, tmp_path):
    """The place that a failure leaves was behind the change that the sink had not taken."""
    server, rpc = streamed()
    spool, place = tmp_path / "spool", tmp_path / "place"
    options = ["--from", now(), "--token-file", place, "--to", f"file:{spool}"]
    with Tail(server.host, TABLE, *options) as tail:
        wait_for(place.exists, "no place")
        shutil.rmtree(spool)
        put(rpc, b"k")
        assert tail.process.wait(PATIENCE_SECONDS) == 1
    with Tail(server.host, TABLE, *options):
        wait_for(lambda: any(spool.glob("*.part")), "the change is lost")


def test_what_is_refused_at_once_leaves_no_place(streamed, tmp_path):
    """The next --from would not be heeded."""
    server, rpc = streamed()
    place = tmp_path / "place"
    wrong = ["--from", "2020-01-01T00:00:00Z", "--token-file", place]
    done = run_trestle("tail", TABLE, "--endpoint", server.host, *map(str, wrong))
    assert done.returncode == 1
    assert not place.exists()


@pytest.mark.long
def test_an_end_is_reached_when_its_partitions_merge(streamed):
    """It stood still: one had ended, and nobody had the token of it that the merged one needs."""
    server, rpc = streamed("--merge-after", "8s", splits=[b"m"])
    since = now()
    few, many = (
        [(b"%s%05d" % (first, i), [set_cell("f", b"q", b"v" * size, 1000)]) for i in range(count)]
        for first, count, size in ((b"a", 10, 1), (b"z", 40000, 100))
    )
    for rows in (few, *(many[i : i + 4000] for i in range(0, len(many), 4000))):
        assert set(rpc.mutate_rows(NAME, rows)) == {0}
    with subprocess.Popen(
        [binary(), "tail", TABLE, "--endpoint", server.host, "--from", since, "--until", now()],
        stdout=subprocess.PIPE, bufsize=0,
    ) as process:  # fmt: skip
        try:
            lines = [process.stdout.readline() for _ in range(100)]
            wait_for(lambda: partitions_of(rpc, NAME) == [(b"", b"")], "no merge")
            lines += process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()
        finally:
            process.kill()
    assert process.returncode == 0
    keys = sorted(json.loads(line)["key"].encode() for line in lines)
    assert keys == [key for key, _ in few + many]


@pytest.mark.long
def test_tails_that_are_killed_leave_nothing_out(streamed, tmp_path):
    """What was printed and not yet kept comes again, from the last place on."""
    server, rpc = streamed("--split-load", "100", "--merge-after", "1s", splits=[b"50"])
    counts = Counts()
    options = ["--from", now(), "--token-file", tmp_path / "place"]
    chance = random.Random(23)
    with Writers(rpc, NAME, [b"%02d" % i for i in range(100)]) as writers:
        for _ in range(8):
            with Tail(server.host, TABLE, *options) as tail:
                time.sleep(chance.uniform(0.2, 2.5))
                counts.take(tail.kill(), may_repeat=True)
    last = {key: count - 1 for key, count in writers.written.items()}
    with Tail(server.host, TABLE, *options) as tail:
        while counts.got != last:
            counts.take([tail.next()], may_repeat=True)
        tail.stop()
    assert counts.again > 0


@pytest.mark.long
def test_a_server_that_is_killed_is_waited_for(streamed, connect):
    server, rpc = streamed(splits=[b"m"])
    proxy = FollowingProxy(server.host)
    counts = Counts()
    try:
        with Tail(proxy.host, TABLE, "--from", now()) as tail:
            for round_ in range(6):
                for key in (b"a", b"m", b"z"):
                    put(rpc, key, b"%d" % round_)
                if round_ % 2 == 0:
                    counts.take(tail.take(3))  # else they come after the kill
                server.kill()
                server.start()
                proxy.follow(server.host)
                rpc = connect(server.host)
            while counts.got != {b"a": 5, b"m": 5, b"z": 5}:
                counts.take([tail.next()])
            assert tail.stop() == []
    finally:
        proxy.close()


def test_a_connection_that_breaks_is_made_again(streamed):
    server, rpc = streamed()
    since = now()
    for i in range(500):
        put(rpc, b"k", b"%d" % i)
    proxy = FailingProxy(server.host, after=20_000)
    counts = Counts()
    try:
        with Tail(proxy.host, TABLE, "--from", since) as tail:
            counts.take(tail.take(500))
            assert tail.stop() == []
        assert proxy.connections >= 2
    finally:
        proxy.close()


# --- bounds ---


def test_more_partitions_than_a_connection_has_calls(streamed):
    """As Google's servers do, this one lets a connection have 100 at a time."""
    keys = [b"%03d" % i for i in range(230)]
    server, rpc = streamed("--max-streams", "100", splits=keys[1:])
    with Tail(server.host, TABLE, "--from", now(), "--status", "100ms") as tail:
        assert set(rpc.mutate_rows(NAME, [(k, [set_cell("f", b"q", b"v")]) for k in keys])) == {0}
        assert {bytes_of(line["key"]) for line in tail.take(len(keys))} == set(keys)
        assert tail.stop() == []
        assert "; 230 partitions\n" in tail.process.stderr.read()


def test_large_values_are_whole(streamed):
    server, rpc = streamed(splits=[b"m"])
    values = {key: random.Random(key).randbytes(5 << 20).hex()[: 5 << 20] for key in (b"a", b"n")}
    with Tail(server.host, TABLE, "--from", now()) as tail:
        for key, value in values.items():
            rpc.mutate(
                NAME, key, set_cell("f", b"q", value.encode(), 1000),
                set_cell("f", b"r", b"after", 1000),
            )  # fmt: skip
        lines = {bytes_of(line["key"]): line["mutations"] for line in tail.take(2)}
        assert tail.stop() == []
    for key, value in values.items():
        large, after = lines[key]
        assert large["set_cell"]["value"] == value
        assert after["set_cell"]["value"] == "after"


def test_rows_families_and_an_end(streamed):
    server, rpc = streamed(families=("f", "g"), splits=[b"m"])
    since = now()
    for key in (b"a1", b"b1", b"a2"):
        rpc.mutate(NAME, key, set_cell("f", b"q", b"v", 1000), set_cell("g", b"q", b"w", 1000))
    rpc.mutate(NAME, b"a3", set_cell("g", b"q", b"w", 1000))
    done = run_trestle(
        "tail", TABLE, "--endpoint", server.host, "--from", since, "--until", now(),
        "--prefix", "a", "--families", "f|x",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["key"] for line in lines] == ["a1", "a2"]
    assert [line["mutations"] for line in lines] == [[set_to("v")]] * 2


def test_collections_are_told_if_asked_for(streamed):
    server, rpc = streamed(
        "--gc-interval", "1s", families=(),
        column_families={"f": {"gc_rule": {"max_num_versions": 1}}},
    )  # fmt: skip
    with (
        Tail(server.host, TABLE, "--from", now(), "--with-gc") as all_of_it,
        Tail(server.host, TABLE, "--from", now()) as users,
    ):
        for i in range(3):
            rpc.mutate(NAME, b"k", set_cell("f", b"q", b"%d" % i, 1000 * (i + 1)))
        told = all_of_it.until(lambda lines: any("collection" in line for line in lines))
        put(rpc, b"last")
        lines = users.until(lambda lines: lines and lines[-1]["key"] == "last")
    assert not any("collection" in line for line in lines)
    (collection,) = [line for line in told if "collection" in line]
    assert collection["collection"] is True
    assert "cluster" not in collection
    assert collection["mutations"][0]["delete_from_column"]["qualifier"] == "q"


def test_who_reads_no_more_ends_it(streamed, tmp_path):
    server, rpc = streamed()
    since, place = now(), tmp_path / "place"
    rows = [(b"%05d" % i, [set_cell("f", b"q", b"v" * 1000, 1000)]) for i in range(2000)]
    assert set(rpc.mutate_rows(NAME, rows)) == {0}
    process = subprocess.Popen(
        [binary(), "tail", TABLE, "--endpoint", server.host, "--from", since, "--token-file",
         place],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    with Tail(server.host, TABLE, "--from", since, "--token-file", place) as tail:
        keys = set()
        while b"01999" not in keys:
            keys.add(bytes_of(tail.next()["key"]))
        assert tail.stop() == []


def test_who_reads_nothing_is_not_waited_for_at_a_signal(streamed):
    server, rpc = streamed()
    since = now()
    rows = [(b"%05d" % i, [set_cell("f", b"q", b"v" * 1000, 1000)]) for i in range(2000)]
    assert set(rpc.mutate_rows(NAME, rows)) == {0}
    process = subprocess.Popen(
        [binary(), "tail", TABLE, "--endpoint", server.host, "--from", since],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.read(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    process.stdout.close()


@pytest.fixture
def full_pipe():
    """Where who writes waits. The reading end stays open, and is not read."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, b"\0" * 4096):
            pass
    os.set_blocking(writing, True)
    yield writing
    os.close(reading)
    os.close(writing)


def test_a_signal_between_two_changes_is_heard_by_the_last_write(streamed, full_pipe):
    """The tail stands while the changes and the signal come: it finds a change, then the signal,
    before it writes. The signal was taken there, and the write waited for ever."""
    server, rpc = streamed()
    process = subprocess.Popen(
        [binary(), "tail", TABLE, "--endpoint", server.host, "--status", "1s"],
        stdout=full_pipe, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert b"partition" in process.stderr.readline()
    process.send_signal(signal.SIGSTOP)
    put(rpc, b"k")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    assert process.wait(PATIENCE_SECONDS) == 0
    process.stderr.close()


def test_a_secured_server(secure, tmp_path):
    secured = secure()
    rpc = secured.rpc("admin")
    rpc.create_table(TABLE, ("f",), change_stream_config=stream_config())
    token = tmp_path / "bearer"
    token.write_text("admin\n")
    host = secured.server.host.replace("127.0.0.1", "localhost")
    ca = ["--ca", secured.authority.certificate]
    with Tail(host, TABLE, "--from", now(), *ca, "--bearer-file", token) as tail:
        put(rpc, b"k")
        assert tail.next()["key"] == "k"
        assert tail.stop() == []
    for options, words in (
        (ca, "UNAUTHENTICATED"),
        ([*ca, "--token", "stranger"], "PERMISSION_DENIED"),
    ):
        done = run_trestle("tail", TABLE, "--endpoint", host, *options)
        assert done.returncode == 1
        assert words in done.stderr or "ermission" in done.stderr or "redential" in done.stderr


def test_a_service_account(secure, tmp_path):
    """As from Google's service: a key that signs the tokens."""
    key, who = Key(tmp_path, "RS256", "key1"), "mover@p.iam.gserviceaccount.com"
    account = tmp_path / "account.json"
    account.write_text(json.dumps({
        "type": "service_account", "client_email": who, "private_key_id": key.name,
        "private_key": key.path.read_text(),
    }))  # fmt: skip
    owners = [ADMIN, f"serviceAccount:{who}"]
    secured = secure(
        "--auth-jwks", write_jwks(tmp_path / "jwks.json", key),
        "--auth-audience", "https://localhost/", "--auth-issuer", who,
        policy={"*": {"bindings": [{"role": "roles/owner", "members": owners}]}},
    )  # fmt: skip
    rpc = secured.rpc("admin")
    rpc.create_table(TABLE, ("f",), change_stream_config=stream_config())
    host = secured.server.host.replace("127.0.0.1", "localhost")
    options = ["--ca", secured.authority.certificate, "--account", account]
    with Tail(host, TABLE, "--from", now(), *options) as tail:
        put(rpc, b"k")
        assert tail.next()["key"] == "k"
        assert tail.stop() == []


# --- what is refused ---


def test_what_is_refused_is_told(streamed, tmp_path):
    server, rpc = streamed()
    rpc.create_table("plain", ("f",))
    other, bearer = tmp_path / "other", tmp_path / "bearer"
    other.write_text('{"change_feed":1,"table":"projects/p/instances/i/tables/x","from":0,'
                     '"partitions":[]}\n')  # fmt: skip
    bearer.write_text("secret\n")
    empty = tmp_path / "empty"
    empty.touch()
    run = ["--endpoint", server.host]
    for arguments, code, words in (
        ([TABLE, "--from", "yesterday"], 2, "--from: yesterday is neither"),
        ([TABLE, "--from", now(), "--until", "10m"], 2, "--until is before --from"),
        ([TABLE, "--token", "x", "--bearer-file", bearer], 2, "--token, --bearer-file and --acc"),
        ([TABLE, *run, "--families", "("], 2, "missing )"),
        ([TABLE, *run, "--to", "udp:x"], 2, "neither file:DIRECTORY nor kafka://"),
        ([TABLE, *run, "--to", "file:"], 2, "neither file:DIRECTORY nor kafka://"),
        ([TABLE, *run, "--to", "kafka://x"], 2, "is no kafka://HOST:PORT/TOPIC"),
        ([TABLE, *run, "--rotate-size", "1MB"], 2, "--rotate-size is of --to file:DIRECTORY"),
        ([TABLE, *run, "--rotate-time", "1h", "--to", "kafka://x:1/t"], 2, "--rotate-time is of"),
        ([TABLE, *run, "--kafka-config", bearer, "--to", "file:x"], 2, "--kafka-config is of --to"),
        ([TABLE, *run, "--token-file", other], 1, "of another table"),
        ([TABLE, *run, "--token-file", bearer], 1, "no place of a change feed"),
        ([TABLE, *run, "--token-file", empty], 1, "empty is empty, and keeps no place"),
        (["plain", *run], 1, "Change stream is not enabled"),
        (["absent", *run], 1, "absent"),
        ([TABLE, *run, "--from", "2020-01-01T00:00:00Z"], 1, "is before what the change stream"),
    ):
        done = run_trestle("tail", *map(str, arguments))
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert words in done.stderr
        assert done.stderr.startswith("trestle tail: ")
        assert done.stderr.count("\n") == 1


def test_a_place_is_of_one_choice_of_changes(streamed, tmp_path):
    """What other filters had left out on the way to the place would be missing, unsaid."""
    server, rpc = streamed()
    place = tmp_path / "place"
    chosen = ["--token-file", place, "--prefix", "k", "--families", "f|g"]
    with Tail(server.host, TABLE, "--from", now(), *chosen) as tail:
        put(rpc, b"other")
        put(rpc, b"k1")
        assert tail.next()["key"] == "k1"
        assert tail.stop() == []
    run = [TABLE, "--endpoint", server.host, "--token-file", str(place)]
    for other in (["--prefix", "k"], ["--families", "f|g"], [*map(str, chosen[2:]), "--with-gc"]):
        done = run_trestle("tail", *run, *other)
        assert (done.returncode, done.stdout) == (1, "")
        assert 'was kept with {"prefix":"k","families":"f|g","with_gc":false}' in done.stderr
    put(rpc, b"k2")
    with Tail(server.host, TABLE, *chosen) as tail:
        assert tail.next()["key"] == "k2"


def test_a_place_is_one_process_s(streamed, tmp_path):
    server, rpc = streamed()
    place = ["--token-file", str(tmp_path / "place")]
    start = now()
    with Tail(server.host, TABLE, "--from", start, *place) as tail:
        put(rpc, b"k")
        tail.next()
        done = run_trestle("tail", TABLE, "--endpoint", server.host, *place)
        assert (done.returncode, done.stdout) == (1, "")
        assert "place.lock: another has it" in done.stderr
        tail.kill()
    put(rpc, b"l")
    with Tail(server.host, TABLE, "--from", start, *place) as tail:
        assert tail.next()["key"] in "kl"  # a lock goes with its process


def test_tls_where_the_server_has_none_is_told_soon(streamed):
    """Neither side would say a word: the server waits for the end of a line of HTTP."""
    server, _ = streamed()
    host, port = server.host.split(":")
    with socket.create_connection((host, int(port)), PATIENCE_SECONDS) as plain:
        context = ssl.create_default_context()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(plain, server_hostname="localhost")
    with Tail(server.host, TABLE, "--tls") as tail:
        line = tail.process.stderr.readline()
    assert line.startswith("trestle tail: ")
    assert line.endswith("; tried again for a minute\n")


def test_a_stream_that_is_switched_off_ends_it(streamed):
    server, rpc = streamed()
    with Tail(server.host, TABLE, "--from", now()) as tail:
        put(rpc, b"k")
        tail.next()
        update_stream(rpc, NAME, None)
        assert tail.process.wait(PATIENCE_SECONDS) == 1
        assert "Change stream is not enabled" in tail.process.stderr.read()
