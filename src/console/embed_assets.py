#!/usr/bin/env python3
"""Writes the console's files as a table in C: embed_assets.py HEADER SOURCE FILE...

In index.html, which is the page, @ASSETS@ stands for the folder that the others are served from: it
has a hash of all of them in its name, so that modules that import one another by relative names are
all of one build, and may be kept for ever. The same files make the same bytes.

A browser finds the modules that a module imports when it has read that, level by level; so the
page tells it of all of them. @PRELOADS@ are links to those that the first module needs, @MODULES@
is what each module needs that comes later: "table:bytes dom;rows:bytes". The styles are one."""

import gzip
import hashlib
import pathlib
import re
import sys

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = "index.html"
FIRST = "main"
STYLES = "styles.css"
STYLE = re.compile(r'<link rel="stylesheet" href="@ASSETS@/([\w.]+)">\n')
IMPORT = re.compile(r'from "\./(\w+)\.js";')
LATER = re.compile(r'lazily\("(\w+)",')
HASH_DIGITS = 16

HEADER = """\
#ifndef TRESTLE_CONSOLE_ASSET_TABLE_H
#define TRESTLE_CONSOLE_ASSET_TABLE_H

#include "console/assets.h"

extern const struct asset asset_table[];
extern const size_t asset_count;

#endif
"""

SOURCE = """\
#include "console/asset_table.h"

{arrays}
const char assets_tag[] = "\\"{tag}\\"";

const struct asset asset_table[] = {{
{entries}}};
const size_t asset_count = sizeof asset_table / sizeof *asset_table;
"""

BYTES_A_LINE = 24


def array(name, data):
    lines = [f"static const uint8_t {name}[] = {{"]
    for at in range(0, len(data), BYTES_A_LINE):
        lines.append("    " + " ".join(f"{byte}," for byte in data[at : at + BYTES_A_LINE]))
    return "\n".join([*lines, "};\n"])


def digest(contents):
    total = hashlib.sha256()
    for name, data in contents:
        total.update(f"{name} {len(data)}\n".encode())
        total.update(data)
    return total.hexdigest()[:HASH_DIGITS]


def needs_of(module, sources):
    """All that it imports, and what these import; in their order, the nearest first."""
    found, level = [], [module]
    while level:
        level = [each for source in level for each in IMPORT.findall(sources[source])]
        level = [each for each in dict.fromkeys(level) if each not in (module, *found)]
        found += level
    return found


def join_styles(files):
    """Those that the page names, in its order, as the one that it names then."""
    page = files[PAGE].decode()
    names = STYLE.findall(page)
    files[STYLES] = b"".join(files.pop(name) for name in names)
    first, *others = (f'<link rel="stylesheet" href="@ASSETS@/{name}">\n' for name in names)
    page = page.replace(first, f'<link rel="stylesheet" href="@ASSETS@/{STYLES}">\n')
    for other in others:
        page = page.replace(other, "")
    files[PAGE] = page.encode()


def tell_modules(files):
    sources = {name[:-3]: data.decode() for name, data in files.items() if name.endswith(".js")}
    known = needs_of(FIRST, sources)
    preloads = "\n".join(
        f'<link rel="modulepreload" href="@ASSETS@/{name}.js">' for name in known
    )
    later = {name: [each for each in needs_of(name, sources) if each not in known]
             for name in dict.fromkeys(LATER.findall(sources[FIRST]))}  # fmt: skip
    modules = ";".join(f"{name}:{' '.join(needs)}" for name, needs in later.items())
    page = files[PAGE].decode().replace("@PRELOADS@", preloads).replace("@MODULES@", modules)
    files[PAGE] = page.encode()


def main():
    header, source, *names = sys.argv[1:]
    files = sorted((pathlib.Path(name) for name in names), key=lambda file: file.name)
    by_name = {file.name: file.read_bytes() for file in files}
    join_styles(by_name)
    tell_modules(by_name)
    contents = sorted(by_name.items())
    tag = digest(contents)
    folder = f"assets/{tag}"
    arrays, entries = [], []
    for number, (name, data) in enumerate(contents):
        is_page = name == PAGE
        if is_page:
            data = data.replace(b"@ASSETS@", folder.encode())
        arrays.append(array(f"plain_{number}", data))
        arrays.append(array(f"packed_{number}", gzip.compress(data, 9, mtime=0)))
        entries.append(
            '    {.path = "%s",\n     .type = "%s",\n     .is_page = %s,\n'
            "     .plain = {plain_%d, sizeof plain_%d},\n"
            "     .packed = {packed_%d, sizeof packed_%d}},\n"
            % ("" if is_page else f"{folder}/{name}", TYPES[pathlib.Path(name).suffix],
               str(is_page).lower(), *[number] * 4)
        )  # fmt: skip
    pathlib.Path(header).write_text(HEADER)
    pathlib.Path(source).write_text(
        SOURCE.format(arrays="\n".join(arrays), tag=tag, entries="".join(entries))
    )


if __name__ == "__main__":
    main()
