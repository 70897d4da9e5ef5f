/* Whether a keyspace is that of the server's heat (heat_store.h), for a start that finds it after
 * the record of its table was lost. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_KEYSPACE_H
#define TRESTLE_CLUSTER_HEAT_HEAT_KEYSPACE_H

#include "base/status.h"

struct keyspace;

/* Whether nothing but heat is in the keyspace, by the form of every key and of every cell: then it
 * may go, since the server makes it again. False of one that cannot be read to its end, with what
 * that fails with. Blocking. */
status heat_keyspace_is_one(struct keyspace *keyspace, bool *out);

#endif
