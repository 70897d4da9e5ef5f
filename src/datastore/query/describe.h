/* Requests of Datastore's API in words, and what a query read, for people who wonder why it was
 * slow.
 *
 * Kinds, properties and keys are shown, and the text of GQL; values that are written or compared
 * are not. */
#ifndef TRESTLE_DATASTORE_QUERY_DESCRIBE_H
#define TRESTLE_DATASTORE_QUERY_DESCRIBE_H

#include "datastore/ds_call.h"
#include "datastore/query/query_results.h"

/* Appends lines, each ended by '\n', on a request of google.datastore.v1.Datastore: none for other
 * methods, for what cannot be decoded, and without memory in the arena. */
void ds_describe(const char *method, bytes request, struct arena *arena, struct buffer *out);

/* Tells the call what a query has read and how many results it gave, and if it is slow by which
 * indexes. */
void ds_tell_query(const struct ds_call *call, const struct ds_query *query,
                   const struct ds_plan *plan, const struct ds_reads *reads, int64_t results);

#endif
