/* Where a follower stands: in the source's stream, and whether the rows are copied yet. It is kept
 * in a file, or in the target, as a row of the table POSITIONS_TABLE that is made there.
 *
 * Invariant: what is stored is behind what is written to the target, or equal to it; never ahead.
 * So it is stored when all of that is acknowledged. */
#ifndef TRESTLE_TRANSFER_FOLLOW_POSITION_H
#define TRESTLE_TRANSFER_FOLLOW_POSITION_H

#include "client/client_session.h"

#define POSITIONS_TABLE "trestle-follow"

struct follow_position {
    bool is_copying;    /* the rows are not copied yet, or not all */
    uint64_t changes;   /* that were replayed */
    struct buffer feed; /* of change_feed_save; owned */
};

void follow_position_free(struct follow_position *position); /* all zeroes is fine */

struct position_store;

/* All strings must outlive the store. */
struct position_store_options {
    const char *file;              /* NULL: in the target */
    struct client_session *target; /* outlives the store */
    const char *table_id;          /* of the table that is written: which row of POSITIONS_TABLE */
    const char *identity;          /* what is followed, in words */
};

/* Makes the table in the target, if that is the place and lacks it. */
status position_store_create(const struct position_store_options *options,
                             struct position_store **out);
void position_store_destroy(struct position_store *store); /* NULL is fine */

/* The place, for people: "the file orders.follow". */
void position_store_describe(const struct position_store *store, struct buffer *out);

/* `*found`: there is one; it is freed by the caller then. FAILED_PRECONDITION: of another identity;
 * DATA_LOSS: it cannot be read. */
status position_store_read(struct position_store *store, struct follow_position *out, bool *found);

/* Durable when it returns. Fails if the target has not answered for a minute. */
status position_store_write(struct position_store *store, const struct follow_position *position);

#endif
