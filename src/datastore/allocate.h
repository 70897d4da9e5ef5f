/* Automatic ids, and those that are not to be given.
 *
 * A counter of the database makes them (ids.h). It is claimed in blocks, durably, so that none is
 * given twice, also after a crash. An id that a client chose, or reserved, and that the counter has
 * yet to come to, has a row of its own, by which it is passed over. */
#ifndef TRESTLE_DATASTORE_ALLOCATE_H
#define TRESTLE_DATASTORE_ALLOCATE_H

#include "datastore/database.h"

/* Completes the key, whose last element has neither id nor name. Blocks. */
status ds_id_allocate(struct datastore *datastore, struct ds_open_database *open, Ds__Key *key,
                      struct arena *arena);

/* Whether the counter may come to the key's id: then its mark has to be written. `*row_key` is the
 * mark's row; empty if there is nothing to mark. */
status ds_id_mark(struct ds_open_database *open, const Ds__Key *key, struct arena *arena,
                  bytes *row_key);

#endif
