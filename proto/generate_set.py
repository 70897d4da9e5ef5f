#!/usr/bin/env python3
"""Writes the descriptors of .proto files, for reflection, without their HTTP options:

    generate_set.py PROTOC_C SOURCE_DIR OUTPUT FILE..."""

import pathlib
import subprocess
import sys
import tempfile

from http_options import copy_without_http


def main():
    protoc_c, source_dir, output, *files = sys.argv[1:]
    source_dir = pathlib.Path(source_dir).resolve()
    with tempfile.TemporaryDirectory() as copies:
        copy_without_http(source_dir, copies)
        names = [pathlib.Path(file).resolve().relative_to(source_dir) for file in files]
        options = [f"-I{copies}", "--include_imports", f"--descriptor_set_out={output}"]
        return subprocess.run([protoc_c, *options, *names]).returncode


if __name__ == "__main__":
    sys.exit(main())
