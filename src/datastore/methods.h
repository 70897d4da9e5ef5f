/* The methods of google.datastore.v1.Datastore: what service.c registers. */
#ifndef TRESTLE_DATASTORE_METHODS_H
#define TRESTLE_DATASTORE_METHODS_H

#include "datastore/ds_call.h"

ds_run ds_lookup;
ds_run ds_begin_transaction;
ds_run ds_commit;
ds_run ds_rollback;
ds_run ds_allocate_ids;
ds_run ds_reserve_ids;

#endif
