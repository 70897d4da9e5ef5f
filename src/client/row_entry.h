/* The entry of a MutateRowsRequest that makes a change, encoded at once: who writes a million rows
 * spends more on messages of SetCell, and on measuring and packing them, than on anything else but
 * unpacking gzip. */
#ifndef TRESTLE_CLIENT_ROW_ENTRY_H
#define TRESTLE_CLIENT_ROW_ENTRY_H

#include "formats/change.h"

/* The bytes of the entry, of the arena. The change does not yield, and no family of its cells is an
 * aggregate's. */
status row_entry_encode(const struct move_change *change, struct arena *arena, bytes *out);

#endif
