#!/usr/bin/env python3
"""Writes a serialised FileDescriptorSet as C: embed_descriptors.py SET HEADER SOURCE"""

import pathlib
import sys

HEADER = """\
/* The public interface as a serialised google.protobuf.FileDescriptorSet, for reflection. */
#ifndef TRESTLE_PROTO_DESCRIPTORS_H
#define TRESTLE_PROTO_DESCRIPTORS_H

#include "base/bytes.h"

/* Constant; any thread. A file comes after those that it imports. */
bytes proto_descriptor_set(void);

#endif
"""

SOURCE = """\
#include "proto/descriptors.h"

static const uint8_t set[] = {
%s};

bytes proto_descriptor_set(void)
{
    return bytes_make(set, sizeof set);
}
"""

BYTES_A_LINE = 24


def main():
    data = pathlib.Path(sys.argv[1]).read_bytes()
    lines = []
    for at in range(0, len(data), BYTES_A_LINE):
        lines.append("    " + " ".join(f"{byte}," for byte in data[at : at + BYTES_A_LINE]) + "\n")
    pathlib.Path(sys.argv[2]).write_text(HEADER)
    pathlib.Path(sys.argv[3]).write_text(SOURCE % "".join(lines))


if __name__ == "__main__":
    main()
