/* What the operators of an execution share.
 *
 * Each operator of the plan becomes an iterator, which asks its input for row after row. A row is
 * valid until the next call of the same iterator, and so are the rows below it that it refers to:
 * an iterator asks its input again only when it is asked again itself. An iterator may fail and be
 * asked again, if the failure is a pause: so it keeps in its state what it has of its input.
 * Results of expressions are in the iterator's scratch arena, which it empties before each row;
 * what must stay (sorting, grouping) is copied into the execution's `kept` arena, whose limit is
 * the query's memory. */
#ifndef TRESTLE_SQL_RUN_EXECUTE_PRIVATE_H
#define TRESTLE_SQL_RUN_EXECUTE_PRIVATE_H

#include "base/vector.h"
#include "sql/plan/optimize.h"
#include "sql/run/execute.h"
#include "sql/work.h"

struct iterator {
    struct sql_execution *execution;
    const struct sql_operator *operator_;
    struct iterator *input; /* NULL: none */
    struct sql_frame frame; /* its arena is the scratch */
    struct sql_value *row;  /* as many as the operator has columns: what it makes itself */
    void *state;            /* the kind's, in the execution's `own` arena */
    const struct iterator_kind *kind;
    struct sql_operator_time took; /* if the execution is measured */
    int64_t parts_ns;              /* what it took in parts, of all threads */
};

/* How an operator is carried out. */
struct iterator_kind {
    size_t state_size; /* zeroed */
    /* Optional: before the first row. */
    status (*begin)(struct iterator *iterator);
    /* The next row, or NULL. */
    status (*next)(struct iterator *iterator, const struct sql_value **row);
    /* Optional: see sql_execution_rest. */
    void (*rest)(struct iterator *iterator);
    /* Optional: frees what is in no arena. Also after a `begin` that failed or never was. */
    void (*end)(struct iterator *iterator);
};

struct sql_execution {
    const struct sql_plan *plan;
    const struct sql_catalog *catalog;
    struct sql_session *session;
    const struct sql_value *parameters;
    struct arena *own;   /* iterators and what is prepared */
    struct arena *kept;  /* rows that are kept: the query's memory */
    size_t memory_limit; /* of `kept`, and of what sorts hold aside */
    size_t aside;
    struct sql_call_state *calls;
    struct sql_value *arguments;
    struct iterator *root;
    struct vector iterators; /* of struct iterator *: all, to end them */
    struct sql_execution_counts counts;
    const struct sql_scan_spec *reading; /* what the scan was asked for; NULL: there is none */
    bool is_measured;
    int64_t inner_ns; /* if so: what the input of who runs now took, since he was asked */
    bool has_begun;
    bool is_paused;   /* the last failure was a pause */
    bool is_streamed; /* a row of the result comes of one of the table, in its order */
    bytes place;      /* if so: the key of the last row */
    bytes after_key;  /* where to go on; empty: at the start */
    uint64_t after_rows;
    struct parts *parts; /* parts.h: what it is done in; NULL: by itself */
    /* A part of another execution: only rows of this range are its own. NULL: it is none. */
    const struct sql_key_range *within;
};

/* Makes iterators, and what they run in; not yet begun. `execution` is zeroed but for what it is
 * given. sql_execution_end is due whatever follows. */
status sql_execution_make(struct sql_execution *execution, const struct sql_operator *root,
                          size_t memory_limit);
status sql_execution_begin(struct sql_execution *execution);
void sql_execution_end(struct sql_execution *execution);

/* The same as the kind's `next`, with what it takes (measure.c). */
status measured_next(struct iterator *iterator, const struct sql_value **row);
status measured_group_rows(struct iterator *iterator);
/* Adds what a part's iterators took to those of the whole. */
void add_part_times(struct sql_execution *execution, const struct sql_execution *part);
/* Of each operator, the last first, in the `own` arena; NULL: it is not measured, or there is no
 * memory. */
const struct sql_operator_time *operator_times(const struct sql_execution *execution);

static inline status iterator_next(struct iterator *iterator, const struct sql_value **row)
{
    return iterator->execution->is_measured ? measured_next(iterator, row)
                                            : iterator->kind->next(iterator, row);
}

static inline status next_input(struct iterator *iterator, const struct sql_value **row)
{
    return iterator_next(iterator->input, row);
}

/* Empties the scratch arena: before a row is computed. */
void begin_row(struct iterator *iterator, const struct sql_value *input);

/* The value of an expression of the input's row. */
static inline status evaluate(struct iterator *iterator, const struct sql_expr *expr,
                              struct sql_value *out)
{
    return sql_evaluate_expr(expr, &iterator->frame, out);
}

/* Where rows come from (the table, an array): counts work, and is where a query pauses. */
status count_row(struct iterator *iterator, uint64_t steps);

/* The failure by which it does. */
status pause_query(struct sql_execution *execution);

/* A count (LIMIT, OFFSET, NTILE): a fixed expression that must not be NULL nor negative. */
status evaluate_count(struct iterator *iterator, const struct sql_expr *expr, int64_t *out);

/* A copy in the `kept` arena. RESOURCE_EXHAUSTED, with words that say which limit it was. */
status keep_value(struct iterator *iterator, const struct sql_type *type,
                  const struct sql_value *value, struct sql_value *out);
/* Adds to a list in it. */
status keep_item(struct iterator *iterator, struct vector *list, const void *item, size_t size);
status out_of_query_memory(const struct sql_execution *execution);

/* --- groups: rows by key (group_table.c) --- */

/* A hash table of keys of several values, in the `kept` arena; each key has `entry_size` bytes of
 * the user's. Keys are kept in the order in which they came. */
struct group_table {
    const struct sql_type *const *types; /* of the values of a key */
    size_t type_count;
    size_t entry_size;
    struct group **buckets;
    size_t bucket_count;
    struct group *first;
    struct group **last;
    size_t count;
};

struct group {
    struct group *next;      /* in the order of coming */
    struct group *collision; /* in its bucket */
    uint64_t hash;
    struct sql_value *key;
    void *entry; /* zeroed at first */
};

/* Finds the group of the key, or makes it. */
status group_of(struct iterator *iterator, struct group_table *table, const struct sql_value *key,
                struct group **out, bool *is_new);

/* --- groups of parts (execute_group.c) --- */

/* Groups all rows of an AGGREGATE's input, or goes on to, without showing any. */
status group_rows(struct iterator *iterator);
/* Adds the groups of a part, whose rows all come after those that were added. */
status merge_groups(struct iterator *iterator, const struct iterator *part);
/* Forgets all groups. */
void forget_groups(struct iterator *iterator);

/* --- the kinds --- */

extern const struct iterator_kind scan_kind;
extern const struct iterator_kind unpack_kind;
extern const struct iterator_kind aggregate_kind;
extern const struct iterator_kind distinct_kind;
extern const struct iterator_kind sort_kind;
extern const struct iterator_kind window_kind;

#endif
