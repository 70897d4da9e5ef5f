"""A server whose wall clock is moved while it runs, by tests/crash/powercut's library."""

import os
import random
import struct
import threading
from pathlib import Path

from harness.server import Server, binary

DAY_SECONDS = 86400
LIBRARY = Path(binary()).resolve().parent / "tests/crash/powercut/libpowercut.so"


class MovedServer(Server):
    def __init__(self, directory, arguments=()):
        self.clock = Path(directory) / "clock"
        self.move(0)
        env = {"LD_PRELOAD": str(LIBRARY), "POWERCUT_CLOCK_FILE": str(self.clock)}
        super().__init__(directory, arguments, env)

    def move(self, ahead_seconds):
        """In place: the server looks at it all the time."""
        file = os.open(self.clock, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(file, struct.pack("=q", ahead_seconds), 0)
        os.close(file)


class Mover(threading.Thread):
    """Moves the clock at random until it is told to stop, by no more in sum than what Datastore
    keeps of the past allows: nothing is too old for it."""

    STEPS = [0, -DAY_SECONDS, -3600, -60, 60, 600]  # seconds ahead of the true time

    def __init__(self, server, seed):
        super().__init__(name="mover")
        self.server, self.random = server, random.Random(f"{seed}/mover")
        self.stopped, self.moves = threading.Event(), 0

    def run(self):
        while not self.stopped.wait(self.random.uniform(0.005, 0.1)):
            self.server.move(self.random.choice(self.STEPS))
            self.moves += 1

    def stop(self):
        self.stopped.set()
        self.join()
