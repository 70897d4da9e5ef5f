/* A walk over all entities of a database, in the order of their rows: for what is done in the
 * background (care.h). It reads as of one moment, and holds nothing while it rests.
 *
 * What was is kept for an hour: a walk that takes half of that goes on at a later moment. */
#ifndef TRESTLE_DATASTORE_ENTITY_WALK_H
#define TRESTLE_DATASTORE_ENTITY_WALK_H

#include "datastore/care.h"
#include "datastore/database.h"
#include "datastore/snapshot.h"

struct ds_walk {
    struct datastore *datastore;
    struct ds_open_database *open;
    struct ds_care *care;
    /* Gets each row; a failure ends the walk. It may lead the reader on (ds_rows_seek). */
    status (*visit)(struct ds_walk *walk, const struct ds_row_found *row);
    void *context;
    /* For `visit`: */
    struct ds_snapshot snapshot;
    struct ds_rows_reader *reader;
    struct arena *arena; /* empty for each row */
};

/* CANCELLED if the care ends. Blocks. */
status ds_walk_run(struct ds_walk *walk);

#endif
