/* What the upkeep of a view writes: rows of the view's table and records of its, all or none, at
 * one place of the commit queue.
 *
 *     view_commit_begin ─► view_commit_row, _put, _delete ─► view_commit_write
 *
 * It is not synced by itself, and needs not be: what follows from it (the position in the feed that
 * the next round begins at) is a record in the same batch, and the store keeps the order of
 * batches. A power cut takes the newest of them, whole, and they are done again. And what it
 * follows from is in the log before it: no view has what its source has lost (view_commit_test.c).
 *
 * It is neither in the archive nor in a change stream, and no observer sees it. When the disk is
 * short of space it is refused as any write. One thread at a time. */
#ifndef TRESTLE_CLUSTER_VIEW_VIEW_COMMIT_H
#define TRESTLE_CLUSTER_VIEW_VIEW_COMMIT_H

#include "cluster/cluster.h"
#include "row/fragment.h"

struct view_commit;

/* Memory that commits use one after another, some megabytes at most: what each would take from the
 * system, and give back, is a tenth of what a population costs. One commit has it at a time. */
struct view_commit_memory;
struct view_commit_memory *view_commit_memory_create(void); /* NULL without memory */
/* Once no commit has it. NULL is fine. */
void view_commit_memory_destroy(struct view_commit_memory *memory);

/* The view is held until the commit is written or cancelled. `memory`: NULL: of its own. */
status view_commit_begin(struct table *view, struct view_commit_memory *memory,
                         struct view_commit **out);
void view_commit_cancel(struct view_commit *commit); /* NULL is fine */

/* A change of one row, each row once: cells that are set, columns, or times of them, and the row
 * that are deleted, by ids of families of the table's schema (row/fragment.h). Ends its building
 * (row_change_pack). The key is copied; the change's arena, and what its slices point to, may go
 * after this, but for values of rows_big_value and more, which must stay until the write. Failures
 * show in the write. */
void view_commit_row(struct view_commit *commit, bytes key, struct row_change *change);

/* The row is what the change sets, and nothing else; one that sets nothing removes it. Cheaper, for
 * the store, too: nothing is to be folded. Only for rows that never come to rows_big_value. */
void view_commit_put_row(struct view_commit *commit, bytes key, struct row_change *change);

/* Records: copied. The last of several for one key counts. */
void view_commit_put(struct view_commit *commit, bytes key, bytes value);
void view_commit_delete(struct view_commit *commit, bytes key);
/* All from `from` to `to`, which is greater, exclusive. What is put later in this commit stays. */
void view_commit_delete_range(struct view_commit *commit, bytes from, bytes to);

/* Bytes that it is going to write, about. */
size_t view_commit_size(const struct view_commit *commit);
/* How many rows and records it changes. */
size_t view_commit_count(const struct view_commit *commit);

/* Waits until it is in the store: what is read from then on has it. Frees it in any case.
 * NOT_FOUND: the view is gone; UNAVAILABLE, RESOURCE_EXHAUSTED: as for any write, and nothing of it
 * was written. `sequence` may be NULL: gets its place. */
status view_commit_write(struct view_commit *commit, uint64_t *sequence);

#endif
