/* The server that a command is a client of: its address, its identity and the client's own. */
#ifndef TRESTLE_CLIENT_ENDPOINT_H
#define TRESTLE_CLIENT_ENDPOINT_H

#include "wire/grpc_link.h"

struct endpoint_options {
    const char *address;      /* HOST:PORT */
    const char *ca;           /* PEM file of the server's authority; NULL: the system's */
    const char *token_file;   /* whose first line is a bearer token; NULL: none */
    const char *token;        /* the token itself; NULL: none */
    const char *account_file; /* a Google service account's key; NULL: none */
    const char *certificate;  /* PEM file of the client's own, and of its key; NULL: none */
    const char *key;
    bool tls;
};

enum { ENDPOINT_ADDRESSES_MOST = 8 };

struct endpoint {
    struct address addresses[ENDPOINT_ADDRESSES_MOST]; /* of which one will do */
    size_t address_count;
    struct grpc_identity identity; /* for links; what it points to is the endpoint's */
    struct buffer host;            /* and a NUL */
};

/* BIGTABLE_EMULATOR_HOST, else where `trestle serve` is by default. */
const char *endpoint_default(void);

/* Looks the address up, which may block, and reads the files. The address's string must outlive
 * the endpoint. INVALID_ARGUMENT. The endpoint is to be closed after a failure, too. */
status endpoint_open(const struct endpoint_options *options, struct endpoint *out);
void endpoint_close(struct endpoint *endpoint); /* all zeroes is fine */

/* `*link` is one that is not lost: the one that it is, if it is not NULL, else a new one. NULL
 * after a failure. */
status endpoint_connect(const struct endpoint *endpoint, struct loop *loop,
                        struct grpc_link **link);

/* Whether a call that failed so may end well if it is made again. */
bool endpoint_failure_may_pass(status s);

/* How long it is waited until then, in microseconds: twice as long as before, from a tenth of a
 * second up to five. `wait_us`: the last time; 0: it is the first. */
int64_t endpoint_next_wait(int64_t wait_us);

/* Appends "name=value", escaped, to what a call's header x-goog-request-params says, by which
 * Google's front ends find their way. */
void endpoint_append_routing(struct buffer *out, const char *name, const char *value);

#endif
