/* Instances that no client created: made on first use, with --auto-create, and for what is there
 * without one: tables of a data directory that is older than instances, and what was in one whose
 * record the catalog has lost (cluster/lost_records.h).
 *
 * The first use is the first call that makes something in the instance: a table, an app profile, a
 * view. Asking is none: GetInstance of an instance that was not used answers NOT_FOUND, so that
 * `instance.exists()` and what Terraform does (get, and create what is not found) work as they do
 * in production, and a name mistyped in a question leaves nothing behind. Lists of what is in such
 * an instance are empty with --auto-create, NOT_FOUND without. */
#ifndef TRESTLE_BIGTABLE_DEFAULT_INSTANCE_H
#define TRESTLE_BIGTABLE_DEFAULT_INSTANCE_H

#include "bigtable/resource_call.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

/* Before something is made in the instance: it stands, or is staged here, or NOT_FOUND. */
status require_instance(const struct bigtable *bigtable, struct edit *edit, struct arena *arena,
                        const char *name);

/* Before what is in it is listed. */
status check_instance_to_list(const struct bigtable *bigtable, const char *name);

/* Stages the app profile `default` of an instance with these clusters' ids. */
status stage_default_profile(struct edit *edit, struct arena *arena, const char *instance,
                             const char *const *cluster_ids, size_t count);

/* Makes the instances of tables, clusters and app profiles that have none. */
status adopt_tables(struct bigtable *bigtable);

#endif
