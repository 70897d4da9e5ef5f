/* Bounds of the rows of a table that a command reads: --prefix, or --start and --end. */
#ifndef TRESTLE_CMD_TRANSFER_ROW_BOUNDS_H
#define TRESTLE_CMD_TRANSFER_ROW_BOUNDS_H

#include "base/arena.h"
#include "base/status.h"

/* The first key, and the one behind the last (empty: there is none), of what was given; NULL is
 * what was not. INVALID_ARGUMENT if the two ways are mixed. */
status row_bounds_find(const char *prefix, const char *start, const char *end, struct arena *arena,
                       bytes *first, bytes *behind);

#endif
