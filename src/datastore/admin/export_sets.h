/* The sets of entities that an export is made of. */
#ifndef TRESTLE_DATASTORE_ADMIN_EXPORT_SETS_H
#define TRESTLE_DATASTORE_ADMIN_EXPORT_SETS_H

#include "datastore/admin/export_metadata.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"

/* NULL: all of them. */
struct ds_set_names {
    const char *name_space;
    const char *kind;
};

/* How many sets the filter (NULL: all entities) says, and which. */
size_t ds_set_count(const DsAdmin__EntityFilter *filter);
struct ds_set_names ds_set_names(const DsAdmin__EntityFilter *filter, size_t set);

/* The set of an entity of this namespace and kind; false if it is in none, as are those of reserved
 * kinds, which only the server makes. */
bool ds_set_find(const DsAdmin__EntityFilter *filter, bytes name_space, bytes kind, size_t *set);

#endif
