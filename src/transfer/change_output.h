/* Changes to a file descriptor: a terminal, a pipe. Flushed is what has been written to it. While
 * nobody reads, it is waited for. */
#ifndef TRESTLE_TRANSFER_CHANGE_OUTPUT_H
#define TRESTLE_TRANSFER_CHANGE_OUTPUT_H

#include "transfer/change_sink.h"

/* The descriptor stays the caller's. CANCELLED once a pipe's reader is gone, for which SIGPIPE is
 * to be ignored, or `gives_up`, which is asked ten times a second while it reads nothing. */
status change_output_create(int fd, bool (*gives_up)(void), struct change_sink *out);

#endif
