/* The filter of an export: what it asks the server for. */
#ifndef TRESTLE_CMD_TRANSFER_EXPORT_FILTER_H
#define TRESTLE_CMD_TRANSFER_EXPORT_FILTER_H

#include "formats/fields.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

/* In this order: the user's own, as JSON (NULL: none); the layout's columns, or the one family; the
 * `versions` newest cells of each column (0: all). `*out` is NULL if there is none of them; else
 * the arena's. INVALID_ARGUMENT for JSON that is no RowFilter. */
status export_filter_make(const char *json, const struct field_layout *layout, uint64_t versions,
                          struct arena *arena, const Bt__RowFilter **out);

#endif
