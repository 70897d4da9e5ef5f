/* `trestle status`: what a server does, out of its metrics.
 *
 *     trestle status [--endpoint ADDR:PORT] [--watch] [--interval 1s] [--format text|json] … */
#ifndef TRESTLE_CMD_STATUS_STATUS_H
#define TRESTLE_CMD_STATUS_STATUS_H

/* Returns the exit status: 0; 1 if the server could not be asked, or takes no writes; 2 for options
 * that make no sense. */
int status_command(const char *const *arguments);

#endif
