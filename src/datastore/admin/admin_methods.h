/* The methods of google.datastore.admin.v1.DatastoreAdmin, and of
 * google.firestore.admin.v1.FirestoreAdmin: what service.c registers. */
#ifndef TRESTLE_DATASTORE_ADMIN_ADMIN_METHODS_H
#define TRESTLE_DATASTORE_ADMIN_ADMIN_METHODS_H

#include "datastore/ds_call.h"

ds_run ds_create_index;
ds_run ds_delete_index;
ds_run ds_get_index;
ds_run ds_list_indexes;

ds_run fs_create_index;
ds_run fs_delete_index;
ds_run fs_get_index;
ds_run fs_list_indexes;

/* ds_method.locate of these. */
status fs_create_index_locate(struct ds_call *call, const ProtobufCMessage *request);
status fs_delete_index_locate(struct ds_call *call, const ProtobufCMessage *request);
status fs_get_index_locate(struct ds_call *call, const ProtobufCMessage *request);
status fs_list_indexes_locate(struct ds_call *call, const ProtobufCMessage *request);

ds_run ds_list_databases;
status ds_list_databases_locate(struct ds_call *call, const ProtobufCMessage *request);

ds_run ds_get_field;
ds_run ds_update_field;
ds_run ds_list_fields;

/* ds_method.locate of these. */
status ds_get_field_locate(struct ds_call *call, const ProtobufCMessage *request);
status ds_update_field_locate(struct ds_call *call, const ProtobufCMessage *request);
status ds_list_fields_locate(struct ds_call *call, const ProtobufCMessage *request);

#endif
