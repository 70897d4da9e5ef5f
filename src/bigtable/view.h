/* Authorized views as the data API sees them: the rows and columns that a client has which reads
 * and writes through one.
 *
 * A view is compiled when it is first used, and kept with its resource: once for each version of
 * it. A call goes by the version that stood when it began. */
#ifndef TRESTLE_BIGTABLE_VIEW_H
#define TRESTLE_BIGTABLE_VIEW_H

#include "control/control.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "row/columns.h"

/* Immutable. */
struct view {
    struct resource_kept kept;
    struct resource *resource; /* which keeps it */
    struct arena *arena;       /* has all of it */
    struct string_set rows;
    struct columns columns;
};

/* INVALID_ARGUMENT for what is no view's name, NOT_FOUND. `*out` is retained. */
status view_open(struct control *control, const char *name, const struct view **out);
void view_release(const struct view *view); /* NULL is fine */

/* Whether the view has all that the mutations touch, whatever is there now. They have passed
 * mutations_check. A row, or a family, is deleted as a whole only through a view that has all of
 * it. */
bool view_has(const struct view *view, const struct schema *schema, bytes row_key,
              Bt__Mutation *const *mutations, size_t count);

/* PERMISSION_DENIED in production's words. */
status view_refusal(const struct view *view);

/* PERMISSION_DENIED, of a read that names a family which the view does not. */
status view_refuse_family(const struct view *view);

/* OK, or the refusal. NULL: no view, all is well. */
status view_check_mutations(const struct view *view, const struct schema *schema, bytes row_key,
                            Bt__Mutation *const *mutations, size_t count);
status view_check_rules(const struct view *view, bytes row_key,
                        Bt__ReadModifyWriteRule *const *rules, size_t count);

#endif
