"""`trestle bench` against a server: its options, and what it found out."""

import json
import statistics
import subprocess

from servers import TRESTLE


class Client:
    """Runs workloads against one server; the options given here are those of every run.

    They are those of `trestle bench`; `duration` is in seconds.
    """

    def __init__(self, server, **options):
        self.server = server
        self.options = options

    def run(self, workload, **options):
        """What `trestle bench --json` says of it, as a dictionary."""
        return self.start(workload, **options).result()

    def start(self, workload, **options):
        command = [TRESTLE, "bench", "--json", "--workloads", workload]
        own = {"endpoint": self.server.endpoint, "server_pid": self.server.pid}
        for name, value in {**own, **self.options, **options}.items():
            if name == "duration":
                value = f"{round(value * 1000)}ms"
            option = f"--{name.replace('_', '-')}"
            command += [option] if value is True else [option, str(value)]
        return Running(command)


class Running:
    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def result(self):
        output, _ = self.process.communicate()
        if self.process.returncode != 0:
            raise subprocess.CalledProcessError(self.process.returncode, self.command)
        return json.loads(output)


# --- figures of a result ---


def rows_per_cpu_second(result):
    return result["rows"] / result["server_cpu_seconds"]


def rows_per_second(result):
    return result["rows"] / result["seconds"]


def cores(result):
    """How many processors the server kept busy."""
    return result["server_cpu_seconds"] / result["seconds"]


def median(results, figure):
    return statistics.median(map(figure, results))
