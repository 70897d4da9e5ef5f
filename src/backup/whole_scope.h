/* A part of a server that is backed up, or restored, alone: its *scope*, by its full name.
 *
 *     projects/P/instances/I/tables/T      a table
 *     projects/P/instances/I               an instance, with all its tables
 *     projects/P/databases/D               a Datastore database, which is a table of that name; D
 * is (default) for the one without a name
 *
 * A backup of a part has what a restore of tables (whole_tables.h) may want of it: the tables' rows
 * and records, their views, schema bundles and policies; the instance, its clusters, app profiles
 * and policies, and, of an instance, its views; what of a database expires. Nothing else of the
 * server is in it, in no file. It is no server: it cannot be restored as one, and no archive goes
 * on from it. */
#ifndef TRESTLE_BACKUP_WHOLE_SCOPE_H
#define TRESTLE_BACKUP_WHOLE_SCOPE_H

#include "backup/whole.h"

enum whole_kind { WHOLE_TABLE, WHOLE_INSTANCE, WHOLE_DATABASE };

/* By the name's form alone. */
enum whole_kind whole_kind_of(const char *name);

bool whole_is_part(const struct whole_backup *backup);
bool whole_is_same_part(const struct whole_backup *a, const struct whole_backup *b);

/* INVALID_ARGUMENT unless it is the name of one of these. */
status whole_scope_check(const char *scope);

/* NOT_FOUND: there is no table of it, nor an instance of that name. */
status whole_scope_missing(const char *scope);

struct keyspace;
/* Whether the scope is an instance that the catalog has, perhaps without a table. */
status whole_scope_has_instance(struct keyspace *catalog, const char *scope, bool *out);

/* Whether what has the name is the scope, or in it. */
bool whole_scope_has(const char *scope, const char *name);

/* Whether tables of that name, or in the instance of that name, may be in the backup. */
bool whole_may_have(const struct whole_backup *backup, const char *name);

/* OK, or FAILED_PRECONDITION that says of what the backup is alone. */
status whole_check_is_all(const struct whole_backup *backup);

/* The newest backup that may have `from`, or that is of all if that is NULL; `*name` is what it is
 * called. Both in the arena. NOT_FOUND. FAILED_PRECONDITION if a newer one, which may be the one
 * that is meant, cannot be read: it names both, and a user who wants the older one is to name that.
 * If none is left that can be read, why that is. */
status whole_find_newest(struct place *place, const char *from, struct arena *arena,
                         const char **name, struct whole_backup *out);

/* Takes all that is not of the scope out of the directory: a checkpoint, or what whole_scope_copy
 * made, that no process has open. Tables of the scope stay the files that they are. NOT_FOUND if
 * there is nothing of the scope. On failure the directory is good for nothing. Blocking. */
status whole_scope_narrow(const char *directory, const char *scope, const struct log *log);

/* Makes `to` a copy of the data directory `from`, which must not change meanwhile, without its
 * identity: of tables links. Both are on one file system; `to` is not there, or what a killed copy
 * has left. Blocking. */
status whole_scope_copy(struct files *files, const char *from, const char *to);

#endif
