/* Files that are replaced whole, or not at all: where a feed stands, and what is told of it. */
#ifndef TRESTLE_TRANSFER_CHANGE_POSITION_H
#define TRESTLE_TRANSFER_CHANGE_POSITION_H

#include "base/status.h"

/* What the file has; empty if it is not there. The buffer is the caller's to free. */
status change_position_read(const char *path, struct buffer *out);

/* Replaces the file by one with that, a line. When it has returned, that is there whatever happens
 * then; until then what was. */
status change_position_write(const char *path, bytes text);

#endif
