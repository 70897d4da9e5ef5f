/* Calls of S3, or of what speaks as S3 does: signed, made again while that may help, one after the
 * other on whatever thread asks; several threads may ask at once. By libcurl.
 *
 * The endpoint is AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL (buckets are then part of the path),
 * else AWS's of the region; credentials are found as credentials.h says; AWS_CA_BUNDLE names
 * authorities. */
#ifndef TRESTLE_AWS_BUCKET_CALLS_H
#define TRESTLE_AWS_BUCKET_CALLS_H

#include "base/bytes.h"
#include "base/status.h"

struct bucket;

/* Touches no network. Missing credentials are told as credentials.h does. */
status bucket_open(const char *name, struct bucket **out);
void bucket_close(struct bucket *bucket); /* NULL is fine */

struct bucket_request {
    const char *method;
    const char *key;   /* of the object; "": the bucket's own */
    const char *query; /* escaped and sorted by name (bucket_append_escaped); NULL: none */
    bytes body;
    bool is_ranged; /* only these bytes, of which there may be fewer */
    uint64_t first;
    uint64_t last;
    size_t answer_most; /* bytes of the answer's body */
    const char *root;   /* the answer is one XML element of this name, whole; NULL: whatever */
};

struct bucket_answer {
    unsigned http_status;
    struct buffer body;
    bytes content;     /* of the root, if one was asked for; in the body */
    char etag[128];    /* with its quotation marks; empty: none */
    uint64_t total;    /* of the object, if a range was asked for and there */
    int64_t server_us; /* when the server says that it is; 0: it does not */
};

/* Fills the answer, which begins as all zeroes and is to be cleared in any case. OK also for a
 * range behind the object's end (HTTP status 416).
 *
 * NOT_FOUND: no such object, or upload; FAILED_PRECONDITION: no such bucket, or another region's;
 * UNAUTHENTICATED, PERMISSION_DENIED: as S3 has it; UNAVAILABLE: no answer, or that it is busy, or
 * an answer that is none: with another root, or cut, or to a PUT without an ETag, such as a proxy
 * gives for what is behind it. */
status bucket_call(struct bucket *bucket, const struct bucket_request *request,
                   struct bucket_answer *out);
void bucket_answer_clear(struct bucket_answer *answer);

/* Appends the text as keys stand in a query. */
void bucket_append_escaped(struct buffer *out, const char *text);

#endif
