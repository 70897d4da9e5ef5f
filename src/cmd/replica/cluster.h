/* `trestle cluster`: the clusters that copy each other's changes, as one of their servers knows
 * them, and how a server becomes one of them. */
#ifndef TRESTLE_CMD_REPLICA_CLUSTER_H
#define TRESTLE_CMD_REPLICA_CLUSTER_H

/* Returns the exit status. `arguments` are those after the command's name, NULL-terminated. */
int cluster_command(const char *const *arguments);

#endif
