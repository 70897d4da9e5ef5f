#!/usr/bin/env python3
"""Writes the HTTP rules of .proto files as C: embed_http_rules.py HEADER SOURCE FILE..."""

import pathlib
import sys

from http_options import http_rules

HEADER = """\
/* Which HTTP requests stand for which methods: the options google.api.http of the interface. */
#ifndef TRESTLE_PROTO_HTTP_RULES_H
#define TRESTLE_PROTO_HTTP_RULES_H

#include <stdbool.h>
#include <stddef.h>

struct http_rule {
    const char *method; /* "/google.bigtable.v2.Bigtable/ReadRows" */
    bool streams;       /* its answers, of which there are any number */
    const char *verb;   /* "POST" */
    const char *path;   /* "/v2/{name=…}:readRows" */
    const char *body;   /* the field that the body is, "*" for the whole request, "" for none */
};

extern const struct http_rule proto_http_rules[];
extern const size_t proto_http_rule_count;

#endif
"""

SOURCE = """\
#include "proto/http_rules.h"

const struct http_rule proto_http_rules[] = {
%s};

const size_t proto_http_rule_count = sizeof proto_http_rules / sizeof *proto_http_rules;
"""


def main():
    header, source, *files = sys.argv[1:]
    lines = []
    for file in files:
        for method, streams, verb, path, body in http_rules(pathlib.Path(file).read_text()):
            flag = "true" if streams else "false"
            lines.append(f'    {{"{method}", {flag}, "{verb}", "{path}", "{body}"}},\n')
    pathlib.Path(header).write_text(HEADER)
    pathlib.Path(source).write_text(SOURCE % "".join(lines))


if __name__ == "__main__":
    sys.exit(main())
