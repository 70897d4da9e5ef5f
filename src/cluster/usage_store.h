/* What is known of how a table is used, kept beside its heat: records of opaque bytes, one for each
 * table and kind, which survive restarts, splits and merges, and go with their table.
 *
 *     usage_get    at the first look at a table after a start: what was known before
 *     usage_put    now and then: all that is known, what usage_get said included
 *
 * Invariants
 *  1. A put waits in memory. Maintenance writes what waits at the end of a heat window, and a stop
 *     what is left, of the first window of a directory's life, too: each record once a window at
 *     most, whatever is put. What a kill finds waiting is lost. A write that fails is tried again
 *     with the next window.
 *  2. All records of a table have USAGE_MOST_BYTES together; a put that would make them larger is
 *     refused, and the former value stays.
 *  3. A record knows since when it has been there: the first put. So a reader that finds nothing in
 *     it can say since when there was no use. A start with `--heat false` removes all records,
 *     since what happens then is not seen.
 *  4. A table that is deleted and kept keeps its records. Those of a table that is gone are removed
 *     within a look of heat.h's, and those that a crash left at the first one after a start.
 *
 * Functions may wait for the disk: for threads that may. Of one kind one thread puts at a time; of
 * several any number. */
#ifndef TRESTLE_CLUSTER_USAGE_STORE_H
#define TRESTLE_CLUSTER_USAGE_STORE_H

#include <pthread.h>

#include "base/arena.h"
#include "base/status.h"
#include "cluster/usage_counts.h"

enum { USAGE_MOST_BYTES = 64 << 10 };

/* Bytes of their keys: docs/internals/format.md. Never given another meaning. */
enum usage_kind {
    USAGE_REQUESTS = 'r',  /* Bigtable's, for rows */
    USAGE_DATASTORE = 'd', /* indexes and properties */
    USAGE_WEIGHTS = 'w',   /* the largest rows and cells */
};

struct cluster;
struct table;
struct own_batch;

/* A part of struct table; all but the first two is guarded by the lock. */
struct table_usage {
    struct usage_counts *_Atomic counts; /* NULL: no request has come yet */
    pthread_mutex_t lock;
    bool is_loaded; /* `entries` has what is stored */
    struct usage_entry *entries;
    size_t count;
};

void usage_store_init(struct table_usage *usage);
void usage_store_free(struct table_usage *usage);

struct usage_record {
    uint8_t kind;
    int64_t since_us; /* of the wall clock; 0: there is none */
    bytes value;      /* empty: there is none */
};

/* The record that was put last. The value is in the arena. */
status usage_get(struct table *table, uint8_t kind, struct arena *arena, struct usage_record *out);

/* All records of a table, by kind. The array is in the arena, as the values. */
status usage_list(struct table *table, struct arena *arena, struct usage_record **out,
                  size_t *count);

/* Copies the value. An empty one removes the record, and since when it has been there. Does nothing
 * where heat is not counted. RESOURCE_EXHAUSTED if the table has too much. */
status usage_put(struct table *table, uint8_t kind, bytes value);

/* --- for maintenance, at the end of a window, and for a stop --- */

/* Whether something was put that has not been written. */
bool usage_store_waits(struct table *const *tables, size_t count);

/* Writes what waits, by batches; `batch` is empty, and so it is afterwards. */
status usage_store_write(struct table *const *tables, size_t count, struct own_batch *batch);

/* Removes the records of tables that are gone, if some may have gone since this was done last. */
status usage_store_sweep(struct cluster *cluster, struct own_batch *batch);

#endif
