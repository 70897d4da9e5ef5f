/* `trestle serve`: the server as a process, with its signals, its logs and its word to the process
 * that started it. */
#ifndef TRESTLE_CMD_SERVE_H
#define TRESTLE_CMD_SERVE_H

/* `arguments`: those after "serve", ended by NULL. Returns the process's exit status. */
int serve_command(const char *const *arguments);

#endif
