/* Whether what is to outlive a data directory lies apart from it. */
#ifndef TRESTLE_SERVER_PLACE_APART_H
#define TRESTLE_SERVER_PLACE_APART_H

#include "base/status.h"

/* INVALID_ARGUMENT if the place of backups, or of an archive, is the data directory, lies in it, or
 * has it in it: names of the one would be the other's. Fine for a bucket, and for what cannot be
 * looked at now: a server starts without its places. */
status place_check_apart(const char *place, const char *data_directory);

/* The same of the directory of tables' backups, which may be `backups` in the data directory, where
 * it is by default, and may have the data directory in it: names there are not taken for backups.
 */
status backups_check_apart(const char *directory, const char *data_directory);

#endif
