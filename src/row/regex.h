/* Regular expressions as Bigtable has them: RE2's syntax over bytes (Latin-1), matching as a whole.
 * `.` matches any byte but a newline, `\C` any byte. Matching is linear in the text.
 *
 * A compiled expression is immutable and may be used by several threads at a time. */
#ifndef TRESTLE_ROW_REGEX_H
#define TRESTLE_ROW_REGEX_H

#include "base/bytes.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct regex;

/* INVALID_ARGUMENT with RE2's words if the pattern does not parse or would take too much memory. */
status regex_compile(bytes pattern, struct regex **out);
void regex_destroy(struct regex *regex); /* NULL is fine */

/* Whether all of `text` matches. */
bool regex_matches(const struct regex *regex, bytes text);

/* Whether the expression matches one text only, and which: it stays as long as the expression. */
bool regex_literal(const struct regex *regex, bytes *text);

#ifdef __cplusplus
}
#endif

#endif
