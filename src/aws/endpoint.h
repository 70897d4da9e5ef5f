/* The address of a service that a user gives: http://HOST:PORT or https://HOST. */
#ifndef TRESTLE_AWS_ENDPOINT_H
#define TRESTLE_AWS_ENDPOINT_H

#include "base/bytes.h"
#include "base/status.h"

/* Scheme and host, the latter as libcurl sends it, which is how it is signed: without a port that
 * the scheme has by itself. The host is a string in `host`, which is empty before. */
status aws_endpoint_parse(const char *endpoint, const char **scheme, struct buffer *host);

#endif
