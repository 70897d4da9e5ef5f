"""Long commands that are killed while they work."""

import json
import subprocess
import time

from harness.patience import PATIENCE_SECONDS

# Of thousands of records: a checkpoint comes after two seconds, the end long after the last kill.
SLOWLY = ("--rate", "300")


def records_done(checkpoint):
    """How many the checkpoint says; 0 if there is none."""
    return json.loads(checkpoint.read_text())["records"] if checkpoint.exists() else 0


def kill_some_times(command, directory, checkpoint, times):
    """Starts the command, slowly, and kills it when its checkpoint has come further, so many times.
    Returns how many records are done then."""
    done = 0
    for _ in range(times):
        running = subprocess.Popen(
            [*command, *SLOWLY], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and running.poll() is None:
            if records_done(checkpoint) > done:
                break
            time.sleep(0.02)
        running.kill()
        running.wait(PATIENCE_SECONDS)
        done = records_done(checkpoint)
    assert done > 0
    return done
