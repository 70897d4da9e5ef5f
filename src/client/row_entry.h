/* The entry of a MutateRowsRequest that makes a change, encoded at once: messages of SetCell, with
 * their measuring and packing, cost a client that writes a million rows more than anything else
 * except unpacking gzip. */
#ifndef TRESTLE_CLIENT_ROW_ENTRY_H
#define TRESTLE_CLIENT_ROW_ENTRY_H

#include "formats/change.h"

/* The bytes of the entry, of the arena. The change does not yield, and no family of its cells is an
 * aggregate's. */
status row_entry_encode(const struct move_change *change, struct arena *arena, bytes *out);

#endif
