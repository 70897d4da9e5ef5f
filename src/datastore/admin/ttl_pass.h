/* Expired entities are deleted, by commits as clients make them: their index rows go along, and
 * what changes an entity meanwhile keeps it. */
#ifndef TRESTLE_DATASTORE_ADMIN_TTL_PASS_H
#define TRESTLE_DATASTORE_ADMIN_TTL_PASS_H

#include "base/vector.h"
#include "datastore/background_jobs.h"
#include "datastore/database.h"

/* Deletes what has expired of a database by the indexes of the properties that say so; `all`: also
 * those entities in which that property is excluded from indexes, for which every entity is looked
 * at. `fields`: of struct ds_field_name (ttl.h). `*deleted`: how many were asked to go. CANCELLED
 * if the background work ends. Blocks. */
status ds_ttl_run(struct datastore *datastore, struct ds_open_database *open,
                  const struct vector *fields, bool all, struct ds_background *background,
                  int64_t *deleted);

#endif
