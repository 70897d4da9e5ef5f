/* GenerateInitialChangeStreamPartitions: the partitions that a feed begins with. */
#ifndef TRESTLE_CLIENT_CHANGE_LISTING_H
#define TRESTLE_CLIENT_CHANGE_LISTING_H

#include "base/vector.h"
#include "client/change_calls.h"
#include "client/change_partitions.h"
#include "client/change_retry.h"

struct change_listing {
    struct change_call *call; /* NULL: none is under way */
    struct change_retry retry;
    struct arena *arena;  /* of what has come; NULL: nothing has */
    struct vector ranges; /* likewise: of struct listed_range */
};

void change_listing_free(struct change_listing *listing);

/* Makes the call if it is due. `options` are the call's, but for `request` and `path`. */
status change_listing_begin(struct change_listing *listing,
                            const struct change_call_options *options, const char *table,
                            const char *app_profile, int64_t now_us);

/* Takes what has come. `*is_whole`: `partitions`, of which there were none, are all. Fails as a
 * feed does: what may pass is asked again when it is due. */
status change_listing_take(struct change_listing *listing, struct change_partitions *partitions,
                           int64_t now_us, bool *is_whole);

#endif
