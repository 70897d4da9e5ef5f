/* Mutations of many rows that wait to be written: those of a row in their order, and never two
 * writes of one row under way.
 *
 *     added ─► waiting ─► taken ─► done
 *                 ▲ what was added to the row meanwhile
 *
 * Invariants
 *  1. A row's mutations are taken in the order in which they were added.
 *  2. Of a row one entry at most is taken and not done.
 *  3. What is added to a row that waits joins its last entry, up to ROW_QUEUE_ENTRY_MUTATIONS and
 *     ROW_QUEUE_ENTRY_BYTES, which a single mutation may exceed.
 *
 * It makes no calls. One thread. */
#ifndef TRESTLE_CLIENT_ROW_QUEUE_H
#define TRESTLE_CLIENT_ROW_QUEUE_H

#include "base/bytes.h"
#include "base/list.h"
#include "base/status.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum { ROW_QUEUE_ENTRY_MUTATIONS = 50000, ROW_QUEUE_ENTRY_BYTES = 32 << 20 };

struct row_queue;
struct queued_row;

/* What one entry of MutateRows takes. */
struct queued_entry {
    struct link link;
    struct queued_row *row;
    struct buffer message; /* MutateRowsRequest.Entry, encoded */
    size_t mutations;
};

/* NULL without memory. */
struct row_queue *row_queue_create(void);
void row_queue_destroy(struct row_queue *queue); /* and what was taken; NULL is fine */

/* Adds copies of the mutations behind what the row has. A failure may have added some of them. */
status row_queue_add(struct row_queue *queue, bytes row_key, Bt__Mutation *const *mutations,
                     size_t count);

/* An entry whose turn it is, the longest ready first; NULL if there is none. It is the queue's, and
 * lives until it is done. */
struct queued_entry *row_queue_take(struct row_queue *queue);
void row_queue_done(struct row_queue *queue, struct queued_entry *entry);

bytes queued_entry_key(const struct queued_entry *entry);

/* Rows of which an entry may be taken; bytes of memory of all that is not done, about. */
size_t row_queue_ready(const struct row_queue *queue);
size_t row_queue_bytes(const struct row_queue *queue);

#endif
