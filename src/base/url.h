/* URLs as they may be told: in the log, on pages, in words of errors. */
#ifndef TRESTLE_BASE_URL_H
#define TRESTLE_BASE_URL_H

#include "base/bytes.h"

/* Appends the scheme, the host and the path of a user's URL, which may be none: without a user and
 * a password, and what is behind "?" or "#", where keys are given. Rather leaves out too much: all
 * before the last "@". */
void buffer_append_url(struct buffer *out, const char *url);

#endif
