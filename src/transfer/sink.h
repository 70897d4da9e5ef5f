/* Where a transfer's records go: the rows of a table, a file. One thread. */
#ifndef TRESTLE_TRANSFER_SINK_H
#define TRESTLE_TRANSFER_SINK_H

#include "transfer/source.h"

struct transfer_sink {
    void *context;
    bool claims_place; /* a run that begins again would take what it began for another's: so the
                          beginning is noted before the first record */

    /* Copies what it needs of the record, which has not failed. */
    status (*add)(void *context, const struct transfer_record *record);

    /* Flushes: when it returns all that was added is durable, or has been refused. */
    status (*flush)(void *context);

    /* What it has to know to go on behind its last flush. A new reference; NULL: no memory. Both
     * are NULL if what is written twice is there once. */
    json_t *(*save)(void *context);
    status (*restore)(void *context, const json_t *position);

    /* Behind the last record and its flush: footers and the like. NULL: there is nothing to do. */
    status (*finish)(void *context);
};

/* For sinks that find out later: the record with this tag and text will not be written. */
struct transfer_refusal {
    void *context;
    void (*refused)(void *context, uint64_t tag, bytes text, status why); /* the caller's */
};

#endif
