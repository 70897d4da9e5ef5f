/* What of the table files of a stopped server's data directory is damaged, and the mending of it.
 */
#ifndef TRESTLE_CMD_REPAIR_TABLES_H
#define TRESTLE_CMD_REPAIR_TABLES_H

#include "base/log.h"
#include "cmd/lost_rows.h"

struct repair_tables_options {
    const char *directory;
    const struct log *log;
    bool in_place;
    bool accepts_old_data; /* table_repair_options */
    struct lost_rows_report *report;
};

/* Reads all table files. Without in_place, tells what would be lost and changes nothing. `*left` is
 * how many ranges are out of service afterwards. */
status repair_tables(const struct repair_tables_options *options, uint64_t *left);

#endif
