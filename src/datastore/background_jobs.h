/* Background jobs of databases: their statistics, and the deletion of entities that have expired.
 *
 * One thread looks at them once a second, and does what is due for one after the other. It works
 * for at most half of the time, so that it leaves a processor to calls that wait. */
#ifndef TRESTLE_DATASTORE_BACKGROUND_JOBS_H
#define TRESTLE_DATASTORE_BACKGROUND_JOBS_H

#include "datastore/datastore.h"

struct ds_background;

struct ds_background_options {
    int64_t statistics_interval_us; /* between two counts of a database; 0: none */
    int64_t ttl_interval_us;        /* between two looks for what has expired; 0: none */
};

/* `datastore` is complete except for this. */
status ds_background_start(struct datastore *datastore, const struct ds_background_options *options,
                           struct ds_background **out);
void ds_background_stop(struct ds_background *background); /* waits for the thread; NULL is fine */

/* To be called now and then by what takes long: rests as long as it has worked since. CANCELLED if
 * it is to end. */
status ds_background_rest(struct ds_background *background);

#endif
