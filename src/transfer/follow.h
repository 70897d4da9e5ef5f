/* Following: what changes in a table of a Bigtable endpoint is made in its copy, until this is told
 * to stop, or has caught up.
 *
 *     change_feed ─► replay ─► mutations ─► change_writer ─► target
 *                       └────► marks ─► states of the source ─┘
 *
 *     settle, each second:  the feed's place is noted ─► marks are resolved ─► all is written
 *                           ─► the place is stored
 *
 * Invariants
 *  1. The place is taken and stored before the first row is copied, and rows are copied before
 *     changes are replayed. Why that comes out right, replay.h says.
 *  2. What is stored is never ahead of what is written: a follower that is killed does the changes
 *     behind it again, which changes nothing.
 *
 * It waits for a minute for a server that is away. One thread. */
#ifndef TRESTLE_TRANSFER_FOLLOW_H
#define TRESTLE_TRANSFER_FOLLOW_H

#include "client/client_session.h"
#include "google/bigtable/admin/v2/table.pb-c.h"
#include "transfer/follow_position.h"

struct follow_options {
    struct client_session *source;
    const char *source_table;            /* its full name */
    const BtAdmin__Table *source_schema; /* families */
    struct client_session *target;       /* on the same loop */
    const char *target_table;
    const BtAdmin__Table *target_schema;
    bytes start; /* the first row key that is wanted */
    bytes end;   /* the key behind the last; empty: there is none */
    struct position_store *positions;
    bool with_collections; /* as replay.h has it */
    bool until_caught_up;
    bool is_quiet;
};

struct follow_result {
    uint64_t changes;     /* that were replayed, by former runs, too */
    int64_t watermark_us; /* what was committed up to then is written */
    bool has_caught_up;   /* or it was stopped */
};

/* Takes the place in the stream from which changes are to be replayed later: now, by the source. It
 * does not depend on a clock. Appends it. */
status follow_take_place(struct client_session *source, const char *table, struct buffer *out);

/* Goes on from the position, and moves it, until SIGINT or SIGTERM, which is no failure; or, if it
 * is to catch up, until all is written that was committed before this was called. That is: until
 * the watermark has passed the time of the call by this machine's clock, plus as much as the
 * source's was ever seen to be ahead of that, plus FOLLOW_MARGIN_US. */
enum { FOLLOW_MARGIN_US = 2 * 1000 * 1000 };
status follow_run(const struct follow_options *options, struct follow_position *position,
                  struct follow_result *out);

#endif
