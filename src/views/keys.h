/* Keys of a view's records (cluster/view/view_records.h), and the first byte of their values.
 *
 *     'P'                             the state: state.h
 *     'C' <source key>                what that row gives to the view
 *     'G' <id>                        a group (sql/view/group.h)
 *     'E' <size of id: 2> <id> <entry>    an entry of that group
 *
 * Values of 'C' and 'G' begin with a byte that says whether the row, or the group, is left out;
 * what follows is a contribution (empty if it is left out), or the group's record. A source row
 * that has no part in the view has no record. */
#ifndef TRESTLE_VIEWS_KEYS_H
#define TRESTLE_VIEWS_KEYS_H

#include "base/arena.h"
#include "base/status.h"

enum {
    VIEW_RECORD_STATE = 'P',
    VIEW_RECORD_ROW = 'C',
    VIEW_RECORD_GROUP = 'G',
    VIEW_RECORD_ENTRY = 'E',
};

enum view_record_tag { VIEW_RECORD_IN, VIEW_RECORD_LEFT_OUT };

bytes view_state_key(void);

/* <kind> <rest>, in the arena. Without memory its data is NULL. */
bytes view_record_key(struct arena *arena, char kind, bytes rest);

/* What stands before each entry of a group; the same. */
bytes view_entry_prefix(struct arena *arena, bytes id);

/* <tag> <rest>; the same. */
bytes view_record_value(struct arena *arena, enum view_record_tag tag, bytes rest);

/* Splits such a value. DATA_LOSS for one that is none. */
status view_record_read(bytes value, enum view_record_tag *tag, bytes *rest);

/* The first key that does not begin with the prefix, which is not all FF; in the arena. */
bytes view_prefix_end(struct arena *arena, bytes prefix);

#endif
