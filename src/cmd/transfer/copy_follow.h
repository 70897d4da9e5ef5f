/* `trestle copy --follow`: what is beside the copying of the rows. */
#ifndef TRESTLE_CMD_TRANSFER_COPY_FOLLOW_H
#define TRESTLE_CMD_TRANSFER_COPY_FOLLOW_H

#include "client/target_options.h"
#include "transfer/follow.h"
#include "transfer/job.h"

struct copy_follow_options {
    struct client_session *source;
    const char *table_id;
    const char *table; /* its full name */
    const struct target_options *to;
    const char *to_table;
    const char *identity; /* what is followed into what, in words */
    const char *state;    /* a file for the position; NULL: where it is kept by default */
    bytes start;          /* rows, as follow.h has them */
    bytes end;
    bool changes_only; /* a new one copies no rows: the target has them */
    bool with_gc;
    bool until_caught_up;
    int64_t stream_retention_us; /* switches the stream on if it is off; 0: does not */
    const struct transfer_options *transfer;
};

struct copy_follow;

/* Finds out where it is to go on; a new one takes its place in the stream, and stores it.
 * `*must_copy`: the rows are to be copied before it is run. What the options point to outlives it.
 * FAILED_PRECONDITION: the source has no stream; or the target has rows, and nothing is known of
 * where they came from. */
status copy_follow_begin(const struct copy_follow_options *options, struct copy_follow **out,
                         bool *must_copy);
void copy_follow_destroy(struct copy_follow *follow); /* NULL is fine */

/* When the rows are copied. Says on stdout how it ended. */
status copy_follow_run(struct copy_follow *follow);

#endif
