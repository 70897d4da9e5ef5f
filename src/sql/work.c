/* Counted work, and sorting that can be stopped: see work.h. */
#include "sql/work.h"

#include <stdlib.h>

status sql_look(struct sql_session *session)
{
    session->work = 0;
    if (session->watch == NULL)
        return status_ok();
    TRY(session->watch->look(session->watch->context, &session->is_turn_over));
    if (session->is_folding && session->is_turn_over)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "The constant takes too much work");
    return status_ok();
}

status sql_too_many_steps(void)
{
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The query takes more than %d steps of work for one row, or to be planned",
                       SQL_STEP_LIMIT);
}

/* --- sorting: short runs, merged in pairs --- */

enum { RUN = 256 };

struct sorting {
    size_t size; /* of an item */
    sql_comparison *compare;
    void *context;
    struct sql_session *session;
};

/* Items [0, left) and [left, all) of `from`, each in order, into `to`. */
static status merge(const struct sorting *sorting, const char *from, size_t left, size_t all,
                    char *to)
{
    size_t size = sorting->size, a = 0, b = left;
    sorting->session->progress++;
    while (a < left && b < all) {
        bool takes_left = sorting->compare(from + a * size, from + b * size, sorting->context) <= 0;
        memcpy(to, from + (takes_left ? a++ : b++) * size, size);
        to += size;
        TRY(sql_work(sorting->session, 1));
    }
    memcpy(to, from + a * size, (left - a) * size);
    memcpy(to + (left - a) * size, from + b * size, (all - b) * size);
    return status_ok();
}

static status sort_runs(const struct sorting *sorting, char *items, size_t count)
{
    for (size_t at = 0; at < count; at += RUN) {
        size_t run = count - at < RUN ? count - at : RUN;
        qsort_r(items + at * sorting->size, run, sorting->size, sorting->compare, sorting->context);
        sorting->session->progress++;
        TRY(sql_work(sorting->session, run));
    }
    return status_ok();
}

/* The result is in `items`; `spare` has as much room. */
static status merge_runs(const struct sorting *sorting, char *items, size_t count, char *spare)
{
    char *from = items, *to = spare;
    for (size_t run = RUN; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            size_t all = count - at < 2 * run ? count - at : 2 * run;
            size_t left = all < run ? all : run;
            TRY(merge(sorting, from + at * sorting->size, left, all, to + at * sorting->size));
        }
        char *merged = to;
        to = from;
        from = merged;
    }
    if (from != items)
        memcpy(items, from, count * sorting->size);
    return status_ok();
}

status sql_sort(void *items, size_t count, size_t size, sql_comparison *compare, void *context,
                struct sql_session *session)
{
    const struct sorting sorting = {size, compare, context, session};
    if (count < 2)
        return status_ok();
    TRY(sort_runs(&sorting, items, count));
    if (count <= RUN)
        return status_ok();
    char *spare = malloc(count * size);
    if (spare == NULL)
        return status_out_of_memory();
    status result = merge_runs(&sorting, items, count, spare);
    free(spare);
    return result;
}
