/* What the advisor looks at of a Datastore database, beside the rows of its table: advice.h for
 * entities. Pure, as all that is found follows from what was observed. */
#ifndef TRESTLE_ADVICE_DATABASE_H
#define TRESTLE_ADVICE_DATABASE_H

#include "advice/advice.h"

/* An indexed value of a sampled entity. */
struct advice_point {
    int64_t written_us; /* the entity's last commit */
    bytes value;        /* in the order of the index */
    bool is_time;
};

/* The values of one property of a kind. */
struct advice_series {
    const char *kind;
    const char *property;
    struct advice_point *points; /* may be put in another order */
    size_t count;
};

/* An entity group: a root entity and all below it. */
struct advice_group {
    const char *root;    /* kind and id or name */
    int64_t *commits_us; /* of the last hour that were come upon; may be put in another order */
    size_t count;
};

/* The beginning of an index. */
struct advice_index {
    const char *name; /* "of kind K" */
    size_t live;      /* rows of entities that are there */
    size_t dead;      /* rows of those that were there within an hour */
};

/* What root entities of a kind, and those below them, were asked for in a minute. */
struct advice_minute {
    int64_t minute; /* since 1970 */
    double requests;
};

struct advice_kind {
    const char *name;
    const struct advice_minute *minutes; /* rising; a minute without requests may be missing */
    size_t count;
};

struct advice_database {
    struct advice_series *series;
    size_t series_count;
    struct advice_group *groups;
    size_t group_count;
    const struct advice_index *indexes;
    size_t index_count;
    const struct advice_kind *kinds;
    size_t kind_count;
};

/* What it finds is the arena's, or points into what was observed. Fails without memory only. */
status advice_find_in_database(const struct advice_observations *seen,
                               const struct advice_database *database, struct arena *arena,
                               struct advice *out);

#endif
