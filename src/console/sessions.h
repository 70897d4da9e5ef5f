/* Sessions of people at the console: a cookie stands for a bearer token that was left here.
 *
 * A session has the token and nothing of what it may do: each request is made with that token, and
 * so a token that was withdrawn or has expired, or a policy that has changed, counts at once. Only
 * the cookie's hash is kept. Nothing of this is written to the disk: sessions end with the process.
 *
 * Bounded: LIMIT_CONSOLE_SESSIONS of them, of which the one that was used least lately makes room;
 * each ends LIMIT_CONSOLE_IDLE_SECONDS after it was used last, and LIMIT_CONSOLE_SESSION_SECONDS
 * after it began.
 *
 * One thread. */
#ifndef TRESTLE_CONSOLE_SESSIONS_H
#define TRESTLE_CONSOLE_SESSIONS_H

#include "access/tokens.h"
#include "base/clock.h"

struct sessions;

status sessions_create(struct clock *clock, struct sessions **out);
void sessions_destroy(struct sessions *sessions); /* NULL is fine */

/* Begins one that stands for the credential, a value of the header `authorization`, which is
 * copied; `cookie` is what is to be shown for it, with a NUL. UNAVAILABLE without randomness. */
status sessions_begin(struct sessions *sessions, bytes credential, char cookie[TOKEN_TEXT_SIZE]);

/* The credential, good until the next call of these; false if there is no such session any more.
 * The session counts as used. */
bool sessions_find(struct sessions *sessions, bytes cookie, bytes *credential);

/* The same, and it does not count: what a page asks by itself must not keep a session alive. */
bool sessions_look(struct sessions *sessions, bytes cookie, bytes *credential);

/* Ends the session of the cookie; no such session is fine. */
void sessions_end(struct sessions *sessions, bytes cookie);

/* How many there are, those that have just run out among them. */
size_t sessions_count(const struct sessions *sessions);

#endif
