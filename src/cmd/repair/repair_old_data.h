/* `trestle repair --accept-old-data` of a directory whose list of tables is lost ("old data" in
 * store/store.h): what its table files and logs have is taken for true. */
#ifndef TRESTLE_CMD_REPAIR_REPAIR_OLD_DATA_H
#define TRESTLE_CMD_REPAIR_REPAIR_OLD_DATA_H

#include "base/log.h"
#include "base/status.h"

struct repair_old_data_options {
    const char *directory;
    const struct log *log;
    bool in_place;
    bool is_accepted; /* --accept-old-data */
};

/* Nothing of other directories. DATA_LOSS, with what to do, if it is not accepted. `*is_left`: it
 * would be done, and with in_place is. Tells what there is on standard output. */
status repair_old_data(const struct repair_old_data_options *options, bool *is_left);

#endif
