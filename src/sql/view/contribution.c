/* Contributions: see contribution.h. Each part: a varint of the id's size, the id, a varint of the
 * body's, the body. */
#include "sql/view/contribution.h"

#include "sql/view/aggregate.h"

status view_contribution_next(bytes *rest, struct view_part *out, bool *found)
{
    *found = rest->size > 0;
    if (rest->size == 0)
        return status_ok();
    bool is_part =
        view_take_text(rest, &out->id) && out->id.size > 0 && view_take_text(rest, &out->body);
    *found = is_part;
    return is_part ? status_ok() : view_bad_record();
}
