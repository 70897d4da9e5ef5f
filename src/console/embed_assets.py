#!/usr/bin/env python3
"""Writes the console's files as a table in C: embed_assets.py HEADER SOURCE FILE...

In index.html, which is the page, @ASSETS@ stands for the folder that the others are served from: it
has a hash of all of them in its name, so that modules that import one another by relative names are
all of one build, and may be kept for ever. The same files make the same bytes."""

import gzip
import hashlib
import pathlib
import sys

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = "index.html"
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


def main():
    header, source, *names = sys.argv[1:]
    files = sorted((pathlib.Path(name) for name in names), key=lambda file: file.name)
    contents = [(file.name, file.read_bytes()) for file in files]
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
