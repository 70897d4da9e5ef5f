#!/usr/bin/python3
"""Starts servers on loopback that copy each other's changes, and says how to connect to each.

    ./dev cluster [--clusters N] [--data-dir DIR] [--first-port PORT] [ARGUMENT...]

Server K is in the location zone-K, on port PORT + K - 1, with its data in DIR/zone-K, which it
finds again. Other arguments go to each `trestle serve`. Ctrl+C ends them all.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARY = os.environ.get("TRESTLE_BINARY") or str(ROOT / "build/trestle")
START_SECONDS = 60


class Server:
    def __init__(self, options, number, arguments):
        self.host = f"127.0.0.1:{options.first_port + number - 1}"
        self.location = f"zone-{number}"
        self.data = Path(options.data_dir) / self.location
        self.data.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.data.parent / f"{self.location}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [
                    BINARY, "serve", "--listen", self.host, "--data-dir", self.data,
                    "--location", self.location, *arguments,
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,  # Ctrl+C is ours
            )  # fmt: skip

    def cluster(self, *arguments):
        """Runs `trestle cluster ARGUMENTS` of this server."""
        return subprocess.run(
            [BINARY, "cluster", *arguments, "--endpoint", self.host],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip

    def wait(self):
        """Until it serves: whether it has peers."""
        deadline = time.monotonic() + START_SECONDS
        while (done := self.cluster("list")).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"no server in {self.location}: see {self.log}")
            time.sleep(0.1)
        return "has no peers" not in done.stdout

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def bring_together(servers):
    """Has those join the first one that are no peers yet."""
    have_peers = [server.wait() for server in servers]
    for server, has_peers in list(zip(servers, have_peers))[1:]:
        if has_peers:
            continue
        done = server.cluster("join", servers[0].host)
        if done.returncode != 0:
            raise SystemExit(f"{server.location}: {done.stderr}")


def wait_until_they_answer(server):
    """As the server sees it, or for a while."""
    deadline = time.monotonic() + START_SECONDS
    while "not heard yet" in server.cluster("list").stdout and time.monotonic() < deadline:
        time.sleep(0.1)


def tell(servers):
    wait_until_they_answer(servers[0])
    print()
    for server in servers:
        print(f"  {server.location}    export BIGTABLE_EMULATOR_HOST={server.host}")
    print("\n  which are:\n")
    listed = servers[0].cluster("list").stdout
    print("\n".join(f"    {line}" for line in listed.splitlines()))
    print(f"\n  Their data and logs are in {servers[0].data.parent}. Control-C ends them.\n")
    sys.stdout.flush()


def wait_for_the_end(servers):
    """Until somebody ends this, or one of them ends."""
    while all(server.process.poll() is None for server in servers):
        time.sleep(0.2)
    gone = next(server for server in servers if server.process.poll() is not None)
    raise SystemExit(f"the server in {gone.location} has ended: see {gone.log}")


def serve(options, arguments):
    servers = []
    try:
        for number in range(1, options.clusters + 1):
            servers.append(Server(options, number, arguments))
        bring_together(servers)
        tell(servers)
        wait_for_the_end(servers)
    except KeyboardInterrupt:
        return 0
    finally:
        for server in servers:
            server.stop()


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(
        prog="./dev cluster", description=__doc__.split("\n\n")[0], allow_abbrev=False
    )
    parser.add_argument("--clusters", type=int, default=3, choices=range(1, 32), metavar="N")
    parser.add_argument("--data-dir", default="build/clusters", metavar="DIR")
    parser.add_argument("--first-port", type=int, default=8086, metavar="PORT")
    options, arguments = parser.parse_known_args()
    sys.exit(serve(options, arguments))


if __name__ == "__main__":
    main()
