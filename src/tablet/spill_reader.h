/* The spilled cells of one row, from the store: a spill_source (row/resolve.h) over a cursor. */
#ifndef TRESTLE_TABLET_SPILL_READER_H
#define TRESTLE_TABLET_SPILL_READER_H

#include "row/resolve.h"
#include "store/store.h"

struct spill_reader {
    struct spill_source source; /* its functions fail with no words where `is_missed` is set */
    struct store_cursor *cursor;
    bytes row_key;
    struct buffer key;     /* that is sought */
    struct buffer scratch; /* of the key that was read */
    bool is_positioned;    /* the cursor's entry has not been given yet */
    bool is_started;
    bool is_missed; /* reach STORE_CACHED_ONLY: something was not in memory */
};

/* `row_key` must stay until the reader is closed; also to be closed after a failure. */
status spill_reader_open(struct spill_reader *reader, struct keyspace *keyspace,
                         const struct store_view *view, bytes row_key, enum store_reach reach);
void spill_reader_close(struct spill_reader *reader);

#endif
