/* `trestle repair` for keyspaces that a start with --salvage has kept, since the records that named
 * them were lost (cluster/salvage.h): they become tables, or go. */
#ifndef TRESTLE_CMD_REPAIR_REPAIR_KEYSPACES_H
#define TRESTLE_CMD_REPAIR_REPAIR_KEYSPACES_H

#include <stdbool.h>

/* Whether the arguments of `trestle repair` ask for this, and the exit status of doing it. */
bool repair_is_of_keyspaces(const char *const *arguments);
int repair_keyspaces(const char *const *arguments);

#endif
