/* Signature Version 4, by which AWS's services know a request's sender ("Create a signed AWS API
 * request", IAM User Guide).
 *
 * Signed are the method, the path, the query, the headers that are given and the body's digest, at
 * a time, for one service in one region. Path and query are escaped as they are sent. */
#ifndef TRESTLE_AWS_SIGNATURE_H
#define TRESTLE_AWS_SIGNATURE_H

#include "base/status.h"

struct aws_header {
    const char *name; /* in lower case */
    const char *value;
};

struct aws_request {
    const char *method;
    const char *path;
    const char *query;                /* name=value pairs, sorted by name; NULL: none */
    const struct aws_header *headers; /* that are signed: sorted by name, `host` among them */
    size_t header_count;
    bytes body;
};

struct aws_signer {
    const char *access_key;
    const char *secret_key;
    const char *region;
    const char *service;
};

enum { AWS_TIME_SIZE = sizeof "20150830T123600Z" };

/* Formats a time as the header x-amz-date has it. Microseconds since 1970. */
void aws_time_format(int64_t wall_us, char out[AWS_TIME_SIZE]);

/* Appends the value of the header `authorization`. `time` is that of aws_time_format. Any thread.
 */
status aws_sign(const struct aws_signer *signer, const struct aws_request *request,
                const char *time, struct buffer *out);

#endif
