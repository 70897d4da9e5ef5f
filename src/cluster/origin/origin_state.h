/* What a shard remembers of its origin feed (origin_feed.h). */
#ifndef TRESTLE_CLUSTER_ORIGIN_ORIGIN_STATE_H
#define TRESTLE_CLUSTER_ORIGIN_ORIGIN_STATE_H

#include "stream/feed.h"

#include <stdatomic.h>

/* All zeroes is a feed that is off. */
struct origin_feed {
    struct stream_feed feed; /* its id: 0 until it has begun for the first time since the start */
    uint64_t begun;          /* a sequence before all that is in it; as the id */
    atomic_bool is_on;
    _Atomic(uint64_t) keep; /* origin_feed_keep */
};

#endif
