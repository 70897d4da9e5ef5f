/* Imports: entities from the files of an export, ours or Google's, put into a database.
 *
 * Each entity replaces the one of its key, if there is one; all others stay. Entities are put by
 * commits as clients make them, many at a time, so that indexes follow, and ids are not given
 * again. Entities that a failed import has put stay. */
#ifndef TRESTLE_DATASTORE_ADMIN_IMPORT_H
#define TRESTLE_DATASTORE_ADMIN_IMPORT_H

#include "datastore/admin/export.h"
#include "datastore/database.h"

struct ds_import {
    struct datastore *datastore;
    struct ds_database database;
    struct ds_export_place place;
    const DsAdmin__EntityFilter *filter; /* checked; NULL: all */
    struct ds_transfer_progress progress;
    struct arena *arena;
};

/* Blocks. NOT_FOUND if there is no such export, DATA_LOSS if a file of it is missing, torn or
 * damaged, or there are fewer entities than it says; INVALID_ARGUMENT for entities that cannot be
 * stored. */
status ds_import_run(struct ds_import *import);

#endif
