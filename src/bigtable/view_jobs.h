/* The operation that waits until a materialized view is populated (materialized_views.c). */
#ifndef TRESTLE_BIGTABLE_VIEW_JOBS_H
#define TRESTLE_BIGTABLE_VIEW_JOBS_H

#include "bigtable/services.h"

/* Its argument is a serialized CreateMaterializedViewMetadata with the request and the time of the
 * start; its context the struct bigtable. */
extern const struct operation_kind create_view_kind;

/* Stages, as an edit's last step, the end of the view of that name and of all that it has. */
status view_stage_deletion(struct bigtable *bigtable, struct edit *edit, const char *name);

#endif
