/* Which families a row has, for what readers of change streams are told of as deletions of these:
 * they know no deletion of a row. That is a deletion of the row, and a row that was dropped
 * (telling.h) before it is changed.
 *
 * With the row's lock held, so that what is found is what the deletion meets. What cannot be found
 * (the row is damaged, there is no memory) is left to the commit thread, which then tells of all
 * families of the table: more than was there, which changes nothing for who applies it. */
#ifndef TRESTLE_CLUSTER_STREAM_ROW_FAMILIES_H
#define TRESTLE_CLUSTER_STREAM_ROW_FAMILIES_H

#include "row/fragment.h"
#include "store/store.h"

struct row_drops;
struct row_write;
struct schema;
struct shard;
struct table;

/* A row, and by which drops it is read. */
struct row_families_place {
    struct table *table;
    struct shard *shard;
    struct keyspace *keyspace;
    struct row_drops *drops; /* NULL: the table's */
    bytes row_key;
    enum store_read_tier read_tier;
};

/* Puts the families in place of the deletions of the row in the list, once all earlier commits of
 * the row are applied. False: the row is not in memory, and `read_tier` stops there. */
bool row_families_expand(const struct row_families_place *place, struct change_list *list);

/* The same with all families of the schema; nothing if no deletion of the row is left in it. False
 * without memory. */
bool row_families_expand_all(const struct schema *schema, struct change_list *list);

/* Whether a change of the row, whose lock is held, is not whole yet: there is a deletion of the row
 * in its list, or the stream has to be told first that the row was dropped. */
bool row_families_are_wanted(const struct table *table, const struct keyspace *keyspace,
                             bytes row_key, const struct packed_change *change);

/* Makes it whole, as row_families_expand does. May be called again after it said no. `drops` of the
 * place is ignored. */
bool row_families_complete(const struct row_families_place *place, struct packed_change *change);

/* The same for a write that has the lock: waits for earlier commits and reads on a pool's thread if
 * it must, then calls `found` on the write's loop. False: there is no memory to begin, and `found`
 * is not called. Loop thread. */
bool row_families_find(struct row_write *write, void (*found)(struct row_write *write));

#endif
