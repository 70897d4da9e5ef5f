/* What a materialized view is: its query, planned against its source.
 *
 * It is planned when it is first asked for, and kept with the resource, as authorized views are
 * (view.h). What was planned stays true for as long as the view is there, since what it hangs on
 * stands still meanwhile: no family that a view reads is dropped, no schema of its source's keys
 * comes or goes, its source is not deleted (view_guard.h). A query that cannot be planned, as where
 * a repair has lost the source, is planned again the next time.
 *
 * Any thread that may block for as long as planning takes, a fraction of a millisecond. */
#ifndef TRESTLE_BIGTABLE_MATERIALIZED_H
#define TRESTLE_BIGTABLE_MATERIALIZED_H

#include "bigtable/services.h"
#include "sql/view/program.h"
#include "views/views.h"

struct materialized {
    struct resource_kept kept;
    struct arena *arena;
    struct view_definition definition;
    const struct view_program *program;
};

/* A view that somebody wants to make, or has made. */
struct materialized_query {
    const char *name; /* full */
    const char *text;
    const struct grpc_call *call; /* whose caller is to have the right to read the source; NULL:
                                   * nobody is asked */
};

/* Plans it; all of it is in the arena. INVALID_ARGUMENT in the planner's words, and for what a view
 * cannot keep; NOT_FOUND for the instance; PERMISSION_DENIED, UNAUTHENTICATED. */
status materialized_define(struct bigtable *bigtable, const struct materialized_query *query,
                           struct arena *arena, struct view_definition *out);

/* The same for the engine: see views_options.define. `context` is the struct bigtable. */
status materialized_define_for_engine(void *context, const char *name, const char *query,
                                      struct arena *arena, struct view_definition *out);

/* The table of its rows, with a reference for the caller. NOT_FOUND; FAILED_PRECONDITION if it is
 * not populated. Cheap: on loops, too. */
status materialized_open(struct bigtable *bigtable, const char *name, struct table **out);

/* FAILED_PRECONDITION, of a read of one that cannot be read (yet). */
status materialized_unreadable(const char *name, const struct view_found *found);

/* Valid for as long as the caller has the resource, of kind RESOURCE_MATERIALIZED_VIEW. */
status materialized_of(struct bigtable *bigtable, struct resource *resource,
                       const struct materialized **out);

#endif
