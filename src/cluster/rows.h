/* Requests on the rows of a table, routed to its tablets.
 *
 * All are asynchronous: the caller's object stays until `done` has been called, on the loop that it
 * named. The table must be held that long. */
#ifndef TRESTLE_CLUSTER_ROWS_H
#define TRESTLE_CLUSTER_ROWS_H

#include "cluster/cluster.h"
#include "cluster/heat/heat.h"
#include "os/loop.h"
#include "row/columns.h"
#include "row/filter.h"
#include "row/fragment.h"
#include "tablet/commit.h"
#include "tablet/row_locks.h"
#include "tablet/row_read.h"

/* --- blind writes: MutateRow, an entry of MutateRows --- */

struct row_write {
    /* set by the caller */
    struct table *table;
    bytes row_key;
    /* Writes of a row with the same token change it once within 15 minutes, and so does one that
     * comes again after a restart; empty: none. */
    bytes token;
    struct packed_change change; /* ended by the write: its buffer is freed */
    struct loop *loop;
    void (*done)(struct row_write *write, status result); /* takes the status */
    /* The row's lock is had: on the loop or the thread that had the lock before, a few
     * instructions, always before `done`; NULL: not called. */
    void (*locked)(struct row_write *write);
    /* for `done`: what it waited for */
    int64_t locked_us; /* clock_steady_us, when it was its turn to lock the row; 0: at once */
    struct commit commit;
    struct link link; /* of rows_write_all's list */
    /* private */
    struct heat_mark heat;
    struct row_lock_waiter waiter;
    bool is_repeated;  /* its token was claimed before */
    uint64_t failures; /* tokens_claim's */
};

/* Loop thread of `loop`. `done` is never called before this returns. */
void rows_write(struct row_write *write);

/* The same of several of one table, linked by their `link`, in their order: they enter the commit
 * queue together, as far as they need not wait for their rows' locks. Empties the list. */
void rows_write_all(struct list *writes);

/* The size from which values get records of their own (row_change_pack's `big_value`). */
size_t rows_big_value(const struct table *table);

/* --- read, then write: CheckAndMutateRow, ReadModifyWriteRow --- */

struct row_update {
    /* set by the caller */
    struct table *table;
    bytes row_key;
    const struct schema *schema;    /* of the table, as the caller saw it: the scope's */
    const struct read_scope *scope; /* what `decide` looks at; NULL: everything */
    struct arena *arena;            /* for the row: may be as large as that from now on */
    struct loop *loop;
    /* Sees the row as it is now, under its lock, on the loop or on a pool thread, and says what to
     * write: fills `*change` (row_change_pack) and sets `*writes`, or fails. Must not block. Again
     * if the row was dropped meanwhile, when nothing has come of what was said before. */
    status (*decide)(struct row_update *update, const struct cell_list *cells,
                     struct packed_change *change, bool *writes);
    void (*done)(struct row_update *update, status result); /* takes the status */
    void (*locked)(struct row_update *update); /* the lock is had: on the loop, before `decide` */
    /* Asked, on the loop and with the lock held, before more than SCAN_VALUES_KEPT bytes of values
     * are got that lie outside of the record: whether there is room in memory for so many, until
     * `done`. False: there is none yet, and rows_update_go_on will be called. NULL: not counted. */
    bool (*ask_room)(struct row_update *update, uint64_t size);
    /* for `decide` and `done`, as a write's */
    int64_t locked_us;
    struct commit commit;
    /* private */
    struct heat_mark heat;
    size_t bytes_read;
    struct packed_change change;
    struct store_value record; /* what commit.record points to */
    struct row_lock_waiter waiter;
    struct task task;
    uint64_t wants; /* bytes of values, which room is asked for */
    bool has_asked; /* and they are to be got */
};

/* Loop thread of `loop`. `done` may be called before this returns. */
void rows_update(struct row_update *update);

/* There is room, or why there will be none; takes the status. Loop thread of `loop`, not within
 * `ask_room`. `done` may be called before this returns. */
void rows_update_go_on(struct row_update *update, status s);

/* --- scans: ReadRows --- */

/* Ranges are sorted by key, do not overlap, and none is empty; for a single key `to` is the key
 * followed by a zero byte and is_point is set. `to` empty: no bound. */
struct key_range {
    bytes from;
    bytes to;
    bool is_point;
};

/* A scan hands out row after row on whichever thread calls it, one at a time; it crosses tablets
 * and outlives splits. Between calls it may be paused, when it holds nothing of the store. */
struct scan;

enum { SCAN_ROWS_PASSED = 1024, SCAN_VALUES_KEPT = 1 << 20 };

struct scan_spec {
    struct table *table; /* retained by the scan */
    const struct key_range *ranges;
    size_t range_count;
    bool reversed;
    const struct schema *schema;   /* of the table, as the caller saw it */
    const struct columns *columns; /* the rest is as if it were not there; NULL: all are */
    const struct filter *filter;   /* applied; may be NULL */
    /* What is wanted of a row, of this schema: copied, but not what it points to. NULL: what the
     * filter needs. */
    const struct read_scope *scope;
    /* No client asked for the rows: they are only looked at. It does not count as heat or load,
     * nothing that is read is put together or tended, and scan_next returns ROW_ABSENT after
     * SCAN_ROWS_PASSED rows without visible cells, no sooner. */
    bool is_background;
    /* Values of a row's overflow cells beyond SCAN_VALUES_KEPT bytes are left in the store, for
     * scan_load_value. If the filter looks at values, it gets these one by one, always with
     * STORE_READ_ANY: a row that has some is ROW_NOT_CACHED without. */
    bool defers_values;
    /* The caller loads the values that are left as soon as it has a row: with STORE_READ_CACHED one
     * that has some is ROW_NOT_CACHED. */
    bool loads_values;
    /* Asked before the filter gets such a value, which may take long for all of a row: whether the
     * row is not waited for any more. The scan then fails with CANCELLED. May be NULL. */
    bool (*is_given_up)(const void *context);
    const void *context;
    bool applies_gc;     /* what rules condemn is not there, also if options.gc_on_read is off */
    uint64_t size_limit; /* beyond which a row is ROW_TOO_LARGE; 0: LIMIT_ROW_BYTES */
    struct arena *arena; /* for the scan itself, as long as it lives */
};

status scan_create(const struct scan_spec *spec, struct scan **out);
void scan_destroy(struct scan *scan);

struct scan_row {
    bytes key;
    const struct cell_list *cells; /* after the filter; never empty */
    bool has_deferred;             /* some of them are for scan_load_value */
};

struct scan_counts {
    int64_t rows_seen; /* for request_stats, as the next */
    int64_t cells_seen;
    int64_t keys_rejected; /* rows of ranges that the filter dropped by their keys, about */
};

/* As row_range_reader_next: ROW_FOUND with a row that stays until the next call; ROW_NOT_CACHED;
 * ROW_ABSENT: the budget is spent, call again; ROW_TOO_LARGE with row->key; ROW_END. */
status scan_next(struct scan *scan, enum store_read_tier read_tier, struct scan_row *row,
                 enum row_outcome *outcome);
/* row_load_value and row_release_value, of the row that came last. */
status scan_load_value(struct scan *scan, const struct cell *cell, enum store_read_tier read_tier,
                       bytes *value, enum row_outcome *outcome);
void scan_release_value(struct scan *scan);
void scan_pause(struct scan *scan);
/* The key of the last row looked at, of one with visible columns if there are others; may be empty.
 */
bytes scan_last_scanned(const struct scan *scan);
struct scan_counts scan_counts(const struct scan *scan);

#endif
