/* From stored bytes to visible cells: what a row's record and its overflow cells come to, at one
 * instant, for one schema.
 *
 * Pure: the overflow cells come through an interface, so this can be tested without a store. */
#ifndef TRESTLE_ROW_RESOLVE_H
#define TRESTLE_ROW_RESOLVE_H

#include "row/cell.h"
#include "row/fragment.h"
#include "row/row_key.h"

struct string_set;

/* Which part of a row a reader can use; the filter says so (filter_scope). It only ever narrows: a
 * reader may get more than its scope, never less. But of a family with `visible`, the columns that
 * it may see (columns_restrict), it gets no others, and none of a family that is not wanted, or of
 * before `least_us`. */
struct family_scope {
    bool is_wanted;
    bytes from; /* qualifiers, inclusive; empty: from the first */
    bytes to;   /* exclusive; */
    bool has_to;
    const struct string_set *visible; /* qualifiers; NULL: all */
    int64_t least_us;                 /* cells of before this time do not come; 0: all do */
};

struct read_scope {
    const struct family_scope *families; /* as many as the schema's, same order; NULL: all */
    int32_t cells_per_column;            /* newest that are needed; INT32_MAX: all */
    int32_t cells_per_row;               /* first that are needed; INT32_MAX: all */
    bool wants_values;                   /* false: values may be left empty */
    /* A row without a cell in scope comes with one of its others, if it has any: for readers for
     * which a row is there whatever is in it. Also beside `visible`. */
    bool wants_presence;
};

/* The overflow cells of one row, in key order, at the record's instant. */
struct overflow_source {
    /* Moves to the first cell of the family at or after the qualifier. */
    status (*seek)(struct overflow_source *source, uint32_t family, bytes qualifier);
    /* The next cell of the row (entry kinds as stored; family and qualifier filled in), or
     * `*found` false at the row's end. Adds that are kept apart come one after the other. Slices
     * are valid until the next call. */
    status (*next)(struct overflow_source *source, struct entry *entry, bool *found);
};

struct resolve_request {
    const struct schema *schema;
    bytes record;                     /* a fragment; empty: the row has none */
    struct overflow_source *overflow; /* NULL if the record says there are none */
    const struct read_scope *scope;   /* NULL: everything */
    uint64_t dropped; /* what is older than this version is not there (drops.h); 0: all is */
    int64_t now_us;
    bool apply_gc;
    uint64_t size_limit; /* bytes of keys and values over which the row is refused */
    /* Bytes of overflow values after which the other overflow cells come without their data, unless
     * they are aggregates: cell_is_deferred. 0: all values come. */
    uint64_t defer_after;
};

/* Appends the visible cells to `out` (its arena must outlive them). Slices point into `record`
 * where they come from it, else into the arena. DATA_LOSS if the bytes do not parse;
 * FAILED_PRECONDITION with `*too_large` set if the row exceeds size_limit; RESOURCE_EXHAUSTED
 * without memory. */
status row_resolve(const struct resolve_request *request, struct cell_list *out, bool *too_large);

/* Whether the record says that there are overflow cells, of which some may be there if the row was
 * dropped at that version (0: it was not). */
bool record_has_overflow(bytes record, uint64_t dropped);

/* Whether anything in the record is older than that version: something that was dropped, and is
 * there as it was stored. Also of one that does not parse. */
bool record_has_older(bytes record, uint64_t version);

/* --- overflowing --- */

/* The value of an overflow cell's record (`S` key), a merge operand: appends to `out`. Cells of the
 * same place with a version less than `after` no longer count; 0: all do. */
void overflow_cell_write(struct buffer *out, enum entry_kind kind, uint64_t version, uint64_t after,
                         bytes value);

/* The cell of an overflow record: what an overflow_source gives. `*found` false: it was collected.
 * Of adds that are kept apart it is the newest one. False if the value does not parse. */
bool overflow_cell_read(const struct overflow_key *key, bytes value, struct entry *cell,
                        bool *found);

/* Calls `visit` for each cell of the record that an overflow moves (all of them), in order, with
 * the operand to merge at its `S` key (valid during the call); stops at the first failure.
 * `*newest` is the greatest version among the cells: the mark's `moved`; 0: there are none. The
 * record is as a whole fold left it. */
status row_overflow_cells(bytes record,
                          status (*visit)(void *context, const struct entry *cell, bytes operand),
                          void *context, uint64_t *newest);

/* Calls `visit` for each range of a column, given as a column tombstone's, in which all overflow
 * cells are condemned because of newer cells in the record: those a fold cannot collect, since it
 * does not see both. The record is as a whole fold left it. Stops at the first failure. */
status row_overflow_condemned(bytes record, const struct schema *schema, int64_t now_us,
                              status (*visit)(void *context, const struct entry *range),
                              void *context);

/* Whether the rules condemn a cell of the record, by the other cells of it alone; `*found` is
 * false, too, where overflow cells count. The record is as a whole fold left it. DATA_LOSS. */
status row_find_condemned(bytes record, const struct schema *schema, int64_t now_us, bool *found);

/* The operand for the row's record that goes with them in one batch. */
void row_overflow_mark(struct buffer *out, uint64_t version, uint64_t moved, uint64_t purged,
                       bool has_overflow);

#endif
