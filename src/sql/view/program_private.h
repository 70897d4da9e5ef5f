/* What a view's program is made of: for the files of this room. */
#ifndef TRESTLE_SQL_VIEW_PROGRAM_PRIVATE_H
#define TRESTLE_SQL_VIEW_PROGRAM_PRIVATE_H

#include "sql/view/aggregate.h"
#include "sql/view/program.h"
#include "sql/view/row.h"

enum view_key_kind {
    VIEW_KEY_PART,      /* part `part` of the structured row key */
    VIEW_KEY_ALONE,     /* the row key as it is */
    VIEW_KEY_TIMESTAMP, /* no part of the row key: the version */
};

/* A column of GROUP BY or ORDER BY. */
struct view_key {
    enum view_key_kind kind;
    const struct sql_type *type;
    size_t column; /* of the pieces */
    size_t part;
};

/* Which column of the pieces an aggregate's argument is: VIEW_NO_COLUMN of COUNT(*). */
#define VIEW_NO_COLUMN SIZE_MAX

struct view_program {
    enum view_form form;
    const struct sql_plan *plan; /* whole */
    /* Row by row; its rows are the *pieces* of a source row: of groups keys and then arguments, of
     * an index the result's columns. */
    struct sql_plan pieces;
    struct view_key *keys;
    size_t key_count;
    const struct sql_key_schema *key_schema; /* of the parts; NULL: there are none */
    size_t part_count;
    bool has_timestamp;
    size_t timestamp_column; /* of the pieces, if the query gives it */
    struct view_aggregate *aggregates;
    size_t aggregate_count;
    /* Projections over keys and aggregates, the first to be done first. */
    const struct sql_operator **above;
    size_t above_count;
    struct view_column *columns;
    size_t *places; /* of each column: its place in the result's rows, hidden columns counted */
    size_t column_count;
    /* Columns that have cells, by family and qualifier. */
    size_t *cells;
    size_t cell_count;
    const char **families;
    size_t family_count;
    uint64_t fingerprint;
};

/* Of a program that has all but `columns` and what follows: makes that. */
status view_columns_make(struct view_program *program, const struct sql_operator *cut,
                         struct arena *arena);

/* The id of a piece's view row: appends it. `*why` not NULL: the piece has none, since its key or
 * its timestamp cannot be one. */
status view_id_append(const struct view_program *program, const struct sql_value *piece,
                      struct buffer *out, const char **why);

/* The values of a place's key: as many as the program has keys. DATA_LOSS. */
status view_key_values(const struct view_program *program, const struct view_place *place,
                       struct arena *arena, struct sql_value *out);

#endif
