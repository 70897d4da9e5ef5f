/* What is seen of a database while the advisor looks at it: private to database_advice.c, which
 * says how, and database_entities.c, which samples entities. All of it is the arena's. */
#ifndef TRESTLE_INTROSPECT_DATABASE_LOOK_H
#define TRESTLE_INTROSPECT_DATABASE_LOOK_H

#include "advisor/database.h"
#include "advisor/frontier.h"
#include "advisor/report.h"
#include "base/vector.h"
#include "bigtable/admin_call.h"
#include "cluster/rows.h"
#include "datastore/index/index_rows.h"

enum { DATABASE_KINDS_MOST = 100 };

/* What is known of a part of the table: rows that begin alike. */
struct part {
    bytes prefix;
    bytes after;
    bytes name_space;  /* of a kind's index */
    const char *where; /* " (namespace x)"; empty: in none */
    const char *kind;
    const char *property; /* NULL: the kind's index, or its root entities */
    struct vector points; /* struct advice_point, of a property */
    struct vector keys;   /* struct root, of root entities */
    struct vector rows;   /* bytes, of root entities and those below them: keys that were seen */
    size_t entity_count;  /* of a kind: sampled */
    size_t row_count;     /* of a property: rows of sampled entities, and bytes of their keys */
    uint64_t row_bytes;
};

/* Rows of sampled entities in a composite index, and bytes of their keys. */
struct composite_rows {
    size_t count;
    uint64_t bytes;
};

/* A root entity that was come upon, or one below it. */
struct root {
    bytes element; /* of the path */
    bool is_name;
    struct advice_row row; /* its id or name as text */
    bytes words;
};

struct group {
    bytes prefix; /* of the root's row key */
    bytes words;
    struct vector commits; /* int64_t */
};

struct looking {
    const struct admin_request *request;
    struct table *table;
    struct arena *arena;
    struct arena *scratch; /* of an entity */
    int64_t now_us;
    int64_t until_us; /* clock_steady_us */
    struct advice_random random;
    struct frontier frontier;
    struct advice_sample sample;
    size_t large_rows;
    struct vector keys;                /* bytes, of rows that were seen */
    struct vector entities;            /* struct advice_entity */
    struct personal_counts properties; /* names */
    struct vector groups;              /* struct group */
    struct vector series;              /* struct part: properties' indexes */
    struct vector kinds;               /* struct part: kinds' indexes */
    struct vector roots;               /* struct part: entities by the kinds of their roots */
    struct vector children;      /* struct part: entities by parent and kind, of some parents */
    struct ds_index *composites; /* all that writers keep */
    size_t composite_count;
    struct composite_rows *composite_rows; /* of each */
    struct vector indexes;                 /* struct advice_index */
    struct vector ramps;                   /* struct advice_kind */
    struct advice_hotspot *hotspots;
    size_t hotspot_count;
};

/* --- rows --- */

struct range_reading {
    bytes from;
    bytes to;
    size_t limit;
    bool is_reversed;
    bool wants_values;
    bool takes_large; /* rows that are larger than is read of others */
    status (*visit)(struct looking *l, void *context, const struct scan_row *row);
    void *context;
};

/* A row that is too large is visited without cells. */
status database_read_range(struct looking *l, const struct range_reading *reading);

/* The row's present cell; NULL: it is no more. */
const struct cell *database_present(const struct cell_list *cells);

/* The part of this prefix, which is made if it is not there; NULL: there are enough. */
status database_find_part(struct looking *l, struct vector *parts, size_t most, bytes prefix,
                          struct part **out);

/* --- entities --- */

/* Samples them all over the database, and where single ones are hot, which the hotspots say. */
status database_read_entities(struct looking *l);

/* "(a, b)" */
status database_composite_words(struct looking *l, const struct ds_index *index, const char **out);

/* --- usage: database_usage.c --- */

/* Reads what clients did, and which indexes answer queries; after the entities. `name` is the
 * database's. */
status database_read_usage(struct looking *l, const char *name, int64_t since_us,
                           struct advice_database *out);

#endif
