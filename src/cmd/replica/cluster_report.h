/* What `trestle cluster` shows of a server's peers. */
#ifndef TRESTLE_CMD_REPLICA_CLUSTER_REPORT_H
#define TRESTLE_CMD_REPLICA_CLUSTER_REPORT_H

#include "base/bytes.h"
#include "trestle/replica/v1/replica.pb-c.h"

/* The table alone, and a line for each failure: of a server that has peers. */
void cluster_write_peers(const Replica__ListPeersResponse *peers, struct buffer *out);

/* `address`: the server's that was asked. */
void cluster_write_text(const Replica__ListPeersResponse *peers, const char *address,
                        struct buffer *out);

/* The same once they were changed, with what is to be known of that behind it. */
void cluster_tell_change(const Replica__ChangePeersResponse *change, const char *address,
                         struct buffer *out);

#endif
