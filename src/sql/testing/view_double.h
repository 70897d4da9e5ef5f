/* A materialized view in memory: a source, the view's program, its records and its rows, kept up
 * row by row. For tests of sql/view/. */
#ifndef TRESTLE_SQL_TESTING_VIEW_DOUBLE_H
#define TRESTLE_SQL_TESTING_VIEW_DOUBLE_H

#include "sql/testing/cell_table.h"
#include "sql/view/row.h"

/* Records by key. */
struct record {
    bytes key;
    bytes value;
};

struct records {
    struct record *items;
    size_t count;
    size_t capacity;
};

struct view_double {
    struct arena *arena;      /* of the plan and the program */
    struct cell_table source; /* families "f", "g" (BYTES), "n" (INT64 sums) */
    struct cell_table view;
    struct sql_session session;
    struct sql_catalog catalog; /* `t`: the source; `v`: the view */
    const struct sql_relation *relation;
    struct sql_plan plan;
    struct view_program *program;
    struct view_runner *runner;
    struct records contributions; /* by source key */
    struct records groups;        /* by id */
    struct records entries;       /* by the group's id, escaped, and the entry */
    struct records excluded;      /* by source key: why */
    uint64_t finds;               /* how often entries were looked for */
};

/* INVALID_ARGUMENT for a query that is none of a view. Ended by view_double_free in any case. */
status view_double_init(struct view_double *view, const char *query);
void view_double_free(struct view_double *view);

/* Sets a cell of the source; deletes a row of it. The view follows with view_double_follow. */
void view_double_put(struct view_double *view, bytes key, const char *family, const char *qualifier,
                     int64_t timestamp_us, bytes value);
void view_double_put_number(struct view_double *view, bytes key, const char *qualifier,
                            int64_t value); /* in "n" */

/* Runs the program over these source rows, as they are now, and applies what comes of it. */
status view_double_follow(struct view_double *view, const bytes *keys, size_t count);

/* The row of the view as text: `family:qualifier@timestamp=value` in hex, blanks between; "" if
 * there is none. */
void view_double_show(const struct view_double *view, bytes key, struct buffer *out);

/* A query over `t` and `v`: rows as literals, a line each, sorted; or the failure. */
void view_double_query(struct view_double *view, const char *query, struct buffer *out);
/* The same, in the order in which they come. */
void view_double_list(struct view_double *view, const char *query, struct buffer *out);
void view_double_explain(struct view_double *view, const char *query, struct buffer *out);

/* --- records --- */

struct record *records_find(const struct records *records, bytes key); /* or NULL */
size_t records_place(const struct records *records, bytes key);        /* the first not below */
void records_put(struct records *records, bytes key, bytes value);     /* copied */
void records_remove(struct records *records, bytes key);
void records_free(struct records *records);

#endif
