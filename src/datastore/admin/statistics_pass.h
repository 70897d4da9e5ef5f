/* A pass makes a database's statistics again: it counts as of one moment, while others write, and
 * puts the result in the place of the old ones. */
#ifndef TRESTLE_DATASTORE_ADMIN_STATISTICS_PASS_H
#define TRESTLE_DATASTORE_ADMIN_STATISTICS_PASS_H

#include "datastore/background_jobs.h"
#include "datastore/database.h"

/* Counts all entities, writes the statistics, the total last, and deletes older ones. CANCELLED if
 * the background work ends. Blocks. */
status ds_statistics_run(struct datastore *datastore, struct ds_open_database *open,
                         struct ds_background *background);

/* When the statistics of a database were made, microseconds since 1970; 0: there are none. */
status ds_statistics_time(struct ds_open_database *open, int64_t *out);

#endif
