"""What must hold during an attack: others are served, memory is bounded, the server stays."""

import contextlib
import itertools
import os
import threading

import grpc
from harness.patience import PATIENCE_SECONDS
from harness.rpc import Rpc, set_cell

MB = 1 << 20
# What a sanitizer's shadow, redzones and quarantine make of a byte, and of what was freed, which it
# keeps: 9,000 transactions, three times one after another, take 38, 39 and 40 MB, and with it 64,
# 98 and 106.
SANITIZER_FACTOR = 2
# Where its shadow begins: clang's, gcc's.
SHADOWS = {0x7FFF7000, 0x7FFF8000}
# Sanitizers keep freed memory for a while; not that much of it.
PAUSE_SECONDS = 0.01  # of a bystander after each round: without, it took a processor for itself
ENVIRONMENT = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=16"}


class Bystander(threading.Thread):
    """A client on a connection of its own that writes and reads, one request after the other."""

    def __init__(self, host, table):
        super().__init__(name="bystander", daemon=True)
        self.rpc = Rpc(host)
        self.table = table
        self.changed = threading.Condition()
        self.rounds = 0
        self.failure = None
        self.over = threading.Event()

    def run(self):
        for number in itertools.count():
            if self.over.wait(PAUSE_SECONDS):
                break
            try:
                value = b"%d" % number
                self.rpc.mutate(self.table, b"bystander", set_cell("f", b"q", value, 1000))
                cells = self.rpc.read_row(self.table, b"bystander")
                assert cells[0].value == value
            except (grpc.RpcError, AssertionError) as error:
                self.failure = error
            with self.changed:
                self.rounds += 1
                self.changed.notify_all()
        self.rpc.close()

    def is_served(self):
        """Waits for a round that begins from now on to succeed."""
        with self.changed:
            wanted = self.rounds + 2
            self.changed.wait_for(lambda: self.rounds >= wanted or self.failure, PATIENCE_SECONDS)
            assert self.failure is None, f"a bystander was hurt: {self.failure}"
            assert self.rounds >= wanted, "a bystander waits in vain"

    def stop(self):
        self.over.set()
        self.join(2 * PATIENCE_SECONDS)


class Victim:
    """A server, a table on it, and what a test asks of both."""

    def __init__(self, server):
        self.server = server
        self.host = server.host
        rpc = Rpc(server.host)
        self.table = rpc.create_table("victim", ("f", "g"))
        rpc.mutate(self.table, b"k", set_cell("f", b"q", b"v", 1000))
        rpc.close()

    def pid(self):
        return self.server.process.pid

    def memory(self, field="VmRSS"):
        """Bytes of /proc/PID/status."""
        with open(f"/proc/{self.pid()}/status") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
        raise AssertionError(f"no {field}")

    def is_sanitized(self):
        with open(f"/proc/{self.pid()}/maps") as maps:
            return any(int(line.split("-")[0], 16) in SHADOWS for line in maps)

    def reset_peak(self):
        with open(f"/proc/{self.pid()}/clear_refs", "w") as file:
            file.write("5")

    @contextlib.contextmanager
    def attacked(self, megabytes=64):
        """During the block somebody else is served; memory grows by at most so much."""
        most = megabytes * MB * (SANITIZER_FACTOR if self.is_sanitized() else 1)
        bystander = Bystander(self.host, self.table)
        bystander.start()
        try:
            bystander.is_served()
            self.reset_peak()
            before = self.memory()
            yield bystander
            bystander.is_served()
        finally:
            bystander.stop()
        assert bystander.failure is None, f"a bystander was hurt: {bystander.failure}"
        grown = self.memory("VmHWM") - before
        assert grown <= most, f"grew by {grown // MB} MB, at most {most // MB} expected"
        assert self.server.process.poll() is None
        self.server.check_log()
