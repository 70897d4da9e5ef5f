#!/usr/bin/python3
"""The package on a Debian of its own, whose systemd is process 1: `./dev package --boot`.

    boot.py PACKAGE.deb DIRECTORY

DIRECTORY/debian is a minimal Debian of this machine's release, made once by debootstrap. Each run
copies it, boots the copy in a container without a network (systemd-nspawn), and does there what an
operator would: installs the package, writes, upgrades, breaks the configuration, boots again,
removes, purges. Needs root, debootstrap and systemd-container. Takes half a minute, and one more
the first time.

A step is a function; its docstring is what it shows. The first one that fails ends the run.
"""

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

DATA = "/var/lib/trestle"
CONFIG = "/etc/trestle/trestle.conf"
ROWS = 1000
BOOT_SECONDS = 120


def run(*words, **options):
    return subprocess.run([*map(str, words)], check=True, text=True, **options)


class Guest:
    """A booted container on `root`."""

    def __init__(self, root):
        self.root = root
        self.log = open(root.parent / "boot.log", "ab")
        self.container = None
        self.leader = None

    def boot(self):
        """Returns when systemd has started all that belongs to multi-user.target."""
        # --register=no, --keep-unit: the machine outside need not have systemd running.
        self.container = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--directory", self.root, "--boot", "--private-network",
             "--register=no", "--keep-unit", "--console=pipe"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )  # fmt: skip
        deadline = time.monotonic() + BOOT_SECONDS
        while not self.is_up():
            assert self.container.poll() is None, "it did not boot: see boot.log"
            assert time.monotonic() < deadline, "it does not boot: see boot.log"
            time.sleep(0.2)

    def is_up(self):
        children = Path(f"/proc/{self.container.pid}/task/{self.container.pid}/children")
        self.leader = children.read_text().strip()
        if not self.leader or " " in self.leader:
            return False
        state = self.shell("systemctl is-system-running --wait", check=False)
        return state.stdout.strip() in ("running", "degraded")

    def shell(self, command, check=True):
        """Runs it there as root: what it said."""
        done = subprocess.run(
            ["nsenter", "--all", "--target", self.leader, "/bin/sh", "-c", command],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOOT_SECONDS,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def says(self, command):
        return self.shell(command).stdout.strip()

    def power_off(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self.leader), signal.SIGRTMIN + 3)
        self.container.wait(BOOT_SECONDS)

    def kill(self):
        if self.container is not None and self.container.poll() is None:
            self.container.kill()
            self.container.wait(BOOT_SECONDS)
        self.log.close()


def property_of(guest, name):
    return guest.says(f"systemctl show trestle --property {name} --value")


def check_serving(guest):
    assert guest.says("systemctl is-active trestle") == "active"
    assert property_of(guest, "StatusText") == "Serving on 127.0.0.1:8086"


def check_rows(guest):
    query = "SELECT COUNT(*) AS n FROM bench"
    assert guest.says(f"trestle sql --format csv -e '{query}'").split() == ["n", str(ROWS)]


# --- the steps ---


def install(guest, package, _newer):
    """It installs on a clean Debian; the service runs, and will after the next boot."""
    guest.shell(f"apt-get install --yes {package}")
    check_serving(guest)
    assert guest.says("systemctl is-enabled trestle") == "enabled"
    assert property_of(guest, "Type") == "notify"
    assert guest.says(f"stat -c '%U:%G %a' {DATA}") == "trestle:trestle 700"
    assert guest.says(f"find {DATA} ! -user trestle -o ! -group trestle -o -perm /077") == ""
    assert guest.says("getent passwd trestle").endswith(f":{DATA}:/usr/sbin/nologin")


def write(guest, _package, _newer):
    """It takes writes and answers queries inside its sandbox."""
    guest.shell(f"trestle bench --workloads load,write,read --rows {ROWS} --operations 1000")
    check_rows(guest)
    assert "ReadRows" in guest.says("trestle status")


def sandbox(guest, _package, _newer):
    """The process has no privileges; all but its directories is closed or read-only for it."""
    pid = property_of(guest, "MainPID")
    status = dict(
        line.split(":\t", 1)
        for line in guest.says(f"cat /proc/{pid}/status").splitlines()
        if ":\t" in line
    )
    assert status["CapBnd"] == status["CapPrm"] == status["CapEff"] == f"{0:016x}"
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert "0" not in status["Uid"].split()
    guest.shell("touch /root/x /home/x")
    inside = f"nsenter --mount --target {pid}"  # as root, whom only the sandbox holds back
    guest.shell(f"{inside} touch {DATA}/x /var/log/trestle/x && rm {DATA}/x")
    for closed in "/etc/x", "/usr/x", "/var/x", CONFIG:
        denied = guest.shell(f"{inside} touch {closed}", check=False)
        assert "Read-only file system" in denied.stderr, closed
    assert guest.says(f"{inside} ls -A /root /home") == "/home:\n\n/root:"
    print(guest.says("systemd-analyze security --no-pager trestle | tail -1"))


def reload(guest, _package, _newer):
    """A reload leaves the process."""
    before = property_of(guest, "MainPID")
    guest.shell("systemctl reload trestle")
    check_serving(guest)
    assert property_of(guest, "MainPID") == before


def crash(guest, _package, _newer):
    """Killed, it is started again, and has everything."""
    guest.shell(f"kill -KILL {property_of(guest, 'MainPID')}")
    deadline = time.monotonic() + BOOT_SECONDS
    while property_of(guest, "NRestarts") != "1" or property_of(guest, "SubState") != "running":
        assert time.monotonic() < deadline, "it does not come back"
        time.sleep(0.2)
    check_rows(guest)


def upgrade(guest, _package, newer):
    """An upgrade keeps data and a configuration that was changed, and restarts the service."""
    guest.shell(f"sed -i 's/^#log-format = .*/log-format = json/' {CONFIG}")
    before = property_of(guest, "MainPID")
    keep = "-o Dpkg::Options::=--force-confold"  # the answer to dpkg's question
    guest.shell(f"apt-get install --yes {keep} {newer}")
    check_serving(guest)
    assert property_of(guest, "MainPID") != before
    assert guest.says("dpkg-query -W -f '${Version}' trestle").endswith("+upgrade")
    guest.shell(f"grep -qx 'log-format = json' {CONFIG}")
    assert '"msg":"serving"' in guest.says("journalctl --unit trestle --output cat")
    check_rows(guest)


def configuration(guest, _package, _newer):
    """A mistake in the configuration is told in the journal, and mended by mending it."""
    guest.shell(f"echo 'cache = much' >>{CONFIG}")
    assert guest.shell("systemctl restart trestle", check=False).returncode != 0
    line = guest.says(f"grep -n 'cache = much' {CONFIG}").split(":")[0]
    assert f"{CONFIG}:{line}: cache: " in guest.says("journalctl --unit trestle --output cat")
    guest.shell(f"sed -i '$d' {CONFIG} && systemctl reset-failed trestle")
    guest.shell("systemctl restart trestle")
    check_rows(guest)


def drop_in(guest, _package, _newer):
    """What docs/operating/install.md says opens a directory and a low port does."""
    page = Path(__file__).resolve().parents[2] / "docs/operating/install.md"
    lines = [line[4:] for line in page.read_text().splitlines() if line.startswith("    ")]
    lines = lines[lines.index("[Service]") :]
    guest.shell("mkdir -p /mnt/backups && chown trestle: /mnt/backups")
    override = "/etc/systemd/system/trestle.service.d/override.conf"
    guest.shell(f"mkdir -p {os.path.dirname(override)}")
    guest.shell(f"printf '%s\\n' '{chr(10).join(lines)}' >{override}")
    guest.shell(f"printf 'backup-dir = /mnt/backups\\nlisten = 127.0.0.1:80\\n' >>{CONFIG}")
    guest.shell("systemctl daemon-reload && systemctl restart trestle")
    assert property_of(guest, "StatusText") == "Serving on 127.0.0.1:80"
    assert guest.says("ls -A /mnt/backups") != ""
    guest.shell(f"rm -r {os.path.dirname(override)} && systemctl daemon-reload")
    assert guest.shell("systemctl restart trestle", check=False).returncode != 0
    guest.shell(f"sed -i '/^backup-dir/d; /^listen/d' {CONFIG}")
    guest.shell("systemctl reset-failed trestle; systemctl restart trestle")
    check_rows(guest)


def doctor(guest, _package, _newer):
    """The data of the stopped service is whole."""
    guest.shell("systemctl stop trestle")
    assert "no damage found" in guest.says(f"runuser -u trestle -- trestle doctor {DATA}")
    guest.shell("systemctl start trestle")


def support(guest, _package, _newer):
    """A support bundle needs no option."""
    said = guest.says("cd /root && trestle support-bundle")
    missing = [line.split()[0] for line in said.splitlines() if "not there: " in line]
    assert missing == ["stored-tables.txt", "log.txt"], said
    guest.shell("tar -tzf /root/trestle-support-*.tar.gz && rm /root/trestle-support-*")


def boot_again(guest, _package, _newer):
    """After a shutdown and a boot it serves what it had."""
    guest.power_off()
    guest.boot()
    check_serving(guest)
    check_rows(guest)


def remove(guest, _package, newer):
    """Removed, it is stopped; installed again, it has its configuration and its data."""
    guest.shell("apt-get remove --yes trestle")
    assert guest.shell("pidof trestle", check=False).returncode == 1
    guest.shell(f"test -e {CONFIG} && test -e {DATA}")
    guest.shell(f"apt-get install --yes {newer}")
    guest.shell(f"grep -qx 'log-format = json' {CONFIG}")
    check_rows(guest)


def purge(guest, _package, newer):
    """A purge leaves nothing but the data, and says so; without data, nothing."""
    said = guest.says("apt-get purge --yes trestle 2>&1")
    assert f"{DATA} has data and stays" in said
    check_purged(guest)
    guest.shell(f"test -d {DATA}")
    guest.shell(f"apt-get install --yes {newer}")
    check_rows(guest)
    guest.shell("systemctl stop trestle")
    guest.shell(f"rm -r {DATA} && mkdir {DATA}")
    assert DATA not in guest.says("apt-get purge --yes trestle 2>&1")
    check_purged(guest)
    guest.shell(f"test ! -e {DATA}")


def check_purged(guest):
    assert guest.shell("pidof trestle", check=False).returncode == 1
    assert guest.shell("systemctl cat trestle", check=False).returncode != 0
    assert guest.says("systemctl --failed --no-legend") == ""
    assert guest.shell("dpkg-query -W trestle", check=False).returncode != 0
    left = "find / -xdev -name '*trestle*' -not -path '/proc/*' -not -path '/packages/*'"
    assert guest.says(left) in (DATA, "")


STEPS = (
    install, write, sandbox, reload, crash, upgrade, configuration, drop_in, doctor, support,
    boot_again, remove, purge,
)  # fmt: skip


# --- what they need ---


def make_debian(root):
    """A minimal Debian with systemd, as root's directory."""
    if root.exists():
        return
    fresh = root.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    run("debootstrap", "--variant=minbase", "--include=systemd-sysv,dbus", release, fresh,
        stdout=subprocess.DEVNULL)  # fmt: skip
    fresh.rename(root)


def newer_package(package, directory):
    """The same package under a higher version, with one more line in its configuration."""
    tree = directory / "newer"
    shutil.rmtree(tree, ignore_errors=True)
    run("dpkg-deb", "--raw-extract", package, tree)
    control = tree / "DEBIAN/control"
    lines = control.read_text().splitlines(keepends=True)
    control.write_text("".join(
        line.rstrip() + "+upgrade\n" if line.startswith("Version: ") else line for line in lines
    ))  # fmt: skip
    with open(tree / CONFIG[1:], "a") as config:
        config.write("# A line that the older package did not have.\n")
    newer = directory / f"{package.stem}+upgrade.deb"
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, newer,
        stdout=subprocess.DEVNULL)  # fmt: skip
    return newer


def prepare(package, directory):
    """A copy of the Debian with both packages in it, and all that they need fetched."""
    root = directory / "root"
    shutil.rmtree(root, ignore_errors=True)
    run("cp", "--archive", directory / "debian", root)
    (root / "packages").mkdir()
    inside = []
    for each in package, newer_package(package, directory):
        shutil.copy(each, root / "packages")
        inside.append(f"/packages/{each.name}")
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run("chroot", root, "apt-get", "update", **quiet)
    run("chroot", root, "apt-get", "install", "--yes", "--download-only", inside[0], **quiet)
    return root, inside


def main():
    package, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    make_debian(directory / "debian")
    root, packages = prepare(package, directory)
    guest = Guest(root)
    try:
        guest.boot()
        for step in STEPS:
            print(f"{step.__name__}: {step.__doc__}", flush=True)
            step(guest, *packages)
        guest.power_off()
    finally:
        guest.kill()
    print(f"{len(STEPS)} passed, 0 failed")


if __name__ == "__main__":
    main()
