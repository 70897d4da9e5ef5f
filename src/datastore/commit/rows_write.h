/* Writes rows of a database's table, all or none, durably. */
#ifndef TRESTLE_DATASTORE_COMMIT_ROWS_WRITE_H
#define TRESTLE_DATASTORE_COMMIT_ROWS_WRITE_H

#include "cluster/row_group.h"
#include "datastore/commit/sequencer.h"

/* A row's cells of one moment. */
struct ds_row_write {
    bytes key;
    bool is; /* it is there from now on, with `now`; else no more */
    bytes now;
    bool was; /* it was there until now, with `past` */
    bytes past;
};

/* The context of rows that are written together. */
struct ds_row_packing {
    struct arena *arena;
    uint32_t is; /* families */
    uint32_t was;
    int64_t at_us;
    size_t big_value;
};

/* For a caller that brings it to the store itself; it frees out->fragment. */
status ds_row_pack(const struct ds_row_packing *packing, const struct ds_row_write *row,
                   struct packed_change *out);

/* Of no row two; the cells are of `at_us`, and no order is kept. Blocks until they are durable. */
status ds_rows_write(struct table *table, const struct ds_row_write *rows, size_t count,
                     int64_t at_us, struct arena *arena);

/* The same at a moment that it draws, at `now_us` or later; what is read afterwards is after it. */
status ds_rows_write_in_order(struct table *table, const struct ds_row_write *rows, size_t count,
                              struct ds_sequencer *sequencer, int64_t now_us, struct arena *arena);

/* The same of rows that may be out of service, for a repair that brings them back. `sequencer`
 * NULL: the database is not open. */
status ds_rows_write_repair(struct table *table, const struct ds_row_write *rows, size_t count,
                            struct ds_sequencer *sequencer, int64_t now_us, struct arena *arena);

/* The same without waiting for anything, at a moment that was drawn before. */
struct ds_rows_writing {
    /* Set by the owner, which keeps it, and the arena, until the moment is past. */
    struct table *table;
    struct ds_sequencer *sequencer;
    struct arena *arena;
    bool is_repair;        /* see commit.h */
    struct ds_turn moment; /* drawn */
    /* The outcome, once the moment is past; the owner's. */
    status result;
    /* Private. */
    struct row_group group;
};

/* Failures, too, are told at the moment's end. It may all be gone when this returns. */
void ds_rows_submit(struct ds_rows_writing *writing, const struct ds_row_write *rows, size_t count);

#endif
