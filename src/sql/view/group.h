/* A group of a view, and what the rows in it come to.
 *
 * The state of a group is a *record*, of a bounded size, and *entries* beside it: an ordered store
 * of what cannot be taken back from a sum. MIN and MAX have an entry for each source row, by
 * value; HLL_COUNT.INIT one for each row and register, HLL_COUNT.MERGE one for each row.
 *
 *     view_group_read ─► view_group_fold … ─► view_group_settle ─► view_group_row, …_write
 *
 * Folding only puts and deletes; what must be looked up (the least value behind one that was taken
 * back) is when the group settles. So of many changes of a group in a batch each costs little, and
 * the group is settled once. Adding what was taken back leaves what there was: the state depends
 * on which contributions are in, not on the order in which they came.
 *
 * A group is of one thread. */
#ifndef TRESTLE_SQL_VIEW_GROUP_H
#define TRESTLE_SQL_VIEW_GROUP_H

#include "sql/view/contribution.h"
#include "sql/view/program.h"

/* The entries of one group: keys that compare as bytes. The caller keeps them as records under a
 * prefix of the group's. */
struct view_entries {
    void *context;
    status (*put)(void *context, bytes entry, bytes value);
    status (*remove)(void *context, bytes entry);
    /* The first entry (or, if `is_last`, the last) that begins with `prefix` and is not below
     * `from`, as all that was put and removed before leaves it. `*found` false: none. Valid until
     * the next call of any. */
    status (*find)(void *context, bytes prefix, bytes from, bool is_last, bytes *entry,
                   bytes *value, bool *found);
};

/* An entry's size: of the group's own part, without what the caller sets before it. Beside it the
 * source row's key is in it. */
enum { VIEW_MOST_ENTRY = 1100 };

struct view_group;

/* A group in memory, in the arena: of its record, which stays as long, or, if that is empty, a new
 * one. DATA_LOSS. */
status view_group_read(const struct view_program *program, bytes record, struct arena *arena,
                       struct view_group **out);

/* Adds what a source row gives to the group, or takes back what it gave. `entries` are the
 * group's. DATA_LOSS for a body that is none. */
status view_group_fold(struct view_group *group, bytes body, bytes source_key, bool is_removal,
                       const struct view_entries *entries);

/* Looks up what folding left open. Before the group's row is made and its record written. */
status view_group_settle(struct view_group *group, const struct view_entries *entries);

/* Whether no source row is in it any more: then it has no entries either, and its record, its view
 * row and its id are to be forgotten. */
bool view_group_is_empty(const struct view_group *group);

/* Source rows that are in it. */
uint64_t view_group_rows(const struct view_group *group);

/* Appends the record. */
status view_group_write(const struct view_group *group, struct buffer *record);

#endif
