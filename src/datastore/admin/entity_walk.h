/* A walk over the rows of a database, those of entities or those of an index, in their order: for
 * what is done in the background (background_work.h). It reads as of one moment, and holds nothing
 * while it rests.
 *
 * Past versions are kept for an hour: a walk that takes half of that goes on at a later moment. */
#ifndef TRESTLE_DATASTORE_ADMIN_ENTITY_WALK_H
#define TRESTLE_DATASTORE_ADMIN_ENTITY_WALK_H

#include "datastore/background_jobs.h"
#include "datastore/commit/snapshot.h"
#include "datastore/database.h"

struct ds_walk {
    struct datastore *datastore;
    struct ds_open_database *open;
    struct ds_background *background;
    enum ds_row_kind rows;
    /* Gets each row; a failure ends the walk. It may lead the reader on (ds_rows_seek). */
    status (*visit)(struct ds_walk *walk, const struct ds_row_found *row);
    void *context;
    /* For `visit`: */
    struct ds_snapshot snapshot;
    struct ds_rows_reader *reader;
    struct arena *arena; /* empty for each row */
};

/* CANCELLED if the background work ends. Blocks. */
status ds_walk_run(struct ds_walk *walk);

/* The key of the row's entity, in the arena; the database's strings must outlive it. */
status ds_walk_key(const struct ds_database *database, bytes row_key, struct arena *arena,
                   Ds__Key **out);

#endif
