/* Regular expressions as Bigtable has them: RE2's syntax over bytes (Latin-1), matching as a whole.
 * `.` matches any byte but a newline, `\C` any byte. Matching is linear in the text.
 *
 * SQL searches with them (struct regex_search), also in characters, and asks for their groups.
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

/* --- searching --- */

struct regex_search;

/* A part of a text, in bytes. `from` is SIZE_MAX for a group that took no part in a match. */
struct regex_span {
    size_t from;
    size_t to;
};

/* `is_utf8`: of characters, in texts that are UTF-8; else of bytes. Fails as regex_compile. */
status regex_search_compile(bytes pattern, bool is_utf8, struct regex_search **out);
void regex_search_destroy(struct regex_search *search); /* NULL is fine */

/* How large the expression is, in RE2's instructions: what it may take for each byte of a text. */
size_t regex_search_size(const struct regex_search *search);

/* How many groups the expression has. */
size_t regex_search_groups(const struct regex_search *search);

enum { REGEX_MOST_SPANS = 10 }; /* \0 to \9 */

/* The leftmost match that begins at `from`, at most the text's size, or behind it; what is before
 * `from` is looked at for `^` and `\b`. Fills `spans`: the match, and the groups that come first.
 */
bool regex_search_find(const struct regex_search *search, bytes text, size_t from,
                       struct regex_span *spans, size_t count);

#ifdef __cplusplus
}
#endif

#endif
