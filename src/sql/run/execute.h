/* Runs a plan. */
#ifndef TRESTLE_SQL_RUN_EXECUTE_H
#define TRESTLE_SQL_RUN_EXECUTE_H

#include "sql/plan/plan.h"

struct sql_execution;

struct sql_execution_spec {
    const struct sql_plan *plan;        /* stays as long as the execution */
    const struct sql_catalog *catalog;  /* so does this */
    const struct sql_value *parameters; /* as many as the plan's; so do they */
    struct sql_session *session;        /* and this */
    size_t memory_limit;                /* bytes that sorting, grouping and the like may keep */
    /* To go on where another execution stopped: its place, and how many rows it had given. Empty:
     * from the start. */
    bytes after_key;
    uint64_t after_rows;
    bool is_measured; /* what each operator takes, which costs two looks at a clock for each row */
};

status sql_execution_create(const struct sql_execution_spec *spec, struct sql_execution **out);
void sql_execution_destroy(struct sql_execution *execution); /* NULL is fine */

/* The next row: as many values as the root has columns, valid until the next call; `*row` NULL at
 * the end, or if it was paused. Blocks, for as long as it takes to find one, or until the session's
 * watch ends the turn. RESOURCE_EXHAUSTED beyond the memory. */
status sql_execution_next(struct sql_execution *execution, const struct sql_value **row);

/* Whether the last call stopped, to let others have a turn or since what comes next must be waited
 * for (sql_scan.must_wait): the next goes on where it stopped. */
bool sql_execution_is_paused(const struct sql_execution *execution);

/* Before a wait that may be long: until the next call it holds nothing of what the catalog scans,
 * nor of the last row, if no operator keeps any. That row is not valid any more. */
void sql_execution_rest(struct sql_execution *execution);

/* Where the last row came from, if another execution can go on behind it: the key of the table's
 * row. Empty if it cannot, as when rows are sorted or grouped. Valid until the next row. */
bytes sql_execution_place(const struct sql_execution *execution);

/* The plan in words, with the ranges of keys that it reads, and what each operator took so far, if
 * it is measured: begins if it has not begun. */
status sql_execution_explain(struct sql_execution *execution, struct buffer *out);

/* Bytes that it holds at present. */
size_t sql_execution_footprint(const struct sql_execution *execution);

/* What was read so far: for EXPLAIN. */
struct sql_execution_counts {
    uint64_t rows_read;
    uint64_t cells_read;
    size_t memory_peak;
};
struct sql_execution_counts sql_execution_counts(const struct sql_execution *execution);

#endif
