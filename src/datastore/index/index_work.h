/* The long work on composite indexes: making the rows of a new one, removing those of one that is
 * deleted. Each is an operation, whose argument is an IndexWork of trestle/datastore.proto; it goes
 * on after a crash or a stop where it was. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_WORK_H
#define TRESTLE_DATASTORE_INDEX_INDEX_WORK_H

#include "control/operations.h"

#define DS_CREATE_INDEX "datastore.create_index"
#define DS_DELETE_INDEX "datastore.delete_index"

/* operation_kind.run; the context is the datastore. An index that cannot be made is left as ERROR;
 * so is one whose operation is cancelled. */
status ds_create_index_run(void *context, struct operation *operation);
status ds_delete_index_run(void *context, struct operation *operation);

/* operation_kind.recover of both: it goes on. */
status ds_index_recover(void *context, const char *name, bytes argument);

/* operation_kind.abandon of both: the index is left as ERROR, so that it can be deleted. */
status ds_index_abandon(void *context, const char *name, bytes argument);

#endif
