"""A repair of a Datastore database that served gave up index rows and entities, and said that all
was in service again. From then on queries, in transactions, too, missed entities whose index rows
had been given up; ended with INTERNAL, or gave keys, projections and counts of entities that were
gone; and where the counter of ids had been given up, entities got the ids of others, which they
replaced.

What follows from rows that are given up is made before they are back in service, and until then
whoever comes to them is refused, also after a kill in the middle."""

import operator
import random
import re
import shutil
import subprocess
import time

import pytest
from google.api_core import exceptions
from google.cloud.datastore.query import PropertyFilter
from harness.damage import flip
from harness.datastore import client_of, entity
from harness.indexes import Indexes
from harness.server import EXTERNAL, Server, binary, run_trestle

pytestmark = pytest.mark.skipif(bool(EXTERNAL), reason="needs servers of its own")

PROJECT, KIND = "p", "K"
NAMED, NUMBERED, AT_ONCE, LOOKUPS = 700, 300, 250, 20
FLUSHES = ["--write-buffer", "4MB", "--scrub-period", "0"]  # what the log has, at the next start
BLOB_BYTES = 1200
STEP, INDEXES_FIRST, INDEXES_LAST = 2500, 75_000, 40_000  # of the file's bytes, beside the entities
COMPARE = {"=": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt}
SHAPES = {
    "all": {},
    "keys": {"keys": True},
    "equal": {"filters": [("a", "=", 3)]},
    "greater": {"filters": [("a", ">", 25)], "order": ["a"]},
    "downwards": {"order": ["-a"]},
    "range": {"filters": [("s", ">=", "s010"), ("s", "<", "s060")], "order": ["s"]},
    "merged": {"filters": [("a", "=", 3), ("v", "=", 0)]},
    "keys of a range": {"filters": [("a", "<", 10)], "keys": True},
    "projected": {"projection": ["a"], "order": ["a"]},
    "composite": {"order": ["a", "-s"]},
    "composite, projected": {"projection": ["a", "s"], "order": ["a", "-s"]},
}


def properties_of(number):
    values = {"a": number * 7 % 50, "s": f"s{number * 13 % 97:03d}", "v": 0}
    return values | {"blob": random.Random(number).randbytes(BLOB_BYTES).hex()}


def entity_of(client, number, *path):
    return entity(client, KIND, *path, exclude=("blob",), **properties_of(number))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """(a directory of a stopped server, {name or id: properties}): all in table files."""
    place = tmp_path_factory.mktemp("sound")
    server = Server(place, FLUSHES[2:]).start()
    client = client_of(server.host, PROJECT)
    Indexes(server.host, PROJECT).create(KIND, "a", "-s")
    model = {}
    for begin in range(0, NAMED + NUMBERED, AT_ONCE):
        entities = [
            entity_of(client, i, *([f"n{i:05d}"] if i < NAMED else []))
            for i in range(begin, begin + AT_ONCE)
        ]
        client.put_multi(entities)
        model |= {each.key.id_or_name: dict(each) for each in entities}
    server.stop()
    server.arguments = FLUSHES
    server.start()
    server.stop()
    yield server.data, model
    server.close()


def hit_at(data, path, at):
    """(the letters of the rows that a flip there takes out of service), without the flip."""
    flip(path, at)
    told = run_trestle("repair", data).stdout
    flip(path, at)
    ranges = re.findall(r'rows from "(.)[^"]*" (?:to "(.)|on)', told)
    return ranges[0] if len(ranges) == 1 else None


@pytest.fixture(scope="module")
def blocks(sound):
    """{what it has: (file, where to flip)}"""
    data, _ = sound
    path = max(data.glob("*.sst"), key=lambda each: each.stat().st_size)
    found, size = {}, path.stat().st_size
    looks = [*range(100, INDEXES_FIRST, STEP), size // 2, *range(size - INDEXES_LAST, size, STEP)]
    for at in looks:
        letters = hit_at(data, path, at)
        if letters is not None:
            found.setdefault("".join(sorted(set(letters))), (path.name, at))
    return found


class Database:
    """A copy of it that is served."""

    def __init__(self, place, sound, name, at, *arguments):
        data, self.model = sound
        self.server = Server(place, [*FLUSHES, *arguments])
        shutil.copytree(data, self.server.data)
        flip(self.server.data / name, at)
        self.lost = place / "lost.tsv"

    def start(self):
        self.server.start()
        self.client = client_of(self.server.host, PROJECT)
        return self

    def gone(self):
        """Keys of entities that are not there, after what is is right; None for what is refused."""
        found, refused, names = {}, set(), list(self.model)
        for at in range(0, len(names), LOOKUPS):
            some = names[at : at + LOOKUPS]
            asks = [some] if self.look_up(some, found) else [[name] for name in some]
            for ask in asks:
                if not self.look_up(ask, found):
                    refused.update(ask)
        assert all(self.model[name] == each for name, each in found.items())
        return set(names) - set(found) - refused, refused

    def look_up(self, names, found):
        """Whether they were told."""
        try:
            entities = self.client.get_multi([self.client.key(KIND, name) for name in names])
        except exceptions.DataLoss:
            return False
        found |= {each.key.id_or_name: dict(each) for each in entities}
        return True

    def query(self, keys=False, filters=(), order=(), projection=()):
        query = self.client.query(kind=KIND, order=order, projection=projection)
        for filter_ in filters:
            query.add_filter(filter=PropertyFilter(*filter_))
        if keys:
            query.keys_only()
        return query

    def check_shape(self, there, shape, or_there=None):
        """Whether it was answered; then it was right."""
        try:
            found = list(self.query(**shape).fetch())
        except exceptions.DataLoss:
            return False
        filters = shape.get("filters", ())
        rights = [
            sorted(
                str(name)
                for name, properties in model.items()
                if all(COMPARE[sign](properties[p], value) for p, sign, value in filters)
            )
            for model in (there, there if or_there is None else or_there)
        ]
        assert sorted(str(each.key.id_or_name) for each in found) in rights
        for each in found:
            asked = [] if shape.get("keys") else shape.get("projection") or ["a", "s", "v"]
            assert all(each[p] == there[each.key.id_or_name][p] for p in asked)
        return True

    def check_count(self, there, or_there=None):
        query = self.client.aggregation_query(self.client.query(kind=KIND)).count(alias="n")
        try:
            counts = (len(there), len(there if or_there is None else or_there))
            assert next(iter(query.fetch()))[0].value in counts
        except exceptions.DataLoss:
            return False
        return True

    def check(self, there, or_there=None):
        """Which queries were refused; all others were right by one of the two."""
        refused = [n for n, each in SHAPES.items() if not self.check_shape(there, each, or_there)]
        if not self.check_count(there, or_there):
            refused.append("count")
        for is_read_only in (False, True):
            refused += self.check_transaction(there, or_there, is_read_only)
        return refused

    def check_transaction(self, there, or_there, is_read_only):
        """Its commit looks at what it has read once more."""
        names = ("range", "composite", "keys")
        refused = []
        try:
            with self.client.transaction(read_only=is_read_only):
                for name in names:
                    if not self.check_shape(there, SHAPES[name], or_there):
                        refused.append(name)
        except exceptions.DataLoss:
            assert refused, "a commit is refused, and nothing that it has read"
        return refused

    def ready(self):
        return self.server.get("/readyz")[1]

    def repair(self, *arguments):
        return run_trestle(
            "repair", "--endpoint", self.server.host, "--lost", self.lost, *arguments
        )

    def meet(self):
        """What of it is refused: entities, queries. The first who meets a damaged block is told
        what the store says of it."""
        self.gone()
        gone, refused = self.gone()
        assert gone == set()
        return refused, self.check(self.model)

    def there(self, gone):
        return {name: each for name, each in self.model.items() if name not in gone}

    def check_new_ids(self, there):
        """What the server numbers replaces nothing."""
        for _ in range(3):
            keys = self.client.allocate_ids(self.client.key(KIND), 100)
            assert not {key.id for key in keys} & set(there)
        new = entity_of(self.client, 1)
        self.client.put(new)
        assert new.key.id not in there
        self.client.delete(new.key)

    def check_doctor(self):
        self.server.stop()
        doctor = run_trestle("doctor", self.server.data)
        assert doctor.returncode == 0, doctor.stderr


# By the letters of docs/internals/datastore-layout.md: the first row's and the last one's.
@pytest.fixture(params=["A", "C", "E", "EK", "K"])
def damaged(request, tmp_path, sound, blocks):
    assert request.param in blocks, sorted(blocks)
    database = Database(tmp_path, sound, *blocks[request.param])
    yield database
    database.server.close()


def check_repaired(database, refused, told):
    """Nothing but entities in the damaged blocks is gone."""
    assert told.returncode == 0, told.stderr
    assert database.ready() == "ok\n"
    gone, still_refused = database.gone()
    assert gone <= refused and still_refused == set()
    there = database.there(gone)
    assert database.check(there) == []
    database.check_new_ids(there)
    return gone


@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
def test_all_queries_are_right_after_a_repair(damaged, mode):
    damaged.server.arguments += ["--datastore-concurrency", mode]
    damaged.start()
    refused, refused_queries = damaged.meet()
    assert refused or refused_queries
    assert "damaged_range" in damaged.ready()
    told = damaged.repair("--in-place")
    gone = check_repaired(damaged, refused, told)
    assert "index rows among them are made anew" in told.stdout
    assert gone == set() or "of entities that are lost" in told.stdout
    damaged.server.stop()
    damaged.start()
    assert damaged.gone() == (gone, set())
    assert damaged.check(damaged.there(gone)) == []
    damaged.check_doctor()


def test_a_kill_in_the_middle_leaves_nothing_wrong(damaged):
    damaged.start()
    refused, _ = damaged.meet()
    gone = set()
    for milliseconds in (10, 40, 100, 200):
        command = [binary(), "repair", "--endpoint", damaged.server.host]
        command += ["--lost", str(damaged.lost), "--in-place"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            time.sleep(milliseconds / 1000)  # any moment will do
            damaged.server.kill()
        damaged.start()
        gone, closed = damaged.gone()
        assert gone | closed <= refused
        assert gone == set() or closed == set()
        damaged.check(damaged.there(gone), damaged.there(gone | closed))
    check_repaired(damaged, refused, damaged.repair("--in-place"))
    damaged.check_doctor()


def test_a_stopped_server_is_repaired_the_same_way(damaged):
    damaged.start()
    refused, _ = damaged.meet()
    damaged.server.stop()
    told = run_trestle("repair", damaged.server.data, "--in-place", "--lost", damaged.lost)
    damaged.start()
    check_repaired(damaged, refused, told)
    damaged.check_doctor()
