/* What SQL is given to work on: tables, views, and types of schema bundles, all through these
 * interfaces, so that sql/ knows nothing of clusters, and tests can bring tables of their own. */
#ifndef TRESTLE_SQL_CATALOG_H
#define TRESTLE_SQL_CATALOG_H

#include "row/cell.h"
#include "sql/value.h"

/* --- what there is --- */

enum sql_column_kind {
    SQL_COLUMN_KEY,      /* `_key`: BYTES */
    SQL_COLUMN_KEY_PART, /* of a structured row key; then `_key` is hidden from `*` */
    SQL_COLUMN_FAMILY,   /* MAP<BYTES, V> */
    /* Of a materialized view: */
    SQL_COLUMN_CELL,      /* a value of a simple type, in one cell: `family`, `qualifier` */
    SQL_COLUMN_TIMESTAMP, /* of the cells: each time that a row has is a row of its own */
};

struct sql_table_column {
    const char *name;
    enum sql_column_kind kind;
    const struct sql_type *type;
    bool is_hidden; /* not in `*` */
    /* Of a materialized view, whose columns are in SELECT order: */
    size_t part;  /* of a KEY_PART: its place in the key schema */
    bytes family; /* of a CELL */
    bytes qualifier;
};

struct sql_relation {
    const char *name; /* as it was asked for */
    /* A table: `_key` and the parts of the key, then families by name. */
    const struct sql_table_column *columns;
    size_t column_count;
    const struct sql_key_schema *key_schema; /* key_schema.h; NULL: none */
    void *table;                             /* the catalog's own */
    /* A logical view: its query; all else is NULL. */
    const char *view_query;
    bool is_materialized; /* a table that is a materialized view: it has no history to ask for */
};

/* Whether each time that a row's cells have is a row of the relation. */
static inline bool sql_relation_has_versions(const struct sql_relation *relation)
{
    for (size_t i = 0; i < relation->column_count; i++)
        if (relation->columns[i].kind == SQL_COLUMN_TIMESTAMP)
            return true;
    return false;
}

/* A type of a schema bundle. */
struct sql_named_type {
    const char *bundle;
    const char *name;                        /* of the message or enum, with its package */
    const char *path;                        /* both, as a query has it: "bundle.pkg.Message" */
    const struct sql_descriptor *descriptor; /* proto_type.h */
};

struct sql_key_range;
struct sql_scan_spec;
struct sql_scan;

struct sql_catalog {
    void *context;
    /* The table or view of that name; NULL if there is none. In the arena. `in_view` says that it
     * is a view that names it, which has been found before, and not the query. */
    status (*find)(void *context, const char *name, bool in_view, struct arena *arena,
                   const struct sql_relation **out);
    /* For "Did you mean …?": calls `visit` with each name there is. */
    void (*names)(void *context, void (*visit)(void *to, const char *name), void *to);
    /* The FileDescriptorSet of a schema bundle of the table; empty if there is none. */
    status (*bundle)(void *context, const struct sql_relation *table, const char *name,
                     struct arena *arena, bytes *out);
    /* Begins to read a table: see below. */
    status (*scan)(void *context, const struct sql_relation *table,
                   const struct sql_scan_spec *spec, struct arena *arena, struct sql_scan **out);
    /* Optional: keys, rising, that divide a range of the table into about equal parts, at most
     * `most`, so one key less, in the arena; none if it is not large. NULL: it never is. */
    status (*divide)(void *context, const struct sql_relation *table,
                     const struct sql_key_range *range, size_t most, struct arena *arena,
                     bytes **borders, size_t *count);
};

/* --- reading it --- */

/* Keys from `from` on, up to `to` (exclusive; empty: no bound). */
struct sql_key_range {
    bytes from;
    bytes to;
};

/* Whether it is one key. */
static inline bool sql_key_range_is_point(const struct sql_key_range *range)
{
    return range->to.size == range->from.size + 1 && range->to.data[range->from.size] == 0 &&
           bytes_start_with(range->to, range->from);
}

/* What is needed of a family. Those that are not named are not needed. */
struct sql_family_need {
    bytes family;
    bool needs_all;
    const bytes *qualifiers; /* sorted, if not all */
    size_t qualifier_count;
};

struct sql_scan_spec {
    const struct sql_key_range *ranges; /* sorted, without overlap, none empty */
    size_t range_count;
    bool is_reversed;
    const struct sql_family_need *families; /* by name */
    size_t family_count;
    /* Cells from `from_us` on, before `to_us`, at most so many of each column, newest first. */
    int64_t from_us;
    int64_t to_us;            /* INT64_MAX: no bound */
    int32_t cells_per_column; /* INT32_MAX: all */
    /* A row counts only if it has a cell of these times, of whatever family. */
    uint64_t row_limit; /* no more rows than these will be asked for; 0: unknown */
    bool keeps_row;     /* a row is valid until the next call of `next`, a `rest` between or not */
};

struct sql_scan_row {
    bytes key;
    const struct cell_list *cells; /* what is needed, or more; by family name, qualifier, newest
                                      first */
};

/* Rows in the order of keys (or reversed). What it gives is valid until the next call. */
struct sql_scan {
    status (*next)(struct sql_scan *scan, struct sql_scan_row *row, bool *found);
    /* Optional: holds nothing of the store until the next row is asked for, which may be long. */
    void (*rest)(struct sql_scan *scan);
    void (*destroy)(struct sql_scan *scan);
    /* Set by `next`: nothing was found because the caller must not wait for the disk, as the
     * catalog knows. It may ask again where it may. */
    bool must_wait;
};

#endif
