/* Databases that are open: a table each, the order of its commits, and their locks.
 *
 * A database comes to be when something is written to it. It stays open until the server stops. */
#ifndef TRESTLE_DATASTORE_DATABASE_H
#define TRESTLE_DATASTORE_DATABASE_H

#include "datastore/commit/entity_locks.h"
#include "datastore/commit/in_flight.h"
#include "datastore/commit/recent.h"
#include "datastore/commit/sequencer.h"
#include "datastore/datastore.h"
#include "datastore/model/key.h"

/* The families of the table. */
#define DS_FAMILY_IS  "e"
#define DS_FAMILY_WAS "h"

/* How long what was can still be read, and how long it is kept: what is read as of an hour ago must
 * stay until it has been read. */
#define DS_HISTORY_US (INT64_C(3600) * 1000000)
#define DS_KEPT_US    (INT64_C(4200) * 1000000)

struct ds_indexes;
struct ds_usage_database;

struct ds_open_database {
    struct ds_open_database *next;
    char *project;
    char *id;
    struct table *table; /* held */
    struct ds_sequencer sequencer;
    struct ds_locks *locks;
    struct ds_in_flight in_flight;
    struct ds_recent recent;
    struct ds_indexes *indexes;      /* indexes.h */
    struct ds_usage_database *usage; /* usage.h; NULL: nothing is counted of it */
    /* Automatic ids (allocate.h): the next counter, and up to which counters are claimed, durably.
     */
    pthread_mutex_t ids_lock;
    uint64_t next_counter; /* 0: not yet read */
    uint64_t claimed;
    struct ds_held_ids *held_ids; /* of calls that are about to mark some */
};

/* The database; NULL if it is not there and `make` is false. RESOURCE_EXHAUSTED for one too many.
 * Blocks. */
status ds_database_open(struct datastore *datastore, const struct ds_database *database, bool make,
                        struct ds_open_database **out);

/* For work that goes through all of them: the same without making it; also NULL if it is not open,
 * and half of those that may be are. */
status ds_database_visit(struct datastore *datastore, const struct ds_database *database,
                         struct ds_open_database **out);

/* For a start, before there are requests: databases that were made when the past was kept for an
 * hour, and no longer, keep it for DS_KEPT_US from now on. Those that do are left alone, so it may
 * be done as often as one likes. */
status ds_databases_keep_longer(struct datastore *datastore);

/* For datastore_free: all of them. */
void ds_databases_close(struct datastore *datastore);

#endif
