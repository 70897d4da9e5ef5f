/* Queries over tables in memory: for tests and fuzzers. */
#ifndef TRESTLE_SQL_TESTING_TESTING_H
#define TRESTLE_SQL_TESTING_TESTING_H

#include "sql/catalog.h"

/* A cell of the table `t`: families "f" and "g" (BYTES) and "n" (INT64 sums). Rows and cells are
 * given in the order of keys, families, qualifiers, newest first. */
struct test_cell {
    const char *key;
    const char *family;
    const char *qualifier;
    int64_t timestamp_us;
    const char *value; /* of `n`: decimal */
};

struct test_database {
    const struct test_cell *cells;
    size_t count;
    const char *view;  /* the query of the logical view `v`; NULL: there is none */
    bytes key_schema;  /* of `t`: a serialised Type.Struct; empty: none */
    bytes descriptors; /* of the bundle `b` */
    const struct sql_view_parameter *view_parameters; /* of `v` */
    size_t view_parameter_count;
    struct buffer *ranges; /* NULL, or what scans were asked for: [from, to), keys as literals */
    const struct sql_watch *watch; /* of each query; NULL: none */
    bool is_not_optimized;         /* plans are run as they were analysed */
    bool waits;                    /* each row of `t` must be waited for, once (must_wait) */
    size_t parts; /* that a range is divided into, as far as it has rows; 0: none */
    const struct sql_helpers *helpers; /* of each query; NULL: none */
    size_t memory_limit;               /* of each query; 0: much */
};

/* Parses, analyses, plans and executes; appends rows as literals, one a line; or the failure, as
 * "INVALID_ARGUMENT: …", whose code it returns. `parameters` may be NULL. */
struct test_parameter {
    const char *name;
    const struct sql_type *type;
    struct sql_value value;
};
enum status_code test_query(const struct test_database *database, const char *query,
                            const struct test_parameter *parameters, size_t count,
                            struct buffer *out);

/* Names and types of the result, and what EXPLAIN says, instead of rows. */
void test_columns(const struct test_database *database, const char *query, struct buffer *out);
void test_explain(const struct test_database *database, const char *query, struct buffer *out);

/* "OK", or why the query is no materialized view's. */
void test_materialized(const struct test_database *database, const char *query, struct buffer *out);

/* Whether the plan is quick: "quick" or "not". */
void test_quick(const struct test_database *database, const char *query,
                const struct test_parameter *parameters, size_t count, struct buffer *out);

/* Whether the query allows views that are not populated: "allowed" or "not". */
void test_incomplete(const struct test_database *database, const char *query, struct buffer *out);

#endif
