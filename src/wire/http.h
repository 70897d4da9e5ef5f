/* A request by HTTP that is no gRPC call, and its answer: by HTTP/1.1 (wire/http1.h) or by HTTP/2
 * (wire/http2.h). A handler gets it with its whole body, and answers it now or later:
 *
 *     http_answer_begin(request, code, type)
 *     http_answer_add(request, bytes)          any number of times
 *     http_answer_end(request)                 after it the request is not touched again
 *
 * What is added goes out as it comes. An answer 401 asks for a bearer token by its header
 * `WWW-Authenticate`. An answer may not be kept, unless http_answer_caching said otherwise. All is
 * for the thread of one loop: the HTTP/1.1 server's. */
#ifndef TRESTLE_WIRE_HTTP_H
#define TRESTLE_WIRE_HTTP_H

#include "base/bytes.h"

struct http_request;

typedef void http_handler(void *context, struct http_request *request);

/* The client that asks. */
struct http_client {
    const char *address;
    const char *subject; /* of the certificate that it has shown; NULL: none */
};

/* --- a request: valid until its answer has ended, or on_gone is called --- */

const char *http_request_method(const struct http_request *request);
/* Path and query as they came: percent-encoded. */
const char *http_request_target(const struct http_request *request);
bytes http_request_body(const struct http_request *request);
/* Its body is larger than LIMIT_HTTP_BODY_BYTES, and is not there. The handler must answer before
 * it returns. */
bool http_request_is_too_large(const struct http_request *request);
void http_request_headers(const struct http_request *request, void *context,
                          void (*each)(void *context, bytes name, bytes value));
/* The value of the first header of that name, written in lower case; false if there is none. */
bool http_request_header(const struct http_request *request, const char *name, bytes *value);
const struct http_client *http_request_client(const struct http_request *request);
/* The client takes answers in gzip, by its Accept-Encoding. (A weight of zero, which none sends, is
 * not looked for.) */
bool http_request_takes_gzip(const struct http_request *request);

/* For a handler that hands the request on: from now on it is for that target, a part of the one
 * that it had or a text that outlives the request, and has, beside its own headers,
 * `authorization: <credential>`, which must outlive the next handler's return. Empty: it has not.
 */
void http_request_stand_for(struct http_request *request, const char *target, bytes credential);

/* Before http_answer_begin: one more header, a copy. Left out without memory, beyond
 * METADATA_MOST (wire/metadata.h), and if HTTP/2 does not allow the bytes. Not for Content-Type,
 * Cache-Control and WWW-Authenticate. */
void http_answer_header(struct http_request *request, const char *name, const char *value);

/* Before http_answer_begin: the value of Cache-Control, a literal, in place of "no-store". */
void http_answer_caching(struct http_request *request, const char *control);

/* Before http_answer_begin, of an answer with a body: it goes in gzip if the client takes that.
 * Without memory it goes as it is, or, if that comes to an end on the way, ends early. */
void http_answer_pack(struct http_request *request);

/* `content_type`: a literal; NULL: none is sent. */
void http_answer_begin(struct http_request *request, unsigned code, const char *content_type);
void http_answer_add(struct http_request *request, bytes more);
void http_answer_end(struct http_request *request);

/* Whether more waits than the client reads (LIMIT_CALL_OUTPUT_BYTES): on_writable is called when
 * that is over. */
bool http_answer_is_congested(struct http_request *request);

/* For a handler that answers later. `on_gone`: the client has gone; the request does not exist
 * after it. Not called once the answer has ended. */
void http_request_set_callbacks(struct http_request *request, void *context,
                                void (*on_writable)(void *context), void (*on_gone)(void *context));

#endif
