/* The repair of a stopped server's data directory by what stray_cells.h is about. */
#ifndef TRESTLE_CMD_REPAIR_REPAIR_STRAYS_H
#define TRESTLE_CMD_REPAIR_REPAIR_STRAYS_H

#include "base/log.h"
#include "base/status.h"

#include <stdint.h>

/* Looks at every table, and tells of each with rows that have stray cells; `*rows` of them all. In
 * place they are removed. A table in which something is out of service is passed over. Blocks. */
status repair_strays(const char *directory, const struct log *log, bool in_place, uint64_t *rows);

#endif
