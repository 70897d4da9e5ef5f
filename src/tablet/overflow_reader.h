/* The overflow cells of one row, from the store: an overflow_source (row/resolve.h) over a cursor.
 */
#ifndef TRESTLE_TABLET_OVERFLOW_READER_H
#define TRESTLE_TABLET_OVERFLOW_READER_H

#include "row/resolve.h"
#include "store/store.h"

struct overflow_reader {
    struct overflow_source source; /* its functions fail with no words where `is_missed` is set */
    struct store_cursor *cursor;
    bytes row_key;
    struct buffer key;           /* that is sought */
    struct buffer scratch;       /* of the key that was read */
    struct overflow_key at;      /* that key; its slices are the cursor's and of `scratch` */
    struct fragment_reader rest; /* of its value: adds that are kept apart */
    bool is_positioned;          /* the cursor's entry has not been given yet */
    bool is_started;
    bool has_rest;
    bool is_missed; /* STORE_READ_CACHED: something was not in memory */
};

/* What a reader collects of what it reads: what the keyspace's rules condemn, or nothing. */
enum overflow_reading { OVERFLOW_BY_RULES, OVERFLOW_ALL };

/* `row_key` must stay until the reader is closed; also to be closed after a failure. */
status overflow_reader_open(struct overflow_reader *reader, struct keyspace *keyspace,
                            const struct store_snapshot *snapshot, bytes row_key,
                            enum store_read_tier read_tier, enum overflow_reading reading);
/* The one cell at this place; cheap if it comes next. `*found` false: there is none. Fails as the
 * source's functions do, whose position it changes. */
status overflow_reader_find(struct overflow_reader *reader, uint32_t family, bytes qualifier,
                            int64_t timestamp_us, struct entry *cell, bool *found);
void overflow_reader_close(struct overflow_reader *reader);

#endif
