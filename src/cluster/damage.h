/* What of the tables is out of service: keys that the store has closed, since a table file of its
 * was damaged (store.h, "damage"). Private to cluster/.
 *
 * The store finds damage and closes keys; this remembers it, in the catalog, so that the next start
 * closes them again before anybody reads; names the table and the rows to who is refused; and tells
 * of it as a reason of health. A range ends when the rows in it were dropped or repaired, also if
 * they had been dropped before it was found, or when its keyspace is gone.
 *
 * Invariants
 *  1. A closed range has a record in the catalog, unless the catalog could not be written: then the
 *     store leaves the damaged file where it is, and tells of it again.
 *  2. A record is deleted after the rows of its range were, durably, or were taken as they are, and
 *     before the range is opened.
 *
 * Any thread, unless said otherwise. */
#ifndef TRESTLE_CLUSTER_DAMAGE_H
#define TRESTLE_CLUSTER_DAMAGE_H

#include "cluster/catalog.h"

/* --- what a range is for people: damage_words.c --- */

/* The number in the file's name, in whichever store it was. */
static inline uint64_t damage_file(const struct damage_record *record)
{
    return record->file & ~DAMAGE_FOREIGN_FILE;
}

/* "rows from "a" to "b" of projects/…/tables/t are out of service: the table file …", and a NUL. */
void damage_describe(const struct damage_record *record, const char *table, struct buffer *out);

struct lost_rows;
/* Calls `tell` with the rows, and then with the large cells, as far as the range has any. */
status damage_tell(const struct damage_record *record, const char *table,
                   status (*tell)(void *context, const struct lost_rows *lost), void *context);

/* The part of a range in one space of keys (row_key.h); empty (from >= to) if there is none. */
struct damage_part {
    bytes from;
    bytes to;
};
struct damage_part damage_part(const struct damage_record *record, uint8_t space);
bool damage_part_is_empty(struct damage_part part);
/* The row at a part's end in the space of records; empty, no bound, where that is its border. */
bytes damage_row(bytes key);

/* --- what is out of service --- */

struct damages;
struct key_bounds;
struct row_drops;
struct shard;

status damages_create(struct shard *shard, struct damages **out);
void damages_destroy(struct damages *damages); /* after the store is closed; NULL is fine */

/* For store_options.on_damage, with `context` the damages: whether it is in the catalog. What comes
 * before damages_load is kept for that. */
bool damages_see(void *context, const struct store_damage *damage);

/* While the catalog is read. */
status damages_remember(struct damages *damages, const struct damage_record *record);
/* When the catalog is read: closes what is remembered, in the words it was found with; writes
 * nothing, so that the store may begin its compactions afterwards and no sooner. */
void damages_close(struct damages *damages);
/* When the tables are known: tells what is closed in words that name them, and forgets what has no
 * keyspace any more. */
status damages_load(struct damages *damages);

/* These keys were deleted: what is out of service among them is brought back, as far as it lies
 * there wholly. What cannot be done now is left as it is, and logged. Blocks. */
void damages_end_deleted(struct damages *damages, struct keyspace *keyspace,
                         const struct key_bounds *records, const struct key_bounds *overflow);

/* Whether all that the damaged file had of the range was dropped since, by a drop that is not held.
 */
bool damage_is_dropped(const struct damage_record *record, struct row_drops *drops);
/* How such a range is told: the words of its damage, and that; ends with a NUL. */
#define DAMAGE_OF_DELETED "; all that it had was deleted since"
void damage_say_dropped(const char *what, struct buffer *out);

struct dropped_damage {
    struct keyspace *keyspace;
    struct row_drops *drops;
    /* Is told of each range before it is back; NULL: nobody is. */
    status (*tell)(void *context, const struct lost_rows *lost);
    void *context;
};

/* What is out of service of such rows is brought back, with all that has been written there since.
 * At the first that cannot be it fails. Blocks. */
status damages_end_dropped(struct damages *damages, const struct dropped_damage *dropped);

/* Of the keys of records from `from` to `to` the first that are in service: moves `from` behind
 * what is not and begins there, and `to` before what is not and comes next. */
void damages_find_open(struct damages *damages, uint64_t keyspace_id, struct buffer *from,
                       struct buffer *to);

/* Whether something of the keyspace is known to be damaged. */
bool damages_has(struct damages *damages, uint64_t keyspace_id);

/* Its keyspace is gone. */
void damages_forget_keyspace(struct damages *damages, uint64_t keyspace_id);

/* --- what a table that is made does not have: damage_adopt.c --- */

/* Before any caller can find the table: closes the ranges, all of its keyspace, and adds their
 * records to the batch that makes it. If that is not written, damages_forget_keyspace. The files
 * are another store's (DAMAGE_FOREIGN_FILE): none of ours may turn out to be sound instead. */
status damages_adopt(struct damages *damages, struct keyspace *keyspace,
                     const struct damage_record *records, size_t count, struct store_batch *batch);
/* When its name is known: tells what is closed in words that name it. */
void damages_tell_adopted(struct damages *damages, struct keyspace *keyspace);

/* --- large cells that are lost, of rows that are in service: lost_cells.c --- */

struct lost_cells {
    struct shard *shard;
    struct keyspace *keyspace;
    struct damage_part part; /* of OVERFLOW_SPACE */
};

/* Calls `visit` with each row, by its key and its record, that may have some; keys are good during
 * the call. UNAVAILABLE: tables cannot be read beside what is damaged, before the next start. What
 * `visit` fails with. Blocks. */
typedef status lost_cells_visit(void *context, bytes row_key, bytes record);
status lost_cells_each_row(const struct lost_cells *lost, lost_cells_visit *visit, void *context);

/* Ends what the record of the row, or of each of them, has at the places of those. Fails and blocks
 * likewise. */
status lost_cells_cut_row(const struct lost_cells *lost, bytes row_key);
status lost_cells_cut(struct lost_cells *lost);

#endif
