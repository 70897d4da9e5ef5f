/* Observations of a Datastore database, beside the rows of its table: advice.h for entities. Pure,
 * as all that is found follows from what was observed. */
#ifndef TRESTLE_ADVISOR_DATABASE_H
#define TRESTLE_ADVISOR_DATABASE_H

#include "advisor/advice.h"
#include "advisor/personal.h"

/* An indexed value of a sampled entity. */
struct advice_point {
    int64_t written_us; /* the entity's last commit */
    bytes value;        /* in the order of the index */
    uint8_t type;       /* the gatherer's, which writes the value as words by it */
    bool is_time;
    bool is_number; /* an integer: */
    int64_t number;
};

/* The values of one property of a kind. */
struct advice_series {
    const char *kind;
    const char *where; /* " (namespace x)"; NULL: in none */
    const char *property;
    const struct advice_point *points;
    size_t count;
    bytes last; /* the greatest of them, in words: "Event.at = 5" */
};

/* Ids, or names, of the entities of a kind that have no parent, in their order. */
struct advice_roots {
    const char *kind;
    const char *where;             /* as of a series */
    const struct advice_row *keys; /* as texts; their cell's time is that of the entity's making */
    size_t count;
    const bytes *words;  /* for each, as a person sees it: Order "a" */
    const bytes *better; /* for each of ids, in the same words; NULL: these are names */
};

/* A sampled entity. */
struct advice_entity {
    bytes words; /* Order 5 / Item "a" */
    uint64_t size;
    size_t index_rows;
    const char *widest; /* the composite index with the most of them; NULL: none has */
    size_t widest_rows;
    const char *odd; /* what is odd of its names: "the kind a/b"; NULL: nothing */
};

/* An entity group: a root entity and all below it. */
struct advice_group {
    bytes root;          /* in words */
    int64_t *commits_us; /* of the last hour that were come upon; may be put in another order */
    size_t count;
};

/* The beginning of an index. */
struct advice_index {
    const char *name; /* "of the kind K" */
    size_t live;      /* rows of entities that are there */
    size_t dead;      /* rows of those that were there within an hour */
    bytes first_dead; /* in words */
    bytes last_dead;
};

/* The requests for root entities of a kind, and for those below them. */
struct advice_kind {
    const char *name;
    const char *where;                   /* as of a series */
    const struct advice_minute *minutes; /* as a tablet's */
    size_t count;
};

/* The composite indexes of a kind. */
struct advice_composites {
    const char *kind;
    size_t count;
};

/* Counts of what clients did to the entities of a kind: estimates. */
struct advice_kind_usage {
    const char *kind;
    uint64_t commits;
    uint64_t aborted;        /* commits that lost against others */
    uint64_t single_lookups; /* of one entity, outside of a transaction, that were followed */
    uint64_t lookups_in_loops;
    uint64_t single_writes; /* the same */
    uint64_t writes_in_loops;
    uint64_t queries;
    uint64_t offsets; /* queries that skipped results, how many, and how many they gave */
    uint64_t skipped;
    uint64_t offset_results;
    uint64_t scans; /* of the whole kind, whole entities, from the first to the last */
    uint64_t scanned;
    uint64_t left; /* transactions that have expired, of the kind that they read first */
    uint64_t open; /* … that have not ended, and were left alone for LEFT_US */
};

/* An entity, or a group. */
struct advice_counted_key {
    bytes words;    /* empty: there is none */
    uint64_t calls; /* at least so many */
};

struct advice_database_usage {
    int64_t span_us; /* that was counted; 0: nothing was */
    const struct advice_kind_usage *kinds;
    size_t kind_count;
    uint64_t lookups;
    uint64_t begun;                    /* transactions that may write */
    struct advice_counted_key entity;  /* that most lookups had */
    struct advice_counted_key group;   /* with the most commits within a minute */
    struct advice_counted_key aborted; /* group, with the most aborted commits */
};

/* An index of a kind's property, or a composite one, that sampled entities have rows in. */
struct advice_index_use {
    const char *kind;
    const char *name; /* "city", or "(city, name)" */
    bool is_composite;
    int64_t used_us; /* when it answered a query last, since 1970; 0: never, since one looks */
    double rows;     /* of a sampled entity of the kind, on average */
    double bytes;    /* of their keys */
    uint64_t stored; /* bytes that the index takes in all, about; 0: not known */
};

struct advice_database {
    const struct advice_series *series;
    size_t series_count;
    const struct advice_roots *roots;
    size_t roots_count;
    const struct advice_entity *entities;
    size_t entity_count;
    struct advice_group *groups;
    size_t group_count;
    const struct advice_index *indexes;
    size_t index_count;
    const struct advice_kind *kinds;
    size_t kind_count;
    const struct advice_composites *composites;
    size_t composites_count;
    struct personal_counts properties; /* names, of all entities that were sampled */
    struct advice_database_usage usage;
    const struct advice_index_use *index_uses; /* without such properties as need their index */
    size_t index_use_count;
    int64_t uses_since_us; /* since when uses are known; 0: they are not */
};

/* Of what was observed beside the database the hotspots count, whose keys are in words. Findings
 * are the arena's, or point into what was observed. Fails without memory only. */
status advice_find_in_database(const struct advice_observations *seen,
                               const struct advice_database *database, struct arena *arena,
                               struct advice *out);

#endif
