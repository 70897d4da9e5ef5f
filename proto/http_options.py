"""The option google.api.http of our .proto files: which HTTP requests stand for a method.

protoc would need the whole of google/protobuf/descriptor.proto to understand it, and would put that
into what we serve by reflection. So it never sees the options: they are taken out of its sources
(`without_http`), and read here (`http_rules`)."""

import pathlib
import re

IMPORT = 'import "google/api/annotations.proto";\n'
METHOD = re.compile(
    r"^  rpc (\w+)\([^)]*\)\s+returns \((stream )?[^)]*\) \{\n"
    r"    option \(google\.api\.http\) = \{\n(.*?)^    \};\n  \}",
    re.MULTILINE | re.DOTALL,
)
OPTION = re.compile(r" \{\n    option \(google\.api\.http\) = \{\n.*?^    \};\n  \}", re.M | re.S)
PATTERN = re.compile(
    r'^ +(get|put|post|delete|patch): ("[^"]+"(?:\s+"[^"]+")*)\n(?: +body: "([^"]+)"\n)?', re.M
)


def without_http(text):
    return OPTION.sub(";", text.replace(IMPORT, ""))


def http_rules(text):
    """(path of the method, whether it streams, verb, path template, body or "") of each rule."""
    package = re.search(r"^package ([\w.]+);$", text, re.MULTILINE)[1]
    service = re.search(r"^service (\w+) \{$", text, re.MULTILINE)
    for method in METHOD.finditer(text):
        path = f"/{package}.{service[1]}/{method[1]}"
        for verb, template, body in PATTERN.findall(method[3]):
            joined = "".join(re.findall(r'"([^"]+)"', template))
            yield path, bool(method[2]), verb.upper(), joined, body


def copy_without_http(source_dir, copies, change=lambda text: text):
    """Copies all .proto files that protoc may see; it gets google/api/ only where it is used."""
    for source in source_dir.rglob("*.proto"):
        name = source.relative_to(source_dir)
        if name.parts[:2] == ("google", "api"):
            continue
        copy = pathlib.Path(copies) / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(change(without_http(source.read_text())))
