/* The tables and views of an instance, as SQL sees them (sql/catalog.h): as they are now, or as
 * they were when a query was prepared. */
#ifndef TRESTLE_BIGTABLE_QUERY_CATALOG_H
#define TRESTLE_BIGTABLE_QUERY_CATALOG_H

#include "base/vector.h"
#include "bigtable/services.h"
#include "control/control.h"
#include "sql/plan/plan.h"
#include "trestle/query.pb-c.h"

struct query_catalog {
    struct sql_catalog catalog; /* for sql/: its context is this */
    struct bigtable *bigtable;
    struct arena *arena;                  /* the call's: what has been found stays */
    const char *instance;                 /* full name */
    const Query__PreparedQuery *prepared; /* NULL: as they are now */
    struct vector found;                  /* of struct found_relation */
    struct table *table;                  /* held: the one that is read; NULL: none yet */
    struct vector views; /* of struct resource *, held: materialized ones that were found */
    status unreadable;   /* why the rows of the one that is read must not be (yet); OK: they may */
    const struct grpc_call *call; /* whose end ends a scan; NULL: nothing is scanned */
    const char *defined;          /* id of the view whose query this is; NULL: none's */
    struct budget *budget;        /* of values that are read; NULL: not counted */
    bool must_not_wait;           /* for the disk, at present: the query runs on a loop */
    bool only_tables;             /* views are not there */
    bool distrusts_views; /* a prepared one is not what it says: what it reads is the caller's */
    bool has_asked_for_bundles; /* of types, as they are now */
    struct vector demands;      /* of struct query_demand: what the caller has been asked for */
};

/* A relation that a query asked for, with what a prepared query keeps of it. */
struct found_relation {
    struct sql_relation *relation;
    bytes row_key_schema;
    const char *materialized_query;  /* of a materialized view; NULL: it is none */
    const Query__Relation *prepared; /* what a prepared query says of it; NULL: it is none's */
    bool in_view;                    /* a view named it */
};

void query_catalog_init(struct query_catalog *catalog, struct bigtable *bigtable,
                        const struct grpc_call *call, struct arena *arena, const char *instance);
void query_catalog_free(struct query_catalog *catalog); /* gives back what it holds */

/* Asks what a prepared query does not say of what it names, as the search for it did while it was
 * planned: holds the table, asks whether the caller may read it, whether a view has still its
 * query. For none that is a materialized view. */
status query_catalog_again(struct query_catalog *catalog, const struct found_relation *found,
                           size_t count);

/* Gives the table back, for another one: a query reads one, so that is an error in any case. */
void query_catalog_let_go(struct query_catalog *catalog);

/* Whether the families that a scan reads are there still. FAILED_PRECONDITION: the prepared query
 * has expired. */
status query_catalog_check(const struct query_catalog *catalog, const struct sql_plan *plan);

/* The catalog's scan(): of the table that it holds (query_scan.c). */
status query_scan_open(void *context, const struct sql_relation *relation,
                       const struct sql_scan_spec *spec, struct arena *arena,
                       struct sql_scan **out);

/* The catalog's divide(), of the same (query_scan.c). */
status query_scan_divide(void *context, const struct sql_relation *relation,
                         const struct sql_key_range *range, size_t most, struct arena *arena,
                         bytes **borders, size_t *count);

/* FAILED_PRECONDITION, with the detail on which clients prepare the query again. */
status query_expired(void);

#endif
