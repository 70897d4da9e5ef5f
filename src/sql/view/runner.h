/* What a thread evaluates a program with: for run.c and row.c. */
#ifndef TRESTLE_SQL_VIEW_RUNNER_H
#define TRESTLE_SQL_VIEW_RUNNER_H

#include "sql/view/pieces.h"
#include "sql/view/run.h"

struct view_runner {
    const struct view_program *program;
    struct sql_session session;
    struct view_pieces pieces; /* of the row in hand */
    /* For projections above the aggregates: */
    struct arena *kept;
    struct sql_call_state *calls;
    struct sql_value *arguments;
};

/* Whether it failed for want of memory, and not because one row or group wants more than it may
 * have: none is to be had now. It is to be tried again, then, and leaves nothing out. */
bool view_lacks_memory(status result);

#endif
