"""For check.py: whether a fresh machine has what the tree uses.

What a group of tools/packages.txt stands for is its packages, what they depend on, and what every
Debian has. A file that the build of a group reads (a header, a library) or a program that its
scripts call must belong to one of those. The machine that this runs on has more, so that it would
not show: dpkg knows which package has brought which file, and what that one depends on.

The facts come from what ninja and dpkg say, which a small bad tree has as files (Sample):
    groups    {group: packages}
    uses      [(groups, paths, what, file)]: a file, and those of the tree that may have named it
    strangers [(path, line, program)]: programs of scripts that PROGRAMS does not have
    owners    {file: packages}
    packages  {package: (packages it depends on, packages it stands for, whether all have it)}
"""

import collections
import os
import re
import shutil
import subprocess

LIST = "tools/packages.txt"

# What a build's directory is made with.
BUILDS = {"build": ("build",), "build-test": ("build", "test")}

# Programs by the groups of the commands that call them. Others that the scripts below name must be
# of every Debian.
PROGRAMS = {
    "build": "clang clang++ meson ninja protoc-c pkg-config python3",
    "test": "ccache ld.lld openssl curl chromium ps",
    "package": "dh dpkg-deb strip objcopy",
    "check": "clang-format clang-tidy git shellcheck",
    "fresh": "debootstrap git unshare mount",
}
SCRIPTS = ("dev", ".ci/run", "packaging/deb")
# Who calls them does without them: sudo (as root there is none), ccache.
OPTIONAL = ("sudo", "ccache")
# What ./dev installs together with a group.
WITH = {"test": ("build",), "package": ("build",), "check": ("build", "test")}

Facts = collections.namedtuple("Facts", "groups uses strangers owners packages")


def check(tree, facts):
    """Yields (path, line, message) for each use of what no package of the group brings."""
    closures = {groups: closure_of(facts, groups) for groups, *_ in facts.uses}
    for groups, paths, what, file in facts.uses:
        owners = facts.owners.get(file, set())
        if owners & closures[groups]:
            continue
        owner = " and ".join(sorted(owners)) or "no package"
        for path, line in places_of(tree, paths, file):
            yield path, line, f"{what} is of {owner}: not with the group {' and '.join(groups)}"
    for path, line, program in facts.strangers:
        yield path, line, f"{program}: which group brings it? (PROGRAMS)"


def places_of(tree, paths, file):
    """Where the paths include the file; the beginning of the first one if none does by itself."""
    places = []
    for path in sorted(paths):
        for number, line in enumerate(tree.texts.get(path, "").splitlines(), 1):
            include = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
            if include and file.endswith(f"/{include[1]}"):
                places.append((path, number))
    return places or [(min(paths, key=lambda path: (path.endswith(".h"), path)), 1)]


def closure_of(facts, groups):
    """All packages that a machine has on which those groups were installed."""
    standing_for = collections.defaultdict(list)
    for package, (_, provided, _) in facts.packages.items():
        for name in {package, *provided}:
            standing_for[name].append(package)
    wanted = [package for group in groups for package in facts.groups.get(group, ())]
    wanted += [package for package, (*_, is_everywhere) in facts.packages.items() if is_everywhere]
    found = set()
    while wanted:
        for package in standing_for[wanted.pop()]:
            if package not in found:
                found.add(package)
                wanted += facts.packages[package][0]
    return found


# --- what is asked ---


def said_by(*words):
    """What a command says; dpkg's exit code is bad if it does not know one of many files."""
    return subprocess.run(words, capture_output=True, text=True).stdout


class Machine:
    """This one, and what was built on it."""

    def builds(self, tree):
        return [each for each in BUILDS if (tree.root / each / ".ninja_deps").exists()]

    def dependencies(self, tree, build):
        return said_by("ninja", "-C", str(tree.root / build), "-t", "deps")

    def owners(self, files):
        return said_by("dpkg-query", "--search", *files)

    def status(self):
        fields = "Package Essential Priority Provides Pre-Depends Depends".split()
        form = "".join(f"{name}: ${{{name}}}\\n" for name in fields)
        return said_by("dpkg-query", "--show", "--showformat", f"{form}\\n")

    def place_of_program(self, name):
        return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


class Sample:
    """A small tree that has the answers in files."""

    def __init__(self, tree):
        self.tree = tree

    def builds(self, tree):
        return [each for each in BUILDS if f"{each}/deps" in tree.texts]

    def dependencies(self, tree, build):
        return tree.texts[f"{build}/deps"]

    def owners(self, files):
        lines = self.tree.texts["owners"].splitlines(keepends=True)
        return "".join(line for line in lines if line.rstrip().rsplit(": ")[1] in files)

    def status(self):
        return self.tree.texts["status"]

    def place_of_program(self, name):
        places = [f"{folder}/{name}" for folder in ("/usr/bin", "/bin")]
        said = self.owners(places).split()
        return next((place for place in places if place in said), None)


# --- facts ---


def facts_of(tree, machine):
    groups = groups_of(tree.texts[LIST])
    uses = [*uses_of_programs(machine)]
    for build in machine.builds(tree):
        uses += uses_of_build(tree, machine, build)
    owners = owners_of({file for *_, file in uses}, machine)
    facts = Facts(groups, uses, [], owners, packages_of(machine.status()))
    return facts._replace(strangers=[*strangers_in_scripts(tree, machine, closure_of(facts, ()))])


def groups_of(text):
    """{group: packages} of the list."""
    groups = collections.defaultdict(list)
    for line in text.splitlines():
        if line and not line.startswith("#"):
            group, package = line.split()
            groups[group].append(package)
    return groups


def uses_of_build(tree, machine, build):
    """Headers, by what was compiled, and libraries, by what was linked."""
    users = collections.defaultdict(set)
    for files in objects_of(machine.dependencies(tree, build), build):
        own = {path for path in files if path in tree.texts}
        for file in files:
            if file.startswith("/") and own:
                users[file] |= own
    for file, paths in users.items():
        yield BUILDS[build], paths, f"<{os.path.basename(file)}>", os.path.normpath(file)
    rules = tree.root / build / "build.ninja"
    text = rules.read_text() if rules.exists() else ""
    for library in set(re.findall(r"(?<=\s)/usr/lib/\S*\.(?:so|a)(?=\s)", text)):
        yield BUILDS[build], {"meson.build"}, os.path.basename(library), library


def objects_of(text, build):
    """The files that each object was made of, those of the tree by their paths in it."""
    for part in text.split("\n\n"):
        files = [line.strip() for line in part.splitlines()[1:]]
        yield [f if f.startswith("/") else os.path.normpath(f"{build}/{f}") for f in files]


def uses_of_programs(machine):
    for group, programs in PROGRAMS.items():
        for name in programs.split():
            place = machine.place_of_program(name)
            if place is not None:  # not every machine has every group
                yield (group, *WITH.get(group, ())), {LIST}, name, place


def strangers_in_scripts(tree, machine, everywhere):
    """What the scripts call, but shell's own words, functions, and what each Debian has."""
    known = {*" ".join(PROGRAMS.values()).split(), *OPTIONAL}
    for path in SCRIPTS:
        for number, name in words_called(tree.texts.get(path, "")):
            if name in known:
                continue
            place = machine.place_of_program(name)
            owners = owners_of([place] if place else [], machine)
            if not owners.get(place, set()) & everywhere:
                yield path, number, name


SHELL_WORDS = """
    . : [ [[ ! if then else elif fi for while until do done case esac in function select time
    alias bg break builtin cd command continue declare echo eval exec exit export false fg getopts
    hash help jobs kill let local mapfile popd printf pushd pwd read readonly return set shift
    shopt source test times trap true type ulimit umask unset wait
""".split()


def words_called(script):
    """(line, first word of a command), as far as a line shows it."""
    functions = set(re.findall(r"^(\w+)\(\) \{", script, re.MULTILINE))
    script = re.sub(r"<<'?(\w+)'?\n.*?\n\1\n", blank, script, flags=re.DOTALL)
    script = re.sub(r"(^|(?<=[ \t]))#.*$", "", script, flags=re.MULTILINE)
    script = re.sub(r"'[^']*'", blank, script)
    script = re.sub(r"^\s*[\w-]+( \| [\w-]+)*\)\s", "", script, flags=re.MULTILINE)  # of case
    words = r"\b(?:then|do|if|while|else|exec|xargs|as_root)\s"
    before = rf"(?:^|\|\|?|&&|;|\$\(|<\(|{words})\s*(?:\w+=[^\s(]*\s+)*"
    calls = re.compile(rf"{before}(?P<name>[a-z][\w.+-]*)(?=\s|$|\))", re.MULTILINE)
    for match in calls.finditer(script):
        name = match["name"]
        if name not in functions and name not in SHELL_WORDS:
            yield script.count("\n", 0, match.start("name")) + 1, name


def blank(match):
    """As many lines of nothing."""
    return "\n" * match[0].count("\n")


# --- dpkg ---


def owners_of(files, machine):
    """{file: packages}. What a link leads to may be the one that a package brings."""
    asked = collections.defaultdict(set)
    for file in files:
        for path in (file, os.path.realpath(file)):
            asked[path].add(file)
            asked[path.removeprefix("/usr")].add(file)  # before the folders of / moved
    owners = collections.defaultdict(set)
    for line in machine.owners(sorted(asked)).splitlines():
        packages, _, path = line.partition(": ")
        for file in asked.get(path, ()):
            owners[file] |= {each.split(":")[0] for each in packages.split(", ")}
    return dict(owners)


def packages_of(status):
    """What is installed, from dpkg's fields."""
    packages = {}
    for part in status.strip().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in part.splitlines())
        needs = names_in(f"{fields.get('Pre-Depends', '')}, {fields.get('Depends', '')}")
        is_everywhere = fields.get("Essential") == "yes" or fields.get("Priority") == "required"
        packages[fields["Package"]] = (needs, names_in(fields.get("Provides", "")), is_everywhere)
    return packages


def names_in(relations):
    """The packages of "a (>= 1), b:any | c": of alternatives each, where it is installed."""
    words = re.split(r"[,|]", relations)
    return [re.sub(r"[(:].*", "", word).strip() for word in words if word.strip()]
