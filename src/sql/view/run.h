/* Runs a view's program over rows of its source. */
#ifndef TRESTLE_SQL_VIEW_RUN_H
#define TRESTLE_SQL_VIEW_RUN_H

#include "sql/view/program.h"

/* What a thread evaluates a program with. */
struct view_runner;

/* `program` stays as long as the runner. RESOURCE_EXHAUSTED without memory. */
status view_runner_create(const struct view_program *program, struct view_runner **out);
void view_runner_destroy(struct view_runner *runner); /* NULL is fine */

/* Opens the source rows to look at. `spec` says which families and which times of cells are
 * needed; its ranges are void: the caller knows which rows he wants. Both live until the scan is
 * destroyed, which is before view_runner_run returns. Rows come in any order, none twice; what
 * `next` gives is valid until the next call. It is called once, or never if the program reads no
 * table. */
struct view_source {
    void *context;
    status (*open)(void *context, const struct sql_scan_spec *spec, struct arena *arena,
                   struct sql_scan **out);
};

enum view_outcome {
    VIEW_ROW_IN,
    VIEW_ROW_NOTHING,  /* it has no part in the view: WHERE, no element to unnest */
    VIEW_ROW_EXCLUDED, /* it should have, but evaluation fails, or a limit is passed */
};

/* Is called once for each row that the scan yields, in its order. `contribution` (contribution.h)
 * is empty unless it is IN; `why`, words, is NULL unless it is EXCLUDED. All valid during the
 * call. */
typedef status view_visit(void *context, bytes source_key, enum view_outcome outcome,
                          bytes contribution, const char *why);

/* Runs the program over all rows of the source. A row that fails is EXCLUDED and ends nothing;
 * failures of the scan and of `visit`, and want of memory, end the run and are returned. May be
 * called again. */
status view_runner_run(struct view_runner *runner, const struct view_source *source,
                       view_visit *visit, void *context);

/* A source row is excluded of which more than LIMIT_VIEW_ROW_BYTES are selected, whatever WHERE
 * says of it, or of which more come, or more than these.
 *
 * Selected of it are the values of the columns that are read, with the qualifiers where a whole
 * family is. Output are the bytes of its texts and 8 for every other value, over all pieces; it is
 * held against what was selected, with the row key, times VIEW_MOST_EXPANSION, unless it is
 * small. */
enum { VIEW_MOST_EXPANSION = 10, VIEW_SMALL_OUTPUT = 1024 };

#endif
