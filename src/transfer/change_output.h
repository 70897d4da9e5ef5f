/* Changes to a file descriptor: a terminal, a pipe. Flushed is what has been written to it. */
#ifndef TRESTLE_TRANSFER_CHANGE_OUTPUT_H
#define TRESTLE_TRANSFER_CHANGE_OUTPUT_H

#include "transfer/change_sink.h"

/* The descriptor stays the caller's. CANCELLED once a pipe's reader is gone; SIGPIPE is to be
 * ignored. */
status change_output_create(int fd, struct change_sink *out);

#endif
