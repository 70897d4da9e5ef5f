/* Automatic ids, and those that are not to be given.
 *
 * A counter of the database makes them (ids.h). It is claimed in blocks, durably, so that none is
 * given twice, also after a crash. An id that a client chose, or reserved, and that the counter has
 * yet to come to, has a row of its own, by which it is passed over. That row is there when it is
 * written; until then the id is *held*, in memory, and passed over as well. */
#ifndef TRESTLE_DATASTORE_COMMIT_ALLOCATE_H
#define TRESTLE_DATASTORE_COMMIT_ALLOCATE_H

#include "base/vector.h"
#include "datastore/database.h"

/* Completes the key, whose last element has neither id nor name. Blocks. */
status ds_id_allocate(struct datastore *datastore, struct ds_open_database *open, Ds__Key *key,
                      struct arena *arena);

/* Ids whose marks are about to be written, of one request: all zeroes is none. */
struct ds_held_ids {
    struct vector counters; /* of uint64_t */
    struct ds_held_ids *next;
    bool is_listed;
};

/* Whether the counter may come to the key's id: then its mark has to be written, and the id is held
 * until it is. `*row_key` is the mark's row; empty if there is nothing to mark. */
status ds_id_mark(struct ds_open_database *open, const Ds__Key *key, struct ds_held_ids *held,
                  struct arena *arena, bytes *row_key);

/* The marks are written, or will not be. */
void ds_ids_release(struct ds_open_database *open, struct ds_held_ids *held);

/* --- to make lost counters and marks again: index_heal.h --- */

/* The counter's row, and what it holds: up to which counters are claimed. INTERNAL for what is none
 * of ours. */
status ds_id_counter_row(struct arena *arena, bytes *out);
status ds_id_counter_read(bytes value, uint64_t *claimed);
status ds_id_counter_value(uint64_t claimed, struct arena *arena, bytes *out);

/* The mark's row of the id that the key ends with. */
status ds_id_mark_row(const Ds__Key *key, struct arena *arena, bytes *out);

/* Up to which counters are claimed; 0: that has not been read yet. */
uint64_t ds_ids_claimed(struct ds_open_database *open);

#endif
