/* The file that --token-file names: where the feed stands, and what was left out on the way there.
 *
 * Its first line is change_feed_save's, or change_feed_save_start's; its second says which changes
 * were given at all. Who goes on with other filters would lack what was left out before, and not
 * know it: that is refused. While it is in use FILE.lock is locked beside it, since the file itself
 * is replaced each time. */
#ifndef TRESTLE_CMD_TAIL_TAIL_PLACE_H
#define TRESTLE_CMD_TAIL_TAIL_PLACE_H

#include "client/change_feed.h"
#include "cmd/tail/tail_options.h"
#include "os/file.h"

/* All zeroes, there is no file. */
struct tail_place {
    const char *file; /* the options' */
    struct file_lock *lock;
    struct buffer filters; /* the second line */
};

/* `state`: what a feed goes on with; empty: it begins. INVALID_ARGUMENT: the file was kept with
 * other filters, or is none; FAILED_PRECONDITION: another process has it. tail_place_close in any
 * case. */
status tail_place_open(const struct tail_options *options, struct tail_place *place,
                       struct buffer *state);
void tail_place_close(struct tail_place *place);

/* Replaces the file, durably: by where the feed stands, or by where it began. Only once
 * change_feed_start_us is known. Does nothing without a file. */
status tail_place_keep(const struct tail_place *place, const struct change_feed *feed);
status tail_place_keep_start(const struct tail_place *place, const struct change_feed *feed);

#endif
