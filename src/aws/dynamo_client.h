/* Calls of DynamoDB's API, and of its streams': JSON 1.0 by POST, signed; made again, later and
 * later, while the service is throttled, broken or away. One thread, on an event loop. */
#ifndef TRESTLE_AWS_DYNAMO_CLIENT_H
#define TRESTLE_AWS_DYNAMO_CLIENT_H

#include "aws/credentials.h"
#include "aws/http.h"

#include <jansson.h>

struct dynamo_client;

struct dynamo_client_options {
    struct loop *loop;
    const char *endpoint; /* "http://localhost:8000"; NULL: AWS's own of the region */
    const char *ca;       /* as http_client_create; NULL: AWS_CA_BUNDLE's, else the system's */
    const struct aws_credentials *credentials;
    int64_t patience_us; /* how long a service is tried that does not answer; 0: a minute and five
                            times at least, or ten minutes if it throttles */
};

/* All that the options point to must outlive the client. INVALID_ARGUMENT for an endpoint that is
 * no "http(s)://HOST[:PORT]". */
status dynamo_client_create(const struct dynamo_client_options *options,
                            struct dynamo_client **out);
void dynamo_client_destroy(struct dynamo_client *client); /* NULL is fine */

enum dynamo_api { DYNAMO_TABLES, DYNAMO_STREAMS };

/* All zeroes is a call that is not under way. */
struct dynamo_call {
    /* Called when the call ends: from the loop, or, without memory, from dynamo_call_start. NULL:
     * not called. */
    void (*done)(struct dynamo_call *call);
    void *context; /* the caller's */
    bool is_under_way;
    /* How it ended; owned. By what DynamoDB says:
     *   NOT_FOUND             ResourceNotFoundException
     *   UNAUTHENTICATED       credentials, signatures, times
     *   PERMISSION_DENIED     AccessDeniedException
     *   INVALID_ARGUMENT      ValidationException and the like
     *   ABORTED               ExpiredIteratorException: another iterator is needed
     *   DATA_LOSS             TrimmedDataAccessException: what is asked for is gone
     *   UNAVAILABLE           no answer came, for as long as patience is
     *   RESOURCE_EXHAUSTED    the answer is larger than any honest one; memory
     *   FAILED_PRECONDITION   others */
    status outcome;
    bytes answer;      /* JSON; until the call begins again */
    int64_t server_us; /* when the server said that it was; 0: it did not */

    /* The client's. */
    struct dynamo_client *client;
    struct http_call http;
    enum dynamo_api api;
    const char *operation;
    struct buffer body;
    struct timer timer;
    int64_t began_us;
    int64_t wait_us;
    unsigned attempts;
};

/* Begins the call "Scan" and the like with this body, which it takes. It must not be under way. */
void dynamo_call_start(struct dynamo_client *client, struct dynamo_call *call, enum dynamo_api api,
                       const char *operation, json_t *body);

/* Ends it untold if it is under way, and frees what it has. */
void dynamo_call_clear(struct dynamo_call *call);

/* Makes a call and runs the loop until it has ended. The answer is a new reference. Fails as the
 * call; DATA_LOSS if the answer is no JSON. */
status dynamo_client_call(struct dynamo_client *client, enum dynamo_api api, const char *operation,
                          json_t *body, int64_t *server_us, json_t **out);

struct loop *dynamo_client_loop(const struct dynamo_client *client);

#endif
