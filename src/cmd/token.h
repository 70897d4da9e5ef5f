/* `trestle token`: makes a bearer token for the file of --auth-tokens. */
#ifndef TRESTLE_CMD_TOKEN_H
#define TRESTLE_CMD_TOKEN_H

/* Returns the exit status. */
int token_command(const char *const *arguments);

/* `trestle permissions`: prints what each RPC needs. */
int permissions_command(const char *const *arguments);

#endif
