/* LIKE: `%` is any text, `_` one character of a STRING, one byte of BYTES, `\` takes what follows
 * as it is. */
#ifndef TRESTLE_SQL_FUNCTIONS_LIKE_H
#define TRESTLE_SQL_FUNCTIONS_LIKE_H

#include "sql/function.h"

/* OUT_OF_RANGE for a pattern that ends with a lone backslash. At worst it takes the product of both
 * sizes, and counts it (work.h). */
status like_matches(struct sql_session *session, bytes text, bytes pattern, bool by_character,
                    bool *out);

/* Appends to `out` the beginning that all matching texts share. *is_whole: the pattern is that one
 * text. */
void like_prefix(bytes pattern, struct buffer *out, bool *is_whole);

#endif
