/* A command's credentials and region for AWS, found where AWS's own tools look.
 *
 *     keys      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the profile
 *               AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials)
 *     region    what is asked for, else AWS_REGION, AWS_DEFAULT_REGION, else the profile's in
 *               AWS_CONFIG_FILE (~/.aws/config)
 *
 * Other ways to credentials (roles, SSO, instances' metadata) are those of AWS's own tools, which
 * can put what they find into these variables. */
#ifndef TRESTLE_AWS_CREDENTIALS_H
#define TRESTLE_AWS_CREDENTIALS_H

#include "base/arena.h"
#include "base/status.h"

struct aws_credentials {
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* NULL: none */
    const char *region;
};

/* `region` NULL: none is asked for. All that is found is the arena's. Reads the environment: before
 * there are other threads that write it. UNAUTHENTICATED or INVALID_ARGUMENT say what was looked
 * for and not found. */
status aws_credentials_find(const char *region, struct arena *arena, struct aws_credentials *out);

#endif
