/* Exports: the entities of a database as they were at one moment, in files of Google's form.
 *
 *     DIRECTORY/BUCKET/PATH/NAME.overall_export_metadata    written last: then it is an export
 *                           NAME.unfinished                 as long as it is not
 *                           SET/SET_.export_metadata
 *                           SET/output-0, output-1 …
 *
 * All entities are read in one pass, in the order of their rows, and each goes to its set: of its
 * namespace and kind as far as the filter names them. Each file is written as a whole, synced, and
 * then gets its name, so that what there is of it is whole. An export that fails, or is cancelled,
 * is removed; one that a crash cut short is made again, at a later moment. */
#ifndef TRESTLE_DATASTORE_ADMIN_EXPORT_H
#define TRESTLE_DATASTORE_ADMIN_EXPORT_H

#include "datastore/admin/export_place.h"
#include "datastore/commit/snapshot.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"

/* How far the work is; false ends it with CANCELLED. Called often. */
struct ds_transfer_progress {
    bool (*go_on)(void *context, int64_t entities, int64_t bytes);
    void *context;
};

struct ds_export {
    struct ds_export_place place;
    struct ds_snapshot snapshot;
    const DsAdmin__EntityFilter *filter; /* checked; NULL: all */
    int64_t start_us;                    /* since 1970 */
    struct clock *clock;
    struct ds_transfer_progress progress;
    struct arena *arena;
};

/* Combinations of kinds and namespaces that a filter may have. */
enum { DS_MOST_SETS = 100 };

/* INVALID_ARGUMENT for names that no entity has, repeated ones, or too many. */
status ds_entity_filter_check(const DsAdmin__EntityFilter *filter);

/* Takes the place, durably. INVALID_ARGUMENT if there is something. */
status ds_export_claim(const struct ds_export_place *place);

/* Gives it up, with all that there is of the export. */
status ds_export_remove(const struct ds_export_place *place, const DsAdmin__EntityFilter *filter,
                        struct arena *arena);

/* To a place that is claimed, maybe by one that a crash cut short. Blocks. FAILED_PRECONDITION if
 * it takes longer than the past can be read. */
status ds_export_run(struct ds_export *export);

#endif
