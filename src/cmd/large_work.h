/* The memory that large values take, with the setting `memory`: requests that have some, values
 * that are sent or looked at, and the store's flushes and compactions.
 *
 * The first two have rooms (wire/request_room.h). The last take several times a value, for which a
 * small memory has no share of its own (sizing_lacks_large_work): so while such work runs, or waits
 * for other such work, both rooms are closed. Before it begins it waits for those that have room,
 * but no longer than for seconds: one may come from a client that is slow, or itself wait for a
 * flush. */
#ifndef TRESTLE_CMD_LARGE_WORK_H
#define TRESTLE_CMD_LARGE_WORK_H

#include "base/settings.h"
#include "wire/request_room.h"

struct large_rooms {
    struct request_room requests;
    struct request_room values;
    bool close; /* for the store's work */
};

void large_rooms_init(struct large_rooms *rooms, const struct settings *settings);
void large_rooms_destroy(struct large_rooms *rooms);

/* For store_options.on_large_work, of the rooms. Blocking. */
void large_work_changes(void *rooms, bool begins);

#endif
