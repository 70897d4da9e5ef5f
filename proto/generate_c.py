#!/usr/bin/env python3
"""Runs protoc-c on one .proto file, with the C names that we want.

    generate_c.py PROTOC_C PROTOBUF_C_INCLUDE SOURCE_DIR OUTPUT_DIR FILE

protoc-c makes C names from the package, so that every use would read
Google__Bigtable__Admin__V2__Table. Its own file options give a shorter prefix, but in the .proto
files they would be part of what we serve by reflection. So they are added here, to copies, in a
directory that is gone afterwards."""

import pathlib
import re
import subprocess
import sys
import tempfile

from http_options import copy_without_http

C_PREFIXES = {
    "google.bigtable.v2": "Bt",
    "google.bigtable.admin.v2": "BtAdmin",
    "google.cloud.location": "Location",
    "google.datastore.v1": "Ds",
    "google.datastore.admin.v1": "DsAdmin",
    "google.firestore.admin.v1": "FsAdmin",
    "google.iam.v1": "Iam",
    "google.longrunning": "Lro",
    "google.protobuf": "Pb",
    "google.rpc": "Rpc",
    "google.type": "Type",
    "grpc.health.v1": "Health",
    "grpc.reflection.v1": "Reflection",
    "grpc.reflection.v1alpha": "ReflectionAlpha",
    "trestle.backup": "Backup",
    "trestle.backup.v1": "Wb",
    "trestle.catalog": "Catalog",
    "trestle.datastore": "Datastore",
    "trestle.descriptors": "Descriptors",
    "trestle.export": "Export",
    "trestle.insight.v1": "Insight",
    "trestle.replica.v1": "Replica",
    "trestle.query": "Query",
    "trestle.trace": "Trace",
}

OPTIONS = """\\g<0>
import "protobuf-c/protobuf-c.proto";
option (pb_c_file).c_package = "%s";
option (pb_c_file).const_strings = true;
option (pb_c_file).gen_pack_helpers = false;
"""

# The part of google/protobuf/descriptor.proto that protobuf-c.proto extends and that our files use.
DESCRIPTOR = """syntax = "proto2";
package google.protobuf;
message FileOptions { extensions 1000 to max; }
message MessageOptions { optional bool deprecated = 3; extensions 1000 to max; }
message FieldOptions { optional bool deprecated = 3; extensions 1000 to max; }
"""


def with_options(text):
    package = re.search(r"^package ([\w.]+);$", text, re.MULTILINE)
    return text.replace(package.group(0), package.expand(OPTIONS % C_PREFIXES[package.group(1)]), 1)


def main():
    protoc_c, protobuf_c_include, source_dir, output_dir, file = sys.argv[1:]
    source_dir = pathlib.Path(source_dir).resolve()
    with tempfile.TemporaryDirectory() as directory:
        copies = pathlib.Path(directory)
        copy_without_http(source_dir, copies, with_options)
        (copies / "google/protobuf/descriptor.proto").write_text(DESCRIPTOR)
        name = pathlib.Path(file).resolve().relative_to(source_dir)
        paths = [f"-I{copies}", f"-I{protobuf_c_include}", f"--c_out={output_dir}"]
        done = subprocess.run([protoc_c, *paths, name], stderr=subprocess.PIPE, text=True)
    # 1.5 would have each of us install all of protobuf-compiler, and says so for every file.
    lines = done.stderr.splitlines(keepends=True)
    sys.stderr.writelines(line for line in lines if "`protoc-c` is deprecated" not in line)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
