/* Writes rows of a database's table, all or none, and waits until they are durable. */
#ifndef TRESTLE_DATASTORE_ROWS_WRITE_H
#define TRESTLE_DATASTORE_ROWS_WRITE_H

#include "cluster/row_group.h"
#include "datastore/moments.h"

/* A row's cells of one moment. */
struct ds_row_write {
    bytes key;
    bool is; /* it is there from now on, with `now`; else no more */
    bytes now;
    bool was; /* it was there until now, with `past` */
    bytes past;
};

/* Of no row two. `moment`: what the cells are of; it has been drawn, and has entered the queue when
 * this returns, or failed. NULL: the cells are of `at_us`, and no order is kept. Blocks. */
status ds_rows_write(struct table *table, const struct ds_row_write *rows, size_t count,
                     struct ds_moments *moments, struct ds_moment *moment, int64_t at_us,
                     struct arena *arena);

#endif
