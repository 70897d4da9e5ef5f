/* ExportEntities and ImportEntities: methods, and the long work that they begin.
 *
 * The argument of such an operation is its metadata as they are at the beginning. After a crash or
 * a stop both begin again: an export removes what it had written, an import puts all its entities
 * once more. */
#ifndef TRESTLE_DATASTORE_ADMIN_TRANSFERS_H
#define TRESTLE_DATASTORE_ADMIN_TRANSFERS_H

#include "control/operations.h"
#include "datastore/ds_call.h"

ds_run ds_export_entities;
ds_run ds_import_entities;

#define DS_EXPORT "datastore.export"
#define DS_IMPORT "datastore.import"

/* operation_kind.run; the context is the datastore. */
status ds_export_operation(void *context, struct operation *operation);
status ds_import_operation(void *context, struct operation *operation);

/* operation_kind.recover of both. */
status ds_transfer_recover(void *context, const char *name, bytes argument);

#endif
