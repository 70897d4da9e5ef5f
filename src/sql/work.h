/* What a query's work is counted in, so that none runs on unseen.
 *
 * Work is counted in steps: a call of a function is one, and so is what it takes to walk through
 * SQL_WEIGHT_A_STEP of a value (value.h). Whatever loops over rows, items or bytes counts, and
 * every SQL_STEPS_A_LOOK steps, a few milliseconds, the query's sql_watch is asked whether it may
 * go on. */
#ifndef TRESTLE_SQL_WORK_H
#define TRESTLE_SQL_WORK_H

#include "sql/function.h"

enum { SQL_WEIGHT_A_STEP = 4, SQL_STEPS_A_LOOK = 1 << 15 };

/* How many steps the expressions of one row may take, or planning: a bound on lambdas within
 * lambdas, on constants, and on names that are looked for among many. */
enum { SQL_STEP_LIMIT = 20 * 1000 * 1000 };

/* Looks whether the query may go on: its error if not. */
status sql_look(struct sql_session *session);

static inline status sql_work(struct sql_session *session, uint64_t steps)
{
    session->work += steps;
    return session->work < SQL_STEPS_A_LOOK ? status_ok() : sql_look(session);
}

/* The steps of work that looks at each byte by itself. */
static inline uint64_t sql_steps_of_bytes(uint64_t size)
{
    enum { BYTES_A_STEP = 8 };
    return size / BYTES_A_STEP + 1;
}

status sql_too_many_steps(void);

/* The same for what counts towards the limit, too: RESOURCE_EXHAUSTED beyond it. */
static inline status sql_count(struct sql_session *session, uint64_t steps)
{
    session->row_work += steps;
    return session->row_work <= SQL_STEP_LIMIT ? sql_work(session, steps) : sql_too_many_steps();
}

/* As qsort_r, but it counts, and so can be stopped: the order is then undefined. */
typedef int sql_comparison(const void *a, const void *b, void *context);
status sql_sort(void *items, size_t count, size_t size, sql_comparison *compare, void *context,
                struct sql_session *session);

#endif
