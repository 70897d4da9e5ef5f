/* The records of drops (row/drops.h), in the keyspace `system` of the store that has the rows:
 *
 *     'd' <keyspace id> <sequence>   when: 8 bytes each, big-endian
 *
 *     8 bytes   the version
 *     8 bytes   how many bytes the range was thought to have when it was dropped
 *     8 bytes   the number of the keyspace's newest table file then: all that this one and those
 *               before have was written earlier; 0: nobody knows
 *     4 bytes   size of the first row key
 *               the first row key, and the one at which the range ends; empty: no bound
 *
 * A record goes by its keyspace, as one of damage does: who finds rows finds what was dropped of
 * them, whatever has become of their table's name. It is there from the drop's commit on, and until
 * nothing older than the drop is left in its range. One that is lost brings back rows. */
#ifndef TRESTLE_TABLET_DROP_RECORDS_H
#define TRESTLE_TABLET_DROP_RECORDS_H

#include "row/drops.h"
#include "store/store.h"

enum { DROP_RECORD = 'd', DROP_RECORD_KEY_SIZE = 17 };

/* The value, appended to an empty buffer, but for the version, which drop_record_put writes there.
 */
status drop_record_value(const struct row_drop_words *drop, struct buffer *value);
void drop_record_put(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                     uint64_t version, uint64_t sequence, struct buffer *value);
void drop_record_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                        uint64_t sequence);
/* A value in a store whose table files have other numbers. The value is a record's. */
void drop_record_forget_table(struct buffer *value);
/* All of a keyspace, by one range. */
void drop_records_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id);

/* Whether a change of the keyspace `system` puts a record. */
bool drop_record_is_put(const struct store_change *change);

/* What a record says; the slices are the value's. DATA_LOSS if it does not parse. */
status drop_record_parse(bytes key, bytes value, uint64_t *keyspace_id, struct row_drop_words *out);

/* Calls `visit` with each keyspace that has some, by rising id, until it fails. Blocks. */
status drop_records_visit(struct keyspace *system,
                          status (*visit)(void *context, uint64_t keyspace_id), void *context);

/* Adds all of a keyspace to a list that has none. DATA_LOSS if one does not parse. Blocks. */
status drop_records_load(struct keyspace *system, uint64_t keyspace_id, struct row_drops *drops);

#endif
