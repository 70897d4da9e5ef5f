/* One aggregate of one group: its rows as they come, with DISTINCT, HAVING, ORDER BY and the like
 * done before the function sees them. */
#ifndef TRESTLE_SQL_RUN_AGGREGATE_H
#define TRESTLE_SQL_RUN_AGGREGATE_H

#include "sql/plan/plan.h"

struct sql_accumulator {
    const struct sql_aggregation *aggregation;
    const struct sql_aggregate *function; /* that of the aggregation, or its in_parts */
    struct sql_call call;                 /* its arena is the group's */
    void *state;                          /* the function's */
    struct accumulated *held; /* rows that wait for the order, or for a better HAVING; see .c */
};

/* `arena`: for the state and for rows that are held. */
status sql_accumulator_begin(struct sql_accumulator *accumulator,
                             const struct sql_aggregation *aggregation, struct sql_frame *frame,
                             struct arena *arena);

/* Whether what it comes to can be put together of parts of the rows. */
bool sql_aggregation_has_parts(const struct sql_aggregation *aggregation);
/* As sql_accumulator_begin, of a part, or of what merges parts. */
status sql_accumulator_begin_part(struct sql_accumulator *accumulator,
                                  const struct sql_aggregation *aggregation,
                                  struct sql_frame *frame, struct arena *arena);
/* Adds what has been added to another, whose rows all come after its own. */
status sql_accumulator_merge(struct sql_accumulator *accumulator,
                             const struct sql_accumulator *later);

/* Adds the frame's row: evaluates the arguments in it. */
status sql_accumulator_add(struct sql_accumulator *accumulator, struct sql_frame *frame);

/* Whether rows may be added after the result was asked for, which then is asked for again: if none
 * are held. */
static inline bool sql_accumulator_may_go_on(const struct sql_accumulator *accumulator)
{
    return accumulator->aggregation != NULL && accumulator->held == NULL;
}

/* The result; in the group's arena, or the frame's. */
status sql_accumulator_finish(struct sql_accumulator *accumulator, struct sql_frame *frame,
                              struct sql_value *out);

/* Compares two rows by their values of the orders' expressions. */
int sql_compare_orders(const struct sql_order *orders, size_t count, const struct sql_value *a,
                       const struct sql_value *b);

#endif
