/* The doctor's check of keyspaces that have rows and no table. */
#ifndef TRESTLE_CMD_REPAIR_DOCTOR_KEYSPACES_H
#define TRESTLE_CMD_REPAIR_DOCTOR_KEYSPACES_H

#include "store/store.h"

/* Names those that a salvage has kept, spare ones with rows and, if the log has lost something,
 * those that no record names: as damage, on stderr. Others that no record names are what a crash
 * left, and no damage. Adds how many it has named. */
status doctor_check_keyspaces(struct store *store, struct keyspace *catalog, uint64_t *damages);

#endif
