/* The records of tellings (cluster/stream/telling.h), in the keyspace `system` of the store that
 * has the rows. Each goes by a drop: its keyspace and its sequence, as drop_records.h has them.
 *
 *     'u' <keyspace id> <sequence>             when: 8 bytes each, big-endian
 *
 *     8 bytes   the drop's version
 *     8 bytes   the life of the stream that is told
 *     8 bytes   the sequence of the commit that told the last row; 0: rows are still to be told
 *     4 bytes   size of the first row key, and 4: of the one at which the range ends
 *               these two (empty: no bound), and the row key up to which all is told
 *
 *     'w' <keyspace id> <sequence> <row key>   a row that was told before its turn: a byte, `-`
 *
 * The first is in the drop's own commit, and changes in those that tell rows; once all are told it
 * stays as long as the log has what was logged meanwhile. The second comes with the write that was
 * in front of the row's turn, and goes when that has come. */
#ifndef TRESTLE_TABLET_TELLING_RECORDS_H
#define TRESTLE_TABLET_TELLING_RECORDS_H

#include "base/status.h"
#include "store/store.h"

enum { TELLING_RECORD = 'u', TOLD_ROW = 'w', TELLING_KEY_SIZE = 17 };

struct telling_record {
    uint64_t keyspace_id;
    uint64_t sequence; /* not 0 */
    uint64_t version;  /* not 0 */
    uint64_t life;
    uint64_t end;
    bytes from;
    bytes to;
    bytes next;
};

/* Without memory the batch fails (store_batch_fail). */
void telling_record_put(struct store_batch *batch, struct keyspace *system,
                        const struct telling_record *record);
void telling_record_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                           uint64_t sequence);
/* The slices are the value's. DATA_LOSS if it does not parse. */
status telling_record_parse(bytes key, bytes value, struct telling_record *out);
/* Whether the key is such a record's, of that drop. */
bool telling_record_is_of(bytes key, uint64_t keyspace_id, uint64_t sequence);

/* Calls `visit` with each telling of the keyspace, by rising sequence, until it fails. Blocks. */
status telling_records_visit(struct keyspace *system, uint64_t keyspace_id,
                             status (*visit)(void *context, const struct telling_record *record),
                             void *context);

/* Writes the first part of the key, behind which the row key is. */
void told_row_key(uint8_t out[TELLING_KEY_SIZE], uint64_t keyspace_id, uint64_t sequence);
/* Calls `visit` with each row that was told before its turn, until it fails. Blocks. */
status told_rows_visit(struct keyspace *system, uint64_t keyspace_id, uint64_t sequence,
                       status (*visit)(void *context, bytes row_key), void *context);
/* All rows of the drop, by one range. */
void told_rows_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id,
                      uint64_t sequence);

/* Everything of a keyspace, by two ranges. */
void tellings_delete(struct store_batch *batch, struct keyspace *system, uint64_t keyspace_id);

#endif
