/* What can be said of settings before a server makes anything: whether the files that they name are
 * there and make sense, whether there is a place for what it will write, whether the port is free.
 *
 * Nothing is made or changed. `trestle serve` stops at the first thing that is wrong;
 * `trestle serve --check` tells all of them, and what is no mistake but had better be known. */
#ifndef TRESTLE_SERVER_SERVE_CHECK_H
#define TRESTLE_SERVER_SERVE_CHECK_H

#include "base/settings.h"

/* The first thing that is wrong. */
status serve_check(const struct settings *settings);

/* Whether serve would refuse the data directory without --salvage for what is lost of it. Reads the
 * log; what is lost of the catalog shows only when it is opened. */
bool serve_needs_salvage(const struct settings *settings);

/* All that is wrong, a line "wrong: ..." each, and behind it what had better be known, a line
 * "note: ..." each. Returns how much is wrong. Without memory `out` has failed. */
size_t serve_check_all(const struct settings *settings, struct buffer *out);

#endif
