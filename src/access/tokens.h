/* Static bearer tokens: a file that says whose they are, and has only their hashes.
 *
 * A line of the file is
 *
 *     <SHA-256 of the token, 64 hexadecimal digits> <principal> [<expiry>]
 *
 * with an expiry such as 2027-01-31T00:00:00Z. A '#' begins a comment, empty lines mean nothing.
 * `trestle token` makes tokens and lines: 32 random bytes each, so that the hash does not give the
 * token away. */
#ifndef TRESTLE_ACCESS_TOKENS_H
#define TRESTLE_ACCESS_TOKENS_H

#include "base/status.h"

enum { TOKEN_HASH_SIZE = 32, TOKEN_TEXT_SIZE = 64 };

struct token {
    uint8_t hash[TOKEN_HASH_SIZE];
    char *principal;
    int64_t expires_us; /* clock_wall_us; INT64_MAX: never */
};

struct tokens {
    struct token *list; /* by hash */
    size_t count;
};

/* INVALID_ARGUMENT, with the line's number, if it is no such file. `name` is for the message. */
status tokens_parse(const char *name, bytes text, struct tokens *out);
void tokens_free(struct tokens *tokens); /* all zeroes afterwards */

/* NULL if there is none. */
const struct token *tokens_find(const struct tokens *tokens, const uint8_t hash[TOKEN_HASH_SIZE]);

void token_hash(bytes token, uint8_t hash[TOKEN_HASH_SIZE]);

/* A new token as text; UNAVAILABLE without randomness. */
status token_make(char text[TOKEN_TEXT_SIZE]);

/* The line for the file, with its end. */
void token_write_line(const char *token, const char *principal, int64_t expires_us,
                      struct buffer *out);

/* "user:…", "serviceAccount:…" or "cert:…", printable and without blanks. (A certificate's subject
 * may have some; it has no token.) */
bool principal_is_valid(bytes principal);

#endif
