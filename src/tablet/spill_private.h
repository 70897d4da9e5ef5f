/* What the two halves of spilling share: spill.c, spill_collect.c. */
#ifndef TRESTLE_TABLET_SPILL_PRIVATE_H
#define TRESTLE_TABLET_SPILL_PRIVATE_H

#include "tablet/deferred_batch.h"

/* Over the row's spilled cells; `is_long` as in store_cursor_options. */
status spill_cursor_create(struct keyspace *keyspace, bytes row_key, bool is_long,
                           struct store_cursor **out);

/* Spilled cells that go and that follow one another. A short run is deleted key by key, a long one
 * by one range delete: each range delete costs all later reads nearby a little. All zeroes but
 * `out` is empty. */
struct spill_run {
    struct deferred_batch *out;
    struct deferred_batch few; /* deletes of its keys, while they are few */
    struct buffer first;
    struct buffer last;
    size_t count;
};

void spill_run_extend(struct spill_run *run, bytes key);
bool spill_run_is_long(const struct spill_run *run);

/* Deletes the run, up to `end` if that is given, which nothing else lies before. */
status spill_run_end(struct spill_run *run, bytes end);
void spill_run_free(struct spill_run *run);

#endif
