/* Which families a row has, for a deletion of the row in a table with a change stream: readers of
 * streams know no such mutation, and are told of one for each family that has cells.
 *
 * With the row's lock held, so that what is found is what the deletion meets. What cannot be found
 * (the row is damaged, there is no memory) is left to the commit thread, which then tells of all
 * families of the table: more than was there, which changes nothing for who applies it. */
#ifndef TRESTLE_CLUSTER_STREAM_ROW_FAMILIES_H
#define TRESTLE_CLUSTER_STREAM_ROW_FAMILIES_H

#include "row/change_list.h"
#include "store/store.h"

struct row_write;
struct table;
struct tablet;

/* Puts the families in place of the deletions of the row in the list, once all earlier commits of
 * the row are applied. False: the row is not in memory, and `read_tier` stops there. */
bool row_families_expand(struct table *table, struct tablet *tablet, bytes row_key,
                         enum store_read_tier read_tier, struct change_list *list);

/* The same for a write that has the lock: waits for earlier commits and reads on a pool's thread if
 * it must, then calls `found` on the write's loop. False: there is no memory to begin, and `found`
 * is not called. Loop thread. */
bool row_families_find(struct row_write *write, void (*found)(struct row_write *write));

#endif
