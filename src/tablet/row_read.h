/* Reading rows of a keyspace: the record, and the overflow cells if there are any, at one instant.
 *
 * Nothing here holds a lock. With STORE_READ_CACHED a read never waits for the disk and says so
 * when it would have to: the caller then repeats it with STORE_READ_ANY on a pool thread. */
#ifndef TRESTLE_TABLET_ROW_READ_H
#define TRESTLE_TABLET_ROW_READ_H

#include "row/resolve.h"
#include "store/store.h"
#include "tablet/commit.h"
#include "tablet/key_walk.h"

enum row_outcome {
    ROW_FOUND,      /* the row has visible cells in scope */
    ROW_ABSENT,     /* it has none */
    ROW_NOT_CACHED, /* only with STORE_READ_CACHED */
    ROW_END,        /* range reads: no more rows */
    ROW_TOO_LARGE,  /* beyond size_limit: skipped by range reads' next call */
};

/* How to read; the same for all rows of a request. */
struct row_read_options {
    struct store *store;                /* for snapshots of it */
    const struct commit_queue *commits; /* for row.as_of; NULL: no row wants a rewrite */
    struct row_drops *drops;            /* the table's; NULL: no row is dropped */
    const struct schema *schema;
    const struct read_scope *scope; /* NULL: everything */
    int64_t now_us;
    bool apply_gc;
    uint64_t size_limit;
    uint64_t
        overflow_bytes;   /* size of a record from which row.wants_maintenance is set; 0: never */
    uint64_t defer_after; /* resolve_request's: the rest is for row_load_value; 0: none is */
    /* The reader looks at all that is left as soon as it has the row. A thread that must not wait
     * cannot do that: with STORE_READ_CACHED, a row of which something is left is ROW_NOT_CACHED.
     * So is one, elsewhere, whose largest value left is beyond the thread's bound
     * (store_bound_reads, which then says how large it is). */
    bool looks_at_left;
};

struct left_values;

/* A row in hand. Its cells point into the arena and into `value`, which pins store memory until
 * row_clear. All zeroes is empty. */
struct row {
    bytes key; /* in the arena */
    struct cell_list cells;
    struct store_value value;
    bytes record; /* as it is stored, or would be if the row were in one piece; stays with cells */
    uint64_t as_of;         /* commits up to this sequence are in it; of later ones, some may be */
    bool wants_maintenance; /* the record is large, or has tombstones that wait for overflow cells:
                             * overflow.h
                             */
    bool wants_rewrite;     /* the record was in so many pieces that it should be rewritten */
    /* What gets the values that were left in the store, at the row's instant, which it holds until
     * row_clear; NULL: none were. */
    struct left_values *left;
};

void row_clear(struct row *row);

/* One row by its key. `row->cells.arena` must be set. */
status row_read(struct keyspace *keyspace, const struct row_read_options *options, bytes row_key,
                enum store_read_tier read_tier, struct row *row, enum row_outcome *outcome);

/* Records of rows of a keyspace, read some at once, which is cheaper by far than one by one: for a
 * reader who looks at each soon, and to whom a row may be as old as the first of these calls. All
 * zeroes is empty. */
enum { ROW_RECORDS_MOST = KEY_WALK_MOST };
struct row_records {
    struct key_walk walk; /* `last` and `never` are the caller's */
    struct arena *arena;
    size_t count;
    size_t bytes; /* of all */
    uint64_t gone;
    bytes records[ROW_RECORDS_MOST];
    enum store_presence presences[ROW_RECORDS_MOST];
};

/* `count` of 1 to ROW_RECORDS_MOST, by rising keys unless `walk.never`; those that were read before
 * are forgotten. `options->commits` is NULL: no row is rewritten. May block for the disk. Empty if
 * it fails, which one row may be the reason of. */
status row_records_read(struct row_records *records, struct keyspace *keyspace,
                        const struct row_read_options *options, const bytes *row_keys,
                        size_t count);
/* Holds nothing of the store any more, and no records. */
void row_records_rest(struct row_records *records);
void row_records_free(struct row_records *records);
/* Whether the one at that place was read (the thread's bound may refuse it), and not yet taken. */
bool row_records_has(const struct row_records *records, size_t i);
/* As row_read, with STORE_READ_ANY, of one that it has; cells are valid until the next are read. */
status row_records_take(struct row_records *records, size_t i, struct keyspace *keyspace,
                        const struct row_read_options *options, bytes row_key, struct row *row,
                        enum row_outcome *outcome);

/* The value of a cell of the row, or of a filter's copy, that is deferred; cheaper in the cells'
 * order. ROW_FOUND with the value, valid until the row is used again; or ROW_NOT_CACHED. ABORTED if
 * a compaction has collected the cell since the row was read, its time having come. */
status row_load_value(struct row *row, const struct cell *cell, enum store_read_tier read_tier,
                      bytes *value, enum row_outcome *outcome);
/* Gives back what the last value lies in: for a while in which none is needed. */
void row_release_value(struct row *row);

/* Rows of a range, in key order or reversed. A reader may be paused at any time: it then holds no
 * resource of the store, and goes on after the last key it gave. */
struct row_range_reader;

status row_range_reader_create(struct keyspace *keyspace, const struct row_read_options *options,
                               bytes from, bytes to, bool reversed, struct row_range_reader **out);
void row_range_reader_destroy(struct row_range_reader *reader);

/* The next row that exists and that `skip` (may be NULL) does not reject by its key: ROW_FOUND,
 * ROW_NOT_CACHED (call again with STORE_READ_ANY), ROW_TOO_LARGE or ROW_END. Rows without visible
 * cells are passed over; `*last_scanned` is the key of the last row looked at, also then. To bound
 * the time of one call it returns ROW_ABSENT after `row_budget` rows were passed over, or after one
 * that wants maintenance or a rewrite, which is in `row`. Cells' slices, and the record, are valid
 * until the next call. */
status row_range_reader_next(struct row_range_reader *reader, enum store_read_tier read_tier,
                             bool (*skip)(void *context, bytes row_key), void *context,
                             size_t row_budget, struct row *row, enum row_outcome *outcome);
bytes row_range_reader_last_scanned(const struct row_range_reader *reader);
void row_range_reader_pause(struct row_range_reader *reader);

#endif
