/* See views.h. */
#include "views/views.h"

#include <stdlib.h>

struct views {
    struct views_options options;
};

status views_start(const struct views_options *options, struct views **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->options = *options;
    return status_ok();
}

void views_stop(struct views *views)
{
    (void)views;
}

void views_free(struct views *views)
{
    free(views);
}

static status not_built(void)
{
    return status_make(STATUS_UNIMPLEMENTED, "Materialized views are not kept yet.");
}

status views_create_table(struct views *views, const char *name,
                          const struct view_definition *definition, struct catalog_txn *txn)
{
    (void)views, (void)name, (void)definition, (void)txn;
    return not_built();
}

status views_delete_table(struct views *views, const char *name, struct catalog_txn *txn)
{
    (void)views, (void)name, (void)txn;
    return not_built();
}

const char *view_state_name(enum view_state state)
{
    static const char *const names[] = {[VIEW_POPULATING] = "populating",
                                        [VIEW_READY] = "ready",
                                        [VIEW_RECONCILING] = "reconciling",
                                        [VIEW_FAILED] = "failed"};
    return names[state];
}

status views_find(struct views *views, const char *name, struct view_found *out)
{
    (void)views, (void)name, (void)out;
    return not_built();
}

status views_wait(struct views *views, const char *name,
                  status (*report)(void *context, const struct view_progress *progress),
                  void *context)
{
    (void)views, (void)name, (void)report, (void)context;
    return not_built();
}

void views_visit(struct views *views, bytes prefix,
                 bool (*visit)(void *context, const struct view_status *status), void *context)
{
    (void)views, (void)prefix, (void)visit, (void)context;
}

void views_measure(struct views *views)
{
    (void)views;
}

void views_hold(struct views *views, bool is_held)
{
    (void)views, (void)is_held;
}

status views_settle(struct views *views)
{
    (void)views;
    return not_built();
}
