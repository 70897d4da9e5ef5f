#!/usr/bin/env python3
"""Restores a server under load to seconds of its life. `./dev crash archive`.

Tables and a Datastore database are written to all the time, tables are made, deleted, brought back
and restored from backups, families come and go, rows are dropped by prefix; the server is killed in
between. It keeps an archive, and makes whole backups of itself: one at first, later one of what has
changed. Seconds are chosen, the first of them while the load goes on, and each is restored from the
places alone into a bare directory. A server is started there and asked for everything that it has,
which must be what the model had at that second: of a change that was under way then, either. With
`--bucket` both places are in a bucket, of moto's.

At the end: what the archive and the backups took, and how long it was.
"""

import argparse
import contextlib
import itertools
import random
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import grpc  # noqa: E402
from google.cloud.bigtable_admin_v2 import types as admin  # noqa: E402
from harness.admin import Admin  # noqa: E402
from harness.aws_services import Moto  # noqa: E402
from harness.backups import Backups, finish  # noqa: E402
from harness.datastore import Raw, client_of  # noqa: E402
from harness.patience import PATIENCE_SECONDS  # noqa: E402
from harness.rpc import Rpc, delete_row, set_cell  # noqa: E402
from harness.server import Server, run_trestle  # noqa: E402

KEYS = [b"%c%d" % (letter, number) for letter in b"abc" for number in range(4)]
ACCOUNTS, CENTS = 6, 100
SECOND = 1_000_000  # all times are in microseconds
PROJECT, INSTANCE = "p", "projects/p/instances/i"


class Failure(Exception):
    pass


def now_us():
    return time.time_ns() // 1000


def text_of(us):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(us // SECOND))


class Life:
    """A thing with its states, each with when the change to it began and had ended."""

    def __init__(self, state):
        self.states = [(0, 0, state)]

    @property
    def state(self):
        return self.states[-1][2]

    def change(self, state, act):
        """`act` makes it so; if that breaks off, what is there is looked at later."""
        began = now_us()
        act()
        self.states.append((began, now_us(), state))

    def found(self, began, state):
        """After a change broke off that was begun then."""
        self.states.append((began, now_us(), state))

    def may_be(self, us):
        """The states that it may have had."""
        certain = max(i for i, (_, ended, _) in enumerate(self.states) if ended <= us)
        return [state for began, _, state in self.states[certain:] if began <= us]


class Clients:
    """Of one life of the server."""

    def __init__(self, host):
        self.rpc = Rpc(host)
        self.admin = Admin(host)
        self.backups = Backups(self.admin, INSTANCE)
        self.datastore = Raw(client_of(host, PROJECT))

    def close(self):
        self.rpc.close()


# --- what is written ---


class Table:
    """One table. Its state: families and rows, or None if it is not there."""

    def __init__(self, number, seed):
        self.table_id, self.random = f"t{number}", random.Random(f"{seed} {number}")
        self.name = f"{INSTANCE}/tables/{self.table_id}"
        self.life, self.count = Life(None), 0

    def read(self, clients):
        try:
            families = clients.rpc.get_table(self.name, view=admin.Table.View.SCHEMA_VIEW)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
            return None
        rows = {key: sorted((c.family, c.value) for c in cells)
                for key, cells in clients.rpc.read(self.name)}  # fmt: skip
        return sorted(families.column_families), rows

    def create(self, clients):
        self.life.change((["f"], {}), lambda: clients.rpc.create_table(self.table_id))

    def step(self, clients):
        if self.life.state is None:
            self.come_back(clients)
            return
        kinds = {self.set: 30, self.delete: 6, self.set_many: 6, self.drop: 1, self.families: 1,
                 self.go: 0.3}  # fmt: skip
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        families, rows = self.life.state
        kind(clients, list(families), {key: list(cells) for key, cells in rows.items()})

    def value(self):
        self.count += 1
        return b"%d" % self.count + b"." * self.random.choice([0, 0, 0, 2000])

    def put(self, rows, key, family, value):
        rows[key] = sorted([c for c in rows.get(key, []) if c[0] != family] + [(family, value)])

    def set(self, clients, families, rows):
        key, family, value = self.random.choice(KEYS), self.random.choice(families), self.value()
        self.put(rows, key, family, value)
        cell = set_cell(family, b"q", value, 1000)
        self.life.change((families, rows), lambda: clients.rpc.mutate(self.name, key, cell))

    def set_many(self, clients, families, rows):
        """One row: a batch of several is no single change."""
        key, values = self.random.choice(KEYS), [(family, self.value()) for family in families]
        for family, value in values:
            self.put(rows, key, family, value)
        cells = [set_cell(family, b"q", value, 1000) for family, value in values]
        self.life.change((families, rows), lambda: clients.rpc.mutate(self.name, key, *cells))

    def delete(self, clients, families, rows):
        key = self.random.choice(KEYS)
        rows.pop(key, None)
        self.life.change((families, rows), lambda: clients.rpc.mutate(self.name, key, delete_row()))

    def drop(self, clients, families, rows):
        prefix = self.random.choice(KEYS)[:1]
        rows = {key: cells for key, cells in rows.items() if key[:1] != prefix}
        drop = clients.rpc.drop_row_range
        self.life.change((families, rows), lambda: drop(self.name, prefix=prefix))

    def families(self, clients, families, rows):
        if "g" in families:
            families.remove("g")
            rows = {key: [c for c in cells if c[0] != "g"] for key, cells in rows.items()}
            rows = {key: cells for key, cells in rows.items() if cells}
            change = {"id": "g", "drop": True}
        else:
            families = sorted([*families, "g"])
            change = {"id": "g", "create": {}}
        modify = clients.rpc.modify_families
        self.life.change((families, rows), lambda: modify(self.name, change))

    def go(self, clients, families, rows):
        """Deleted; it comes back out of what is kept, or of a backup, or empty."""
        self.before = families, rows
        self.count += 1  # a name of its own, also if nothing was written since the last time
        self.backup = f"{self.table_id}-{self.count}" if self.random.random() < 0.5 else None
        if self.backup is not None:
            clients.backups.create(self.backup, self.table_id)
        self.life.change(None, lambda: clients.rpc.delete_table(self.name))

    def come_back(self, clients):
        kept = getattr(self, "before", None)
        if kept is None or (self.backup is None and self.random.random() < 0.3):
            self.before = None
            self.create(clients)
        elif self.backup is not None:
            source = clients.backups.name(self.backup)
            request = {"parent": INSTANCE, "table_id": self.table_id, "backup": source}
            restore = clients.admin.tables.restore_table
            self.life.change(kept, lambda: finish(restore(request=request)))
        else:
            undelete = clients.admin.tables.undelete_table
            self.life.change(kept, lambda: finish(undelete(name=self.name)))


class Accounts:
    """Entities between which money is moved, in transactions. Its state: what each has."""

    def __init__(self, seed):
        self.name, self.random = "Datastore", random.Random(f"{seed} accounts")
        self.life = Life({})

    def read(self, clients):
        keys = [clients.datastore.key("Account", f"a{i}") for i in range(ACCOUNTS)]
        found = clients.datastore.lookup(*keys).found
        entities = [each.entity for each in found]
        return {e.key.path[0].name: e.properties["cents"].integer_value for e in entities}

    def transact(self, clients, state, names):
        entity = clients.datastore.entity
        mutations = [{"upsert": entity("Account", name, cents=state[name])} for name in names]
        self.life.change(state, lambda: clients.datastore.transact(*mutations))

    def create(self, clients):
        state = {f"a{i}": CENTS for i in range(ACCOUNTS)}
        self.transact(clients, state, list(state))

    def step(self, clients):
        state, names = dict(self.life.state), self.random.sample(sorted(self.life.state), 2)
        cents = self.random.randrange(-20, 20)
        state[names[0]] -= cents
        state[names[1]] += cents
        self.transact(clients, state, names)


# --- the places ---


class Disk:
    """Directories."""

    def __init__(self, directory):
        self.archive, self.root = directory / "archive", directory / "places"
        self.whole = self.root / "whole"
        self.environment = {}
        for each in (self.archive, self.root):
            each.mkdir()

    def sizes(self):
        return size(self.archive), size(self.whole)

    def close(self):
        pass


class Bucket:
    """Of moto's."""

    archive, root = "s3://drill/archive-of-it", "s3://drill/places"
    whole = f"{root}/whole"

    def __init__(self, directory):
        self.moto = Moto(directory / "moto.log")
        self.client = self.moto.client_of("s3")
        self.client.create_bucket(Bucket="drill")
        self.environment = {"AWS_ENDPOINT_URL_S3": self.moto.url, "AWS_REGION": "us-east-1",
                            "AWS_ACCESS_KEY_ID": "AKTEST",
                            "AWS_SECRET_ACCESS_KEY": "secret"}  # fmt: skip

    def size(self, prefix):
        pages = self.client.get_paginator("list_objects_v2")
        each = pages.paginate(Bucket="drill", Prefix=prefix).search("Contents[].Size")
        return sum(each) / (1 << 20)

    def sizes(self):
        return self.size("archive-of-it/"), self.size("places/")

    def close(self):
        self.moto.close()


# --- the server ---


class Drill:
    def __init__(self, options, directory):
        self.options, self.directory = options, Path(directory)
        self.places = Bucket(self.directory) if options.bucket else Disk(self.directory)
        self.archive, self.whole = self.places.archive, self.places.whole
        (self.directory / "server").mkdir()
        self.server = Server(self.directory / "server", [
            "--archive", self.archive, "--backup-places", self.places.root, "--backup-rate", "0",
            "--disk-reserve", "0", "--cache", "32MB", "--write-buffer", "16MB"],
            env=self.places.environment)  # fmt: skip
        self.lives = [Table(i, options.seed) for i in range(options.tables)]
        self.lives.append(Accounts(options.seed))
        self.random = random.Random(options.seed)
        self.numbers = itertools.count()
        self.trouble, self.is_over, self.pause = [], threading.Event(), threading.Lock()

    def start(self):
        self.server.start()
        self.clients = Clients(self.server.host)
        wait_until(lambda: self.server.metric("clock_lead_seconds") == 0)

    def write(self, lives):
        """A thread: each of these things in turn, as long as the load goes on."""
        turn = itertools.cycle(lives)
        while not self.is_over.is_set():
            life = next(turn)
            clients, began = self.clients, now_us()
            try:
                life.step(clients)
            except Exception as error:  # what has become of it is seen when the server is back
                if not self.came_back(clients, life, began):
                    self.trouble.append(f"{life.name}: {error!r}")
                    return

    def came_back(self, clients, life, began):
        """False: the server had not been killed, so the failure is one."""
        with self.pause:
            if self.clients is clients:
                return False
            life.life.found(began, life.read(self.clients))
            return True

    def kill(self):
        with self.pause:
            self.server.kill()
            self.start()

    @contextlib.contextmanager
    def load(self):
        for life in self.lives:
            life.create(self.clients)
        groups = [self.lives[i :: self.options.writers] for i in range(self.options.writers)]
        threads = [threading.Thread(target=self.write, args=(group,)) for group in groups]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()
        if self.trouble:
            raise Failure("\n".join(self.trouble))

    def back_up(self):
        began = time.monotonic()
        said = self.run_command("backup", "create", self.whole, "--endpoint", self.server.host)
        print(f"whole backup in {time.monotonic() - began:.1f} s: {said.strip()}", flush=True)

    def run_command(self, *arguments):
        done = run_trestle(*arguments, env=self.places.environment)
        if done.returncode != 0:
            raise Failure(f"{arguments}: {done.stderr}")
        return done.stdout

    def wait_for_archive(self, us):
        wait_until(lambda: self.server.metric("archive_newest_timestamp_seconds") > us / 1e6)

    def check(self, us):
        """The server as it was at that second, from the places alone."""
        directory = self.directory / f"restored{next(self.numbers)}"
        directory.mkdir()
        began = time.monotonic()
        said = self.run_command("backup", "restore", self.whole, "--archive", self.archive,
                                "--until", text_of(us), "--to", directory / "data")  # fmt: skip
        seconds = time.monotonic() - began
        server = Server(directory).start()
        try:
            self.compare(Clients(server.host), us)
        finally:
            server.close()
        commits = re.search(r"(\d+) commits out of (\d+) pieces", said)
        print(f"{text_of(us)}: as it was; {commits[0]}, {seconds:.1f} s", flush=True)

    def compare(self, clients, us):
        for life in self.lives:
            is_there, may_be = life.read(clients), life.life.may_be(us)
            if is_there not in may_be:
                raise Failure(f"{life.name} at {text_of(us)} is\n{is_there}\ninstead of\n{may_be}")

    def run(self):
        self.start()
        part = self.options.seconds / 4
        self.clients.admin.create_instance(INSTANCE.rpartition("/")[2])
        with self.load():
            self.back_up()
            first = now_us()
            self.random_sleep(part)
            self.kill()
            self.random_sleep(part)
            self.back_up()
            self.random_sleep(part)
            chosen = now_us() // SECOND * SECOND
            self.wait_for_archive(chosen)
            self.check(chosen)
            self.random_sleep(part)
        last = now_us()
        self.lives[0].step(self.clients)  # so that the archive goes beyond the last second
        self.server.stop()
        for _ in range(self.options.restores):
            self.check(self.random.randrange(first + SECOND, last) // SECOND * SECOND)
        self.tell()

    def random_sleep(self, seconds):
        time.sleep(seconds * self.random.uniform(0.8, 1.2))

    def tell(self):
        changes = sum(len(life.life.states) - 1 for life in self.lives)
        archive, whole = self.places.sizes()
        told = f"archive {archive:.1f} MB, whole backups {whole:.1f} MB"
        print(f"{changes} changes; {told}, data {size(self.server.data):.1f} MB")


def size(directory):
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file()) / (1 << 20)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise Failure("waited in vain")
        time.sleep(0.1)


def arguments():
    parser = argparse.ArgumentParser(prog="./dev crash archive", description=__doc__)
    add = parser.add_argument
    add("--tables", type=int, default=50, help="how many there are")
    add("--writers", type=int, default=4, help="threads that write")
    add("--seconds", type=float, default=40, help="of load")
    add("--restores", type=int, default=4, help="seconds, besides one under load")
    add("--bucket", action="store_true", help="whole backups and archive in a bucket")
    add("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="trestle-archive-") as directory:
        drill = Drill(options, directory)
        try:
            drill.run()
        except Failure as failure:
            print(f"FAILED (--seed {options.seed}): {failure}", file=sys.stderr)
            return 1
        finally:
            if drill.server.process is not None:
                drill.server.kill()
            drill.places.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
