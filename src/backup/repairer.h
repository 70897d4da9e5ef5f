/* Repairs of tables of a server that serves, with rows from its whole backups: what RepairTable
 * does when it names a place (introspect/repair_source.h).
 *
 *     what the table has in the backup into the data directory ──► table_repair ──► removed again
 *
 * One at a time, since there is room for one; others are refused. The call's own thread does it.
 * What a killed server leaves is removed at the next start. Any thread may ask. */
#ifndef TRESTLE_BACKUP_REPAIRER_H
#define TRESTLE_BACKUP_REPAIRER_H

#include "introspect/repair_source.h"

struct whole_repairer;

struct whole_repairer_options {
    struct cluster *cluster;
    const char *data_directory;
    const char *places; /* as whole_runner_options have it, and the next two */
    const char *key_file;
    uint64_t bytes_per_second;
};

/* What the options point to outlives it. */
status whole_repairer_create(const struct whole_repairer_options *options,
                             struct whole_repairer **out);
void whole_repairer_destroy(struct whole_repairer *repairer); /* NULL is fine */

/* PERMISSION_DENIED unless the place is in, or below, one of the places; FAILED_PRECONDITION while
 * another runs; else as whole_repair_begin and table_repair do. Unless these have begun to fill a
 * range, nothing is changed. */
struct repair_source whole_repairer_source(struct whole_repairer *repairer);

#endif
