/* Names of what lies in a database, as Firestore's administration has them:
 *
 *     projects/P/databases/D/collectionGroups/KIND/indexes/INDEX
 *
 * where D is (default) for the database that has no name here. */
#ifndef TRESTLE_DATASTORE_DATABASE_NAME_H
#define TRESTLE_DATASTORE_DATABASE_NAME_H

#include "base/arena.h"
#include "base/status.h"

struct ds_database_name {
    const char *project;
    const char *database; /* "": the default one */
    const char *kind;     /* NULL: the name ends before */
    const char *index;    /* NULL: the name ends before */
};

/* INVALID_ARGUMENT for what is no such name, or ends within a pair. The strings are the arena's;
 * they are checked for being there alone. */
status ds_database_name_parse(const char *name, struct arena *arena, struct ds_database_name *out);

#endif
