/* The definition of a composite index: as the API says it, as it is kept, as rows are made by it.
 *
 * It is kept in a row of its own (`X`, docs/internals/datastore-layout.md) as a CompositeIndex of
 * trestle/datastore.proto. In what is kept `__key__` is the last of the properties, if it is
 * descending; ascending, as every index ends anyway, it is left out. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_DEFINITION_H
#define TRESTLE_DATASTORE_INDEX_INDEX_DEFINITION_H

#include "datastore/index/index_rows.h"
#include "google/datastore/admin/v1/index.pb-c.h"
#include "trestle/datastore.pb-c.h"

/* Makes the definition that a client asks for, without an id, CREATING. INVALID_ARGUMENT. */
status ds_definition_make(const DsAdmin__Index *asked, const char *project, struct arena *arena,
                          Datastore__CompositeIndex **out);

/* Whether the two are one index except for their ids and states. */
bool ds_definition_is_same(const Datastore__CompositeIndex *a, const Datastore__CompositeIndex *b);

/* The definition as clients see it. `project` must outlive it. */
status ds_definition_show(const Datastore__CompositeIndex *definition, const char *project,
                          struct arena *arena, DsAdmin__Index **out);

/* The index by which rows are made: the texts are the definition's, the rest is in the arena. */
status ds_definition_index(const Datastore__CompositeIndex *definition, struct arena *arena,
                           struct ds_index *out);

/* The value of the index's row, in the arena. */
status ds_definition_encode(const Datastore__CompositeIndex *definition, struct arena *arena,
                            bytes *out);

/* INTERNAL for what is none of ours. The value must outlive the definition. */
status ds_definition_decode(bytes value, struct arena *arena, Datastore__CompositeIndex **out);

#endif
