/* Secrets are what access control reads from files: tokens, the keys of signed ones, policies; and
 * the first administrator's token, if the policies have no owner.
 *
 * Not for two threads at a time. */
#ifndef TRESTLE_ACCESS_SECRETS_H
#define TRESTLE_ACCESS_SECRETS_H

#include "access/access.h"
#include "access/jwt.h"
#include "access/tokens.h"

/* All zeroes: nothing. */
struct secrets {
    struct tokens tokens;
    struct jwks *keys; /* NULL: none */
    struct policies policies;
    struct buffer keys_text; /* of the files, to tell what has changed */
    struct buffer policies_text;
    bool has_admin_token;
    uint8_t admin_token[TOKEN_HASH_SIZE];
};

/* A set of them: what is of a file each. */
enum secrets_part { SECRETS_TOKENS = 1, SECRETS_KEYS = 2, SECRETS_POLICIES = 4 };

/* On failure, too, there may be something to free in `out`, which is all zeroes before. */
status secrets_read_files(const struct access_options *options, struct secrets *out);
/* These, and the administrator's token. */
status secrets_read(const struct access_options *options, struct secrets *out);

/* Reads each file by itself, so that what is withdrawn in one counts whatever the others are like.
 * The status has the words of all that failed; `*unread` is the set of what is not in `out`, since
 * its file could not be read. */
status secrets_read_again(const struct access_options *options, const struct secrets *in_force,
                          struct secrets *out, unsigned *unread);

void secrets_exchange(struct secrets *a, struct secrets *b, unsigned parts);
void secrets_free(struct secrets *secrets);

/* Notes what has changed, except of those parts. Texts that are made for it are in the arena. */
status secrets_compare(const struct secrets *before, const struct secrets *after, unsigned except,
                       struct arena *arena, struct audit_changes *changes);

#endif
