/* Functions: what a name with arguments of some types does.
 *
 * A function is a row of a table beside the code that carries it out (functions_math.c and its
 * like; functions.c has the list of tables). Several rows may have one name: the first whose
 * signature fits the arguments with the least coercion is taken (resolve.h). Operators are
 * functions too: their names begin with `$`.
 *
 * Signatures are written as they are read:
 *
 *     STRING(STRING, STRING, [INT64], [INT64])    arguments in brackets may be left out
 *     T(T, T...)                                  the last may come again and again
 *     ARRAY<STRUCT<key K, value V>>(MAP<K, V>)    T, K, V: any type, the same at each place
 *     ARRAY<T>(ARRAY<T>, (T, INT64) -> BOOL)      a lambda of two arguments
 *     DATE(DATE, INT64, PART)                     a date part: DAY, WEEK(MONDAY)
 *
 * `T` may be bounded: T:equality, T:order, T:orderable, T:groupable (sql_type_has_equality …), or
 * T:element (what an array may have: no array), at one place among the arguments. Where arguments
 * of several types meet in one T, it is their common supertype. */
#ifndef TRESTLE_SQL_FUNCTION_H
#define TRESTLE_SQL_FUNCTION_H

#include "sql/value.h"

struct sql_session;

/* How a function is called; the same for all rows except `arena`. */
struct sql_call {
    struct arena *arena;                 /* for what the result points to; emptied after the row */
    const struct sql_type *type;         /* of the result */
    const struct sql_type *const *types; /* of the arguments */
    struct sql_session *session;
    void *prepared; /* what `prepare` made, or NULL */
    /* The lambda among the arguments: its value for these arguments of its own. */
    status (*apply)(const struct sql_call *call, const struct sql_value *args,
                    struct sql_value *out);
    const void *lambda; /* for `apply` */
};

/* Arguments that were left out at the end are not counted. An error is OUT_OF_RANGE unless the
 * reference says otherwise: only that one becomes NULL under SAFE. */
typedef status sql_evaluate(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out);

enum sql_function_flags {
    SQL_TAKES_NULLS = 1, /* is called with NULL arguments; else the result is NULL then */
    SQL_VOLATILE = 2,    /* differs from call to call: RAND */
    SQL_STABLE = 4,      /* is the same within a query only: CURRENT_TIMESTAMP */
    SQL_NOT_SAFE = 8,    /* SAFE. is refused */
    SQL_LOOKS_UP = 16,   /* does not walk through its arguments: costs the same for large ones */
};

struct sql_function {
    const char *name; /* "REGEXP_EXTRACT", "HLL_COUNT.EXTRACT", "$add" */
    const char *signature;
    sql_evaluate *evaluate;
    unsigned flags;
    /* Optional. What can be done once for a query, from the arguments that are constants or
     * parameters (`args[i]` is NULL for others): a regular expression compiled. Also at prepare,
     * for constants alone: its errors are those of the query. Memory is the arena's; `release`
     * frees what is not. */
    status (*prepare)(struct sql_call *call, const struct sql_value *const *args, size_t count);
    void (*release)(void *prepared);
    uint32_t parts; /* those that a PART may be, as bits: 1 << SQL_PART_DAY; others are refused */
};

/* --- aggregates --- */

enum sql_aggregate_flags {
    SQL_AGGREGATES_NULLS = 1, /* NULL arguments count, unless IGNORE NULLS is said */
    SQL_ALLOWS_NULLS = 2,     /* IGNORE NULLS and RESPECT NULLS may be said */
    SQL_ALLOWS_ORDER = 4,     /* ORDER BY and LIMIT may be said */
    SQL_NOT_DISTINCT = 8,     /* DISTINCT is refused */
};

typedef status sql_add(const struct sql_call *call, void *state, const struct sql_value *args,
                       size_t count);

/* DISTINCT, HAVING, IGNORE NULLS, ORDER BY and LIMIT are done before it. */
struct sql_aggregate {
    const char *name;
    const char *signature;
    size_t state_size; /* zeroed before the first row */
    unsigned flags;
    /* `call->arena` is the group's: what the state points to lives there; `args` do not. */
    sql_add *add;
    /* More may be added after it, and it is called again then (running windows). */
    status (*finish)(const struct sql_call *call, void *state, struct sql_value *out);
    /* Optional: adds rows of which another state was made, which all come after its own, so that
     * the result, or the failure, is that of adding them one by one. Keeps nothing of `later`,
     * which another thread may have made, and which may have failed at its last row. */
    status (*merge)(const struct sql_call *call, void *state, const void *later);
    /* What makes states that can be merged, if it is another; NULL: it is this one. */
    const struct sql_aggregate *in_parts;
};

/* --- date parts --- */

enum sql_part {
    SQL_PART_MICROSECOND,
    SQL_PART_MILLISECOND,
    SQL_PART_SECOND,
    SQL_PART_MINUTE,
    SQL_PART_HOUR,
    SQL_PART_DAY,
    SQL_PART_DAYOFWEEK,
    SQL_PART_DAYOFYEAR,
    SQL_PART_WEEK,        /* from Sunday */
    SQL_PART_WEEK_MONDAY, /* … WEEK(SATURDAY), in order */
    SQL_PART_WEEK_TUESDAY,
    SQL_PART_WEEK_WEDNESDAY,
    SQL_PART_WEEK_THURSDAY,
    SQL_PART_WEEK_FRIDAY,
    SQL_PART_WEEK_SATURDAY,
    SQL_PART_ISOWEEK,
    SQL_PART_MONTH,
    SQL_PART_QUARTER,
    SQL_PART_YEAR,
    SQL_PART_ISOYEAR,
    SQL_PART_DATE,
    SQL_PART_NFC, /* from here: no parts, but how NORMALIZE normalizes, which is written like one */
    SQL_PART_NFKC,
    SQL_PART_NFD,
    SQL_PART_NFKD,
};

/* As it is written: "WEEK(MONDAY)". */
const char *sql_part_name(enum sql_part part);

/* --- what all queries have --- */

/* What a parameterized view is asked with. */
struct sql_view_parameter {
    const char *name;
    struct sql_value value; /* STRING */
};

/* Decides whether a query may go on. `look` is asked every few milliseconds of work: its error ends
 * the query (a call that was cancelled), `*is_turn_over` asks it to let others have a turn at the
 * next place where it can: sql_execution_next then says that it was paused. */
struct sql_watch {
    status (*look)(void *context, bool *is_turn_over);
    void *context;
};

struct sql_session;
struct task;

/* Threads that may work on a query beside its own. Its context outlives the query, but for what
 * `add_turn` and `begin_turn` are given. */
struct sql_helpers {
    unsigned most;
    /* Runs the task on one of them; false: none is free. Any thread. */
    bool (*submit)(void *context, struct task *task);
    /* Gives the session, of a part of the query, a watch of its own. */
    status (*add_turn)(const void *query, struct sql_session *session, struct arena *arena);
    /* A turn of such a session begins on the calling thread. */
    void (*begin_turn)(struct sql_session *session);
    void *context;
    const void *query;
};

/* One execution of a query, as functions see it. */
struct sql_session {
    int64_t now_us;                                   /* CURRENT_TIMESTAMP, the same all through */
    uint64_t random;                                  /* the state of RAND */
    const struct sql_view_parameter *view_parameters; /* of VIEW_PARAMETERS */
    size_t view_parameter_count;
    struct sql_zones *zones;           /* time zones that were looked up: zone.h */
    const struct sql_watch *watch;     /* NULL: it goes on whatever it takes */
    struct budget *budget;             /* of what values take while they are made; NULL: none */
    const struct sql_helpers *helpers; /* NULL: none */
    uint64_t work;                     /* steps since the last look: work.h */
    uint64_t row_work;                 /* steps for the row in hand, or for planning */
    uint64_t progress;                 /* rises with each row, and while rows are put in order */
    bool is_turn_over;
    bool is_searching; /* for matches in a text: no count of steps foresees what each takes */
    bool is_folding;   /* a constant is evaluated beforehand: not worth more than a turn */
};

/* --- the tables --- */

/* Each ends with a row without a name. */
const struct sql_function *const *sql_function_tables(size_t *count);
const struct sql_aggregate *const *sql_aggregate_tables(size_t *count);

#endif
