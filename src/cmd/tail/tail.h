/* `trestle tail`: what happens to the rows of a table, as JSON lines.
 *
 *     trestle tail TABLE [--from TIME] [--token-file FILE] [--to SINK] … */
#ifndef TRESTLE_CMD_TAIL_TAIL_H
#define TRESTLE_CMD_TAIL_TAIL_H

/* Returns the exit status: 0 at the end that was asked for, at SIGINT or SIGTERM, and when nobody
 * reads the output any more. */
int tail_command(const char *const *arguments);

#endif
