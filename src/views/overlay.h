/* The entries of one group while a batch folds into it: what the batch puts and removes lies over
 * what is recorded, so that it is found before it is written (struct view_entries, group.h).
 *
 * Puts and removals are listed as they come, and put in order when something is to be found: so of
 * many changes of a group each costs little. */
#ifndef TRESTLE_VIEWS_OVERLAY_H
#define TRESTLE_VIEWS_OVERLAY_H

#include "base/vector.h"
#include "cluster/view/view_commit.h"
#include "cluster/view/view_records.h"
#include "sql/view/group.h"

struct view_overlay {
    struct view_entries entries; /* for the group; its context is this */
    struct table *view;
    struct view_commit *commit;  /* gets what is put and removed, when it is written out */
    struct view_cursor **cursor; /* over the records as they were; made when it is needed first */
    struct arena *arena;
    bytes prefix;          /* of the group's entries among the records */
    struct vector changes; /* of struct overlay_change */
    bool is_sorted;
    struct buffer *found; /* what was found last */
};

/* `id`: the group's. All else lives as long as the overlay; `arena` has what is changed. */
status view_overlay_begin(struct view_overlay *overlay, struct table *view,
                          struct view_commit *commit, struct view_cursor **cursor,
                          struct buffer *found, struct arena *arena, bytes id);

/* Gives what was put and removed to the commit. */
status view_overlay_write(struct view_overlay *overlay);

#endif
