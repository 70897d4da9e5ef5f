/* Large cells that their row's record does not name. No reader sees them, but they would be there
 * again with the row's next large cell.
 *
 * They are left where a row was dropped and then written anew, and the record of the drop went with
 * others of a damaged catalog (docs/internals/drops.md): what the row's fold has thrown away by the
 * drop, the mark, is gone, and what no compaction has met, the cells, is there.
 *
 * Of a store that is open offline, on one thread; all of it blocks. */
#ifndef TRESTLE_CMD_REPAIR_STRAY_CELLS_H
#define TRESTLE_CMD_REPAIR_STRAY_CELLS_H

#include "base/bytes.h"
#include "base/status.h"

#include <stdint.h>

struct keyspace;
struct store;

/* Whether the row's record says that there are large cells. A record that is out of service may say
 * so. */
status stray_cells_has_mark(struct keyspace *keyspace, bytes row_key, bool *has);

/* How many rows of the keyspace have such cells, what was dropped left out by the records in
 * `system`. DATA_LOSS where something is out of service. */
status stray_cells_count(struct keyspace *keyspace, struct keyspace *system, uint64_t *rows);

/* Removes them, a thousand rows at a time, each synced; `*rows` of them, also after a failure. The
 * store is open for writing. No commit tells of it, so a change log ends with it. */
status stray_cells_remove(struct store *store, struct keyspace *keyspace, struct keyspace *system,
                          uint64_t *rows);

#endif
