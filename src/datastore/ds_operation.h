/* Functions that Datastore's long-running operations share: names, projects/P/operations/ID, and
 * the beginning of their metadata. See control/operations.h for what an operation is. */
#ifndef TRESTLE_DATASTORE_DS_OPERATION_H
#define TRESTLE_DATASTORE_DS_OPERATION_H

#include "control/operations.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"

/* Metadata of an operation that begins in this edit. */
status ds_operation_common(const struct edit *edit, DsAdmin__OperationType type,
                           struct arena *arena, DsAdmin__CommonMetadata **out);

/* Its last state, at `now_us` (microseconds since 1970). */
status ds_operation_ended(DsAdmin__CommonMetadata *common, DsAdmin__CommonMetadata__State state,
                          int64_t now_us, struct arena *arena);

/* The last state of what ends with this failure, or with success. */
DsAdmin__CommonMetadata__State ds_operation_state_of(status outcome);

/* operation_begin for a project; `spec` needs no parent. */
status ds_operation_begin(struct edit *edit, const char *project, const struct operation_spec *spec,
                          struct arena *arena, ProtobufCMessage **out);

#endif
