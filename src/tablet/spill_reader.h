/* The spilled cells of one row, from the store: a spill_source (row/resolve.h) over a cursor. */
#ifndef TRESTLE_TABLET_SPILL_READER_H
#define TRESTLE_TABLET_SPILL_READER_H

#include "row/resolve.h"
#include "store/store.h"

struct spill_reader {
    struct spill_source source; /* its functions fail with no words where `is_missed` is set */
    struct store_cursor *cursor;
    bytes row_key;
    struct buffer key;           /* that is sought */
    struct buffer scratch;       /* of the key that was read */
    struct spill_key at;         /* that key; its slices are the cursor's and of `scratch` */
    struct fragment_reader rest; /* of its value: adds that are kept apart */
    bool is_positioned;          /* the cursor's entry has not been given yet */
    bool is_started;
    bool has_rest;
    bool is_missed; /* reach STORE_CACHED_ONLY: something was not in memory */
};

/* What a reader collects of what it reads: what the keyspace's rules condemn, or nothing. */
enum spill_reading { SPILL_BY_RULES, SPILL_ALL };

/* `row_key` must stay until the reader is closed; also to be closed after a failure. */
status spill_reader_open(struct spill_reader *reader, struct keyspace *keyspace,
                         const struct store_view *view, bytes row_key, enum store_reach reach,
                         enum spill_reading reading);
/* The one cell at this place; cheap if it comes next. `*found` false: there is none. Fails as the
 * source's functions do, whose position it changes. */
status spill_reader_find(struct spill_reader *reader, uint32_t family, bytes qualifier,
                         int64_t timestamp_us, struct entry *cell, bool *found);
void spill_reader_close(struct spill_reader *reader);

#endif
