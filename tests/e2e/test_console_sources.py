"""The console's files against each other: what is imported is there and is used, each class of the
styles is some page's, and no rule stands twice. Browsers tell of none of these."""

import re

import pytest
from harness.server import ROOT

ASSETS = ROOT / "src/console/assets"
MODULES = sorted(path.name for path in ASSETS.glob("*.js"))
STYLES = sorted(path.name for path in ASSETS.glob("*.css"))
IMPORT = re.compile(r"^import (?:\{([^}]*)\}|\* as (\w+)) from \"\./([\w.]+)\";$", re.MULTILINE)
LAZY = re.compile(r"lazily\(\"(\w+)\", \"(\w+)\"\)")
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class) (\w+)|^export const ([^;]*);",
                    re.MULTILINE)  # fmt: skip


def text(name):
    return (ASSETS / name).read_text()


def words(found):
    """(the name, what it is called here) of each."""
    names = [each.strip() for each in found.split(",") if each.strip()]
    return [(each.split(" as ")[0], each.split(" as ")[-1]) for each in names]


def lazy(name):
    """What is imported when it is needed first: (the module, its function) of each."""
    return [(f"{module}.js", each) for module, each in LAZY.findall(text(name))]


def exports(name):
    for found, constants in EXPORT.findall(text(name)):
        constants = re.findall(r"\A\w+(?= =)|(?<=^  )[A-Z]\w*(?= =)", constants, re.MULTILINE)
        yield from [found] if found else constants


@pytest.mark.parametrize("name", MODULES)
def test_what_is_imported_is_there_and_used(name):
    source = text(name)
    body = IMPORT.sub("", source)
    for names, whole, other in IMPORT.findall(source):
        exported = set(exports(other))
        for each, here in words(names):
            assert each in exported, f"{other} has no {each}"
            assert re.search(rf"\b{here}\b", body), f"{here} is not used"
        assert not whole or f"{whole}." in body, f"{whole} is not used"
    for other, each in lazy(name):
        assert each in set(exports(other)), f"{other} has no {each}"
    assert body.count("import(") == (1 if lazy(name) else 0)


def test_what_is_exported_is_imported():
    taken = set()
    for name in MODULES:
        for names, whole, other in IMPORT.findall(text(name)):
            used = re.findall(rf"\b{whole}\.(\w+)", text(name)) if whole else []
            taken.update((other, each) for each in [*used, *(each for each, _ in words(names))])
        taken.update(lazy(name))
    assert [(name, each) for name in MODULES for each in exports(name)
            if (name, each) not in taken] == []  # fmt: skip


def test_each_module_and_style_is_embedded():
    listed = set(re.findall(r"'assets/([\w.]+)'", (ROOT / "src/console/meson.build").read_text()))
    assert {*MODULES, *STYLES, "index.html", "icon.svg"} == listed
    for name in STYLES:
        assert f'href="@ASSETS@/{name}"' in text("index.html")


def rules(source):
    """(what it is within, selectors, declarations) of each rule."""
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    within, begun = [], 0
    for found in re.finditer(r"[{}]", source):
        part = source[begun : found.start()].strip()
        begun = found.end()
        if found.group() == "{":
            within.append(part)
        else:
            head = within.pop()
            if part:
                yield tuple(within), head, part
    assert within == [], "a brace is not closed"


@pytest.mark.parametrize("name", STYLES)
def test_rules_are_closed_and_stand_once(name):
    seen = set()
    for within, head, _ in rules(text(name)):
        if within and within[0].startswith("@keyframes"):
            continue
        assert all(each.startswith("@media") for each in within), (within, head)
        assert (within, head) not in seen, head
        seen.add((within, head))


@pytest.mark.parametrize("name", STYLES)
def test_each_class_is_some_pages(name):
    pages = "\n".join(text(each) for each in [*MODULES, "index.html"])
    pages = pages.replace("line-${i + 1}", " ".join(f"line-{i}" for i in range(1, 7)))
    for _, head, _ in rules(text(name)):
        for found in re.findall(r"\.([a-z][\w-]*)", head):
            assert re.search(rf"(?<![\w-]){found}(?![\w-])", pages), found
