/* Families and tables between the API's messages and the row layer's schema. */
#ifndef TRESTLE_BIGTABLE_SCHEMA_MESSAGE_H
#define TRESTLE_BIGTABLE_SCHEMA_MESSAGE_H

#include "cluster/cluster.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "google/bigtable/admin/v2/table.pb-c.h"

/* Checks the family and fills `*out` (id 0). Slices point into the message, the rest is in the
 * arena. INVALID_ARGUMENT, or UNIMPLEMENTED for types that are not built. `message` may be NULL: a
 * family without rules. */
status family_from_message(const char *id, const BtAdmin__ColumnFamily *message,
                           struct arena *arena, struct family *out);

/* A rule of garbage collection alone, for updates. */
status gc_rule_from_message(const BtAdmin__GcRule *message, struct arena *arena,
                            const struct gc_rule **out);

/* The places of a table: all clusters of its instance. */
struct table_place {
    const BtAdmin__Cluster **clusters;
    size_t count;
};

/* How what a cluster keeps is encrypted: as the disk is. */
status cluster_encryption(const BtAdmin__Cluster *cluster, struct arena *arena,
                          BtAdmin__EncryptionInfo **out);

/* The table as the view shows it, in the arena; it points into the clusters' messages.
 * RESOURCE_EXHAUSTED without memory. */
status table_to_message(const struct table_info *info, const struct table_place *place,
                        BtAdmin__Table__View view, struct arena *arena, BtAdmin__Table **out);

#endif
