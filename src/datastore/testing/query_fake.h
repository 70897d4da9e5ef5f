/* A database in memory, for tests of queries: what snapshot.h and reading.h promise, over a sorted
 * array of the rows that index_rows.h makes of entities. */
#ifndef TRESTLE_DATASTORE_TESTING_QUERY_FAKE_H
#define TRESTLE_DATASTORE_TESTING_QUERY_FAKE_H

#include "base/vector.h"
#include "datastore/query/query_batch.h"

struct fake {
    struct arena *arena;
    struct vector entities; /* const Ds__Entity * */
    struct vector past;     /* the same: of which only index rows are left */
    struct vector indexes;  /* struct ds_index */
    struct vector rows;     /* struct ds_index_row, sorted when a reading begins */
    size_t noted;           /* ranges */
    struct vector ranges;   /* those of indexes: struct ds_read_range */
    struct ds_reads reads;  /* of the last batch */
    size_t opened;          /* readers that are not closed */
    size_t read;            /* rows */
};

/* For cmocka: `*state` is a fake. */
int fake_setup(void **state);
int fake_teardown(void **state);

void fake_add(struct fake *fake, const Ds__Entity *entity);

/* The key as in testing.h, and the properties as JSON without braces, ' for ". */
void fake_put(struct fake *fake, const char *path, const char *properties);

/* Index rows of what an entity once was. */
void fake_add_past(struct fake *fake, const Ds__Entity *entity);

/* "K a -b __key__", after "^" one with ancestors. */
void fake_add_index(struct fake *fake, const char *text);

/* Makes the rows again. */
struct ds_reading fake_reading(struct fake *fake);

/* Plans and runs; fails as they do. */
status fake_run(struct fake *fake, const Ds__Query *request, const char *name_space,
                Ds__QueryResultBatch **out);

/* The same, until no more is to come: "1 2 3", the last elements' ids of the keys; of projections
 * with "(values)" behind. `page`: the limit of each batch; 0: none. */
status fake_list(struct fake *fake, Ds__Query *request, int page, struct buffer *out);

#endif
