/* Where a transfer's records come from: a file, a table, a stream.
 *
 * A source is read once, in order, and can say at any moment where it is, as JSON, so that another
 * process goes on there. One thread. */
#ifndef TRESTLE_TRANSFER_SOURCE_H
#define TRESTLE_TRANSFER_SOURCE_H

#include "formats/change.h"

#include <jansson.h>

struct transfer_record {
    uint64_t tag;              /* of its place, never falling */
    bytes text;                /* as it stands in the source; empty: it is no text */
    struct move_change change; /* what becomes of its row */
    status failure;            /* not OK: why it cannot become a row; the taker's */
    bool is_update;            /* it replaces what others may have said: it is no double */
    bool is_pause;             /* there is no record now: ask again, which may take a while */
};

/* Where something is, for people. */
struct transfer_place {
    const char *file; /* lives as long as the source */
    uint64_t line;    /* from 1; of what has no lines, the number of the record */
};

struct transfer_progress {
    uint64_t bytes; /* that have been read, of the source as it lies there */
    uint64_t total; /* 0: not known */
};

/* In what two records must agree so that one overwrites the other. */
enum transfer_unique {
    UNIQUE_NOTHING,  /* the later one counts */
    UNIQUE_ROWS,     /* the same row key */
    UNIQUE_CELLS,    /* the same cell of a row: several records make one */
    UNIQUE_VERSIONS, /* the same row key and timestamp, which all cells of a record have */
    UNIQUE_LAST,     /* the same, of which the later one counts */
};

struct transfer_source {
    void *context;
    const char *noun; /* of what it gives: "items" */
    enum transfer_unique unique;
    bool has_whole_rows; /* what a record says of its row is all of it */
    bool is_live; /* it changes while it is read: where that began is made durable before the first
                     record is written, so that what changes is told from there on */

    /* The next record, which lives in the arena and until the next call. `*is_end`: there is none.
     * What fails is the whole transfer. */
    status (*next)(void *context, struct arena *arena, struct transfer_record *out, bool *is_end);

    /* Where reading goes on: behind the record that came last. A new reference; NULL: no memory. */
    json_t *(*save)(void *context);
    /* DATA_LOSS if that is no position of this source. */
    status (*restore)(void *context, const json_t *position);

    /* Whether more may come behind the end, so that the checkpoint stays. NULL: no. */
    bool (*goes_on)(void *context);

    /* Back to the beginning, for a verification of everything. NULL: there is no way back. */
    status (*rewind)(void *context);

    void (*describe)(void *context, uint64_t tag, struct transfer_place *out);
    void (*progress)(void *context, struct transfer_progress *out);
};

#endif
