/* Adding up entries: the one place that knows what tombstones, versions, aggregates and overflow
 * marks do to each other (fragment.h, "Meaning"). Folds, changes and reads are this with different
 * ends.
 *
 * Entries go in in fragment order, any number of them at one place, in any order among themselves;
 * what counts comes out in fragment order, one entry a place, except adds that are kept apart:
 *  1. Cells that a tombstone covers, or that the mark says have moved, do not come out.
 *  2. Tombstones that a wider one of the same or a greater version makes needless do not either;
 *     column tombstones come out disjoint.
 *  3. Adds that went in to be kept apart come out each by itself, the newest first and each version
 *     once, however often it went in; those that are older become one, behind them.
 * Nothing is collected here: whether tombstones may be dropped is the caller's business. */
#ifndef TRESTLE_ROW_COMBINE_H
#define TRESTLE_ROW_COMBINE_H

#include "row/cover.h"
#include "row/fragment.h"
#include "row/hll.h"

struct combiner {
    /* What takes the result; false ends the work. An entry's slices are as long-lived as those that
     * went in, except the value of an aggregate, which is good during the call. */
    bool (*emit)(void *context, const struct entry *entry);
    void *context;
    bool out_of_memory; /* why it failed, unless `emit` knows */
    /* Private. Versions of 0 mean: none. */
    uint64_t moved;
    uint64_t row_tombstone;
    uint64_t family_tombstone;
    uint32_t family;
    bytes covered; /* qualifier of the column that `cover` is about */
    struct cover cover;
    bool is_gathering; /* `cover` is not built yet */
    bool has_pending;
    struct entry pending; /* the last place's, not emitted yet */
    uint8_t number[8];    /* the pending aggregate's value */
    bool is_compound;     /* it is more than `pending`: a sketch, or adds apart, or both */
    bool is_sketching;    /* the pending aggregate's value is what `sketch` comes to */
    bool lacks_older;     /* `pending` is but a place: all its adds are apart */
    struct entry *apart;  /* the pending place's adds that are kept apart, the oldest first */
    size_t apart_count;
    size_t apart_capacity;
    struct hll_sketch sketch;
    struct buffer state; /* the last sketch, written */
};

void combiner_start(struct combiner *combiner,
                    bool (*emit)(void *context, const struct entry *entry), void *context);

/* Before anything goes in: the row was dropped at this version (drops.h), as by a row tombstone
 * that does not come out. 0: it was not. */
static inline void combiner_drop_row(struct combiner *combiner, uint64_t version)
{
    combiner->row_tombstone = version;
}

/* False if `emit` said so, if memory ran out, or if an aggregate's value is malformed. An entry's
 * slices must stay good until it has been emitted: at the next place's entry or the finish. */
bool combiner_add(struct combiner *combiner, const struct entry *entry);

/* The same, but adds of this version and later are kept apart. `from` is the same in all calls. */
bool combiner_add_apart(struct combiner *combiner, const struct entry *entry, uint64_t from);

/* Emits what is left; `false` as above. */
bool combiner_finish(struct combiner *combiner);
void combiner_free(struct combiner *combiner);

/* The newest tombstone that is over the cell, 0 if there is none, by what went in so far. The cell
 * must not lie before what went in; `emit` may ask about the cell it is given. False without
 * memory. */
bool combiner_tombstone_over(struct combiner *combiner, const struct entry *cell,
                             uint64_t *version);

#endif
