/* What one source row gives to a view: a list of parts, as bytes that are recorded.
 *
 * A part has the *id* of the view row that it goes to, and a body. Of a view with groups there is
 * one part for each group, into which the row's pieces are folded; of an index one for each view
 * row. The same row, evaluated again, gives the same bytes: who finds them equal need do nothing.
 *
 * Ids sort as the view's rows do: by row key, then by timestamp. row.h says what an id stands for.
 * docs/internals/format.md has the bytes. */
#ifndef TRESTLE_SQL_VIEW_CONTRIBUTION_H
#define TRESTLE_SQL_VIEW_CONTRIBUTION_H

#include "base/bytes.h"
#include "base/status.h"

struct view_part {
    bytes id;
    bytes body; /* of a group: group.h folds it; of an index: row.h makes a row of it */
};

/* Takes the next part off a contribution's rest, by rising id, none twice; `*found` false at the
 * end. Slices point into it. DATA_LOSS for bytes that are none. */
status view_contribution_next(bytes *rest, struct view_part *out, bool *found);

#endif
