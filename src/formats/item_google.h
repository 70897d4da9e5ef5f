/* The columns that Google's utility makes of an attribute (professional-services,
 * dynamodb-bigtable-migration: DynamoRowUtils and BeamRowUtils, as of 2026-08), so that what was
 * moved by it and by us can stand in one table.
 *
 * All values are text: booleans "true" and "false", NULL empty, numbers as Java prints them:
 * without a point as a long (or, where the utility fails, plainly), else as a BigDecimal. Maps are
 * flattened to columns "outer.inner"; an empty one vanishes. Lists and sets are a JSON array in one
 * cell. Bytes are base64 (the utility encodes their base64 once more, which is a mistake of its
 * own, and is left out). */
#ifndef TRESTLE_FORMATS_ITEM_GOOGLE_H
#define TRESTLE_FORMATS_ITEM_GOOGLE_H

#include "formats/item.h"

/* Calls `add` for each column, whose name and value are the arena's or the attribute's. */
status item_google_cells(const struct item_value *attribute, struct arena *arena,
                         status (*add)(void *context, bytes name, bytes value), void *context);

#endif
