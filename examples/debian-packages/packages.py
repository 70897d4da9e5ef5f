"""Debian's package index as rows of a table.

The row key is a package's name. Three families:

    meta    what the index says of the package: meta:version, meta:section, ...
    dep     what it depends on, one column for each: dep:libc6 = ">= 2.14"
    rdep    who depends on it, the same turned round: rdep:bash = ">= 2.14" in the row libc6

A name that something depends on and that no package has (a virtual package, or one of another
architecture) has a row with the family rdep only.
"""

import re
import subprocess
import warnings

# Google's client says so each time; here it is what we want.
warnings.filterwarnings("ignore", "Connecting to Bigtable emulator")

TABLE = "debian-packages"
FAMILIES = ("meta", "dep", "rdep")
META_FIELDS = (
    "Version",
    "Section",
    "Priority",
    "Maintainer",
    "Installed-Size",
    "Architecture",
    "Source",
    "Homepage",
    "Description",
)
# "libc6 (>= 2.14)", "python3:any", "perl [amd64]": a name, an architecture, a constraint.
CLAUSE = re.compile(r"^([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9-]+)?\s*(?:\(([^)]*)\))?")


def index():
    """The lines of `apt-cache dumpavail`: every package that apt knows of."""
    done = subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, check=True)
    lines = done.stdout.decode("utf-8", errors="replace").split("\n")
    if not any(line.startswith("Package:") for line in lines):
        raise SystemExit("apt-cache dumpavail knows no packages: run apt-get update first")
    return lines


def stanzas(lines):
    """A dict of each stanza's fields. Continuation lines are joined by line ends."""
    fields, name = {}, None
    for line in lines:
        if not line:
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            fields[name] += "\n" + line[1:]
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields


def dependencies(text):
    """{package: constraint} of a Depends field; alternatives count each for itself, and several
    constraints of one package are joined."""
    found = {}
    for clause in re.split(r"[,|]", text):
        match = CLAUSE.match(clause.strip())
        if match:
            name, constraint = match[1], match[2] or ""
            known = found.get(name)
            found[name] = f"{known}, {constraint}" if known and constraint else known or constraint
    return found


def rows(lines):
    """{package: {family: {column: value}}}. Of a name that comes twice the first one counts."""
    table = {}
    for stanza in stanzas(lines):
        name = stanza["Package"]
        if "meta" in table.get(name, {}):
            continue
        row = table.setdefault(name, {})
        row["meta"] = {f.lower(): stanza[f] for f in META_FIELDS if f in stanza}
        wanted = ", ".join(stanza[f] for f in ("Pre-Depends", "Depends") if f in stanza)
        for other, constraint in dependencies(wanted).items():
            row.setdefault("dep", {})[other] = constraint
            table.setdefault(other, {}).setdefault("rdep", {})[name] = constraint
    return table
