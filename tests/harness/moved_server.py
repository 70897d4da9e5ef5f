"""A server whose wall clock is moved while it runs, by tests/crash/powercut's library."""

import os
import random
import struct
import threading
from pathlib import Path

from harness.server import Server, binary

DAY_SECONDS = 86400
LIBRARY = Path(binary()).resolve().parent / "tests/crash/powercut/libpowercut.so"


def set_clock(directory, ahead_seconds):
    """In place: the server looks at it all the time. Returns the file."""
    path = Path(directory) / "clock"
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(file, struct.pack("=q", ahead_seconds), 0)
    os.close(file)
    return path


class MovedServer(Server):
    def __init__(self, directory, arguments=()):
        clock = set_clock(directory, 0)
        env = {"LD_PRELOAD": str(LIBRARY), "POWERCUT_CLOCK_FILE": str(clock)}
        super().__init__(directory, arguments, env)

    def move(self, ahead_seconds):
        set_clock(self.directory, ahead_seconds)


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
