/* What materialized views forbid: changes under them, of the table that they read, and a second
 * thing of an id in their instance.
 *
 * The answers hold for as long as an edit is under way, and so are asked for within one. */
#ifndef TRESTLE_BIGTABLE_VIEW_GUARD_H
#define TRESTLE_BIGTABLE_VIEW_GUARD_H

#include "bigtable/admin_call.h"
#include "control/control.h"

/* FAILED_PRECONDITION, in production's words, if materialized views read the table of that name. */
status check_no_view_reads(const struct admin_request *request, const char *table);

/* FAILED_PRECONDITION if some read this family of it. */
status check_no_view_reads_family(const struct admin_request *request, const char *table,
                                  bytes family);

/* FAILED_PRECONDITION if some read it, whose keys are to be read otherwise from now on. */
status check_no_view_reads_keys(const struct admin_request *request, const char *table);

/* ALREADY_EXISTS if a table, a logical view or a materialized view of the instance has the id, but
 * for those of the kind itself (0: tables), which whoever makes one finds out. */
status check_id_is_free(const struct bigtable *bigtable, struct arena *arena, struct edit *edit,
                        enum resource_kind kind, const char *instance, const char *id);

#endif
