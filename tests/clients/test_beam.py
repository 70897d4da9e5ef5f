"""Apache Beam reads a change stream on its runner in one process, while the table's tablets split
and merge: check 22 of the reference."""

import collections
import contextlib
import os
import subprocess
import threading
import time

import pytest
from harness.change_streams import stream_config
from harness.clients import BUILT, JAVA_OPTIONS, java_classes, java_classpath
from harness.patience import PATIENCE_SECONDS
from harness.rpc import set_cell
from harness.server import ROOT

PROGRAM = ROOT / "tests/clients/bigtable/beam"
MAIN = "org.apache.beam.sdk.io.gcp.bigtable.Changes"
KEYS = [b"%02d" % n for n in range(50)]
SECONDS = 600 if os.environ.get("TRESTLE_LONG") == "all" else 40
BURST_SECONDS = 10  # long enough to split; then so long without writes that tablets merge


class Pipeline:
    """What it has told: {(key, value): how often}."""

    def __init__(self, host):
        classpath = java_classpath(PROGRAM, BUILT / "bigtable/beam/classpath")
        classes = java_classes(classpath, PROGRAM / "Changes.java", BUILT / "bigtable/beam/classes")
        command = ["java", *JAVA_OPTIONS, "-cp", f"{classes}:{classpath}", MAIN, "p", "i", "t"]
        environment = {**os.environ, "METADATA_SERVER_DETECTION": "none",
                       "BIGTABLE_EMULATOR_HOST": host}  # fmt: skip
        self.told, self.said = collections.Counter(), []
        self.is_reading = threading.Event()
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            key, _, value = line.strip().partition(" ")
            if line.strip() == "reading":
                self.is_reading.set()
            elif key.isdigit() and value.isdigit():
                self.told[key.encode(), int(value)] += 1
            else:
                self.said.append(line)

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert self.process.poll() is None, "".join(self.said)
            assert time.monotonic() < end, what()
            time.sleep(0.2)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join(PATIENCE_SECONDS)


def write_in_bursts(rpc, name):
    """How many values each key has had: 0, 1, 2, and so on."""
    count, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        burst_end = time.monotonic() + BURST_SECONDS
        while time.monotonic() < burst_end:
            value = [set_cell("f", b"q", b"%d" % count, 1000)]
            assert set(rpc.mutate_rows(name, [(key, value) for key in KEYS])) == {0}
            count += 1
        time.sleep(BURST_SECONDS)
    return count


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 600)
def test_check_22_every_write_is_seen_once(fresh_server, connect):
    server = fresh_server("--split-load", "100", "--merge-after", "2s")
    rpc = connect(server.host)
    name = rpc.create_table("t", ["f"], change_stream_config=stream_config())
    with contextlib.closing(Pipeline(server.host)) as pipeline:
        pipeline.wait_for(pipeline.is_reading.is_set, lambda: pipeline.said)
        count = write_in_bursts(rpc, name)
        pipeline.wait_for(
            lambda: all((key, count - 1) in pipeline.told for key in KEYS),
            lambda: {key: max(value for at, value in pipeline.told if at == key) for key in KEYS},
        )
        wanted = collections.Counter({(key, n): 1 for key in KEYS for n in range(count)})
        assert pipeline.told == wanted
    log = server.stderr()
    assert 'msg="tablet split"' in log and 'msg="tablets merged"' in log
