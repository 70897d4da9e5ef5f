/* At which peer a call of administration is served that is about what one cluster has for itself:
 * its backups, and operations. Any thread; waits for locks, and for no more. */
#ifndef TRESTLE_REPLICA_OWN_ROUTES_H
#define TRESTLE_REPLICA_OWN_ROUTES_H

#include "control/control.h"
#include "replica/peers.h"

/* The number of the peer whose backups a request is about, by the cluster that its field 1 names,
 * or for UpdateBackup that its backup's does; 0: it is about none's, or about all of an instance's.
 * NOT_FOUND is not said here: of a cluster that is none it is this server's number. */
unsigned own_route_of_backup(struct peers *peers, struct control *control, const char *method,
                             bytes request);

/* The number of the peer where the operation was begun that field 1 names; of one whose name does
 * not say that, the one that leads. */
unsigned own_route_of_operation(struct peers *peers, bytes request);

#endif
