/* A change list of what a change comes to, where none was made of what was asked for: of updates
 * that a reader decides (ReadModifyWriteRow), of collections, and of changes that were packed just
 * before the table's change stream was switched on. */
#ifndef TRESTLE_ROW_CHANGE_LIST_DERIVE_H
#define TRESTLE_ROW_CHANGE_LIST_DERIVE_H

#include "row/fragment.h"
#include "row/schema.h"

/* Adds to the list what the change does, deletions before what it sets; families that the schema
 * does not have are left out. Slices point into the change and the schema. Failures show in
 * list->failed. */
void change_list_derive(struct change_list *list, const struct packed_change *change,
                        const struct schema *schema);

#endif
