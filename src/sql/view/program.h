/* The program of a materialized view: what its query comes to for one row of its source.
 *
 * A view is kept up row by row. For each source row the program gives a *contribution*
 * (contribution.h): which rows of an index it makes, or what it gives to which *groups*. Groups
 * (group.h) add contributions and take them back, exactly; of a group, or of a piece of an index,
 * a *view row* (row.h) is made. All of it is pure: rows come from the caller, records go to him.
 *
 *     source row ──run.h──► contribution ──┬─ group.h: fold ──► group's record, entries
 *                                          │                        │ row.h: view_group_row
 *                                          └─ row.h: view_index_row ┴──► view row: key, cells
 *
 * The plan is cut at its AGGREGATE or its SORT. What is below works row by row (scan, filter,
 * projection, UNNEST, UNPACK) and is run as a plan of its own; what is above are projections over
 * keys and aggregates, which are evaluated when a group's row is made.
 *
 * A program is immutable; any number of threads may use one. */
#ifndef TRESTLE_SQL_VIEW_PROGRAM_H
#define TRESTLE_SQL_VIEW_PROGRAM_H

#include "sql/plan/plan.h"

struct view_program;

enum view_form {
    VIEW_GROUPS, /* GROUP BY: rows of groups */
    VIEW_INDEX,  /* ORDER BY: rows of pieces of source rows */
};

enum view_column_kind {
    VIEW_COLUMN_KEY,       /* the lone `_key`: the view's row key as it is */
    VIEW_COLUMN_KEY_PART,  /* a part of the structured row key */
    VIEW_COLUMN_TIMESTAMP, /* `_timestamp`: that of the row's cells */
    VIEW_COLUMN_CELL,      /* a cell */
    VIEW_COLUMN_FAMILY,    /* a family that is passed on: a cell for each key of the map */
};

/* A column of the query's result, in SELECT order. */
struct view_column {
    const char *name; /* as written */
    const struct sql_type *type;
    enum view_column_kind kind;
    size_t part;        /* of a KEY_PART: its place in the row key */
    const char *family; /* of a CELL, a FAMILY, and whatever `is_cell_too` */
    bytes qualifier;
    bool is_cell_too; /* a KEY_PART of an index: a cell as well */
};

/* `plan`: as sql_analyze makes it, not optimised, and passed by sql_check_materialized. It, what it
 * points to, and the arena stay as long as the program. INVALID_ARGUMENT for what cannot be kept:
 * types of keys and outputs, aggregates. */
status view_program_make(const struct sql_plan *plan, struct arena *arena,
                         struct view_program **out);

enum view_form view_program_form(const struct view_program *program);
const struct view_column *view_program_columns(const struct view_program *program, size_t *count);

/* Whether rows are versions: the query gives `_timestamp`, and a view's row has cells of several
 * times, each time a row of the query's result. */
bool view_program_has_timestamp(const struct view_program *program);

/* What a row of the view takes, at most, without its key: bytes, about. SIZE_MAX: no bound is
 * known, there are cells of text or families that are passed on. */
size_t view_program_most_row_bytes(const struct view_program *program);

/* The families of the view's table, sorted, none twice: `default`, those of aliases `fam.qual`,
 * and those that are passed on. */
const char *const *view_program_families(const struct view_program *program, size_t *count);

/* Whether it reads a family of the source. */
bool view_program_reads_family(const struct view_program *program, bytes family);

/* The relation that SQL reads the view by: its columns are the query's, typed. `table` is the
 * catalog's own. All in the arena, which may be another one than the program's. */
status view_program_relation(const struct view_program *program, const char *name, void *table,
                             struct arena *arena, const struct sql_relation **out);

/* Another number: contributions, groups and entries that were recorded mean something else now,
 * and are to be made anew. Covers columns, aggregates and the form of the records, but not the
 * expressions: a view's query never changes. */
uint64_t view_program_fingerprint(const struct view_program *program);

#endif
