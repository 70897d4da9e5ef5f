/* A credential is what a client says of itself in the header `authorization`, for as long as it
 * runs.
 *
 *     a token          always the same
 *     a file           its first line is the token; looked at again once a minute, so that a
 *                      new one needs no restart of the client
 *     an account       a Google service account's key: tokens are made and signed here, each for an
 *                      hour, and for the service at one host (AIP-4111) */
#ifndef TRESTLE_WIRE_CREDENTIAL_H
#define TRESTLE_WIRE_CREDENTIAL_H

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"

struct credential;

/* At most one of the first three is not NULL. */
struct credential_options {
    const char *token;
    const char *token_file;
    const char *account_file; /* JSON, as Google hands it out */
    const char *host;         /* of the service */
    struct clock *clock;
};

/* NULL if there is none. Reads the files. INVALID_ARGUMENT for one that is no account. */
status credential_create(const struct credential_options *options, struct credential **out);
void credential_destroy(struct credential *credential); /* NULL is fine */

/* "Bearer …", until the next call. A file that cannot be read any more leaves the token as it is.
 */
status credential_header(struct credential *credential, bytes *out);

#endif
