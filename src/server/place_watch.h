/* How much space is left in the directories that backups and the archive are put into: the metric
 * place_free_bytes, asked for every ten seconds.
 *
 * A share whose server is gone does not answer, and the asking thread waits. So a thread of its own
 * asks; what it has not learnt for a minute is not told any more, and a stop does not wait for it:
 * then the thread ends by itself, whenever it has its answer. A directory that is not there is not
 * told of, and neither are buckets. */
#ifndef TRESTLE_SERVER_PLACE_WATCH_H
#define TRESTLE_SERVER_PLACE_WATCH_H

#include "base/clock.h"
#include "base/metrics.h"

struct place_watch;

struct place_watch_options {
    /* Each a directory, a list of places with commas between, or NULL; copied. */
    const char *places[3];
    struct metrics *metrics; /* may be NULL */
    struct clock *clock;
    status (*ask)(const char *path, uint64_t *free_bytes); /* disk_free_bytes; or a test's */
};

status place_watch_start(const struct place_watch_options *options, struct place_watch **out);
void place_watch_stop(struct place_watch *watch); /* NULL is fine */

/* Sets the metric as it was last learnt. Before metrics are looked at; any thread, does not wait.
 */
void place_watch_look(struct place_watch *watch);

#endif
