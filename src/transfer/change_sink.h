/* Where changes go, as lines of JSON. */
#ifndef TRESTLE_TRANSFER_CHANGE_SINK_H
#define TRESTLE_TRANSFER_CHANGE_SINK_H

#include "client/change_assembly.h"

/* A sink keeps what was added when `flush` has returned well, whatever happens then: so where the
 * feed stood before that may be kept, and each change is in the sink at least once. */
struct change_sink {
    void *object;
    /* Takes one change; the line has its end, and lives until the call returns. */
    status (*add)(void *object, const struct feed_change *change, bytes line);
    /* CANCELLED: nobody wants more. */
    status (*flush)(void *object);
    status (*tend)(void *object);  /* a few times a second while nothing comes; NULL: no need */
    void (*destroy)(void *object); /* what was not flushed is lost */
};

static inline void change_sink_destroy(const struct change_sink *sink)
{
    if (sink->destroy != NULL)
        sink->destroy(sink->object);
}

#endif
