/* The file that keeps where a feed stands, as text: written by text_file.h. */
#ifndef TRESTLE_TRANSFER_CHANGE_POSITION_H
#define TRESTLE_TRANSFER_CHANGE_POSITION_H

#include "base/status.h"

/* What the file has; empty if it is not there. INVALID_ARGUMENT if it is there and empty: whoever
 * wrote it meant to go on somewhere. The buffer is the caller's to free. */
status change_position_read(const char *path, struct buffer *out);

#endif
