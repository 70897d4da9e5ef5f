/* `trestle repair --endpoint ADDR:PORT`: of a running server, the rows that are out of service. */
#ifndef TRESTLE_CMD_REPAIR_REPAIR_SERVER_H
#define TRESTLE_CMD_REPAIR_REPAIR_SERVER_H

#include "base/bytes.h"

/* The same as repair_command, for arguments none of which is a directory. */
int repair_server_command(const char *const *arguments);
void repair_server_write_help(struct buffer *out);

#endif
