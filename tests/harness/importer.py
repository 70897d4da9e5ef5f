"""`trestle import dynamodb`, run on one table."""

import json
import subprocess

from harness.patience import PATIENCE_SECONDS
from harness.server import binary


class Importer:
    """The command on one table, in a directory of its own."""

    def __init__(self, rpc, host, directory, table_id):
        self.rpc, self.host, self.directory, self.table_id = rpc, host, directory, table_id
        self.table = f"projects/p/instances/i/tables/{table_id}"
        self.partition_key = "Id"  # None: the source says it
        self.env = None

    def command(self, source, *options):
        return [
            binary(), "import", "dynamodb", str(source), "--endpoint", self.host,
            "--table", self.table_id, *self.keys(), *map(str, options),
        ]  # fmt: skip

    def keys(self):
        return ["--partition-key", self.partition_key] if self.partition_key else []

    def run(self, source, *options):
        return subprocess.run(
            self.command(source, *options), cwd=self.directory, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, env=self.env,
        )  # fmt: skip

    def start(self, source, *options, **streams):
        """The process, for who kills it."""
        return subprocess.Popen(
            self.command(source, *options), cwd=self.directory, env=self.env, **streams
        )

    def run_well(self, source, *options):
        done = self.run(source, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self):
        """{row key: {"family:qualifier": (timestamp, value)}}"""
        return {
            key: {
                f"{cell.family}:{cell.qualifier.decode()}": (cell.timestamp, cell.value)
                for cell in cells
            }
            for key, cells in self.rpc.read(self.table)
        }

    def rejects(self):
        path = self.directory / f"{self.table_id}.rejects.jsonl"
        return [json.loads(text) for text in path.read_text().splitlines()]
