#!/usr/bin/python3
"""Checks what a compiler does not: the layers, the limits of style.md, what nobody uses any more.

    check.py              checks the tree; prints `path:line: what is wrong`; exit 1 if anything is
    check.py --canaries   checks the checks: each must find exactly what the file `expected` says in
                          the small bad tree tools/testdata/CHECK

A check is a function that gets a Tree and yields (path, line, message). CHECKS names them all.
"""

import collections
import os
import re
import subprocess
import sys
from pathlib import Path

import package_check

ROOT = Path(__file__).resolve().parent.parent
TESTDATA = Path("tools/testdata")

# A folder of src/ includes itself and those before it. This is the architecture.
LAYERS = (
    "base os wire advisor store place row tablet stream archive heat cluster history access faults "
    "control sql views bigtable datastore introspect formats aws backup client replica transfer "
    "design console server cmd"
).split()
# Rooms of a folder, in the same sense; "a+b" are side by side. What lies in the folder itself is
# theirs in common: it is included from each room, and includes whichever it wants. So do tests.
ROOMS = {
    "sql": "syntax time functions plan analyze run view".split(),
    "datastore": "model gql index+commit query admin".split(),
    "cluster": ["heat+backup+stream+view+origin"],
    "cmd": ["advise+backup+bench+repair+replica+sql+status+support+tail+transfer"],
}
TESTING = "testing"  # a folder's room of fixtures and doubles, which only tests see
OF_TESTS = re.compile(rf"(_(test|fuzz|bench)\.cc?$|/{TESTING}/)")
GENERATED = "proto/"  # what protobuf-c makes; from wire/ upwards

# Libraries that only some folders may see.
FENCED = {
    "rocksdb/": ["store"],
    "re2/": ["row"],
    "nghttp2/": ["wire"],
    "openssl/": ["os", "wire", "access"],
    "microhttpd": ["wire", "console"],
    "utf8proc": ["sql", "cmd"],
    "histedit": ["cmd"],
    "librdkafka/": ["transfer"],
    "curl/": ["aws", "server", "cmd"],
    "yaml.h": ["design"],
}
CPLUSPLUS = re.compile(r"^src/(store/.*|row/regex)\.cc$")

LINE_COLUMNS = 100
ANY_COLUMNS = (".md", ".txt", ".json", "/go.mod", "/go.sum")  # prose, and what tools write
FILE_LINES = 750
TEST_LINES = 1000
FUNCTION_LINES = 70

# A call, why it is not made here, and where it is made all the same.
BANNED_CALLS = {
    "strcpy|strcat|sprintf|vsprintf|gets|strncpy|strncat": ("writes past its buffer", None),
    "atoi|atol|atoll|atof": ("hides errors; use strtoll and look at them", None),
    "rand|srand|random|drand48": ("one hidden state for the process", None),
    "alloca": ("the stack is small", None),
    "setjmp|longjmp": ("skips cleanup", None),
    "strtok|localtime|gmtime|ctime|asctime|readdir_r": ("not safe with threads", None),
    "assert": ("goes away with NDEBUG; use CHECK", None),
    "abort": ("leaves no evidence; use CHECK", r"src/base/check\.c|.*_fuzz\.c"),
    "printf|puts|putchar|vprintf": ("prints outside cmd/", r"src/cmd/.*"),
    "system|popen": ("runs a shell", None),
    # RocksDB tries again once a second and tells nobody: its test has to poll.
    "sleep|usleep|nanosleep": (
        "is no way to wait for an event",
        r"src/os/.*|src/store/store_fault_test\.c",
    ),
}
BANNED_WORDS = {
    r"\b(TOD[O]|FIXM[E]|XX[X])\b": "finish it, or write an issue",
    r"/(work|farm)/": "a path of one machine",
    # (proxy|sum): golang.org by itself begins the names of Go's packages.
    r"\b(pypi|pythonhosted|npmjs|crates|maven|(proxy|sum)\.golang|goproxy|deb\.debian)"
    r"\.(org|io|com|dev)\b": "a registry's host: name packages only",
}


class Tree:
    """The files of a directory by path, with their text; what is not text is left out."""

    def __init__(self, root, paths):
        self.root = root
        self.texts = {}
        for path in sorted(paths):
            try:
                self.texts[path] = (root / path).read_text(encoding="utf-8")
            except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
                continue

    def files(self, *suffixes):
        for path, text in self.texts.items():
            if not suffixes or path.endswith(suffixes):
                yield path, text

    def lines(self, *suffixes):
        for path, text in self.files(*suffixes):
            for number, line in enumerate(text.splitlines(), 1):
                yield path, number, line


def strip_comments_and_strings(text):
    """C source with comments and literals blanked, its lines kept where they were."""
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.DOTALL)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# --- the checks ---


def folder_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "src" else None


def check_layers(tree):
    """Includes run one way, and a library is seen only where it is fenced in."""
    for path, number, line in tree.lines(".c", ".h", ".cc"):
        include = re.match(r'#\s*include\s+(["<])([^">]+)', line)
        folder = folder_of(path)
        if not include or folder is None:
            continue
        if folder not in LAYERS:
            yield path, number, f"folder {folder} is not in LAYERS"
            continue
        quote, target = include.groups()
        if quote == "<" or target.startswith(tuple(FENCED)):
            yield from fenced_include(path, number, folder, target)
        else:
            yield from own_include(path, number, folder, target)
            yield from room_include(path, number, target)


def fenced_include(path, number, folder, target):
    for library, folders in FENCED.items():
        if target.startswith(library) and folder not in folders:
            yield path, number, f"only {' and '.join(folders)} may see <{target}>"


def own_include(path, number, folder, target):
    target_folder = target.split("/")[0]
    private_to = os.path.dirname(target)
    if target.startswith(GENERATED) or target.endswith(".pb-c.h"):
        if LAYERS.index(folder) < LAYERS.index("wire"):
            yield path, number, f"{folder} is below wire and includes {target}"
    elif target_folder not in LAYERS:
        yield path, number, f'write "folder/{target}", from src/'
    elif LAYERS.index(target_folder) > LAYERS.index(folder):
        yield path, number, f"{folder} is below {target_folder} and includes {target}"
    elif target.endswith("_private.h") and not may_see(path, folder, private_to):
        yield path, number, f"{target} is private to {private_to}"


def may_see(path, folder, private_to):
    """A folder's private header is for its rooms, too, and a room's for tests of the folder."""
    is_test = re.search(r"_test\.c$", path) and private_to.split("/")[0] == folder
    return is_test or path.startswith(f"src/{private_to}/")


def room_of(path):
    """(folder, which of its rooms by number) of a path from src/; None: no room."""
    folder, *below = path.split("/")
    if folder not in ROOMS or len(below) < 2 or below[0] == TESTING:
        return None
    found = [i for i, rooms in enumerate(ROOMS[folder]) if below[0] in rooms.split("+")]
    return folder, found[0] if found else -1


def room_include(path, number, target):
    """An include from one room into another of the same folder."""
    if OF_TESTS.search(path):
        return
    if f"/{TESTING}/" in target:
        yield path, number, f"{target} is for tests"
    here, there = room_of(path.removeprefix("src/")), room_of(target)
    if here is not None and here[1] < 0:
        yield path, number, f"{os.path.dirname(path)} is not in ROOMS"
    elif here and there and here[0] == there[0] and here[1] < there[1]:
        yield path, number, f"{os.path.dirname(path)} is below {target}"


def check_cplusplus(tree):
    """C++ is for RocksDB and RE2."""
    for path, _ in tree.files(".cc", ".cpp", ".cxx", ".hpp"):
        if not CPLUSPLUS.match(path):
            yield path, 1, "C++ is only in src/store and src/row/regex.cc"


def check_banned_calls(tree):
    any_of_them = re.compile(rf"(?<![\w.>:])({'|'.join(BANNED_CALLS)})\s*\(")
    for path, text in tree.files(".c", ".h", ".cc"):
        if folder_of(path) is None or not any_of_them.search(text):
            continue
        code = strip_comments_and_strings(text)
        for match in any_of_them.finditer(code):
            reason, allowed = reason_against(match[1])
            if not allowed or not re.fullmatch(allowed, path):
                yield path, line_of(code, match.start()), f"{match[1]}() {reason}"


def reason_against(call):
    return next(why for names, why in BANNED_CALLS.items() if re.fullmatch(names, call))


def check_banned_words(tree):
    for path, text in tree.files():
        for pattern, reason in BANNED_WORDS.items():
            for match in re.finditer(pattern, text):
                yield path, line_of(text, match.start()), f"{match[0]}: {reason}"


def check_text(tree):
    """Width, white space at the end, a newline at the end of the file."""
    for path, number, line in tree.lines():
        if line != line.rstrip():
            yield path, number, "white space at the end of the line"
        if len(line) > LINE_COLUMNS and not path.endswith(ANY_COLUMNS):
            yield path, number, f"{len(line)} columns, over {LINE_COLUMNS}"
    for path, text in tree.files():
        if text and not text.endswith("\n"):
            yield path, len(text.splitlines()), "no newline at the end of the file"


def check_file_length(tree):
    for path, text in tree.files(".c", ".h", ".cc", ".py"):
        length = text.count("\n")
        most = TEST_LINES if OF_TESTS.search(path) or path.startswith("tests/") else FILE_LINES
        if length > most:
            yield path, length, f"{length} lines, over {most}"


def functions(text):
    """(first line of the body, lines of it): bodies stand between braces in column 0."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            yield start, number - start - 1
            start = None


def check_function_length(tree):
    for path, text in tree.files(".c", ".h", ".cc"):
        for number, length in functions(text):
            if length > FUNCTION_LINES:
                yield path, number, f"a function of {length} lines, over {FUNCTION_LINES}"


def check_dead_files(tree):
    """Every file is named by another that has a use for it."""
    namers = files_by_what_they_name(tree)
    for path, _ in tree.files(".c", ".cc", ".h", ".proto", ".py", ".md", ".supp", ".txt", ".def"):
        name = path.rsplit("/", 1)[-1]
        if is_entry_point(path, name):
            continue
        if not namers[name] - {path} and not is_named_without_suffix(tree, path):
            yield path, 1, "no build file, include, import or page names it"


def files_by_what_they_name(tree):
    """The paths of the files in which a name like "x.c" stands, or that import x of "x.py"."""
    namers = collections.defaultdict(set)
    imports = re.compile(r"^\s*(?:import|from) (?:\w+\.)*(\w+)", re.MULTILINE)
    for path, text in tree.files():
        for name in set(re.findall(r"[\w-][\w.-]*\.\w+", text)):
            namers[name].add(path)
        for module in imports.findall(text):
            namers[f"{module}.py"].add(path)
    return namers


def is_named_without_suffix(tree, path):
    """Build files make x_test.c and x_fuzz.c from 'x' in a list."""
    match = re.fullmatch(r"(src/\w+/)(.*)_(test|fuzz)\.c", path)
    return match is not None and f"'{match[2]}'" in tree.texts.get(f"{match[1]}meson.build", "")


def is_entry_point(path, name):
    """What a tool or a person finds by itself."""
    return (
        path in ("README.md", "HACKING.md", "CHANGELOG.md", "LICENSE", "meson_options.txt")
        or name in ("conftest.py", "README.md", "__init__.py")
        or re.fullmatch(r"test_\w+\.py", name) is not None
        or path.startswith("tests/issues/")
    )


def check_links(tree):
    """What a page links to in the tree is there."""
    for path, number, line in tree.lines(".md"):
        for target in re.findall(r"\]\(([^)#\s]+)", line):
            resolved = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if "://" not in target and not (tree.root / resolved).exists():
                yield path, number, f"links to {target}, which is not there"


CONFORMANCE_PAGE = "docs/reference/conformance.md"


def check_conformance(tree):
    """Each line of the page has its tests, and each conformance test its line."""
    tests = {}
    for path, number, line in tree.lines(".py"):
        test = re.match(r"def (test_\w+)", line)
        if test and path.startswith("tests/e2e/conformance/"):
            tests[test[1]] = (path, number)
    for number, line in enumerate(tree.texts.get(CONFORMANCE_PAGE, "").splitlines(), 1):
        row = re.match(r"\| C(\d+)\.(\d+) \|", line)
        if row is None:
            continue
        named = re.findall(r"`(test_\w+)`", line)
        if not named:
            yield CONFORMANCE_PAGE, number, f"C{row[1]}.{row[2]} has no test"
        for name in named:
            if not name.startswith(f"test_c{row[1]}_{row[2]}_"):
                yield CONFORMANCE_PAGE, number, f"{name} is the name of another line's test"
            elif tests.pop(name, None) is None:
                yield CONFORMANCE_PAGE, number, f"{name} is not there"
    for name, (path, number) in tests.items():
        yield path, number, f"{name} is not in {CONFORMANCE_PAGE}"


PLACEHOLDER = re.compile(r"x(_\w+)?\.\w+")  # `x_test.c`: of any module
NAMED_FILE = re.compile(r"([\w./-]+\.(?:c|h|cc|def|py|md|txt|proto|supp))(?::(\w+))?")
NAMED_FOLDER = re.compile(r"(?!build)[\w.-]+(/[\w.-]+)*/")
NAMED_WORD = re.compile(r"(?:struct |enum )?([a-z]\w*_\w+)(?:\(.*\))?")


def check_named(tree):
    """What a page names in `code` is there: files, folders, functions, types, fields."""
    code = [text for path, text in tree.files() if not path.endswith(".md")]
    words = set(re.findall(r"\w+", "\n".join(code)))
    for path, number, line in tree.lines(".md"):
        for span in re.findall(r"`([^`]+)`", line):
            missing = missing_of(tree, words, path, span)
            if missing:
                yield path, number, f"names {missing}"


def missing_of(tree, words, page, span):
    """What of a page's `code` is not there, or None."""
    file = NAMED_FILE.fullmatch(span)
    word = NAMED_WORD.fullmatch(span)
    if file and not PLACEHOLDER.fullmatch(file[1]):
        return missing_file(tree, *file.groups())
    if NAMED_FOLDER.fullmatch(span):
        places = ("", "src", os.path.dirname(page))
        is_there = any((tree.root / place / span).is_dir() for place in places)
        return None if is_there else f"{span}, which is not there"
    if word and word[1] not in words:
        return f"{word[1]}, which nothing is called"
    return None


def missing_file(tree, target, symbol):
    """For `cluster/rows.c:rows_write`, or the file alone; the end of its path will do."""
    found = [each for each in tree.texts if f"/{each}".endswith(f"/{target}")]
    if not found:
        return f"{target}, which is not there"
    if symbol and not any(re.search(rf"\b{symbol}\b", tree.texts[each]) for each in found):
        return f"{symbol}, which is not in {target}"
    return None


LIMITS_HEADER = "src/base/limits.h"
LIMITS_PAGE = "docs/reference/limits.md"


def limits_of(header):
    """{name: (line, value)} of the header's constants; each may use those before it."""
    limits = {}
    for number, line in enumerate(header.splitlines(), 1):
        found = re.match(r"    (LIMIT_\w+) = ([\w *<+-]+),", line)
        if found:
            known = {name: value for name, (_, value) in limits.items()}
            limits[found[1]] = (number, eval(found[2], {}, known))
    return limits


def limit_as_text(name, value):
    """As the page writes it."""
    if name.endswith("_SECONDS"):
        return f"{value} s"
    if not name.endswith("_BYTES"):
        return f"{value:,}"
    for size, unit in (1 << 20, "MiB"), (1 << 10, "KiB"):
        if value % size == 0 and value > 0:
            return f"{value // size} {unit}"
    return f"{value:,} bytes"


def words_of_the_source(tree):
    """All strings of src/, those that stand one behind the other joined as a compiler does."""
    sources = (text for path, text in tree.files(".c", ".h", ".cc") if path.startswith("src/"))
    return re.sub(r'"\s*"', "", "\n".join(sources))


def check_limits(tree):
    """The page has each limit of the header, its value, and words that the server really says."""
    limits = limits_of(tree.texts.get(LIMITS_HEADER, ""))
    units = {"LIMIT_KB", "LIMIT_MB"}
    words = words_of_the_source(tree)
    for number, line in enumerate(tree.texts.get(LIMITS_PAGE, "").splitlines(), 1):
        for part in (part for said in re.findall("“(.*?)”", line) for part in said.split("…")):
            if part not in words:
                yield LIMITS_PAGE, number, f"the source does not say “{part}”"
        row = re.match(r"\| `(LIMIT_\w+)` \| (.*?) \|", line)
        if row is None:
            continue
        _, value = limits.pop(row[1], (0, None))
        if value is None:
            yield LIMITS_PAGE, number, f"{row[1]} is not in {LIMITS_HEADER}"
        elif row[2] != limit_as_text(row[1], value):
            yield LIMITS_PAGE, number, f"{row[1]} is {limit_as_text(row[1], value)}"
    for name in sorted(limits.keys() - units):
        yield LIMITS_HEADER, limits[name][0], f"{name} is not in {LIMITS_PAGE}"


def check_packages(tree):
    """A group of tools/packages.txt brings each header, library and program that it is for."""
    if package_check.LIST not in tree.texts:
        return ()
    is_sample = "status" in tree.texts
    machine = package_check.Sample(tree) if is_sample else package_check.Machine()
    return package_check.check(tree, package_check.facts_of(tree, machine))


CHECKS = {
    "layers": check_layers,
    "cplusplus": check_cplusplus,
    "banned_calls": check_banned_calls,
    "banned_words": check_banned_words,
    "text": check_text,
    "file_length": check_file_length,
    "function_length": check_function_length,
    "dead_files": check_dead_files,
    "links": check_links,
    "conformance": check_conformance,
    "limits": check_limits,
    "named": check_named,
    "packages": check_packages,
}


# --- running them ---


def working_tree():
    """Tracked files and new ones that are not ignored, without bad samples and fuzzers' inputs."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    no_source = (f"{TESTDATA}/", "tests/corpus/")
    return Tree(ROOT, [p for p in output.splitlines() if not p.startswith(no_source)])


def sample_tree(directory):
    """A tilde in a sample stands for nothing: it keeps the banned words themselves out of here."""
    paths = [p.relative_to(directory) for p in directory.rglob("*") if p.is_file()]
    tree = Tree(directory, [str(p) for p in paths if p.name != "expected"])
    tree.texts = {path: text.replace("~", "") for path, text in tree.texts.items()}
    return tree


def report(problems):
    return [f"{path}:{line}: {message}" for path, line, message in problems]


def check_tree():
    tree = working_tree()
    lines = [line for check in CHECKS.values() for line in report(check(tree))]
    print("\n".join(lines), file=sys.stderr) if lines else None
    return 1 if lines else 0


def check_canaries():
    bad = 0
    for name, check in CHECKS.items():
        directory = ROOT / TESTDATA / name
        found = sorted(report(check(sample_tree(directory))))
        expected = (directory / "expected").read_text().replace("~", "")
        expected = sorted(expected.splitlines())
        if not expected or found != expected:
            bad += 1
            print(f"canary {name}:", file=sys.stderr)
            print("\n".join(f"  expected {line}" for line in expected), file=sys.stderr)
            print("\n".join(f"  found    {line}" for line in found), file=sys.stderr)
    return 1 if bad else 0


def main(arguments):
    os.chdir(ROOT)
    if arguments == ["--canaries"]:
        return check_canaries()
    if not arguments:
        return check_tree()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
