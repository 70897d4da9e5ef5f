/* A table's extra is what the services keep of it beside its schema: table_info.extra, a message
 * with the fields restore_info, automated_backup_policy, row_key_schema and tiered_storage_config.
 */
#ifndef TRESTLE_BIGTABLE_TABLE_EXTRA_H
#define TRESTLE_BIGTABLE_TABLE_EXTRA_H

#include "base/arena.h"
#include "base/status.h"
#include "google/bigtable/admin/v2/table.pb-c.h"

/* `*out` is in the arena, and points into `extra`. */
status table_extra_decode(bytes extra, struct arena *arena, BtAdmin__Table **out);

/* Encodes those fields of a table's message. In the arena; empty if none is set. */
status table_extra_encode(const BtAdmin__Table *table, struct arena *arena, bytes *out);

/* The policy; NULL if there is none. */
BtAdmin__Table__AutomatedBackupPolicy *table_backup_policy(const BtAdmin__Table *table);

/* Whether it may be a table's: kept 3 to 90 days, made every 24 hours; completes the frequency. One
 * in which nothing is set stands for none. INVALID_ARGUMENT. */
status complete_backup_policy(BtAdmin__Table *table, struct arena *arena);

/* Whether the setting may be a table's: cells of 30 days or more are to be seldom asked for. It is
 * kept and shown; there is one tier. One in which nothing is set stands for none.
 * INVALID_ARGUMENT. */
status complete_tiered_storage(BtAdmin__Table *table);

#endif
