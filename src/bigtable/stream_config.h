/* Whether a table has a change stream, as administration says it: Table.change_stream_config. */
#ifndef TRESTLE_BIGTABLE_STREAM_CONFIG_H
#define TRESTLE_BIGTABLE_STREAM_CONFIG_H

#include "base/arena.h"
#include "base/status.h"
#include "google/bigtable/admin/v2/table.pb-c.h"

/* A day: what was there a shorter time ago is there still. */
#define STREAM_LEAST_RETENTION_US (INT64_C(24) * 3600 * 1000000)

/* What a client wants: a config in which nothing is set is a mistake, and not "off", which would
 * give up what the stream keeps. INVALID_ARGUMENT. */
status stream_config_check(const BtAdmin__Table *wanted);

/* How long it keeps what happened, microseconds: 1 to 7 days; 0: there is none, for which a config
 * in which nothing is set stands, too. INVALID_ARGUMENT. */
status stream_config_read(const BtAdmin__Table *table, int64_t *retention_us);

/* The same the other way round. Memory from the arena. */
status stream_config_show(int64_t retention_us, struct arena *arena, BtAdmin__Table *table);

#endif
