/* Replay: of what a source tells of a row, what is written to its copy, and what is marked to be
 * read again.
 *
 * Plain cells come with their timestamps, deletions with their ranges: they are written as they
 * came. Of an aggregate an input is told, and to add it twice would count it twice: its cell is
 * marked (transfer/cell_marks.h). A deletion in such a family is written, and marks what it took.
 *
 * Why the copy comes to what the source is, although its rows were read at any moment meanwhile.
 * Let a row have the changes 1 … n since it was made. The place in the stream is taken at p, before
 * a row is read; the row is copied once or more, as it was behind some k ≥ p; then p + 1 … n are
 * replayed in their order, from any of them on again and again after crashes, never beyond one that
 * was left out. Look at one plain cell, that is a family, a column and a timestamp:
 *
 *  a. The last change that touches it (sets it, or deletes a range that has it) is ≤ p. Then it is
 *     the same in all states from p to n. Each copy of the row has it so; if it is not there, no
 *     copy wrote it; and no replayed change touches it.
 *  b. It is l > p. What copies, and replays of others, made of it is undone by l: a set cell has
 * l's value, a deleted one is gone. After l, the first time or again, only changes in front of l
 *     could touch it, and whoever replays these replays l behind them.
 *
 * A copy is never written behind the replay of a change to its row: the copying ends first. A row
 * that a copy of k wrote, and which had lost cells when another of k' > k was read, has them in the
 * target; they were deleted by a change of k + 1 … k', which is replayed: case b.
 *
 * A cell of an aggregate whose last change is l ≤ p is as in a. If l is a deletion, b holds: what
 * is written of it behind l comes from a state that was read behind l, which does not have it. If l
 * is an input, its cell is marked; the marks of a position are resolved before it is stored, by a
 * state that is read behind l, and that is the last one. Deletions that are replayed behind that
 * come again, or touch it not.
 *
 * It needs the copy to be of this job alone: what it had before, from elsewhere, stays if no change
 * touches it. */
#ifndef TRESTLE_TRANSFER_REPLAY_H
#define TRESTLE_TRANSFER_REPLAY_H

#include "google/bigtable/admin/v2/table.pb-c.h"
#include "transfer/cell_marks.h"

struct replay;

struct replay_options {
    const BtAdmin__Table *source; /* their families; both outlive the replay */
    const BtAdmin__Table *target;
    bytes start; /* the first row key that is wanted */
    bytes end;   /* the key behind the last; empty: there is none */
    /* Collected cells are deleted also where the target collects by the same rule. */
    bool with_collections;
    struct cell_marks *marks; /* outlives the replay */
};

/* A change of a row. */
struct row_change {
    bytes row_key;
    bool is_collection; /* of garbage */
    Bt__Mutation *const *mutations;
    size_t count;
};

status replay_create(const struct replay_options *options, struct replay **out);
void replay_destroy(struct replay *replay); /* NULL is fine */

/* The mutations that are written, in their order: the change's own. The list is the arena's; what
 * is marked is in the marks. UNIMPLEMENTED for mutations of a kind that is not known,
 * FAILED_PRECONDITION for aggregates of a family that the source's schema lacks. */
status replay_take(struct replay *replay, const struct row_change *change, struct arena *arena,
                   Bt__Mutation ***out, size_t *count);

/* Families of the source whose cells are states, as a regular expression (RE2) of whole names;
 * NULL: there are none. Lives as long as the replay. */
const char *replay_aggregates(const struct replay *replay);

#endif
