/* Which server wrote here last, kept in the catalog, where a flipped byte is known as one: the file
 * IDENTITY has no checksum, and of one that names another server nothing else could be told.
 *
 * A restore, which makes a new server of another one's data, removes the record, and so does a
 * replay that makes a store of old data (store.h): the first start writes it again. */
#ifndef TRESTLE_CLUSTER_IDENTITY_RECORD_H
#define TRESTLE_CLUSTER_IDENTITY_RECORD_H

#include "cluster/catalog.h"

/* Into the arena; NULL: there is none, as in a directory of a former release. */
struct identity_record {
    const char *last;
    const char *before; /* the one before that: it may be put back without a question */
};
status identity_record_read(struct keyspace *catalog, struct arena *arena,
                            struct identity_record *out);
/* Whether it is neither of these; false if nothing is known. */
bool identity_record_is_other(const struct identity_record *record, const char *identity);
status identity_record_forget(struct store *store, struct keyspace *catalog); /* durably */

/* At a start: logs if the server is another than the last one here, and which that was, and records
 * which it is from now on. What fails is logged, and done at the next start. */
void identity_record_update(struct store *store, struct keyspace *catalog, const struct log *log);

#endif
