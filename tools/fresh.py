#!/usr/bin/python3
"""The tree on a Debian that has nothing: `./dev fresh`. As root.

    fresh.py [RELEASE...]                      what README's commands do, and a row
    fresh.py [RELEASE...] -- COMMAND...        ./dev COMMAND there
    fresh.py --upgrade                         a data directory and a backup from Debian 12 to
                                               Debian 13 and back

A root is Debian's smallest and the packages of some groups of tools/packages.txt: `build`, for any
COMMAND those that it installs, with the .venv of the tests. It is made once, by debootstrap from
where this machine has its packages (or TRESTLE_DEBIAN_MIRROR), and kept in the cache directory
under a name that says what it is made of. It is made beside its place and renamed. Of each kind the
newest one stays; one that nobody wanted for a month goes.

Nothing writes into a root. A run has a directory laid over it (a copy of it, where the kernel
cannot do that) with the tracked files in it and the machine's caches mounted, and goes on in
namespaces of its own for mounts and processes: the kernel clears both with its first process,
however that ended.
"""

import contextlib
import fcntl
import hashlib
import inspect
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ("bookworm", "trixie")
TREE = "/root/trestle"  # where the tracked files are in there
ROOT_CACHE = "/root/.cache/trestle"  # where ./dev has its caches in there
REQUIREMENTS = "tests/requirements.txt"
RUN_GROUPS = ("build",)
ALL_GROUPS = ("build", "test", "check", "package")
COMMAND_GROUPS = {"build": RUN_GROUPS, "package": ("build", "package")}  # all others have all
# Of no group: a build is shorter with it.
EXTRA_PACKAGES = ("ccache",)
KEPT_SECONDS = 30 * 24 * 3600
# What a run in there is told of the machine's network and of the caches' size.
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT",
             "CCACHE_MAXSIZE", "CI")  # fmt: skip
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def say(text):
    print(f"== {text}", file=sys.stderr, flush=True)


class Failed(Exception):
    """What is said instead of a traceback."""


def run(*words, **options):
    done = subprocess.run([*map(str, words)], stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words[:4]))} … ended with {done.returncode}")


def output_of(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


# --- roots ---


def roots_directory():
    return Path(os.environ["TRESTLE_DEV_CACHE"]) / "fresh"


def find_mirror():
    """Where this machine has its own packages from."""
    said = os.environ.get("TRESTLE_DEBIAN_MIRROR")
    if said:
        return said
    lines = Path("/etc/os-release").read_text().splitlines()
    system = dict(line.split("=", 1) for line in lines if "=" in line)
    targets = output_of("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)")
    for line in targets.splitlines():
        release, uri = line.split(" ", 1)
        if release == system.get("VERSION_CODENAME") and release in RELEASES:
            return uri
    raise Failed("this machine has no packages of Debian's: name a mirror in TRESTLE_DEBIAN_MIRROR")


def root_key(release, groups):
    """What a root is made of. The month is: a new machine has this month's packages."""
    packages = (ROOT / "tools/packages.txt").read_text().splitlines()
    wanted = [line for line in packages if line.split(" ")[0] in groups]
    if "test" in groups:
        wanted.append((ROOT / REQUIREMENTS).read_text())
    how = [*EXTRA_PACKAGES, *map(inspect.getsource, (bootstrap, install_groups))]
    parts = [release, find_mirror(), time.strftime("%Y-%m"), *wanted, *how]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@contextlib.contextmanager
def held(directory):
    """Nobody removes it meanwhile."""
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def remove_unless_held(directory):
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory)
        finally:
            os.close(lock)


def remove_old(kind, present):
    """Other roots of the kind, what nobody wanted for long, and what runs left that were killed."""
    for entry in roots_directory().iterdir():
        if not entry.is_dir() or entry == present:
            continue
        is_old = time.time() - entry.stat().st_mtime > KEPT_SECONDS
        if entry.name.startswith((".", f"{kind}=")) or is_old:
            remove_unless_held(entry)


@contextlib.contextmanager
def new_directory():
    """One of a run's own, which is gone after it."""
    directory = Path(tempfile.mkdtemp(prefix=".", dir=roots_directory()))
    with held(directory):
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def root_of(release, groups):
    """The root, made where it is not there."""
    kind = "+".join([release, *groups])
    entry = roots_directory() / f"{kind}={root_key(release, groups)}"
    entry.parent.mkdir(parents=True, exist_ok=True)
    remove_old(kind, entry)
    if not entry.is_dir():
        make_root(entry, release, groups)
    os.utime(entry)
    return entry


def make_root(entry, release, groups):
    start = time.monotonic()
    with new_directory() as made:
        root = made / "root"
        if groups:
            run("cp", "-a", "--reflink=auto", root_of(release, ()), root)
            install_groups(root, groups)
        else:
            bootstrap(root, release)
        with contextlib.suppress(OSError):  # another run was faster: theirs is as good
            root.rename(entry)
    say(f"{entry.name}: made in {time.monotonic() - start:.0f} s")


def bootstrap(root, release):
    log = roots_directory() / "debootstrap.log"
    with open(log, "w") as said:
        try:
            run("debootstrap", "--variant=minbase", release, root, find_mirror(),
                stdout=said, stderr=said)  # fmt: skip
        except Failed as failed:
            raise Failed(f"{failed}\n{log.read_text()[-2000:]}") from None
    # What apt was told of the network; and a root need not survive that the power goes.
    lines = output_of("apt-config", "dump", "Acquire").splitlines(keepends=True)
    told = [line for line in lines if line.startswith(("Acquire::http", "Acquire::Check-"))]
    (root / "etc/apt/apt.conf.d/90host").write_text("".join(told))
    (root / "etc/dpkg/dpkg.cfg.d/fresh").write_text("force-unsafe-io\n")
    drop_downloads(root)


def drop_downloads(root):
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()


def install_groups(root, groups):
    """By ./dev, as on any machine. The tests' .venv stays: to fetch it may take minutes."""
    machine = Machine(root)
    machine.mount_system()
    machine.mount_caches()
    machine.copy(["dev", "tools/packages.txt", REQUIREMENTS])
    machine.dev("install", *groups)
    machine.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *EXTRA_PACKAGES,
                stdout=subprocess.DEVNULL)  # fmt: skip
    machine.unmount()
    for entry in Path(f"{root}{TREE}").iterdir():
        if entry.name != ".venv":
            run("rm", "-r", entry)
    drop_downloads(root)


# --- in a root ---


class Machine:
    """What runs in a root."""

    def __init__(self, root):
        self.root = root
        self.mounts = []

    def mount(self, source, target, *options):
        place = f"{self.root}{target}"
        os.makedirs(place, exist_ok=True)
        run("mount", *options, source, place)
        self.mounts.append(place)

    def mount_system(self):
        self.mount("proc", "/proc", "-t", "proc")
        self.mount("/dev", "/dev", "--rbind")
        for file in map(Path, ("/etc/resolv.conf", "/etc/hosts")):
            if file.exists():
                Path(f"{self.root}{file}").write_bytes(file.read_bytes())

    def mount_caches(self):
        cache = roots_directory().parent
        for name in "ccache", "pip":
            (cache / name).mkdir(exist_ok=True)
        for each in cache.iterdir():
            if each.is_dir() and each.name != "fresh":
                self.mount(each, f"{ROOT_CACHE}/{each.name}", "--bind")

    def unmount(self):
        while self.mounts:
            run("umount", "--recursive", "--lazy", self.mounts.pop())

    def copy(self, paths):
        """Files of the tree."""
        os.makedirs(f"{self.root}{TREE}", exist_ok=True)
        run("cp", "--archive", "--parents", *paths, f"{self.root}{TREE}", cwd=ROOT)

    def environment(self):
        told = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        if CERTIFICATES.exists():  # whom this machine trusts
            place = Path(f"{self.root}/etc/ssl/fresh.crt")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(CERTIFICATES.read_bytes())
            told["PIP_CERT"] = "/etc/ssl/fresh.crt"
        return told | {
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PIP_CACHE_DIR": f"{ROOT_CACHE}/pip",
        }

    def run(self, *words, **options):
        # env, after chroot, which the machine's PATH finds.
        settings = [f"{name}={value}" for name, value in self.environment().items()]
        run("chroot", self.root, "/usr/bin/env", "--ignore-environment", f"--chdir={TREE}",
            *settings, *words, **options)  # fmt: skip

    def dev(self, *words, **options):
        self.run("./dev", *words, **options)


@contextlib.contextmanager
def machine_with_tree(release, groups):
    """A root with the tracked files, as the working tree has them, and nothing that was built."""
    root = root_of(release, groups)
    with held(root), new_directory() as directory:
        over = directory / "root"
        lay_over(root, directory, over)
        machine = Machine(over)
        try:
            machine.mount_system()
            machine.mount_caches()
            # Tests' data is on a disk as the server's is: overlayfs never says what is in memory.
            (directory / "tmp").mkdir()
            (directory / "tmp").chmod(0o1777)
            machine.mount(directory / "tmp", "/tmp", "--bind")
            listed = output_of("git", "-C", str(ROOT), "ls-files", "-z").split("\0")
            machine.copy([path for path in listed if path and (ROOT / path).exists()])
            yield machine
        finally:
            machine.unmount()
            subprocess.run(["umount", "--lazy", over], stderr=subprocess.DEVNULL)


def lay_over(root, directory, over):
    for name in "upper", "work", "root":
        (directory / name).mkdir()
    layers = f"lowerdir={root},upperdir={directory / 'upper'},workdir={directory / 'work'}"
    done = subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", str(over)],
                          stderr=subprocess.DEVNULL)  # fmt: skip
    if done.returncode != 0:
        say("the kernel lays no directory over another one: copying")
        run("cp", "-a", "--reflink=auto", f"{root}/.", over)


# --- what is asked for ---


def build_and_serve(release):
    """README's `./dev run`, in a machine without any network but its own loopback."""
    with machine_with_tree(release, RUN_GROUPS) as machine:
        machine.dev("build")
        machine.run("/usr/bin/unshare", "--net", "/usr/bin/python3", "tools/fresh_rows.py", "first")


def run_command(release, command):
    groups = COMMAND_GROUPS.get(command[0], ALL_GROUPS)
    with machine_with_tree(release, groups) as machine:
        if groups == ALL_GROUPS:  # some tests and checks ask git what belongs to the tree
            machine.run("git", "init", "--quiet", ".")
            machine.run("git", "add", "--all", ".")
        machine.dev(*command)


def upgrade():
    """The steps of tools/fresh_rows.py, by turns in a Debian 12 and a Debian 13."""
    with contextlib.ExitStack() as stack:
        old, new = (stack.enter_context(machine_with_tree(r, RUN_GROUPS)) for r in RELEASES)
        shared = stack.enter_context(new_directory())
        for machine in old, new:
            machine.dev("build")
            machine.mount(shared, "/srv/upgrade", "--bind")
        for machine, step in (old, "write"), (new, "go-on"), (old, "back"):
            say(f"{step}, on Debian {12 if machine is old else 13}")
            machine.run("/usr/bin/unshare", "--net", "/usr/bin/python3", "tools/fresh_rows.py",
                        step, "/srv/upgrade")  # fmt: skip


def split_command(arguments):
    if "--" in arguments:
        at = arguments.index("--")
        return arguments[:at], arguments[at + 1 :]
    if "--test" in arguments:
        at = arguments.index("--test")
        return arguments[:at], ["test", *arguments[at + 1 :]]
    return arguments, None


def carry_out(arguments):
    arguments, command = split_command(arguments)
    if arguments == ["--upgrade"] and command is None:
        upgrade()
        return
    releases = arguments or RELEASES
    if not set(releases) <= set(RELEASES):
        raise Failed(f"releases are {' and '.join(RELEASES)}, not {' '.join(releases)}")
    for release in releases:
        start = time.monotonic()
        if command is None:
            build_and_serve(release)
        else:
            run_command(release, command)
        say(f"{release}: {time.monotonic() - start:.0f} s")


def enter_namespaces(arguments):
    """All of this process again, as the first of its namespaces."""
    namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp("unshare", ["unshare", *namespaces, "--propagation", "private",
                          sys.executable, __file__, "--entered", *arguments])  # fmt: skip


def main(arguments):
    if arguments[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    if os.geteuid() != 0:
        print("fresh.py: needs root: ./dev fresh asks for it", file=sys.stderr)
        return 2
    if arguments[:1] != ["--entered"]:
        enter_namespaces(arguments)
    # The first process of a namespace has no default for this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        carry_out(arguments[1:])
    except Failed as failed:
        print(f"fresh.py: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
