"""examples/datastore: the recipes do what their page says, also with many at once, and half-way."""

import concurrent.futures
import datetime
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from google.cloud.datastore.query import PropertyFilter
from harness.datastore import client_of, fresh_client
from harness.patience import PATIENCE_SECONDS
from harness.server import ROOT

EXAMPLE = ROOT / "examples/datastore"
sys.path.append(str(EXAMPLE))

import counters  # noqa: E402
import generations  # noqa: E402
import migration  # noqa: E402
import queries  # noqa: E402
from recipes import hash_of  # noqa: E402


@pytest.fixture
def client(server):
    return fresh_client(server.host)


@pytest.fixture
def started(server, client):
    """A function that starts a program as a user would: started("counters", "show", "visits")."""

    def start(program, command, *arguments):
        return subprocess.Popen(
            [sys.executable, EXAMPLE / f"{program}.py", "--project", client.project, command]
            + [str(each) for each in arguments],
            env={**os.environ, "DATASTORE_EMULATOR_HOST": server.host},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


@pytest.fixture
def run(started):
    """A function that runs a program to its end and gives what it prints."""

    def run_to_end(*arguments, code=0):
        process = started(*arguments)
        printed, complaints = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == code, complaints
        return (printed if code == 0 else complaints).strip()

    return run_to_end


def in_threads(count, work):
    """work(0), work(1)... each in a thread; what they return."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


# --- counters ---


def test_no_count_is_lost(run, started, client):
    """Two processes of three threads each, and a reader who never sees the number go down."""
    processes = [started("counters", "add", "v", "--times", 20, "--threads", 3) for _ in range(2)]
    seen = [0]
    while any(process.poll() is None for process in processes):
        seen.append(counters.total(client, "v"))
        time.sleep(0.05)
    for process in processes:
        assert process.communicate()[0] == "3 threads added 20 each to one of 20 shards\n"
        assert process.returncode == 0
    assert seen == sorted(seen) and seen[-1] <= 120
    assert run("counters", "show", "v") == "120"
    query = client.query(kind="CounterShard")
    assert len(list(query.fetch())) > 1
    query.add_filter(filter=PropertyFilter("count", ">", 0))
    assert list(query.fetch()) == []  # a count has no index rows


def test_a_counter_grows_and_is_summed(run, client):
    for _ in range(5):
        counters.add(client, "v", counters.shards_of(client, "v"))
    assert run("counters", "show", "v", "--summed") == "0"
    assert run("counters", "sum", "v") == "5"
    run("counters", "grow", "v", "100")
    counters.add(client, "v", 100, amount=10)
    assert run("counters", "show", "v") == "15"
    assert run("counters", "show", "v", "--summed") == "5"
    assert "has 100 shards already" in run("counters", "grow", "v", "50", code=1)


# --- generations ---


def sessions(client):
    """{name: (generation, time of expiry)}"""
    found = client.query(kind="Session").fetch()
    return {s.key.name: (int(s["expiry"][:8]), generations.expiry_of(s)) for s in found}


def in_seconds(seconds):
    return generations.now() + datetime.timedelta(seconds=seconds)


def test_what_has_expired_is_swept(run, client):
    for at in range(60):
        generations.put(client, f"s{at}", "u", in_seconds(-1 if at % 3 == 0 else 3600))
    assert generations.get(client, "s0") is None and generations.get(client, "s1")["user"] == "u"
    assert run("generations", "sweep") == "20 deleted, 40 moved to the next generation"
    assert set(sessions(client)) == {f"s{at}" for at in range(60) if at % 3}
    assert {generation for generation, _ in sessions(client).values()} == {2}
    run("generations", "put", "new", "--seconds", 100, "--user", "her")
    assert run("generations", "get", "new").startswith("her, 00000002-")
    assert run("generations", "get", "s0") == "no such session"
    assert run("generations", "sweep") == "0 deleted, 41 moved to the next generation"


def test_sessions_begin_and_last_longer_during_sweeps(server, client):
    """None that was put is lost, none that has expired is left."""
    kept = set()

    def write(number):
        own = client_of(server.host, client.project)
        for at in range(12):
            generations.put(own, f"{number}-{at}", "u", in_seconds(-5 if at % 2 else 3600))
            generations.put(own, f"{number}-0", "u", in_seconds(4000 + at))  # the same once more
            if at % 2 == 0:
                kept.add(f"{number}-{at}")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        writers = pool.submit(in_threads, 3, write)
        while not writers.done():
            generations.sweep(client)
        writers.result()
    generations.sweep(client)
    left = sessions(client)
    assert set(left) == kept and len(kept) == 18
    assert len({generation for generation, _ in left.values()}) == 1


def test_a_sweep_that_stopped_is_done_by_the_next(client):
    for at in range(10):
        generations.put(client, f"s{at}", "u", in_seconds(-1))
    assert list(generations.begin_generation(client)) == [1]  # and then the power went
    generations.put(client, "t", "u", in_seconds(-1))
    assert generations.sweep(client) == [11, 0]
    assert sessions(client) == {}


# --- the migration ---


NAMES = [f"user{at:03}" for at in range(70)]


@pytest.fixture
def profiles(client):
    for name in NAMES:
        migration.write(client, name, f"{name}'s city")


def counts(run):
    """(phase, percent, old, new)"""
    words = run("migration", "status").replace(",", "").split()
    return words[1], int(words[2]), int(words[8]), int(words[12])


def test_a_migration_from_end_to_end(run, client, profiles):
    assert counts(run) == ("old", 0, 70, 0)
    assert run("migration", "copy", code=1) == "begin first"
    run("migration", "begin")
    run("migration", "put", "user000", "Rome")
    assert run("migration", "verify", code=1) == "" and counts(run) == ("both", 0, 70, 1)
    assert run("migration", "copy") == "69 copied of 70 seen"
    assert run("migration", "verify") == "70 profiles, 0 differ"
    run("migration", "ramp", 50)
    assert [migration.read(client, name)["name"] for name in NAMES] == NAMES
    assert run("migration", "finish", code=1) == "ramp to 100 first"
    run("migration", "ramp", 100)
    assert run("migration", "finish") == "70 profiles, 0 differ"
    assert counts(run) == ("new", 100, 0, 70)
    assert run("migration", "get", "user000") == "Rome"
    run("migration", "delete", "user000")
    assert run("migration", "get", "user000") == "no such profile"
    assert counts(run) == ("new", 100, 0, 69)


def test_a_share_reads_the_new_kind(client, profiles):
    """By the hash of the name, and as many as said; what is not there is read from the old."""
    migration.change_state(client, lambda state: None, phase="both", percent=30)
    for name in NAMES[:50]:  # so that one sees which was read
        new = client.entity(migration.new_key(client, name))
        new.update(name=name, city="new")
        client.put(new)
    read = {name: migration.read(client, name)["city"] for name in NAMES}
    ramped = {name for name in NAMES if hash_of(name, 100) < 30}
    assert {name for name in NAMES if read[name] == "new"} == ramped & set(NAMES[:50])
    assert 5 < len(ramped) < 40 and len(ramped - set(NAMES[:50])) > 0


def test_a_copy_brings_nothing_back(server, client, profiles, monkeypatch):
    """Between the job's reading of a page and its writing of it one profile is deleted."""
    other = client_of(server.host, client.project)
    migration.change_state(client, lambda state: None, phase="both")
    deletion = threading.Thread(target=migration.delete, args=(other, NAMES[0]))
    put_multi = client.put_multi

    def put_late(entities):
        if deletion.ident is None:
            deletion.start()
            deletion.join(1)  # longer where transactions hold locks: then it comes afterwards
        put_multi(entities)

    monkeypatch.setattr(client, "put_multi", put_late)
    migration.copy_page(client, [migration.old_key(client, name) for name in NAMES[:3]])
    deletion.join()
    found = [client.get(migration.new_key(client, name)) for name in NAMES[:3]]
    assert [each and each["name"] for each in found] == [None, *NAMES[1:3]]


def interrupt(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode


def test_a_migration_that_was_killed_half_way(run, started, client, profiles):
    """The application writes and deletes all the time, and reads what it wrote; the job is killed
    behind its first page, and by a second one goes on from there."""
    run("migration", "begin")
    stop, expected = threading.Event(), {name: f"{name}'s city" for name in NAMES}

    def use():
        for at, name in enumerate(NAMES * 3):
            if stop.is_set():
                return
            if at % 7 == 3:
                migration.delete(client, name)
                expected.pop(name, None)
            elif at % 2:
                expected[name] = f"city {at}"
                migration.write(client, name, expected[name])
            read = migration.read(client, name)
            assert (read["city"] if read else None) == expected.get(name)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        application = pool.submit(use)
        try:
            job = started("migration", "copy", "--pause", 60)
            while client.get(client.key("MigrationJob", "profiles")) is None:
                assert job.poll() is None
                time.sleep(0.05)
            assert interrupt(job) == -signal.SIGKILL
            assert client.get(migration.new_key(client, NAMES[-2])) is None
            run("migration", "ramp", 60)
            second = run("migration", "copy")
            assert int(second.split()[-2]) <= 50, "did not go on where the first one was"
        finally:
            stop.set()
        application.result()
    assert run("migration", "verify") == f"{len(expected)} profiles, 0 differ"
    run("migration", "ramp", 100)
    run("migration", "finish")
    assert counts(run) == ("new", 100, 0, len(expected))
    read = {name: migration.read(client, name) for name in NAMES}
    assert {name: found["city"] for name, found in read.items() if found} == expected


# --- sharded queries ---


def test_the_newest_of_all_shards(server, client, run):
    def log(number):
        own = client_of(server.host, client.project)
        for at in range(10):
            queries.log(own, f"{number}.{at}", f"{number}.{at} again")

    in_threads(4, log)
    found = queries.newest(client, 1000)
    assert len(found) == 80
    moments = [queries.moment_of(event) for event in found]
    assert moments == sorted(moments, reverse=True)
    assert len({event["when"][:2] for event in found}) > 1
    assert queries.newest(client, 7) == found[:7]
    since, until = moments[60], moments[20]
    between = [e for e in found if since <= queries.moment_of(e) < until]
    assert queries.newest(client, 1000, since, until) == between
    lines = run("queries", "newest", 5).splitlines()
    assert [line.split("  ")[1] for line in lines] == [event["text"] for event in found[:5]]


def test_events_are_logged_in_order(run):
    for text in "one", "two", "three":
        run("queries", "log", text)
    lines = run("queries", "newest", 2).splitlines()
    assert [line.split("  ")[1] for line in lines] == ["three", "two"]
