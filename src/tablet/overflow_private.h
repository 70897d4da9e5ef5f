/* What the two halves of overflow handling share: overflow.c, overflow_collect.c. */
#ifndef TRESTLE_TABLET_OVERFLOW_PRIVATE_H
#define TRESTLE_TABLET_OVERFLOW_PRIVATE_H

#include "tablet/deferred_batch.h"

/* Over the row's overflow cells; `is_long` as in store_cursor_options. */
status overflow_cursor_create(struct keyspace *keyspace, bytes row_key, bool bypasses_cache,
                              struct store_cursor **out);

/* Overflow cells that go and that follow one another. A short run is deleted key by key, a long one
 * by one range delete: each range delete costs all later reads nearby a little. All zeroes but
 * `out` is empty. */
struct overflow_run {
    struct deferred_batch *out;
    struct deferred_batch few; /* deletes of its keys, while they are few */
    struct buffer first;
    struct buffer last;
    size_t count;
};

void overflow_run_extend(struct overflow_run *run, bytes key);
bool overflow_run_is_long(const struct overflow_run *run);

/* Deletes the run, up to `end` if that is given, which nothing else lies before. */
status overflow_run_end(struct overflow_run *run, bytes end);
void overflow_run_free(struct overflow_run *run);

#endif
