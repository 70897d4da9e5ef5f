/* The methods of google.datastore.admin.v1.DatastoreAdmin: what service.c registers. */
#ifndef TRESTLE_DATASTORE_ADMIN_METHODS_H
#define TRESTLE_DATASTORE_ADMIN_METHODS_H

#include "datastore/ds_call.h"

ds_run ds_create_index;
ds_run ds_delete_index;
ds_run ds_get_index;
ds_run ds_list_indexes;

#endif
