#!/usr/bin/env python3
"""Writes random entities, kills the server at random moments, and lets `trestle doctor` make every
index anew after each: `./dev crash indexes --help`.

Writers commit one to ten random mutations at a time, of entities with values of all types, in
arrays and in one another. After each start every entity must be what was acknowledged, and of a
commit that was under way all or nothing must be there; and the doctor, before, must find the rows
of all indexes to be those that the entities make. Meanwhile composite indexes are made and deleted:
what a kill cuts short goes on after the start. A reader holds what projections give in a
transaction against what the entities say in it, while the writers go on. The server is started anew
with optimistic or pessimistic transactions, as the dice have it. Kills, power cuts, thresholds and
seeds are those of run.py.
"""

import random
import sys
import threading

import grpc
import run
from google.cloud.datastore_admin_v1 import types as admin_types
from google.cloud.datastore_v1 import types
from run import Failure

REQUEST_SECONDS = 60
KEYS = 40  # of each writer
KINDS = ["A", "B", "long kind " * 10]
PROPERTIES = ["a", "b", "outer.inner", "tags", "é"]
PROJECT = "crash"
VALUES = [
    {"null_value": 0},
    {"boolean_value": True},
    {"double_value": -0.5},
    {"timestamp_value": {"seconds": 1_600_000_000, "nanos": 1000}},
    {"key_value": {"partition_id": {"project_id": PROJECT}, "path": [{"kind": "A", "id": 1}]}},
    {"geo_point_value": {"latitude": 1.5, "longitude": -7}},
    {"blob_value": b"\x00\xff\x01"},
    {"string_value": "s"},
    {"string_value": "excluded " * 400, "exclude_from_indexes": True},
]
MODES = ["optimistic", "pessimistic"]
Commit = types.CommitRequest.pb(types.CommitRequest()).__class__
Lookup = types.LookupRequest.pb(types.LookupRequest()).__class__


# What an index may be refused for: it is there, is being made or deleted, or is gone.
REFUSALS = {
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
}


class Stub:
    def __init__(self, host):
        self.channel = grpc.insecure_channel(host)
        service = "/google.datastore.v1.Datastore"
        self.commit = self.channel.unary_unary(
            f"{service}/Commit", Commit.SerializeToString, types.CommitResponse.deserialize
        )
        self.lookup = self.channel.unary_unary(
            f"{service}/Lookup", Lookup.SerializeToString, types.LookupResponse.deserialize
        )
        self.run_query = self.channel.unary_unary(
            f"{service}/RunQuery", types.RunQueryRequest.serialize,
            types.RunQueryResponse.deserialize,
        )  # fmt: skip
        self.begin_transaction = self.channel.unary_unary(
            f"{service}/BeginTransaction", types.BeginTransactionRequest.serialize,
            types.BeginTransactionResponse.deserialize,
        )  # fmt: skip

    def begin(self):
        """One that only reads."""
        request = types.BeginTransactionRequest(
            project_id=PROJECT, transaction_options={"read_only": {}}
        )
        return self.begin_transaction(request, timeout=REQUEST_SECONDS).transaction

    def close(self):
        self.channel.close()


def key_message(writer, number):
    """Some are others' children; some have names."""
    kind = KINDS[number % len(KINDS)]
    path = [{"kind": "W", "id": writer + 1}, {"kind": kind, "id": number + 1}]
    if number % 4 == 0:
        path[1] = {"kind": kind, "name": f"n\x01{number}"}
    if number % 5 == 0:
        path.append({"kind": "Child", "id": 1})
    name_space = "other" if number % 7 == 0 else ""
    return {"partition_id": {"project_id": PROJECT, "namespace_id": name_space}, "path": path}


class Writer(threading.Thread):
    """Works until the server is gone. `tokens` has what is acknowledged of each of its entities (0:
    it is not there), `doubt` what those of the last commit become if that was done."""

    def __init__(self, number, seed, cycle, host, tokens, dying):
        super().__init__(name=f"writer-{number}")
        self.random = random.Random(f"{seed}/{cycle}/{number}")
        self.number, self.tokens, self.dying = number, tokens, dying
        self.next_token = 1000 * cycle * 1000 + 1
        self.stub = Stub(host)
        self.doubt, self.commits, self.failure = {}, 0, None

    def run(self):
        try:
            while True:
                self.step()
        except grpc.RpcError as error:
            if not self.dying.is_set():
                self.failure = f"{error.code()}: {error.details()}"
        finally:
            self.stub.close()

    def step(self):
        count = self.random.choice([1, 1, 2, 5, 10])
        self.doubt = {number: self.new_token() for number in self.random.sample(range(KEYS), count)}
        mutations = [self.mutation(number, token) for number, token in self.doubt.items()]
        request = types.CommitRequest(
            project_id=PROJECT, mode="NON_TRANSACTIONAL", mutations=mutations
        )
        try:
            self.stub.commit(types.CommitRequest.pb(request), timeout=REQUEST_SECONDS)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.ABORTED:  # it waited too long for a lock: not done
                raise
            self.doubt = {}
            return
        self.tokens.update(self.doubt)
        self.doubt = {}
        self.commits += 1

    def new_token(self):
        """0 once in five times: a delete."""
        self.next_token += 1
        return self.next_token if self.random.random() < 0.8 else 0

    def mutation(self, number, token):
        key = key_message(self.number, number)
        if token == 0:
            return {"delete": key}
        names = self.random.sample(PROPERTIES, self.random.randrange(len(PROPERTIES)))
        properties = {name: self.value(2) for name in names}
        return {
            "upsert": {"key": key, "properties": {"token": {"integer_value": token}, **properties}}
        }

    def value(self, depth):
        """Arrays hold no arrays."""
        dice = self.random.random()
        if dice < 0.2:
            return {"integer_value": self.random.randrange(5)}
        if depth == 2 and dice < 0.4:
            values = [self.value(1) for _ in range(self.random.randrange(4))]
            return {"array_value": {"values": values}}
        if depth > 0 and dice < 0.5:
            return {"entity_value": {"properties": {"inner": self.value(depth - 1 and 1)}}}
        return self.random.choice(VALUES)


class Administrator(threading.Thread):
    """Makes and deletes composite indexes until the server is gone."""

    def __init__(self, seed, cycle, host, dying):
        super().__init__(name="administrator")
        self.random, self.dying = random.Random(f"{seed}/{cycle}/administrator"), dying
        self.channel = grpc.insecure_channel(host)
        self.changes, self.failure = 0, None

    def call(self, method, answer, **fields):
        request = getattr(admin_types, f"{method}Request")(project_id=PROJECT, **fields)
        stub = self.channel.unary_unary(
            f"/google.datastore.admin.v1.DatastoreAdmin/{method}",
            type(request).serialize, answer.deserialize if answer else None,
        )  # fmt: skip
        return stub(request, timeout=REQUEST_SECONDS)

    def run(self):
        try:
            while not self.dying.is_set():
                self.step()
        except grpc.RpcError as error:
            if not self.dying.is_set():
                self.failure = f"{error.code()}: {error.details()}"
        finally:
            self.channel.close()

    def step(self):
        try:
            self.change()
            self.changes += 1
        except grpc.RpcError as error:
            if error.code() not in REFUSALS:
                raise
        self.dying.wait(0.02)

    def change(self):
        indexes = self.call("ListIndexes", admin_types.ListIndexesResponse).indexes
        if len(indexes) > 6 or (indexes and self.random.random() < 0.4):
            self.call("DeleteIndex", None, index_id=self.random.choice(indexes).index_id)
        else:
            self.call("CreateIndex", None, index=self.new_index())

    def new_index(self):
        names = self.random.sample([*PROPERTIES, "token"], self.random.choice([2, 2, 3]))
        return admin_types.Index(
            kind=self.random.choice([*KINDS, "Child"]),
            ancestor=self.random.choice(["NONE", "ALL_ANCESTORS"]),
            properties=[
                {"name": name, "direction": self.random.choice(["ASCENDING", "DESCENDING"])}
                for name in names
            ],
        )


class Reader(threading.Thread):
    """Asks for a property of a kind, twice in one transaction, until the server is gone: as the
    index has it, and as the entities do."""

    def __init__(self, seed, cycle, host, dying, clock_steps):
        super().__init__(name="reader")
        self.random, self.dying = random.Random(f"{seed}/{cycle}/reader"), dying
        self.clock_steps = clock_steps
        self.stub, self.comparisons, self.failure = Stub(host), 0, None

    def run(self):
        try:
            while not self.dying.is_set() and self.failure is None:
                self.try_step()
        except grpc.RpcError as error:
            if not self.dying.is_set():
                self.failure = f"{error.code()}: {error.details()}"
        finally:
            self.stub.close()

    def try_step(self):
        """A transaction is too old when the clock is set an hour ahead: then it is given up."""
        try:
            self.step()
        except grpc.RpcError as error:
            if not (self.clock_steps and error.code() == grpc.StatusCode.FAILED_PRECONDITION):
                raise

    def step(self):
        kind, name = self.random.choice(KINDS), self.random.choice(["a", "b", "tags"])
        transaction = self.stub.begin()
        entities = self.query(transaction, kind=[{"name": kind}])
        values = sorted(
            (key, value)
            for key, properties in entities
            for value in {repr(each) for each in indexed(properties.get(name))}
        )
        projected = self.query(
            transaction,
            kind=[{"name": kind}],
            projection=[{"property": {"name": name}}],
            order=[{"property": {"name": name}}],
        )
        shown = sorted((key, repr(plain(properties[name]))) for key, properties in projected)
        if values != shown:
            differing = set(values).symmetric_difference(shown)
            self.failure = f"{name} of {kind}: not the same in index and entities: {differing}"
        self.comparisons += 1

    def query(self, transaction, **query):
        """Keys and properties of all results."""
        results, more = [], True
        while more:
            request = types.RunQueryRequest(
                project_id=PROJECT, read_options={"transaction": transaction}, query=query
            )
            batch = self.stub.run_query(request, timeout=REQUEST_SECONDS).batch
            results += batch.entity_results
            query["start_cursor"] = batch.end_cursor
            more = batch.more_results == types.QueryResultBatch.MoreResultsType.NOT_FINISHED
        return [
            (types.Key.serialize(each.entity.key), each.entity.properties) for each in results
        ]


def plain(value):
    """What it is, and its type. An index has moments as numbers of meaning 18."""
    message = types.Value.pb(value)
    which = message.WhichOneof("value_type")
    inner = getattr(message, which)
    if which == "timestamp_value":
        return which, inner.ToMicroseconds()
    if which == "integer_value" and message.meaning == 18:
        return "timestamp_value", inner
    return which, inner if isinstance(inner, (int, str, bytes, float)) else str(inner)


def indexed(value):
    """Those of its values that are in the index of its property."""
    which = None if value is None else types.Value.pb(value).WhichOneof("value_type")
    if which in (None, "entity_value") or value.exclude_from_indexes:
        return []
    if which == "array_value":
        return [each for inner in value.array_value.values for each in indexed(inner)]
    return [plain(value)]


class IndexCrash(run.Crash):
    @staticmethod
    def add_options(add):
        add("--concurrency", choices=[*MODES, "either"], default="either",
            help="the server's --datastore-concurrency; default: either, by cycle")  # fmt: skip

    @staticmethod
    def own_options(options):
        return f" --concurrency {options.concurrency}"

    def __init__(self, options):
        super().__init__(options)
        self.table = ""  # nothing to be made
        self.tokens = [{} for _ in range(options.writers)]
        self.doubts_of = [{} for _ in range(options.writers)]
        self.doctors = self.changes = self.comparisons = 0
        self.modes = dict.fromkeys(MODES, 0)

    def run_cycle(self, cycle):
        """In a mode of its own."""
        mode = self.options.concurrency
        if mode == "either":
            mode = random.Random(f"{self.options.seed}/{cycle}/mode").choice(MODES)
        self.modes[mode] += 1
        self.server.arguments = [*self.arguments(), "--datastore-concurrency", mode]
        super().run_cycle(cycle)

    def between(self, plan):
        plan.has_doctor = True
        super().between(plan)

    def doctor(self):
        if self.cycles > 0:
            super().doctor()
            self.doctors += 1

    def work(self, cycle, plan):
        dying = threading.Event()
        writers = [
            Writer(i, self.options.seed, cycle, self.server.host, self.tokens[i], dying)
            for i in range(self.options.writers)
        ]
        administrator = Administrator(self.options.seed, cycle, self.server.host, dying)
        reader = Reader(
            self.options.seed, cycle, self.server.host, dying, self.options.clock_steps
        )
        threads = [*writers, administrator, reader]
        for thread in threads:
            thread.start()
        self.let_work(writers[0], plan)
        dying.set()
        if plan.is_stopped:
            self.server.stop()
        else:
            self.server.kill()
        for writer in writers:
            writer.join()
            self.doubts_of[writer.number] = writer.doubt
            self.ledger.count(writer.commits)
        administrator.join()
        reader.join()
        self.changes += administrator.changes
        self.comparisons += reader.comparisons
        failures = [f"{each.name}: {each.failure}" for each in threads if each.failure is not None]
        if failures:
            raise Failure(failures)

    def verify(self, plan):
        stub = Stub(self.server.host)
        try:
            problems = [
                f"writer-{number}: {problem}"
                for number in range(self.options.writers)
                for problem in self.compare_writer(stub, number)
            ]
        finally:
            stub.close()
        if problems:
            raise Failure(problems)

    def compare_writer(self, stub, number):
        """What is there is then what is expected: a commit in doubt is so no longer."""
        seen = self.read(stub, number)
        before = {each: self.tokens[number].get(each, 0) for each in range(KEYS)}
        after = {**before, **self.doubts_of[number]}
        if self.doubts_of[number]:
            self.doubts[seen == after] += 1
        self.tokens[number], self.doubts_of[number] = dict(seen), {}
        if seen in (before, after):
            return []
        wrong = [each for each in seen if seen[each] not in (before[each], after[each])]
        if not wrong:
            return ["half of a commit is there"]
        return [f"{each}: expected {after[each]}, read {seen[each]}" for each in wrong]

    def read(self, stub, number):
        keys = [key_message(number, each) for each in range(KEYS)]
        request = types.LookupRequest(project_id=PROJECT, keys=keys)
        answer = stub.lookup(types.LookupRequest.pb(request), timeout=REQUEST_SECONDS)
        assert not answer.deferred
        found = {
            types.Key.serialize(result.entity.key): result.entity.properties["token"].integer_value
            for result in answer.found
        }
        return {
            each: found.get(types.Key.serialize(types.Key(key)), 0)
            for each, key in enumerate(keys)
        }

    def summary(self, lost):
        return (
            f"{self.cycles} cycles, {self.ledger.acknowledged} acknowledged commits, {lost} lost; "
            f"{self.doctors} times every index was made anew, {self.changes} changes of composite "
            f"indexes, {self.comparisons} comparisons of projections; starts: {self.modes}\n"
            f"in doubt: {self.doubts[0]} were not done, {self.doubts[1]} were"
        )


if __name__ == "__main__":
    about = "Kills the server while it writes entities."
    sys.exit(run.main("./dev crash indexes", about, IndexCrash))
