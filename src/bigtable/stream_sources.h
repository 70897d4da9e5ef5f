/* Which cluster took a change first: readers of change streams are told of each. Versions name it
 * by its number (tablet/version.h), and readers by the id of the instance's cluster at its
 * location. */
#ifndef TRESTLE_BIGTABLE_STREAM_SOURCES_H
#define TRESTLE_BIGTABLE_STREAM_SOURCES_H

#include "bigtable/services.h"
#include "tablet/version.h"

struct stream_sources {
    bytes own;                  /* the cluster that is read, and any that is not known */
    bytes of[VERSION_CLUSTERS]; /* by number; empty: `own` */
};

/* Those of the table's instance as they are now, in the arena, but for `own`. */
status stream_sources_find(const struct bigtable *bigtable, const char *table, struct arena *arena,
                           struct stream_sources *out);

static inline bytes stream_source_of(const struct stream_sources *sources, uint64_t version)
{
    bytes id = sources->of[version % VERSION_STEP];
    return id.size > 0 ? id : sources->own;
}

#endif
