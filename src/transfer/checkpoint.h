/* What a transfer notes so that it can go on: a line of JSON in a file of its own, replaced as a
 * whole. */
#ifndef TRESTLE_TRANSFER_CHECKPOINT_H
#define TRESTLE_TRANSFER_CHECKPOINT_H

#include "base/status.h"
#include "transfer/progress.h"

#include <jansson.h>

struct checkpoint {
    struct transfer_counts counts;
    uint64_t rejects_bytes; /* of the file of rejects */
    uint64_t seen_bytes;    /* of the file of what has come */
    bool made_target;       /* it was made for this transfer */
    json_t *source;         /* positions */
    json_t *sink;           /* NULL: it has none */
};

void checkpoint_clear(struct checkpoint *checkpoint); /* its positions; all zeroes is fine */

/* `identity`: what the transfer is of; a checkpoint of another is FAILED_PRECONDITION, one that
 * cannot be read DATA_LOSS. `*found`: there is one. */
status checkpoint_read(const char *path, const char *identity, struct checkpoint *out, bool *found);

/* Durable when it returns. */
status checkpoint_write(const char *path, const char *identity,
                        const struct checkpoint *checkpoint);

#endif
